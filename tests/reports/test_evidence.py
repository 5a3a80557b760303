"""Evidence in words: what made a rule fire, the same in every report, and only where there is more to read."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from rlhealth.check import judge
from rlhealth.reports import ReportOptions, words, write
from rlhealth.reports.evidence import line, why_fired
from rlhealth.rules.loading import load_rules
from rlhealth.run import Place, Run
from rlhealth.verdict.evidence import Evidence
from rlhealth.verdict.findings import Finding
from rlhealth.verdict.verdicts import Verdict

FALL = "the fall of reward from its best so far: 8.2σ, 4.1 errors above 0 (limit 3.5)"


def said(**fields: object) -> str:
    """One condition in words, without what keeps numbers and units together."""
    given: dict[str, object] = {"metric": "kl", "tag": "kl", "step": 3, "measure": "kl"}
    return line(Evidence(**(given | fields))).replace(words.NBSP, " ")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"value": 4.2, "limit": 2.5, "unit": "nats/token"}, "kl: 4.2 nats/token, above 2.5"),
        ({"value": 0.01, "limit": 0.05, "side": "below", "measured": "ratio"}, "kl: 0.01×, below 0.05×"),
        ({"value": 0.8, "limit": 0.5, "measured": "share"}, "kl: 80 %, above 50 %"),
        ({"value": 0.7, "limit": 0.5, "unit": "fraction of actions"}, "kl: 0.7, above 0.5"),
        ({"value": 0.0, "limit": 0.0, "side": "equals"}, "kl: 0, exactly 0"),
        ({"value": float("inf"), "limit": 0.5, "measured": "share"}, "kl: ∞, above 50 %"),
        (
            {"value": 8.2, "error": 2.0, "limit": 0.0, "sure": 3.5, "measured": "noise"},
            "kl: 8.2σ, 4.1 errors above 0 (limit 3.5)",
        ),
        (
            {"value": 0.3, "error": 1.5, "limit": 1.0, "side": "below", "measured": "noise"},
            "kl: 0.3σ ± 1.5σ, below 1σ",
        ),
        (
            {"value": 0.3, "error": 0.5, "limit": 0.0, "side": "below", "sure": -1.65, "measured": "noise"},
            "kl: 0.3σ ± 0.5σ, within 1.65 errors of 0",
        ),
        (
            {"value": -0.3, "error": 0.5, "limit": 0.0, "side": "below", "sure": -1.65, "measured": "noise"},
            "kl: −0.3σ ± 0.5σ, below 0",
        ),
        (
            {"value": 40.0, "limit": 4.0, "metric": "step", "measure": "the step", "unit": "steps"},
            "the step: 40, above 4",
        ),
    ],
)
def test_a_condition_says_what_it_measured_and_how_that_stands_to_its_limit(fields, expected):
    assert said(**fields) == expected


def test_a_cause_fired_by_the_conditions_of_what_it_explains_and_a_finding_by_its_own(sick: Verdict) -> None:
    [run] = sick.runs
    cause = run.causes[0]
    fired = {one.rule: lines for one, lines in why_fired(cause, run.consequences(cause))}
    assert list(fired) == ["grad-norm-spike", "kl-high", "entropy-collapse"]
    assert fired["kl-high"][1] == FALL
    alone = _finding(sick, "no-group-signal")
    assert [one.rule for one, _ in why_fired(alone, [])] == ["no-group-signal"]


def test_the_terminal_lists_all_conditions_where_all_is_asked_for(sick: Verdict) -> None:
    asked = write(sick, "terminal", ReportOptions(width=100, show_all=True))
    assert "fired · grad-norm-spike: grad_norm: 9.4, above 4" in asked and f"· kl-high: {FALL}" in asked
    assert "fired" not in write(sick, "terminal", ReportOptions(width=100))


def test_the_page_and_the_comment_list_them_too(sick: Verdict) -> None:
    page, comment = write(sick, "html"), write(sick, "markdown")
    assert f"<li>{FALL}</li>" in page and "Why these rules fired" in page
    assert "Why it fired, at its worst (step 120)" in page
    assert FALL in comment and "Why it fired:" in comment


def test_a_finding_alone_has_a_chart_for_each_metric_that_it_looked_at(sick: Verdict) -> None:
    [run] = sick.runs
    for most, charts in ((2, ["kl", "reward"]), (1, ["kl"])):
        run.findings = [_finding(sick, "kl-high", most)]
        page = write(Verdict([run]), "html")
        story = page[page.index('<section class="story') : page.index("</section>")]
        assert re.findall(r'data-name="(\w+)"', story) == charts


def test_the_steps_so_far_that_a_finding_needed_are_said_and_not_drawn() -> None:
    run = Run("flat", Place("tensorboard", "here"))
    rewards = 22 + 3 * np.random.default_rng(0).normal(size=400)
    for tag, values in (("rollout/ep_rew_mean", rewards), ("train/approx_kl", np.full(400, 0.01))):
        run.add(tag, range(1000, 401_000, 1000), values)
    page = write(Verdict([judge(run, load_rules())]), "html")
    [story] = re.findall(r'<section class="story.*?</section>', page, re.DOTALL)
    assert "environment_steps: " in story
    assert re.findall(r'data-name="(\w+)"', story) == ["reward"]


def test_json_has_every_condition_with_the_first_as_the_fields_of_the_finding(sick: Verdict) -> None:
    [run] = json.loads(write(sick, "json"))["runs"]
    for one in run["findings"]:
        first = one["conditions"][0]
        assert [first[name] for name in ("metric", "tag", "unit", "limit", "side", "measured", "value", "step")] == [
            one[name] for name in ("metric", "tag", "unit", "limit", "side", "measured", "worst_value", "worst_step")
        ]
    [kl] = [one for one in run["findings"] if one["rule"] == "kl-high"]
    assert kl["conditions"][1] == {
        "metric": "reward",
        "tag": "train/reward",
        "unit": "reward",
        "measure": "the fall of reward from its best so far",
        "measured": "noise",
        "step": 84,
        "value": 8.2,
        "error": 2.0,
        "limit": 0.0,
        "side": "above",
        "standard_errors": 3.5,
    }


def _finding(verdict: Verdict, rule: str, most: int = 9) -> Finding:
    """That finding of the first run, with so many of its conditions at most."""
    found = next(one for one in verdict.runs[0].findings if one.rule == rule)
    return replace(found, explained_by=None, conditions=found.conditions[:most])
