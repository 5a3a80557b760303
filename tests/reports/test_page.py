"""The HTML report in a real browser: charts with the right values, no complaint, no network, hostile names harmless,
keyboard, phone and print.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlhealth.reports import write
from rlhealth.verdict.verdicts import Verdict
from tests.reports.browser import Browser, chromium

pytestmark = pytest.mark.skipif(chromium() is None, reason="no Chromium is installed")
ROOT = Path(__file__).parents[2]
AXE = [
    one
    for one in (Path(os.environ.get("AXE_CORE", "/")), ROOT / "node_modules" / "axe-core" / "axe.min.js")
    if one.is_file()
]
ANSWERS = ["healthy", "sick", "unknown", "nothing", "many", "hostile"]
AXE_ON = [*ANSWERS, "very_many"]


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


def test_pills_and_text_leave_the_runs_that_match_and_their_sections(
    many: Verdict, browser: Browser, tmp_path: Path
) -> None:
    opened(browser, many, tmp_path)
    lines = "[...document.querySelectorAll('.runs tbody tr')].filter(r => r.offsetParent).length"
    sections = "[...document.querySelectorAll('details.run')].filter(r => r.offsetParent).length"
    assert browser.run(lines) == 30
    browser.click(".filters [data-verdict=critical]")
    assert browser.run(lines) == 3 and browser.run(sections) == 3
    browser.click(".filters [data-verdict=warning]")
    assert browser.run(lines) == 4, "both pills"
    browser.click("#find-run")
    for letter in "s1":
        browser.key(letter, letter)
    assert browser.run(lines) == 2 and browser.run("document.querySelector('.filters .count').textContent") == "2 of 30"
    browser.key("Escape")
    browser.click(".filters [data-verdict=critical]")
    browser.click(".filters [data-verdict=warning]")
    assert browser.run(lines) == 30 and browser.run(sections) == browser.run(
        "document.querySelectorAll('details.run').length"
    )


def test_the_header_stays_and_leads_back_to_the_table(many: Verdict, browser: Browser, tmp_path: Path) -> None:
    opened(browser, many, tmp_path)
    browser.run("location.hash = '#run-2'")
    browser.run("new Promise(r => setTimeout(r, 700))")
    assert browser.run("document.querySelector('.top').getBoundingClientRect().top") == 0
    browser.click(".top .back")
    assert browser.until("Math.abs(document.getElementById('runs').getBoundingClientRect().top) < 120")


def moved(browser: Browser, selector: str, share: float, kind: str = "mouseMoved", held: int = 0) -> None:
    """The mouse over a chart, at so much of its width; pressed or released there."""
    x, y, wide, tall = browser.run(
        f"(e => {{ const b = e.getBoundingClientRect(); return [b.x, b.y, b.width, b.height]; }})({selector})"
    )
    browser.send(
        "Input.dispatchMouseEvent",
        type=kind,
        x=x + wide * share,
        y=y + tall / 2,
        button="left" if kind != "mouseMoved" or held else "none",
        buttons=held,
        clickCount=1,
    )


KL = "[...document.querySelectorAll('.row svg')].find(s => s.dataset.name === 'kl')"
VIEWS = "[...new Set([...document.querySelectorAll('.row svg, .mini svg')].map(s => s.viewBox.baseVal.width))]"


def test_one_crosshair_goes_through_every_chart_of_the_run(sick: Verdict, browser: Browser, tmp_path: Path) -> None:
    opened(browser, sick, tmp_path)
    browser.run(f"{KL}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
    moved(browser, KL, 0.5)
    crosses = browser.run("[...document.querySelectorAll('.cross')].map(c => c.getAttribute('d').split('V')[0])")
    assert len(crosses) == browser.run("document.querySelectorAll('.row svg, .mini svg, .vitals svg').length")
    assert len(set(crosses)) == 1, "at one step"
    browser.send("Input.dispatchMouseEvent", type="mouseMoved", x=2, y=2)
    assert browser.run("document.querySelectorAll('.cross').length") == 0


def test_a_point_reads_as_it_was_logged(sick: Verdict, browser: Browser, tmp_path: Path) -> None:
    opened(browser, sick, tmp_path)
    browser.run(f"{KL}.focus()")
    browser.key("ArrowLeft")
    metric = sick.runs[0].translation.metrics["kl"]
    said = browser.run("document.getElementById('tip').textContent").split(": ")[1]
    assert float(said) == pytest.approx(float(metric.values[-1]), rel=1e-4), "to five digits, whatever the scale"


def test_a_stretch_that_is_dragged_over_fills_all_charts_and_esc_shows_the_whole(
    sick: Verdict, browser: Browser, tmp_path: Path
) -> None:
    opened(browser, sick, tmp_path)
    whole = browser.run(VIEWS)
    assert len(whole) == 1
    browser.run(f"{KL}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
    moved(browser, KL, 0.25, "mousePressed", 1)
    moved(browser, KL, 0.75, held=1)
    moved(browser, KL, 0.75, "mouseReleased")
    [zoomed] = browser.run(VIEWS)
    assert zoomed == pytest.approx(whole[0] / 2, rel=0.02)
    moved(browser, KL, 0.0)
    first = int(browser.run("document.getElementById('tip').textContent").removeprefix("step ").split(":")[0])
    assert first == pytest.approx(1 + whole[0] / 4, abs=1.5), "the pointer reads the steps that are shown"
    browser.click(".whole-tool")
    assert browser.run(VIEWS) == whole


def test_a_log_scale_keeps_the_values_and_moves_the_curve(sick: Verdict, browser: Browser, tmp_path: Path) -> None:
    opened(browser, sick, tmp_path)
    chart = "[...document.querySelectorAll('.mini svg')].find(s => s.dataset.name === 'entropy')"
    line = f"{chart}.querySelector('.line').getAttribute('d')"
    before = browser.run(line)
    browser.click(".log-tool")
    assert browser.run(f"{chart}.parentElement.dataset.scale") == "log" and browser.run(line) != before
    browser.run(f"{chart}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
    moved(browser, chart, 1.0)
    last = float(sick.runs[0].translation.metrics["entropy"].values[-1])
    assert float(browser.run("document.getElementById('tip').textContent").split(": ")[1]) == pytest.approx(last, 1e-4)
    browser.click(".log-tool")
    assert browser.run(f"{chart}.parentElement.dataset.scale") == ""


@pytest.fixture
def very_many(many: Verdict) -> Verdict:
    """So many runs that what is small on the page is drawn when a run is opened."""
    from tests.reports.conftest import healthy_run, sick_run

    runs = [sick_run(f"sick_{number}") for number in range(40)] + [
        healthy_run(f"well_{number}") for number in range(62)
    ]
    return Verdict(runs, many.errors)


def test_of_very_many_runs_each_has_all_its_metrics_when_it_is_opened(
    very_many: Verdict, browser: Browser, tmp_path: Path
) -> None:
    page = opened(browser, very_many, tmp_path)
    assert (tmp_path / "health.html").stat().st_size < 2_000_000
    assert page.run("document.querySelectorAll('details.run').length") == 102
    for place in (3, 101):
        run = f"document.getElementById('run-{place}')"
        assert page.run(f"{run}.querySelectorAll('.mini').length") == 0
        page.run(f"{run}.open = true")
        assert page.until(f"{run}.querySelectorAll('.mini').length > 5")
        shown = page.run(f"[...{run}.querySelectorAll('.mini code')].map(e => e.textContent)")
        judged = next(one for one in very_many.runs if one.name == page.run(f"{run}.querySelector('h2').textContent"))
        assert sorted(shown) == sorted(name for name, one in judged.translation.metrics.items() if len(one))
        assert page.run(f"{run}.querySelectorAll('.vitals .chart svg').length") >= 4
        quiet = page.run(f"{run}.querySelector('.rules').textContent")
        assert all(rule in quiet for rule in judged.quiet) and all(one.rule in quiet for one in judged.skipped)
    assert page.complaints() == []


def test_another_run_is_drawn_over_this_one(very_many: Verdict, browser: Browser, tmp_path: Path) -> None:
    page = opened(browser, very_many, tmp_path)
    page.run("document.getElementById('run-0').open = true")
    assert page.until("!document.querySelector('#run-0 .overlay').hidden")
    page.run(
        "(s => { s.dispatchEvent(new Event('focus')); s.value = 'run-101'; s.dispatchEvent(new Event('change')); })"
        "(document.querySelector('#run-0 select'))"
    )
    assert page.run("document.querySelectorAll('#run-0 .mini .other').length") > 5
    page.run("(s => { s.value = ''; s.dispatchEvent(new Event('change')); })(document.querySelector('#run-0 select'))")
    assert page.run("document.querySelectorAll('.other').length") == 0


@pytest.mark.skipif(not AXE, reason="axe-core is not installed (npm install --no-save axe-core@4.14.1)")
@pytest.mark.parametrize("name", AXE_ON)
def test_axe_finds_nothing_serious(name: str, browser: Browser, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """In the dark the page differs by its colours alone: of that, only the rules about colours are asked."""
    opened(browser, request.getfixturevalue(name), tmp_path)
    browser.run("document.querySelectorAll('details.run').forEach((one, place) => { one.open = place < 3; })")
    browser.run(AXE[0].read_text("utf-8"))
    for colours, rules in (("light", "{}"), ("dark", "{runOnly: ['color-contrast', 'link-in-text-block']}")):
        browser.run(f"document.documentElement.className = '{colours}'")
        found = browser.run(
            f"axe.run(document, {rules}).then(r => r.violations.map(v => [v.impact, v.id, v.nodes.length, "
            "v.nodes[0].html.slice(0, 200), v.nodes[0].failureSummary]))"
        )
        assert [one for one in found if one[0] in ("serious", "critical")] == [], colours
