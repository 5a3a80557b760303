"""What is reported: each incident once when it opens, when its cause is known, when it worsens and when it closes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlhealth.engine.estimate import Bound
from rlhealth.engine.judge import Judge
from rlhealth.metrics import translate
from rlhealth.rules.loading import load_rules
from rlhealth.run import Place, Run
from rlhealth.verdict.evidence import Evidence
from rlhealth.verdict.findings import Episode, Finding, Severity, State
from rlhealth.verdict.verdicts import RunVerdict
from rlhealth.watch.changes import Change, ReportedFindings
from rlhealth.watch.near import nearest, pending, way
from rlhealth.watch.trace import BUCKETS, Trace
from tests.examples import is_thorough

RULES = load_rules()
FINDING = Finding(
    "kl-high",
    "kl-high",
    Severity.WARNING,
    "Too far",
    (Evidence(metric="kl", tag="train/kl", step=15, value=3.0, limit=1.0),),
    10,
    12,
    20,
    State.STANDING,
    "far",
    "why",
    ("try",),
    "source",
    episodes=(Episode(10, 12, 20),),
)
ENDED = replace(FINDING, state=State.OVER, episodes=(Episode(10, 12, 20, State.OVER),))


def verdict(*findings: Finding, resumed_at: int | None = None, until: int = 60) -> RunVerdict:
    """So many rows of a run, with these findings."""
    run = Run("run", Place("jsonl", "run.jsonl"))
    run.add("loss", range(1, until + 1), [1.0] * until)
    if resumed_at is not None:
        run.resumed_at.append(resumed_at)
    return RunVerdict(run, translate(run), "running", list(findings))


def changes(*seen: RunVerdict | None) -> list[Change]:
    """What is reported of the last verdict after the others were reported."""
    ledger = ReportedFindings()
    return [ledger.changes(one) for one in seen if one is not None][-1]


def kinds(found: list[Change]) -> list[str]:
    return [f"{one.kind} {one.note}".strip() for one in found]


def reported(*seen: RunVerdict, last: bool = False) -> list[str]:
    """What is reported of these verdicts, one after another; `last` where no other follows the last."""
    ledger = ReportedFindings()
    return kinds([one for place, run in enumerate(seen) for one in ledger.changes(run, last=last and run is seen[-1])])


def test_a_new_finding_is_raised_and_reported_no_second_time() -> None:
    assert kinds(changes(None, verdict(FINDING))) == ["raised"]
    assert kinds(changes(verdict(FINDING), verdict(replace(FINDING, last_step=30)))) == []


def test_a_note_opens_no_incident() -> None:
    assert kinds(changes(None, verdict(replace(FINDING, severity=Severity.INFO)))) == []


def test_a_finding_that_becomes_critical_has_worsened() -> None:
    assert kinds(changes(verdict(FINDING), verdict(replace(FINDING, severity=Severity.CRITICAL)))) == ["worsened"]


def test_what_worsened_is_dated_by_the_newest_step_and_not_by_that_at_which_it_was_raised() -> None:
    [raised] = changes(None, verdict(FINDING))
    [worse] = changes(verdict(FINDING), verdict(replace(FINDING, severity=Severity.CRITICAL, last_step=40)))
    assert (raised.step, worse.step) == (12, 40)
    assert "at step 40" in str(worse)


def test_what_begins_close_to_an_incident_is_part_of_it_and_reported_only_where_it_is_worse() -> None:
    more = replace(FINDING, rule="more", first_step=30, raised_step=31)
    assert kinds(changes(verdict(FINDING), verdict(FINDING, more))) == []
    [worse] = changes(verdict(FINDING), verdict(FINDING, replace(more, severity=Severity.CRITICAL)))
    assert worse.kind == "worsened" and worse.finding.rule == "more"
    assert worse.incident is not None and worse.incident.number == 1
    assert worse.incident.rules == ("kl-high", "more") and worse.incident.severity is Severity.CRITICAL


def test_what_begins_far_from_it_is_an_incident_of_its_own() -> None:
    far = replace(FINDING, rule="far", first_step=31, raised_step=33)
    ledger = ReportedFindings()
    numbers = [
        one.incident.number
        for run in (verdict(FINDING), verdict(FINDING, far))
        for one in ledger.changes(run)
        if one.incident
    ]
    assert numbers == [1, 2]


def test_a_cause_that_becomes_known_is_reported_once_and_so_is_another_in_its_place() -> None:
    explained = replace(FINDING, explained_by="cause")
    cause = replace(FINDING, rule="cause", family="diagnosis")  # most are, and a few stand in the family of a symptom
    other = replace(cause, rule="other")
    seen = [
        verdict(FINDING),
        verdict(explained, cause),
        verdict(explained, cause),
        verdict(replace(FINDING, explained_by="other"), other),
        verdict(explained, cause),
    ]
    assert reported(*seen) == ["raised", "explained", "explained not cause"]


def test_a_consequence_joins_its_cause_however_late_it_begins() -> None:
    cause, late = replace(FINDING, rule="cause", family="diagnosis"), replace(FINDING, rule="late", first_step=300)
    before = verdict(replace(FINDING, explained_by="cause"), cause, until=400)
    assert reported(before, verdict(*before.findings, replace(late, explained_by="cause"), until=400)) == ["raised"]
    assert reported(before, verdict(*before.findings, late, until=400)) == ["raised", "raised"]


def test_a_warning_beside_what_is_critical_waits_until_that_is_over() -> None:
    critical = replace(FINDING, severity=Severity.CRITICAL)
    far = replace(FINDING, rule="far", first_step=200, raised_step=210)
    over = replace(ENDED, peak=Severity.CRITICAL)
    assert reported(verdict(critical), verdict(critical, far)) == ["raised"]
    seen = [verdict(critical, until=20), verdict(critical, far, until=210)]
    assert reported(*seen, verdict(over, far, until=211)) == ["raised", "raised"], (
        "which is reported when it no longer holds"
    )
    assert reported(verdict(critical), verdict(critical, replace(far, severity=Severity.CRITICAL))) == [
        "raised",
        "raised",
    ]


def test_that_a_run_died_is_reported_however_sick_it_was() -> None:
    died = replace(FINDING, rule="run-died", family="stalled", severity=Severity.CRITICAL, first_step=20)
    sick = replace(FINDING, severity=Severity.CRITICAL)
    assert kinds(changes(verdict(sick), verdict(sick, died))) == ["raised"]


def test_an_incident_closes_when_it_is_over_not_when_it_rests() -> None:
    resting = replace(FINDING, state=State.LASTING, episodes=(Episode(10, 12, 20, State.LASTING),))
    assert reported(verdict(FINDING), verdict(resting), last=True) == ["raised"]
    assert reported(verdict(resting, until=20), verdict(ENDED, until=69)) == ["raised"], "it rests for 49 rows"
    assert reported(verdict(resting, until=20), verdict(ENDED, until=70), verdict(ENDED, until=71)) == [
        "raised",
        "cleared",
    ]


def test_at_the_end_what_is_over_is_reported_without_a_rest() -> None:
    assert reported(verdict(FINDING), verdict(ENDED), last=True) == ["raised", "cleared"]


def test_an_incident_that_opened_and_ended_between_two_looks_is_reported_as_both() -> None:
    assert reported(verdict(ENDED, until=200)) == ["raised", "cleared"]


@pytest.mark.parametrize(
    ("severity", "said"), [(Severity.WARNING, []), (Severity.CRITICAL, ["raised again", "cleared"])]
)
def test_what_comes_back_is_reported_again_only_where_it_is_critical(severity: Severity, said: list[str]) -> None:
    back = replace(FINDING, severity=severity, episodes=(*ENDED.episodes, Episode(100, 102, 110)))
    gone = replace(back, state=State.OVER, severity=Severity.WARNING, peak=severity, last_step=110)
    seen = [verdict(FINDING, until=20), verdict(ENDED, until=100), verdict(back, until=110)]
    assert reported(*seen, verdict(gone, until=211)) == ["raised", "cleared", *said]
    assert reported(*seen, verdict(gone, until=209)) == ["raised", "cleared", *said[:1]], "it rests for twice as long"


def test_what_is_taken_back_is_cleared_with_the_reason() -> None:
    assert kinds(changes(verdict(FINDING), verdict(resumed_at=5))) == ["cleared the run was resumed at step 5"]
    assert kinds(changes(verdict(FINDING), verdict())) == [
        "cleared what was logged since changes how the run is judged"
    ]
    silent = replace(FINDING, rule="run-silent", family="stalled")
    assert kinds(changes(verdict(silent), verdict())) == ["cleared the run continues"]


def test_what_was_there_before_anybody_watched_is_one_change() -> None:
    late = replace(FINDING, rule="late", first_step=90, raised_step=95)
    over = replace(ENDED, rule="over", first_step=200, raised_step=202)
    ledger = ReportedFindings()
    [one] = ledger.changes(verdict(late, FINDING, over, until=300), first=True)
    assert one.finding.rule == "kl-high" and one.note == "before it was watched; 2 more incidents"
    assert ledger.changes(verdict(late, FINDING, over, until=300)) == []
    [past] = ReportedFindings().changes(verdict(ENDED), first=True)
    assert past.note == "before it was watched, over since" and past.finding.ended


def test_changes_come_in_the_order_of_their_steps() -> None:
    late = replace(FINDING, rule="late", first_step=90, raised_step=95)
    assert [one.finding.rule for one in changes(None, verdict(late, FINDING))] == ["kl-high", "late"]


def chatter(seed: int) -> Run:
    """A run whose KL jumps over its limit and back at random, every step."""
    random = np.random.default_rng(seed)
    run = Run("chatter", Place("jsonl", "run.jsonl"))
    steps = np.arange(1, 251)
    for tag in ("reward", "reward_std", "grad_norm", "completions/mean_length"):
        run.add(tag, steps, random.normal(size=len(steps)) * 0.01 + 1)
    run.add("kl", steps, np.where(steps < 50, 0.01, 1.5 + 0.2 * random.normal(size=len(steps))))
    return run


@pytest.mark.parametrize("seed", range(10 if is_thorough() else 1))
def test_a_metric_that_sits_at_its_limit_does_not_chatter(seed: int) -> None:
    whole, run = chatter(seed), Run("chatter", Place("jsonl", "run.jsonl"))
    judge, ledger = Judge(run, RULES), ReportedFindings()
    reported: Counter[tuple[str, str]] = Counter()
    for place in range(250):
        for tag, series in whole.series.items():
            run.add(tag, series.steps[place : place + 1], series.values[place : place + 1])
        judge.advance()
        reported.update((one.kind, one.finding.rule) for one in ledger.changes(judge.verdict(4e9)))
    assert reported["raised", "kl-high-per-token"] >= 1
    crossings = int(np.count_nonzero(np.diff(whole.series["kl"].values > 1.5)))
    assert crossings > 70
    assert sum(reported.values()) <= 4


def test_what_is_on_its_way_is_pending_and_how_near_it_is_can_be_reported() -> None:
    run = Run("near", Place("jsonl", "run.jsonl"))
    steps = np.arange(1, 41)
    for tag in ("reward", "reward_std", "grad_norm", "completions/mean_length", "kl"):
        run.add(tag, steps, np.sin(steps) * 0.01 + 1)
    run.add("completions/clipped_ratio", steps, np.where(steps < 38, 0.45, 0.75))
    judge = Judge(run, RULES)
    judge.advance(37)
    assert nearest(judge)["completions/clipped_ratio"].share == pytest.approx(0.9)
    assert nearest(judge)["completions/clipped_ratio"].rule == "completions-cut-off"
    judge.advance()
    assert [(one.rule, one.held, one.needed) for one in pending(judge) if one.rule == "completions-cut-off"] == [
        ("completions-cut-off", 1, 2)
    ]


def test_a_trace_of_a_million_points_is_small_and_keeps_the_extremes() -> None:
    run = Run("long", Place("jsonl", "run.jsonl"))
    random = np.random.default_rng(0)
    trace = Trace()
    for start in range(0, 1_000_000, 50_000):
        values = random.normal(size=50_000)
        if start == 400_000:
            values[123] = 1e6
        run.add("kl", np.arange(start, start + 50_000), values)
        trace.follow(translate(run).metrics["kl"])
    steps, values = trace.points
    assert len(steps) <= 2 * BUCKETS + trace.stride and np.all(np.diff(steps) >= 0)
    assert values.max() == 1e6 and steps[int(values.argmax())] == 400_123


def test_a_trace_follows_a_run_that_went_back() -> None:
    run = Run("back", Place("jsonl", "run.jsonl"))
    run.add("kl", np.arange(100), np.arange(100.0) / 100)
    metric, trace = translate(run).metrics["kl"], Trace()
    trace.follow(metric)
    run.rewind(50)
    run.add("kl", np.arange(50, 80), np.zeros(30))
    trace.follow(metric)
    steps, values = trace.points
    assert (steps[-1] == 79 and values[-1] == 0 and len(steps) == 80) or values.max() == 0.49


@given(
    sign=st.sampled_from(["above", "below", "equals"]),
    limit=st.floats(allow_nan=False, allow_infinity=False),
    value=st.floats(),
)
def test_how_far_a_value_has_come_is_one_at_the_limit_whatever_the_numbers(
    sign: str, limit: float, value: float
) -> None:
    bound = Bound(sign, limit)
    share = way(bound, value)
    if share is not None:
        assert share >= 0 and (share >= 1 or not bound.holds(np.asarray([value]))[0])
