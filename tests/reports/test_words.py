"""Words of reports: since when a finding holds, where it held once, again, or with breaks."""

from __future__ import annotations

import html
from dataclasses import replace

import pytest

from rlhealth.metrics import translate
from rlhealth.reports import ReportOptions, words, write
from rlhealth.reports.json_report import report
from rlhealth.run import Place, Run
from rlhealth.verdict.findings import Episode, Finding, Skipped, State
from rlhealth.verdict.verdicts import RunVerdict, Verdict
from tests.verdict.found import finding


def held(*spans: tuple[int, int], state: State = State.STANDING, from_start: bool = False) -> Finding:
    states = [State.OVER] * (len(spans) - 1) + [state]
    episodes = tuple(
        Episode(first, first, last, one, from_start and not place)
        for place, ((first, last), one) in enumerate(zip(spans, states, strict=True))
    )
    one = replace(finding("critical", first=spans[0][0]), last_step=spans[-1][1], state=state, episodes=episodes)
    return one


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (held((41, 90)), "since step 41"),
        (held((1, 90), from_start=True), "from the start"),
        (held((6, 19), (238, 300)), "since step 238 (before that: steps 6–19)"),
        (held((1, 19), (238, 300), from_start=True), "since step 238 (before that: steps 1–19)"),
        (held((6, 9), (19, 19), (50, 60)), "since step 50 (before that: steps 6–19 in 2 stretches)"),
        (held((10, 200), (205, 300)), "since step 10 with 1 break"),
        (held((3, 9), (100, 200), (205, 300)), "since step 100 with 1 break (before that: steps 3–9)"),
        (held((84, 91), state=State.LASTING), "steps 84–91, not recovered"),
        (held((6, 19), (84, 91), state=State.LASTING), "steps 6–91 in 2 stretches, not recovered"),
        (held((84, 84), state=State.OVER), "step 84, over"),
    ],
)
def test_a_finding_is_dated_by_what_stands_and_names_what_was_before(one: Finding, said: str) -> None:
    assert words.since(one) == said


def test_findings_on_one_metric_began_where_the_first_of_them_did_and_where_it_stands_again() -> None:
    assert words.began([held((6, 19), (238, 300))]) == "6, 238"
    assert words.began([held((40, 300)), held((6, 300))]) == "6"


def test_every_text_dates_what_stands_again_and_json_keeps_where_it_first_held() -> None:
    run = Run("made", Place("table", "made.csv"))
    run.add("kl", list(range(300)), [0.1] * 300)
    verdict = Verdict([RunVerdict(run, translate(run), "finished", [held((6, 19), (238, 299))])])
    since = "since step 238 (before that: steps 6–19)"
    look = ReportOptions()
    for text in ("markdown", "terminal", "html", "github", "gitlab", "junit", "sarif"):
        assert since in html.unescape(write(verdict, text, look)), text
    assert " step=6 since=238 " in write(verdict, "terminal", ReportOptions(piped=True))
    [found] = report(verdict)["runs"][0]["findings"]
    assert found["first_step"] == 6


def with_skips(*each: str) -> Verdict:
    run = Run("made", Place("table", "made.csv"))
    return Verdict(
        [RunVerdict(run, translate(run), "finished", skipped=[Skipped(rule, "", "") for rule in one]) for one in each]
    )


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        (("ab",), "2 rules skipped"),
        (("ab", "abc"), "2 rules skipped in every run, 1 in some"),
        (("ab", "ab"), "2 rules skipped in every run"),
        (("a", "b"), "2 rules skipped in some runs"),
        (("",), ""),
    ],
)
def test_rules_that_one_of_several_runs_skips_are_not_skipped_in_all(runs: tuple[str, ...], said: str) -> None:
    assert words.hidden(with_skips(*runs)) == said
