"""What is told: each finding once when it rises, when it worsens and when it clears, however it sits at its limit."""

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
from rlhealth.verdict.findings import Episode, Finding, RunVerdict, Severity, State
from rlhealth.watch.changes import Change, Ledger
from rlhealth.watch.near import nearest, pending, way
from rlhealth.watch.trace import BUCKETS, Trace

RULES = load_rules()
FINDING = Finding(
    "kl-high",
    "kl-high",
    Severity.WARNING,
    "Too far",
    "kl",
    "train/kl",
    10,
    12,
    20,
    State.STANDING,
    15,
    3.0,
    1.0,
    "far",
    "why",
    ("try",),
    "source",
    episodes=(Episode(10, 12, 20),),
)
ENDED = replace(FINDING, state=State.OVER, episodes=(Episode(10, 12, 20, State.OVER),))


def verdict(*findings: Finding, resumed_at: int | None = None) -> RunVerdict:
    run = Run("run", Place("jsonl", "run.jsonl"))
    if resumed_at is not None:
        run.resumed_at.append(resumed_at)
    return RunVerdict(run, translate(run), "running", list(findings))


def changes(*seen: RunVerdict | None) -> list[Change]:
    """What is told of the last verdict to someone who was told the others."""
    ledger = Ledger()
    return [ledger.changes(one) for one in seen if one is not None][-1]


def kinds(found: list[Change]) -> list[str]:
    return [f"{one.kind} {one.note}".strip() for one in found]


def test_a_new_finding_is_raised_and_told_no_second_time() -> None:
    assert kinds(changes(None, verdict(FINDING))) == ["raised"]
    assert kinds(changes(verdict(FINDING), verdict(replace(FINDING, last_step=30)))) == []


def test_a_finding_that_becomes_critical_has_worsened() -> None:
    assert kinds(changes(verdict(FINDING), verdict(replace(FINDING, severity=Severity.CRITICAL)))) == ["worsened"]


def test_a_finding_clears_when_it_has_ended_not_when_it_rests() -> None:
    resting = replace(FINDING, state=State.LASTING, episodes=(Episode(10, 12, 20, State.LASTING),))
    assert kinds(changes(verdict(FINDING), verdict(resting))) == []
    assert kinds(changes(verdict(resting), verdict(ENDED))) == ["cleared"]
    assert kinds(changes(verdict(ENDED), verdict(ENDED))) == []


def test_a_finding_that_rose_and_ended_between_two_looks_is_told_as_both() -> None:
    assert kinds(changes(None, verdict(ENDED))) == ["raised", "cleared"]


def test_a_finding_that_comes_back_is_raised_again() -> None:
    back = replace(FINDING, episodes=(*ENDED.episodes, Episode(40, 42, 50)))
    assert kinds(changes(verdict(ENDED), verdict(back))) == ["raised again"]


def test_what_is_taken_back_is_cleared_with_the_reason() -> None:
    assert kinds(changes(verdict(FINDING), verdict(resumed_at=5))) == ["cleared the run was resumed at step 5"]
    assert kinds(changes(verdict(FINDING), verdict())) == [
        "cleared what was logged since changes how the run is judged"
    ]
    silent = replace(FINDING, rule="run-silent", family="stalled")
    assert kinds(changes(verdict(silent), verdict())) == ["cleared the run continues"]
    assert kinds(changes(verdict(ENDED), verdict())) == [], "it was cleared before"


def test_changes_come_in_the_order_of_their_steps() -> None:
    late = replace(FINDING, rule="late", first_step=90, raised_step=95)
    assert [one.finding.rule for one in changes(None, verdict(late, FINDING))] == ["kl-high", "late"]


def chatter(seed: int) -> Run:
    """A run whose KL jumps over its limit and back at random, every step."""
    random = np.random.default_rng(seed)
    run = Run("chatter", Place("jsonl", "run.jsonl"))
    steps = np.arange(1, 401)
    for tag in ("reward", "reward_std", "grad_norm", "completions/mean_length"):
        run.add(tag, steps, random.normal(size=len(steps)) * 0.01 + 1)
    run.add("kl", steps, np.where(steps < 50, 0.01, 1.5 + 0.2 * random.normal(size=len(steps))))
    return run


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_metric_that_sits_at_its_limit_does_not_chatter(seed: int) -> None:
    whole, run = chatter(seed), Run("chatter", Place("jsonl", "run.jsonl"))
    judge, ledger = Judge(run, RULES), Ledger()
    told: Counter[tuple[str, str]] = Counter()
    for place in range(400):
        for tag, series in whole.series.items():
            run.add(tag, series.steps[place : place + 1], series.values[place : place + 1])
        judge.advance()
        told.update((one.kind, one.finding.rule) for one in ledger.changes(judge.verdict(4e9)))
    assert told["raised", "kl-high-per-token"] >= 1
    crossings = int(np.count_nonzero(np.diff(whole.series["kl"].values > 1.5)))
    assert crossings > 100
    assert sum(count for (_, rule), count in told.items() if rule == "kl-high-per-token") <= 9


def test_what_is_on_its_way_is_pending_and_how_near_it_is_can_be_told() -> None:
    run = Run("near", Place("jsonl", "run.jsonl"))
    steps = np.arange(1, 41)
    for tag in ("reward", "reward_std", "grad_norm", "completions/mean_length", "kl"):
        run.add(tag, steps, np.sin(steps) * 0.01 + 1)
    run.add("completions/clipped_ratio", steps, np.where(steps < 39, 0.45, 0.6))
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
    run.add("kl", np.arange(100), np.arange(100.0))
    metric, trace = translate(run).metrics["kl"], Trace()
    trace.follow(metric)
    run.rewind(50)
    run.add("kl", np.arange(50, 80), np.zeros(30))
    trace.follow(metric)
    steps, values = trace.points
    assert (steps[-1] == 79 and values[-1] == 0 and len(steps) == 80) or values.max() == 49


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
