"""The HTML report as text: small enough to mail, spikes kept by thinning, limits only where they are levels."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlhealth.metrics import translate
from rlhealth.reports import write
from rlhealth.reports.html.curve import path, scale_of, thinned
from rlhealth.reports.html.levels import Level, level_of, usual
from rlhealth.reports.html.markup import Html, el, prose
from rlhealth.rules.loading import load_rules
from rlhealth.run import Place, Run
from rlhealth.verdict.verdicts import RunVerdict, Verdict
from tests.examples import examples


def test_ten_thousand_steps_of_forty_metrics_are_less_than_a_megabyte(sick: Verdict) -> None:
    rng = np.random.default_rng(1)
    run = Run("long", Place("tensorboard", "runs/long"))
    steps = range(10_000)
    run.add("train/reward", steps, rng.normal(size=10_000))
    run.add("train/reward_std", steps, rng.lognormal(size=10_000))
    run.add("train/kl", steps, rng.lognormal(size=10_000))
    run.add("train/grad_norm", steps, rng.lognormal(size=10_000))
    run.add("train/completions/mean_length", steps, rng.normal(size=10_000))
    for number in range(35):
        run.add(f"train/rewards/f{number}/mean", steps, rng.normal(size=10_000))
    found = sick.runs[0].findings + [
        replace(one, rule=f"{one.rule}-{number}") for number, one in enumerate(sick.runs[0].findings * 2)
    ]
    translation = translate(run)
    assert len(translation.metrics) >= 40
    page = write(Verdict([RunVerdict(run, translation, "finished", found, [], [])]), "html")
    assert len(page.encode()) < 1_000_000
    assert page.count('class="mini"') >= 40


def test_the_page_of_thirty_runs_stays_small_too(many: Verdict) -> None:
    assert len(write(many, "html").encode()) < 1_000_000


def test_the_page_needs_nothing_from_outside(sick: Verdict, many: Verdict) -> None:
    for page in (write(sick, "html"), write(many, "html")):
        assert not re.search(r"(src|href)=\"(?!#)|url\(|@import|https?://", page)


def test_the_verdict_and_the_cause_come_before_the_metrics(sick: Verdict) -> None:
    page = write(sick, "html")
    order = [
        "<h1>polite-lr-jump</h1>",
        "2 critical, 3 warning",
        "resumed at step 70",
        "Each update moves the policy too far",
        "Why it matters",
        'class="minis"',
        "4 rules could not run",
        "1 ignored, 4 rules skipped",
    ]
    places = [page.index(one) for one in order]
    assert places == sorted(places)


@settings(max_examples=examples(80), deadline=None)
@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=400), st.integers(3, 60))
def test_thinning_keeps_the_ends_and_the_extremes_of_every_stretch(values: list[float], buckets: int) -> None:
    series, steps = np.array(values), np.arange(len(values)) * 7
    kept = thinned(steps, series, buckets)
    assert kept[0] == 0 and kept[-1] == len(values) - 1
    assert series[kept].max() == series.max()
    assert series[kept].min() == series.min()
    assert (np.diff(kept) > 0).all()
    assert len(kept) <= max(2 * buckets + 2, min(len(values), 2 * buckets))


def test_a_single_nan_among_ten_thousand_points_breaks_the_line() -> None:
    values = np.zeros(10_000)
    values[5_000] = np.nan
    steps = np.arange(10_000)
    kept = thinned(steps, values, 100)
    assert 5_000 in kept
    assert path(steps[kept], values[kept], scale_of(values, 1000), 0).count("M") == 2


def test_a_path_holds_the_steps_exactly_and_the_values_to_its_height() -> None:
    steps, values = np.array([10, 12, 50]), np.array([0.0, 2.0, 1.0])
    scale = scale_of(values, 1000)
    assert scale.height(2.0) < 50 and scale.height(0.0) > 950
    assert (
        path(steps, values, scale, 10)
        == f"M0 {scale.height(0.0):.0f}l0 0 2{scale.height(2.0) - scale.height(0.0):+.0f} "
        f"38 {scale.height(1.0) - scale.height(2.0):.0f}"
    )


def test_a_far_limit_does_not_flatten_the_curve() -> None:
    values = np.array([0.9, 1.1])
    assert scale_of(values, 1000, also=1.3).high > 1.3
    assert scale_of(values, 1000, also=200.0).high < 1.2


@pytest.mark.parametrize(
    "values",
    [[0.0], [5.0], [-3.0, -3.0], [np.nan], [np.inf, 1.0], [1e308, -1e308], [0.0, 1e-300], [-1.0, 10.0], [0.0, 10.0]],
)
@pytest.mark.parametrize("log", [False, True])
def test_every_finite_value_has_a_place_on_its_scale(values: list[float], log: bool) -> None:
    series = np.array(values)
    heights = scale_of(series, 1000, log=log).heights(series)
    assert (np.isfinite(heights) == np.isfinite(series)).all()
    assert ((heights[np.isfinite(heights)] >= 0) & (heights[np.isfinite(heights)] <= 1000)).all()


def test_a_limit_is_drawn_only_where_the_rule_measures_a_level(sick: Verdict) -> None:
    some = sick.runs[0].findings[2]
    assert level_of(replace(some.lead, level=2.5, side="below")) == Level(2.5, "below")
    assert level_of(replace(some.lead, level=None)) is None


def test_the_usual_range_is_that_before_the_onset(sick: Verdict) -> None:
    kl = sick.runs[0].translation.metrics["kl"]
    band = usual(sick.runs[0].findings[2], kl)
    assert band is not None
    assert band[1] < 1 < kl.values.max()
    assert usual(replace(sick.runs[0].findings[2], first_step=3), kl) is None, "two points are no range"


def test_markup_escapes_whatever_is_not_markup() -> None:
    assert (
        el("p", "<b>", Html("<i>x</i>"), title='"><script>')
        == '<p title="&quot;&gt;&lt;script&gt;">&lt;b&gt;<i>x</i></p>'
    )
    assert el("p", "a\u202eb\x1b[31m") == "<p>a\\u202eb\\x1b[31m</p>"
    assert el("input", disabled=True, value=None) == "<input disabled>"


def test_what_a_rule_says_is_whole_on_the_page() -> None:
    for rule in load_rules():
        said = [rule.because, *rule.try_, "; ".join(one.text for one in rule.source)]
        said += [text for one in rule.aspects for text in (one.because or "", *(one.try_ or ()))]
        assert not [text for text in said if "…" in prose(text) and "…" not in text], rule.id
