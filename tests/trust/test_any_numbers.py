"""The engine under any numbers: NaN, infinities, denormals, the largest there are, in any order and twice; no error,
no warning, strict JSON.
"""

from __future__ import annotations

import warnings

import numpy as np
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rlhealth.engine.judge import Judge
from rlhealth.reports import REPORTS, write
from rlhealth.reports.json_report import one_run
from rlhealth.reports.strict_json import strict
from tests.fuzz.judging import NOW, TAGS, judged_verdict, run_of, shipped
from tests.fuzz.strictness import strict_json

EDGES = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    float("nan"),
    float("inf"),
    float("-inf"),
    5e-324,
    -5e-324,
    2.2e-308,
    1.7976931348623157e308,
    -1.7976931348623157e308,
    1e300,
    1e-300,
]
VALUES = st.one_of(st.sampled_from(EDGES), st.floats(width=64), st.floats(-10, 10))
STEPS = st.one_of(st.integers(0, 60), st.sampled_from([0, -1, 1, 2**40, 2**61, -(2**61)]))


@st.composite
def columns(draw: st.DrawFn) -> tuple[list[int], list[float]]:
    """Steps, in any order and some of them twice, and a value for each."""
    kind = draw(st.sampled_from(["points", "constant", "rising steps", "empty", "one"]))
    if kind == "empty":
        return [], []
    if kind == "constant":
        count = draw(st.integers(1, 80))
        return list(range(count)), [draw(VALUES)] * count
    if kind == "rising steps":
        values = draw(st.lists(VALUES, min_size=1, max_size=80))
        first, every = draw(STEPS), draw(st.integers(1, 5))
        return [first + every * index for index in range(len(values))], values
    points = draw(st.lists(st.tuples(STEPS, VALUES), min_size=1, max_size=1 if kind == "one" else 60))
    return [step for step, _ in points], [value for _, value in points]


RUNS = st.lists(columns(), min_size=1, max_size=len(TAGS))
MODEST = settings(max_examples=2 * settings().max_examples, suppress_health_check=list(HealthCheck))


SQUARE_OVERFLOWS: list[tuple[list[int], list[float]]] = [
    ([0], [0.0]),
    ([*range(10)], [0.0, 0.0, -1.3407807929942597e154, *[0.0] * 7]),
    ([], []),
    ([*range(7)], [0.0] * 7),
]


@given(RUNS)
@example(SQUARE_OVERFLOWS)
@MODEST
def test_any_numbers_are_judged_without_a_warning_and_reported_in_strict_json(
    run: list[tuple[list[int], list[float]]],
) -> None:
    verdict = judged_verdict(run_of(run))
    report = strict_json(write(verdict, "json"))
    assert isinstance(report, dict)
    assert report["verdict"] in ("healthy", "warning", "critical", "unknown")
    assert report["exit_code"] == verdict.exit_code


LARGEST_SHARE = [
    ([], []),
    *[([0], [0.0])] * 6,
    ([], []),
    ([0], [1.7976931348623157e308]),
]  # in percent it has no number


@given(RUNS)
@example(LARGEST_SHARE)
@example([([0], [0.0]), ([0, 1], [0.0, 5e-324])])  # a curve between 0 and the least number there is
@example([([0, 1, 2], [1.7976931348623157e308, -1.7976931348623157e308, 1.7976931348623157e308])])
@settings(MODEST, max_examples=15)
def test_any_numbers_are_reported_in_every_format_without_a_warning(run: list[tuple[list[int], list[float]]]) -> None:
    verdict = judged_verdict(run_of(run))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for format in REPORTS:
            assert write(verdict, format).strip()


@given(RUNS, st.integers(0, 80))
@example([([0, 0, -1, -1, 0], [0.0, float("nan"), 0.0, 1.0, 0.0])], 2)  # back to the first value of its step
@example(
    [([0], [0.0]), ([0, 1], [0.0, 1.34375]), *[([0], [one]) for one in (5e-324, 0.0, 1e-300, 0.5)]], 1
)  # not rounded
@settings(MODEST, max_examples=80)
def test_any_numbers_that_come_in_pieces_are_judged_as_in_one_go(
    run: list[tuple[list[int], list[float]]], stop: int
) -> None:
    whole = run_of(run)
    judging = Judge(run_of([]), shipped())
    growing = judging.run
    growing.config, growing.versions = whole.config, whole.versions
    for part in (slice(0, stop), slice(stop, None)):
        for tag, (steps, values) in zip(TAGS, run, strict=False):
            growing.add(tag, steps[part], values[part], [NOW - 1000.0 + one % 1000 for one in steps[part]])
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            judging.advance()
    judged, expected = one_run(judging.verdict(NOW)), one_run(judged_verdict(whole).runs[0])
    del judged["seconds"], expected["seconds"]
    assert strict(judged) == strict(expected)


def test_a_run_of_nothing_but_nan_is_not_healthy() -> None:
    steps = list(range(60))
    verdict = judged_verdict(run_of([(steps, [np.nan] * 60)] * len(TAGS)))
    assert verdict.verdict == "critical"
    assert verdict.exit_code == 1
