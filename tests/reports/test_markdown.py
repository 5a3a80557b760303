"""Markdown for a pull request: what it shows, and that a log's names are never markup."""

from __future__ import annotations

import re

import pytest
from markdown_it import MarkdownIt

from rlhealth.reports import ReportOptions, write
from rlhealth.verdict.verdicts import Verdict

ANSWERS = ["healthy", "sick", "unknown", "nothing", "many", "hostile"]


def html(text: str) -> str:
    """As GitHub's renderer sees it: tables, raw HTML, and bare addresses as links."""
    return MarkdownIt("commonmark", {"html": True}).enable(["table"]).render(text)


def test_the_verdict_comes_first_then_the_cause_with_its_consequences_as_one_table(sick: Verdict) -> None:
    text = write(sick, "markdown")
    assert text.startswith("## ❌ rlhealth: critical\n\n### ❌ `polite-lr-jump`: 2 critical, 3 warning, 1 info\n")
    shown = html(text)
    cause = shown[shown.index("Each update moves the policy too far") :]
    rows = re.findall(r"<code>([a-z-]+)</code>", cause[: cause.index("</table>")])
    assert [row for row in rows if "-" in row][:3] == ["grad-norm-spike", "kl-high", "entropy-collapse"]
    assert re.search(r"<code>[▁▂▃▄▅▆▇█]{20}</code>", cause)
    assert text.rstrip().endswith("1 ignored, 4 rules skipped; fail-on critical; exit 1")


def test_thirty_runs_are_a_table_and_the_healthy_one_row(many: Verdict) -> None:
    shown = html(write(many, "markdown"))
    table = shown[: shown.index("</table>")]
    assert table.count("<tr>") == 1 + 3 + 1 + 1 + 1 + 1
    assert "24 healthy runs" in table
    assert "unreadable" in table


@pytest.mark.parametrize("name", ANSWERS)
def test_no_name_from_a_log_is_markup_a_link_or_a_mention(name: str, request: pytest.FixtureRequest) -> None:
    shown = html(write(request.getfixturevalue(name), "markdown"))
    tags = set(re.findall(r"<(/?[a-zA-Z0-9]+)", shown))
    ours = {
        "h2",
        "h3",
        "h4",
        "p",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "code",
        "details",
        "summary",
        "ul",
        "li",
        "em",
        "strong",
        "hr",
        "blockquote",
    }
    assert {tag.removeprefix("/") for tag in tags} <= ours
    prose = re.sub("<code>.*?</code>", "", shown)  # GitHub looks for links and mentions outside code only
    assert "://" not in prose
    assert not re.search(r"@\w", prose)


def test_two_hundred_runs_still_fit_into_a_comment(many: Verdict, hostile: Verdict) -> None:
    many.runs = (many.runs + hostile.runs) * 5
    text = write(many, "markdown", ReportOptions(show_all=True))
    assert len(text) < 65_536
    assert f"{len(many.runs) + 1} runs" in text
