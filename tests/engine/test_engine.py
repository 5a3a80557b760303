"""The engine is causal: what it tells of a prefix is what it tells of the whole up to that step, in whatever pieces the run arrives."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rlhealth.check import judge
from rlhealth.engine.judge import Judge
from rlhealth.metrics.catalogue import frameworks, names
from rlhealth.metrics.sorting import odd_tags
from rlhealth.rules.loading import load_rules
from rlhealth.run import Place, Run
from rlhealth.sources import open_runs
from rlhealth.verdict.verdicts import RunVerdict
from tests.examples import examples
from tests.meanwhile import asked_meanwhile

FIXTURES = Path(__file__).parents[2] / "fixtures"

NOW = 4e9  # long after any run was written
LOGS = [
    *sorted((FIXTURES / "tensorboard").iterdir()),
    *sorted((FIXTURES / "trainer_state").iterdir()),
    *sorted((FIXTURES / "wandb").iterdir()),
]
#: Raw tags by framework, of all that rules can read.
TAGS = {
    entry["id"]: tags
    for entry in frameworks()
    if len(tags := tuple(tag for tag, found in names(entry["names"]).exact.items() if found[0].name)) >= 5
}
SEEDS = st.integers(0, 2**32)
Told = set[tuple[str, str, int, int]]


RULES = load_rules()
MEASURING = asked_meanwhile(
    rule for rule in RULES if rule.cause is None
)  # a diagnosis reads findings, and gives way to a better one that is found later


def told(verdict: RunVerdict, until: int | None = None) -> Told:
    """Rule, metric, onset and telling of each finding told by then; how a run ended shows at its end only."""
    return {
        (one.rule, one.metric, one.first_step, one.raised_step)
        for one in verdict.findings
        if one.family != "stalled" and (until is None or one.raised_step <= until)
    }


def steps_of(run: Run) -> list[int]:
    return sorted({int(step) for series in run.series.values() for step in series.steps})


def everything(verdict: RunVerdict) -> list[str]:
    """All that a verdict says, but for the run itself, spelled out, so that NaN is NaN."""
    return [
        verdict.state,
        *map(repr, verdict.findings),
        *map(repr, verdict.skipped),
        *verdict.quiet,
        verdict.translation.framework,
    ]


@pytest.mark.parametrize("log", LOGS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_a_prefix_of_a_real_run_tells_what_the_whole_tells_up_to_there(log: Path) -> None:
    for run in open_runs(str(log)):
        whole = judge(run, MEASURING, now=NOW)
        steps = steps_of(run)
        for step in steps[:: max(1, len(steps) // 12)]:
            assert told(judge(run.until(step), MEASURING, now=NOW)) == told(whole, step), f"at step {step}"


@pytest.mark.parametrize("log", LOGS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_a_real_run_judged_step_by_step_is_judged_as_in_one_go(log: Path) -> None:
    for run in open_runs(str(log)):
        judging = Judge(run, RULES)
        for step in steps_of(run):
            judging.advance(step)
        judging.advance()
        assert everything(judging.verdict(NOW)) == everything(judge(run, RULES, now=NOW))


def random_run(seed: int) -> Run:
    """A run of a few metrics, each with values and gaps of its own: ordinary numbers, stretches of one value, the odd NaN, infinity, denormal or giant."""
    random = np.random.default_rng(seed)
    run = Run("random", Place("jsonl", "random.jsonl"))
    length, every = int(random.integers(5, 120)), int(random.integers(1, 4))
    steps = np.arange(1, length + 1) * every
    tags = TAGS[str(random.choice(sorted(TAGS)))]
    for tag in random.permutation(tags)[: random.integers(3, 16)].tolist():
        series = (
            random.normal(size=length).cumsum() * 10.0 ** random.integers(-2, 3)
            if random.random() < 0.5
            else random.normal(size=length)
        )
        if random.random() < 0.5:
            series[random.integers(length) :] = random.choice([0.0, 1.0, series[0]])
        strange = random.random(length) < random.choice([0, 0, 0.05, 0.5])
        series[strange] = random.choice([np.nan, np.inf, -np.inf, 5e-324, 1e300, -1e300], strange.sum())
        kept = np.ones(length, bool)
        gone = int(random.integers(1, length))
        kept[gone : gone + int(random.integers(0, 40))] = False
        run.add(tag, steps[kept], series[kept], 1e9 + steps[kept])
    return run


@given(seed=SEEDS, share=st.floats(0, 1))
@example(seed=134217728, share=0.75)  # what is asked of a whole log alone was asked of the prefix
@settings(max_examples=examples(60), deadline=None)
def test_a_prefix_of_any_run_tells_what_the_whole_tells_up_to_there(seed: int, share: float) -> None:
    run = random_run(seed)
    steps = steps_of(run)
    step = steps[int(share * (len(steps) - 1))]
    before = run.until(step)
    is_same = {tag for tag, one in before.series.items() if len(one)} == set(run.series)
    if is_same and odd_tags(before) == odd_tags(run):  # other names may be another trainer's
        assert told(judge(before, MEASURING, now=NOW)) == told(judge(run, MEASURING, now=NOW), step)


@given(seed=SEEDS, share=st.floats(0, 1))
@settings(max_examples=examples(60), deadline=None)
def test_watching_a_run_up_to_a_step_says_what_checking_that_prefix_says_causes_included(
    seed: int, share: float
) -> None:
    """A diagnosis may give way to a better one that is found later; at each step, watching and checking agree on it."""
    run = random_run(seed)
    steps = steps_of(run)
    until = int(share * (len(steps) - 1))
    grown = Run("random", Place("jsonl", "random.jsonl"))
    judging = Judge(grown, RULES)
    for start, end in pairwise([-1, *steps[: until + 1 : 7], steps[until]]):
        for tag, one in run.series.items():
            new = (one.steps > start) & (one.steps <= end)
            if new.any():
                grown.add(tag, one.steps[new], one.values[new], one.times[new])
        judging.advance(end)
    before = run.until(steps[until])
    here, whole = judging.verdict(NOW), judge(before, RULES, now=NOW)
    assert sorted(map(repr, here.findings)) == sorted(map(repr, whole.findings))


@given(seed=SEEDS)
@example(seed=609)  # the step of one rule was read at the points of another rule's metric
@example(seed=114273546)  # a fact of a cause was measured before a point came late
@example(seed=424680)  # a tag that had one point gave way to another one, and came back unseen
@settings(max_examples=examples(60), deadline=None)
def test_any_run_that_arrives_in_pieces_and_out_of_order_is_judged_as_the_whole_is(seed: int) -> None:
    """Each metric comes at its own pace, so that points arrive at steps that were judged without them; names come late too."""
    run, random = random_run(seed), np.random.default_rng(seed + 1)
    grown = Run("random", Place("jsonl", "random.jsonl"))
    judging = Judge(grown, RULES)
    seen = dict.fromkeys(run.series, 0)
    while any(seen[tag] < len(one) for tag, one in run.series.items()):
        for tag, one in run.series.items():
            end = min(len(one), seen[tag] + int(random.integers(0, 20)))
            grown.add(
                tag, one.steps[seen[tag] : end], one.values[seen[tag] : end], one.times[seen[tag] : end]
            ) if end > seen[tag] else None
            seen[tag] = end
        if grown.last_step is not None:
            judging.advance(grown.last_step - int(random.integers(0, 2)))
            judging.verdict(NOW)
    judging.advance()
    assert told(judging.verdict(NOW)) == told(judge(grown, RULES, now=NOW))


@given(seed=SEEDS)
@example(seed=21443320)  # what refutes a finding was left out at the end of one of them
@settings(max_examples=examples(8), deadline=None)
def test_a_long_run_judged_in_pieces_is_judged_as_in_one_go(seed: int) -> None:
    """Conditions that are left out for hundreds of points, or for the whole run, say the same once they are asked."""
    random = np.random.default_rng(seed)
    run = Run("long", Place("jsonl", "long.jsonl"))
    steps = np.arange(1, 2001)
    for tag in TAGS[str(random.choice(sorted(TAGS)))]:
        values = random.random() * 2.0 + random.normal(size=2000) * random.choice([0.01, 0.3])
        values += np.where((steps > random.integers(2000)) & (steps % 400 > random.integers(400)), random.normal(), 0)
        run.add(tag, steps, values, 1e9 + steps)
    judging = Judge(run, RULES)
    for step in np.sort(random.integers(1, 2000, 40)).tolist():
        judging.advance(step)
        if random.random() < 0.2:
            judging.verdict(NOW)
    judging.advance()
    at_once = Judge(run, RULES)
    at_once.advance(last=True)
    assert everything(judging.verdict(NOW)) == everything(at_once.verdict(NOW))


@given(seed=SEEDS, back=st.floats(0, 1))
@settings(max_examples=examples(30), deadline=None)
def test_a_run_that_went_back_is_judged_as_if_it_had_never_been_further(seed: int, back: float) -> None:
    run = random_run(seed)
    judging = Judge(run, RULES)
    judging.advance()
    steps = steps_of(run)
    resumed = steps[int(back * (len(steps) - 1))]
    tail = {tag: one.until(10**9) for tag, one in run.series.items()}
    run.rewind(resumed)
    judging.advance()
    for tag, one in tail.items():
        late = one.steps >= resumed
        if late.any():
            run.add(tag, one.steps[late], one.values[late][::-1], one.times[late])
    judging.advance()
    assert everything(judging.verdict(NOW)) == everything(judge(run, RULES, now=NOW))


def test_a_metric_that_comes_back_leaves_a_finding_that_has_ended() -> None:
    run = Run("gone", Place("jsonl", "gone.jsonl"))
    steps = np.arange(1, 101)
    for tag in ("reward", "reward_std", "grad_norm", "completions/mean_length"):
        run.add(tag, steps, np.sin(steps) + 2.0, 1e9 + steps)
    there = (steps < 40) | (steps > 60)
    run.add("kl", steps[there], 0.01 + 0.001 * np.sin(steps[there]), 1e9 + steps[there])
    found = [one for one in judge(run, RULES, now=NOW).findings if one.rule == "metric-vanished"]
    assert [(one.metric, one.first_step, one.raised_step, one.last_step, one.ended) for one in found] == [
        ("kl", 40, 44, 60, True)
    ]
