"""The HTML report in a real browser: charts with the right values, no complaint, no network, hostile names harmless,
keyboard, phone and print.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlhealth.reports import write
from rlhealth.verdict.findings import Verdict
from tests.reports.browser import Browser, chromium

pytestmark = pytest.mark.skipif(chromium() is None, reason="no Chromium is installed")
ROOT = Path(__file__).parents[2]
AXE = [
    one
    for one in (Path(os.environ.get("AXE_CORE", "/")), ROOT / "node_modules" / "axe-core" / "axe.min.js")
    if one.is_file()
]
ANSWERS = ["healthy", "sick", "unknown", "nothing", "many", "hostile"]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    one = Browser(tmp_path_factory.mktemp("browser"))
    yield one
    one.close()


def opened(browser: Browser, verdict: Verdict, folder: Path, width: int = 1200) -> Browser:
    page = folder / "health.html"
    page.write_text(write(verdict, "html"), "utf-8")
    browser.open(page, width)
    return browser


@pytest.mark.parametrize("name", ANSWERS)
def test_nothing_is_complained_of_fetched_or_run(
    name: str, browser: Browser, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    opened(browser, request.getfixturevalue(name), tmp_path)
    assert browser.run("document.scripts.length") == 1
    assert browser.run("[...document.querySelectorAll('img, iframe, object, embed, link, base, form')].length") == 0
    assert (
        browser.run(
            "[...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames()).filter(n "
            "=> n.startsWith('on')).length"
        )
        == 0
    )
    assert browser.complaints() == []


def test_hostile_names_are_text(hostile: Verdict, browser: Browser, tmp_path: Path) -> None:
    opened(browser, hostile, tmp_path)
    heads = browser.run("[...document.querySelectorAll('.runs tbody th')].map(e => e.textContent)")
    assert "<script>alert(1)</script>" in heads
    assert "]]></system-out><x/>" in heads
    assert "\\u202eright to left\\u2069 שלום" in heads
    assert browser.run("document.querySelectorAll('x, h1').length") == 1


def test_the_chart_shows_the_values_that_were_logged(sick: Verdict, browser: Browser, tmp_path: Path) -> None:
    opened(browser, sick, tmp_path)
    metric = sick.runs[0].translation.metrics["kl"]
    chart = (
        "[...document.querySelectorAll('.row')].find(r => r.querySelector('code').textContent "
        "=== 'kl').querySelector('svg')"
    )
    browser.run(f"{chart}.focus()")
    browser.key("ArrowLeft")
    assert browser.run("document.getElementById('tip').textContent").startswith("step 140: ")
    shown = []
    for _ in range(60):
        step, value = browser.run("document.getElementById('tip').textContent").removeprefix("step ").split(": ")
        shown.append((int(step), float(value)))
        browser.key("ArrowLeft")
    logged = dict(zip(metric.steps.tolist(), metric.values.tolist(), strict=True))
    assert [step for step, _ in shown] == list(range(140, 80, -1))
    assert all(value == pytest.approx(logged[step], rel=0.02) for step, value in shown)


def test_the_pointer_reads_the_nearest_point(sick: Verdict, browser: Browser, tmp_path: Path) -> None:
    opened(browser, sick, tmp_path)
    browser.run("document.querySelector('.mini svg').scrollIntoView({block: 'center', behavior: 'instant'})")
    x, y, w = browser.run(
        "(b => [b.x, b.y + b.height / 2, b.width])(document.querySelector('.mini svg').getBoundingClientRect())"
    )
    browser.send("Input.dispatchMouseEvent", type="mouseMoved", x=x + w * (100 - 1) / (140 - 1), y=y)
    reward = dict(
        zip(
            *(
                part.tolist()
                for part in (
                    sick.runs[0].translation.metrics["reward"].steps,
                    sick.runs[0].translation.metrics["reward"].values,
                )
            ),
            strict=True,
        )
    )
    assert browser.run("document.getElementById('tip').textContent") == f"step 100: {float(f'{reward[100]:.3g}'):g}"


def test_search_leaves_the_metrics_that_match(sick: Verdict, browser: Browser, tmp_path: Path) -> None:
    opened(browser, sick, tmp_path)
    browser.key("/", "/")
    for letter in "clip ratio":
        browser.key(letter, letter)
    shown = browser.run(
        "[...document.querySelectorAll('.mini')].filter(e => e.offsetParent).map(e "
        "=> e.querySelector('code').textContent)"
    )
    assert shown
    assert all("clip" in name and "ratio" in name for name in shown)
    assert browser.run("document.querySelector('.count').textContent").startswith(f"{len(shown)} of ")
    browser.key("Escape")
    assert browser.run("[...document.querySelectorAll('.mini')].every(e => e.offsetParent)")


def test_the_table_sorts_and_a_line_opens_its_run(many: Verdict, browser: Browser, tmp_path: Path) -> None:
    opened(browser, many, tmp_path)
    first = "document.querySelector('.runs tbody th').textContent"
    assert browser.run(first) == "lr3e-3_s0"
    browser.click(".runs thead th:nth-child(2) button")
    browser.click(".runs thead th:nth-child(2) button")
    assert (
        browser.run("document.querySelector('.runs thead th:nth-child(2)').getAttribute('aria-sort')") == "descending"
    )
    assert browser.run(first).startswith("lr3e-4_s")
    browser.click(".runs thead th:nth-child(1) button")
    names = browser.run("[...document.querySelectorAll('.runs tbody th')].map(e => e.textContent)")
    assert names.index("lr3e-4_s2") < names.index("lr3e-4_s10"), "numbers in names are numbers"
    assert browser.run("[...document.querySelectorAll('details.run')].filter(e => e.open).length") == 1
    browser.click("a[href='#run-2']")
    assert browser.until("document.getElementById('run-2').open")


@pytest.mark.parametrize("width", [1200, 360])
@pytest.mark.parametrize("place", [1, 2])
def test_a_link_to_a_run_lands_on_its_heading(
    many: Verdict, browser: Browser, tmp_path: Path, place: int, width: int
) -> None:
    opened(browser, many, tmp_path, width)
    browser.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": "no-preference"}])
    assert browser.run("getComputedStyle(document.documentElement).scrollBehavior") == "smooth"
    browser.run(f"location.hash = '#run-{place}'")
    browser.run("new Promise(r => setTimeout(r, 700))")
    top = browser.run(f"document.querySelector('#run-{place} h2').getBoundingClientRect().top")
    end = browser.run("document.documentElement.scrollHeight - innerHeight - scrollY")
    head = browser.run("document.querySelector('.top').getBoundingClientRect().bottom")
    assert head <= top < head + 40 or end < 2, f"its heading is {top} px from the top, below {head} px of header"


@pytest.mark.parametrize("name", ANSWERS)
def test_a_phone_needs_no_sideways_scrolling(
    name: str, browser: Browser, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    opened(browser, request.getfixturevalue(name), tmp_path, width=360)
    assert browser.run("document.documentElement.scrollWidth") <= 360


def test_the_page_prints(sick: Verdict, browser: Browser, tmp_path: Path) -> None:
    opened(browser, sick, tmp_path)
    assert len(browser.send("Page.printToPDF", printBackground=True)["data"]) > 20_000


@pytest.mark.skipif(not AXE, reason="axe-core is not installed (npm install --no-save axe-core@4.14.1)")
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", ANSWERS)
def test_axe_finds_nothing_serious(
    name: str, dark: bool, browser: Browser, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    opened(browser, request.getfixturevalue(name), tmp_path)
    browser.run(f"document.documentElement.className = '{'dark' if dark else 'light'}'")
    browser.run(AXE[0].read_text("utf-8"))
    found = browser.run(
        "axe.run().then(r => r.violations.map(v => [v.impact, v.id, v.nodes.length, "
        "v.nodes[0].html.slice(0, 200), v.nodes[0].failureSummary]))"
    )
    assert [one for one in found if one[0] in ("serious", "critical")] == []
