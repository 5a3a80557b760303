"""No holes, no overlaps: every sick point of start x level x slope x length raises one finding of its family, and it is true."""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from rlhealth.engine.judge import Judge
from rlhealth.rules.loading import load_rules
from rlhealth.rules.model import Rule
from rlhealth.run import Place, Run
from rlhealth.verdict.findings import Finding, Severity, State
from tests.canonical import translated
from tests.examples import examples


@lru_cache
def family(name: str) -> list[Rule]:
    return [rule for rule in load_rules() if rule.family == name]


def raised(name: str, metric: str, values: np.ndarray, framework: str = "trl-grpo") -> list[Finding]:
    """The findings at or above warning of one family, on a run of one metric."""
    run = Run("run", Place("jsonl", "run.jsonl"))
    run.add(metric, np.arange(1, len(values) + 1), values, 1e9 + np.arange(len(values)))
    judge = Judge(run, family(name), translation=translated(run, framework))
    judge.advance()
    return [one for one in judge.verdict(4e9).findings if one.worst_severity > Severity.INFO]


def course(start: float, level: float, slope: int, length: int) -> np.ndarray:
    """Three rows at the start, `slope` rows on the way, and the rest at the level."""
    way = np.linspace(start, level, slope + 2)[1:-1]
    return np.concatenate([np.full(3, start), way, np.full(length, level)])


STEPS = st.integers(0, 40)
EIGHTHS = st.integers(0, 8).map(lambda part: part / 8)
TWENTIETHS = st.integers(0, 20).map(lambda part: part / 20)


@settings(max_examples=examples(150), deadline=None)
@given(start=EIGHTHS | TWENTIETHS, level=EIGHTHS | TWENTIETHS, slope=STEPS, length=st.integers(24, 120))
def test_completions_that_are_cut_off_raise_one_finding_wherever_they_started(start, level, slope, length):
    found = raised("truncation", "completions/clipped_ratio", course(start, level, slope, length))
    if level > 0.5:
        (one,) = found
        assert one.active and one.metric == "completions/clipped_ratio"
        assert f"at the start it was {start:.0%}" in one.message
        worst = float(one.message.partition("%")[0]) / 100
        assert min(level, 0.5) - 0.01 <= worst <= max(start, level) + 0.01
        if level > 0.8 or max(start, level) <= 0.8:  # in between it may have been critical on the way
            assert one.severity is (Severity.CRITICAL if level > 0.8 else Severity.WARNING)
        assert one.from_start == (start > 0.5)
    elif max(start, level) <= 0.5 and level - start <= 0.15:
        assert found == []
    elif level - start >= 0.35 and slope >= 20:  # fewer than a half, and surely more than at the start
        (one,) = found
        assert one.active and one.title == "More and more completions are cut off" and not one.from_start
    assert len(found) <= 1


@settings(max_examples=examples(150), deadline=None)
@given(
    start=st.floats(0, 1),
    level=st.floats(0, 5) | st.floats(5, 1e6),
    slope=STEPS,
    length=st.integers(12, 120),
)
def test_a_policy_that_drifts_raises_one_finding_however_fast_it_went(start, level, slope, length):
    found = raised("kl-high", "kl", course(start, level, slope, length))
    if level - start > 1.5:
        (one,) = found
        assert one.active
        numbers = [float(part) for part in re.findall(r"(?<![\w.])[\d.]+(?:e[+-]?\d+)?", one.message)]
        assert numbers[0] == pytest.approx(one.worst_value, rel=0.01)
        assert one.worst_value > numbers[-1] if "limit" in one.message else one.worst_value > 100
    if level - start > 2.5 or level > 100:
        assert found[0].severity is Severity.CRITICAL
    if max(start, level) - start <= 1.0:
        assert found == []
    assert len(found) <= 1


@settings(max_examples=examples(60), deadline=None)
@given(level=st.floats(0, 4), slope=STEPS, length=st.integers(12, 60))
def test_an_update_that_goes_too_far_raises_one_finding(level, slope, length):
    found = raised("approx-kl", "policy/approxkl_avg", course(0.01, level, slope, length), "trl-ppo")
    assert [one.severity for one in found] == (
        [Severity.CRITICAL] if level > 0.5 else [Severity.WARNING] if level > 0.1 else []
    )


def several(framework: str, name: str, **series: np.ndarray) -> list[Finding]:
    """The findings at or above warning of one family, on a run of several metrics of equally many points."""
    run = Run("run", Place("jsonl", "run.jsonl"))
    for metric, values in series.items():
        tag = metric.replace("__", "/")
        run.add(tag, np.arange(1, len(values) + 1), values, 1e9 + np.arange(len(values)))
    judge = Judge(run, family(name), translation=translated(run, framework))
    judge.advance()
    return [one for one in judge.verdict(4e9).findings if one.severity > Severity.INFO]


def agreeing(start: float, level: float, slope: int, gain: float, seed: int = 0) -> list[Finding]:
    """What is said of groups that agree: shares of 16 groups a row, beside a reward that changes by `gain`."""
    rng = np.random.default_rng(seed)
    shares = course(start, level, slope, 80)
    reward = course(0.3, 0.3 + gain, slope, 80) + 0.02 * (-1.0) ** np.arange(len(shares))  # noise that never rises
    counted = rng.binomial(16, shares) / 16
    return several("trl-grpo", "reward-signal", frac_reward_zero_std=counted, reward=reward)


@settings(max_examples=examples(60), deadline=None)
@given(start=EIGHTHS, level=EIGHTHS, slope=STEPS, gain=st.sampled_from([-0.25, 0.0, 0.4]), seed=st.integers(0, 99))
def test_groups_that_agree_are_one_finding_at_most_and_one_where_nothing_is_learned(start, level, slope, gain, seed):
    found = agreeing(start, level, slope, gain, seed)
    assert len(found) <= 1
    if gain < 0.1 and level > 0.8:
        (one,) = found
        assert one.active and one.severity is Severity.CRITICAL
    if gain > 0.1 and max(start, level) < 0.3:
        assert found == []


@settings(max_examples=examples(60), deadline=None)
@given(start=EIGHTHS, levels=st.tuples(EIGHTHS, EIGHTHS).map(sorted), slope=STEPS, gain=st.sampled_from([-0.25, 0.0]))
def test_severity_never_falls_as_more_groups_agree_and_nothing_is_learned(start, levels, slope, gain):
    assume(levels[1] - levels[0] > 0.2)  # of 16 groups chance moves a share by an eighth
    mild, bad = (
        max((one.severity for one in agreeing(start, level, slope, gain) if one.active), default=-1) for level in levels
    )
    assert bad >= mild


@settings(max_examples=examples(60), deadline=None)
@given(start=TWENTIETHS, level=TWENTIETHS, slope=STEPS, length=st.integers(30, 90))
def test_updates_that_are_clipped_raise_one_finding_however_they_came_to_it(start, level, slope, length):
    found = raised("clip-fraction", "clip_ratio/region_mean", course(start, level, slope, length))
    assert len(found) <= 1
    if level > 0.21:
        (one,) = found
        assert one.active and (level <= 0.26 or one.severity is Severity.CRITICAL)
    elif max(start, level) <= 0.2:
        assert found == []


@settings(max_examples=examples(60), deadline=None)
@given(top=st.floats(0.3, 1.0), lost=st.floats(0, 1), rise=st.integers(20, 80), slope=STEPS, seed=st.integers(0, 99))
@example(top=1.0, lost=0.375, rise=20, slope=16, seed=0)
@example(top=0.5, lost=0.625, rise=38, slope=32, seed=32)
def test_a_reward_that_falls_raises_one_finding_and_one_that_keeps_half_of_its_gain_none(top, lost, rise, slope, seed):
    rng = np.random.default_rng(seed)
    way = np.linspace(0.1, top, rise)
    fall = np.linspace(top, top - lost * (top - 0.1), slope + 2)[1:]
    values = np.concatenate([way, np.full(20, top), fall, np.full(60, fall[-1])])
    found = raised("reward-trend", "reward", values + 0.01 * rng.normal(size=len(values)))
    assert len([one for one in found if one.explained_by is None]) <= 1
    if lost > 0.6:
        (one,) = (one for one in found if one.rule == "reward-decline")
        assert one.state is not State.OVER and one.severity is Severity.CRITICAL
    if lost < 0.4:
        assert not any(one.rule == "reward-decline" for one in found)


WORSE = st.tuples(st.integers(0, 20), st.integers(0, 20)).map(lambda pair: sorted(part / 20 for part in pair))


@settings(max_examples=examples(80), deadline=None)
@given(start=TWENTIETHS, levels=WORSE, slope=STEPS, length=st.integers(24, 60))
def test_severity_never_falls_as_more_is_cut_off(start, levels, slope, length):
    mild, bad = (
        max((one.severity for one in raised("truncation", "completions/clipped_ratio", made)), default=-1)
        for made in (course(start, level, slope, length) for level in levels)
    )
    assert bad >= mild or levels[0] <= 0.5, "a run that ended is over, however high it began"


@settings(max_examples=examples(80), deadline=None)
@given(levels=st.tuples(st.floats(0, 200), st.floats(0, 200)).map(sorted), slope=STEPS, length=st.integers(12, 60))
def test_severity_never_falls_as_the_policy_drifts_further(levels, slope, length):
    mild, bad = (
        max((one.severity for one in raised("kl-high", "kl", course(0.0, level, slope, length))), default=-1)
        for level in levels
    )
    assert bad >= mild


@settings(max_examples=examples(60), deadline=None)
@given(at=st.integers(5, 60), height=st.floats(3.5, 90), length=st.integers(20, 100))
def test_one_row_of_high_kl_is_a_note_once_it_is_over(at, height, length):
    values = np.full(at + length, 0.1)
    values[at] = height
    run = Run("run", Place("jsonl", "run.jsonl"))
    run.add("kl", np.arange(1, len(values) + 1), values, 1e9 + np.arange(len(values)))
    judge = Judge(run, family("kl-high"), translation=translated(run))
    judge.advance()
    (one,) = judge.verdict(4e9).findings
    assert one.severity is (Severity.INFO if height - 0.1 <= 50 else Severity.WARNING)
    assert (one.first_step, one.raised_step, one.last_step) == (at + 1, at + 1, at + 1)
