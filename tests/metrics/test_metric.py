"""A metric is a live view: it grows with the run, transforms each point once, and says when its past changed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlhealth.metrics import translate
from rlhealth.metrics.metric import ConvertedSeries, EndedEpisodes, HistogramSeries, RunningSum, SummedSeries
from rlhealth.metrics.transforms import change_of, reduction_of
from rlhealth.run import Histogram, Series
from tests.examples import examples
from tests.metrics.logged import LEGACY, SB3, run_of

WORDS = [
    "negate",
    "one-minus",
    "scale:0.5",
    "percent-to-fraction",
    "clamp:0:1",
    "missing:0",
    "missing:nan",
    "missing:-1,negate",
    "over:batch_size",
]


@settings(max_examples=examples(60), deadline=None)
@given(
    values=st.lists(st.floats(width=32) | st.sampled_from([0.0, -1.0, math.nan]), max_size=30),
    cuts=st.lists(st.integers(0, 30), max_size=4),
    word=st.sampled_from(WORDS),
)
def test_a_metric_that_grows_equals_the_metric_of_the_whole(values: list[float], cuts: list[int], word: str) -> None:
    change = change_of(word, {"batch_size": 4})
    assert change is not None and not isinstance(change, str)
    growing, whole = Series("x"), Series("x", range(len(values)), values)
    metric = ConvertedSeries(growing, change)
    for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(values)], strict=True):
        growing.extend(range(len(values))[start:end], values[start:end])
        _ = metric.values
    np.testing.assert_array_equal(metric.values, ConvertedSeries(whole, change).values)
    np.testing.assert_array_equal(metric.steps, ConvertedSeries(whole, change).steps)
    assert metric.revision == 0


@settings(max_examples=examples(60), deadline=None)
@given(
    lengths=st.lists(st.sampled_from([0.0, 1.0, 200.0, math.nan, math.inf]), max_size=20),
    cuts=st.lists(st.integers(0, 20), max_size=4),
)
def test_a_running_sum_that_grows_is_that_of_the_whole(lengths: list[float], cuts: list[int]) -> None:
    growing = Series("l")
    so_far = RunningSum("l", growing)
    for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(lengths)], strict=True):
        growing.extend(range(len(lengths))[start:end], lengths[start:end])
        _ = so_far.values
    assert so_far.values.tolist() == np.cumsum([one if math.isfinite(one) else 0.0 for one in lengths]).tolist()


@settings(max_examples=examples(60), deadline=None)
@given(
    rows=st.lists(st.tuples(st.sampled_from([0.0, 1.5, -2.0]), st.sampled_from([0.0, 7.0])), max_size=20),
    cuts=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=5),
)
def test_a_reward_of_no_episode_is_left_out_in_whatever_order_reward_and_length_come(
    rows: list[tuple[float, float]], cuts: list[tuple[int, int]]
) -> None:
    reward, length = Series("reward"), Series("length")
    metric = EndedEpisodes("reward", reward, length)
    for ends in [*zip(*(sorted(one) for one in zip(*cuts, strict=True)), strict=True), (len(rows), len(rows))]:
        for column, (series, end) in enumerate(zip((reward, length), ends, strict=True)):
            start, end = len(series), min(end, len(rows))
            series.extend(range(start, end), [row[column] for row in rows[start:end]])
        _ = metric.values
    ended = [(step, value) for step, (value, long) in enumerate(rows) if value or long]
    assert list(zip(metric.steps.tolist(), metric.values.tolist(), strict=True)) == ended


def test_each_point_is_transformed_once() -> None:
    seen: list[int] = []
    change = change_of("negate", {})
    assert callable(change)

    def counted(values):  # type: ignore[no-untyped-def]
        seen.append(len(values))
        return change(values)

    series = Series("x", [1, 2, 3], [1.0, 2.0, 3.0])
    metric = ConvertedSeries(series, counted)
    assert list(metric.values) == [-1.0, -2.0, -3.0]
    assert len(metric) == 3
    series.extend([4], [4.0])
    assert list(metric.steps) == [1, 2, 3, 4]
    assert list(metric.values) == [-1.0, -2.0, -3.0, -4.0]
    assert seen == [3, 1]


def test_a_rewound_run_changes_the_revision_and_the_points() -> None:
    run = run_of(SB3)
    metric = translate(run).metrics["entropy"]
    assert list(metric.values) == [-0.5, -0.25]
    before = metric.revision
    run.rewind(2)
    run.add("train/entropy_loss", [2], [-3.0])
    assert list(metric.values) == [-0.5, 3.0]
    assert metric.revision > before


def test_values_from_gives_only_what_is_new() -> None:
    run = run_of(SB3)
    metric = translate(run).metrics["loss/value_avg"]
    assert list(metric.values_from(1)) == [0.125]
    run.add("train/value_loss", [3], [2.0])
    assert list(metric.values_from(2)) == [1.0]


def test_a_metric_that_needs_no_change_holds_no_second_copy() -> None:
    run = run_of(SB3)
    assert translate(run).metrics["reward"].values.base is run.series["rollout/ep_rew_mean"].values.base


def test_a_value_that_means_not_measured_is_left_out_with_its_step() -> None:
    series = Series("x", [1, 2, 3], [0.0, 0.2, 0.0])
    change = change_of("missing:0", {})
    assert callable(change)
    metric = ConvertedSeries(series, change)
    assert list(metric.steps) == [2]
    assert len(metric) == 1


def test_a_setting_that_a_unit_needs_and_nobody_knows_is_reported() -> None:
    assert (
        change_of("over:updates_per_step", {}) == "its unit needs updates per step, which is not in the configuration"
    )
    assert change_of("over:updates_per_step", {}, keep_unscaled=True) is None


def ratio(values: list[float], word: str, clip_range: float = 0.2) -> float:
    counts, edges = np.histogram(values, bins=32)
    histogram = Histogram("ppo/policy/ratio")
    histogram.add(1, edges, counts)
    return float(HistogramSeries(histogram, reduction_of(word), clip_range).values[0])


def test_the_ratio_comes_from_a_histogram() -> None:
    values = list(np.linspace(0.5, 1.5, 201))
    assert ratio(values, "histogram-mean") == pytest.approx(1.0, abs=0.01)
    assert ratio(values, "histogram-max") == pytest.approx(1.5)
    assert ratio(values, "histogram-min") == pytest.approx(0.5)
    assert ratio(values, "histogram-outside") == pytest.approx(0.6, abs=0.02)
    assert ratio(values, "histogram-outside", clip_range=0.5) == pytest.approx(0.0, abs=0.01)


def test_the_filler_of_a_ratio_histogram_is_no_ratio() -> None:
    values = [1.0] * 50 + [1.1] * 10 + [-1.0] * 40
    assert ratio(values, "histogram-mean") == pytest.approx(1.0, abs=0.05)
    assert ratio(values, "histogram-min") >= 0.9
    assert ratio(values, "histogram-outside") == 0.0


def test_one_far_outlier_does_not_move_the_healthy_mass() -> None:
    """Thirty-two bins up to 900 are 28 wide: where the rest lies in its bin cannot be seen, and 1 is what padding has."""
    values = [1.0] * 500 + [900.0]
    assert ratio(values, "histogram-mean") == pytest.approx(1.0 + 899 / 501, rel=0.05)
    assert ratio(values, "histogram-max") == pytest.approx(900.0)
    assert ratio(values, "histogram-outside") == pytest.approx(1 / 501)


def test_a_histogram_of_one_value_and_one_of_filler_only() -> None:
    histogram = Histogram("x")
    histogram.add(1, [1.0, 1.0], [4.0])
    histogram.add(2, [-1.0, -0.5], [4.0])
    outside = HistogramSeries(histogram, reduction_of("histogram-outside"), 0.2)
    assert outside.values[0] == 0.0
    assert math.isnan(outside.values[1])


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.floats(2**-6, 50, width=32) | st.just(-1.0), min_size=1, max_size=60))
def test_numbers_of_any_ratio_histogram_lie_within_it(values: list[float]) -> None:
    held = [value for value in values if value > 0]
    mean, outside = ratio(values, "histogram-mean"), ratio(values, "histogram-outside")
    if not held:
        assert math.isnan(mean) or mean <= 1.0
        return
    assert 0 < mean <= max(1.0, ratio(values, "histogram-max"))
    assert -1e-9 <= outside <= 1 + 1e-9


def test_the_clip_range_of_the_run_decides_what_lies_outside() -> None:
    for clip_range, expected in ((0.2, 0.5), (0.6, 0.0)):
        run = run_of(LEGACY, config={"cliprange": clip_range})
        run.histogram("ppo/policy/ratio").add(1, [0.95, 1.05, 1.45, 1.55], [50.0, 0.0, 50.0])
        assert translate(run).metrics["ratio/mass_outside"].values[0] == pytest.approx(expected)


def test_a_distribution_that_grows_is_reduced_step_by_step() -> None:
    run = run_of(LEGACY)
    histogram = run.histogram("ppo/policy/ratio")
    histogram.add(1, [0.9, 1.1], [4.0])
    metric = translate(run).metrics["ratio/max"]
    assert list(metric.values) == [1.1]
    histogram.add(2, [0.9, 3.0], [4.0])
    assert list(metric.values) == [1.1, 3.0]
    assert list(metric.steps) == [1, 2]


def test_a_part_of_a_sum_that_comes_after_its_axis_is_counted() -> None:
    axis, part = Series("axis"), Series("part", [1], [2.0])
    axis.extend(np.array([1, 2]), np.zeros(2), np.zeros(2))
    total = SummedSeries("total", [part], axis, None)
    assert (total.values.tolist(), total.revision) == ([2.0, 0.0], 0)
    part.extend(np.array([2]), np.array([5.0]), np.zeros(1))
    assert (total.values.tolist(), total.revision) == ([2.0, 5.0], 1)
    axis.extend(np.array([3]), np.zeros(1), np.zeros(1))
    assert (total.values.tolist(), total.revision) == ([2.0, 5.0, 0.0], 1), "a row that only grows is no revision"
