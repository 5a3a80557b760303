"""Vital signs: eight a run, never well where nothing looked, and each finding shown in the sign it belongs to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rlhealth
from rlhealth.check import judge
from rlhealth.metrics import translate
from rlhealth.rules.loading import load_rules
from rlhealth.rules.model import FAMILIES
from rlhealth.run import Place, Run
from rlhealth.verdict.evidence import Evidence
from rlhealth.verdict.findings import Episode, Finding, Ignored, Severity, Skipped, State
from rlhealth.verdict.verdicts import RunVerdict
from rlhealth.verdict.vitals import Vital, VitalState, _signs, sign_of, vitals
from tests.examples import examples

FIXTURES = Path(__file__).parents[2] / "fixtures"
STEPS = list(range(1, 61))


def run_of(tags: dict[str, list[float]], kind: str = "GRPO") -> Run:
    run = Run("made", Place("table", "made.csv"), versions={"trl": "1.0.0"}, config={"beta": 0.04})
    for tag, values in tags.items():
        run.add(f"train/{tag}", STEPS[: len(values)], values)
    return run


def judged(run: Run, **more: object) -> RunVerdict:
    return RunVerdict(run, translate(run), "unknown", **more)  # type: ignore[arg-type]


def by_id(verdict: RunVerdict) -> dict[str, Vital]:
    return {one.id: one for one in vitals(verdict)}


def finding(
    family: str, metric: str, severity: Severity = Severity.CRITICAL, state: State = State.STANDING, first: int = 20
) -> Finding:
    return Finding(
        f"{family}-rule",
        family,
        severity,
        f"{metric} is off",
        (Evidence(metric=metric, tag=f"train/{metric}", step=50, value=9.0, limit=1.0),),
        first,
        first + 2,
        60,
        state,
        "it is off",
        "",
        (),
        "",
        episodes=(Episode(first, first + 2, 60, state),),
    )


GRPO = {"reward": [0.1] * 60, "reward_std": [0.2] * 60, "kl": [0.01] * 60, "completions/clipped_ratio": [0.1] * 60}


def test_every_family_of_rules_belongs_to_one_sign_at_most() -> None:
    listed = [one for entry in _signs().values() for one in (*entry["families"], *entry.get("also", []))]
    assert len(listed) == len(set(listed))
    assert set(FAMILIES) - set(listed) == {"diagnosis", "baseline"}, "these belong to the sign of their metric"


def test_a_run_without_any_rule_that_looked_has_no_sign_that_is_well() -> None:
    skipped = [Skipped("kl-high", "kl-high", "kl has 3 of the 8 points it takes to judge")]
    signs = by_id(judged(run_of(GRPO), skipped=skipped))
    assert len(signs) == 8
    assert all(one.state is not VitalState.WELL for one in signs.values())
    assert signs["policy"].state is VitalState.UNKNOWN
    assert signs["policy"].said == "kl has 3 of the 8 points it takes to judge"


def test_a_sign_is_well_where_a_rule_of_its_families_looked_and_found_nothing() -> None:
    signs = by_id(judged(run_of(GRPO), quiet=["kl-quiet"], families={"kl-quiet": "kl-high"}))
    assert signs["policy"].state is VitalState.WELL
    assert signs["reward"].state is VitalState.UNKNOWN, "no rule about the reward looked"


def test_what_was_not_logged_says_so_and_what_a_trainer_has_not_says_that() -> None:
    signs = by_id(judged(run_of(GRPO)))
    assert signs["exploration"].state is VitalState.NOT_LOGGED
    assert signs["exploration"].said.startswith("no entropy")
    assert signs["critic"].state is VitalState.NOT_FOR_TRAINER


@pytest.mark.parametrize(
    ("severity", "state", "shown"),
    [
        (Severity.CRITICAL, State.STANDING, VitalState.SICK),
        (Severity.CRITICAL, State.LASTING, VitalState.SICK),
        (Severity.WARNING, State.STANDING, VitalState.WATCH),
        (Severity.WARNING, State.OVER, VitalState.OVER),
    ],
)
def test_the_state_follows_from_the_finding(severity: Severity, state: State, shown: VitalState) -> None:
    one = by_id(judged(run_of(GRPO), findings=[finding("kl-high", "kl", severity, state)]))["policy"]
    assert one.state is shown
    assert one.finding is not None and one.metric is not None and one.metric.name == "kl"


def test_a_note_for_information_makes_no_sign_sick() -> None:
    findings = [finding("kl-high", "kl", Severity.INFO)]
    signs = by_id(judged(run_of(GRPO), findings=findings, quiet=["q"], families={"q": "kl-high"}))
    assert signs["policy"].state is VitalState.WELL


def test_a_finding_that_stands_decides_before_a_worse_one_that_is_over() -> None:
    over = replace(finding("kl-high", "kl", Severity.WARNING, State.OVER), peak=Severity.CRITICAL)
    stands = replace(finding("ratio", "kl", Severity.WARNING, first=40))
    one = by_id(judged(run_of(GRPO), findings=[over, stands]))["policy"]
    assert one.state is VitalState.WATCH and one.finding is stands


def test_a_cause_belongs_to_the_sign_of_its_metric() -> None:
    assert sign_of(finding("diagnosis", "grad_norm")) == "numbers"
    assert sign_of(finding("diagnosis", "reward")) == "reward"
    assert sign_of(finding("diagnosis", "nobody/knows")) == ""


def test_a_metric_that_another_signs_rule_complains_of_is_not_well() -> None:
    findings = [finding("numerics", "kl")]
    signs = by_id(judged(run_of(GRPO), findings=findings, quiet=["q"], families={"q": "kl-high"}))
    assert signs["numbers"].state is VitalState.SICK
    assert signs["policy"].state is VitalState.SICK


def test_what_the_user_ignored_is_said_and_not_called_sick() -> None:
    one = by_id(judged(run_of(GRPO), ignored=[Ignored(finding("kl-high", "kl"), "known")]))["policy"]
    assert one.state is VitalState.WELL and one.said == "1 ignored"


def test_from_and_to_are_medians_of_the_ends_so_one_stray_point_moves_neither() -> None:
    values = [1.0, 900.0, 1.0, 1.0, 1.0] + [2.0] * 50 + [3.0, 3.0, -900.0, 3.0, 3.0]
    one = by_id(judged(run_of({**GRPO, "kl": values})))["policy"]
    assert (one.start, one.end) == (1.0, 3.0)


def test_a_metric_without_a_finite_point_has_no_values_and_no_trend() -> None:
    one = by_id(judged(run_of({**GRPO, "kl": [float("nan")] * 60})))["policy"]
    assert (one.start, one.end, one.trend) == (None, None, "")


def test_a_rise_is_seen_and_that_it_goes_on() -> None:
    noise = np.random.default_rng(0).normal(0, 0.01, 60)
    one = by_id(judged(run_of({**GRPO, "reward": list(np.linspace(0, 1, 60) + noise)})))["reward"]
    assert (one.trend, one.moving) == ("rose", True)
    flat = by_id(judged(run_of({**GRPO, "reward": list(0.5 + noise)})))["reward"]
    assert (flat.trend, flat.moving) == ("steady", False)


def test_the_start_lies_before_the_finding_and_the_end_is_infinite_where_the_newest_point_is() -> None:
    values = [0.0, 0.0, *[1.0] * 57, float("inf")]
    one = by_id(judged(run_of({**GRPO, "kl": values}), findings=[finding("kl-high", "kl", first=3)]))["policy"]
    assert (one.start, one.end, one.trend) == (0.0, float("inf"), "")


def test_a_metric_without_a_number_is_unknown_and_says_why_though_its_rules_were_quiet() -> None:
    tags = {"reward": [0.1] * 60, "kl": [float("nan")] * 60}
    one = by_id(judged(run_of(tags), quiet=["q"], families={"q": "kl-high"}))["policy"]
    assert (one.state, one.said) == (VitalState.UNKNOWN, "kl has no finite value")


def test_a_sign_shows_a_metric_of_its_own_that_has_numbers() -> None:
    findings = [finding("reward-trend", "kl", Severity.WARNING)]
    reward = by_id(judged(run_of(GRPO), findings=findings))["reward"]
    assert reward.metric is not None and reward.metric.name == "reward"
    assert reward.said == "kl is off (kl)" and reward.level is None, "a limit of the KL is none of the reward"
    tags = {**GRPO, "kl": [float("nan")] * 60, "clip_ratio/region_mean": [0.1] * 60}
    policy = by_id(judged(run_of(tags)))["policy"]
    assert policy.metric is not None and policy.metric.name == "clip_ratio/region_mean"


def test_a_finding_shows_its_metric_where_none_of_the_sign_was_logged() -> None:
    one = by_id(judged(run_of({"kl": [0.01] * 60}), findings=[finding("reward-trend", "kl")]))["reward"]
    assert one.metric is not None and one.metric.name == "kl"


@pytest.mark.parametrize(
    ("state", "planned", "said"),
    [
        ("stopped", 1875, "stopped at step 60 of 1,875 planned"),
        ("stopped", None, "stopped at step 60"),
        ("unknown", 100, "step 60 of 100 planned, and no end in the log"),
        ("unknown", None, "no planned length and no end in the log"),
    ],
)
def test_the_ending_says_what_the_header_says(state: str, planned: int | None, said: str) -> None:
    run = run_of(GRPO)
    run.planned_steps = planned
    one = by_id(RunVerdict(run, translate(run), state))["pace"]
    assert (one.state, one.said) == (VitalState.UNKNOWN, said)


NOISE = np.random.default_rng(0).normal(0, 0.01, 60)


@pytest.mark.parametrize(
    ("course", "state", "said"),
    [
        (np.linspace(0, 1, 60), VitalState.WELL, ""),
        (np.zeros(60), VitalState.UNKNOWN, "no rule found anything, but it has not risen"),
        (np.linspace(1, 0, 60), VitalState.UNKNOWN, "no rule found anything, but it fell"),
    ],
)
def test_a_reward_is_well_beside_a_lost_policy_only_if_it_rose(
    course: np.ndarray, state: VitalState, said: str
) -> None:
    run = run_of({**GRPO, "reward": list(course + NOISE)})
    sick = judged(run, findings=[finding("kl-high", "kl")], quiet=["q"], families={"q": "reward-trend"})
    one = by_id(sick)["reward"]
    assert (one.state, one.said) == (state, said)
    healthy = judged(run, quiet=["q"], families={"q": "reward-trend"})
    assert by_id(healthy)["reward"].state is VitalState.WELL, "whether a healthy run has risen was asked before"


def test_a_reward_that_a_finding_says_fell_is_not_said_to_have_risen() -> None:
    run = run_of({**GRPO, "reward": list(np.linspace(0, 1, 60) + NOISE)})
    assert by_id(judged(run, findings=[finding("reward-trend", "reward", first=50)]))["reward"].trend == ""
    assert by_id(judged(run, findings=[finding("reward-trend", "kl", first=50)]))["reward"].trend == "rose"


@settings(max_examples=examples(60), deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["reward", "kl", "entropy", "loss", "grad_norm", "reward_std", "step_time"]),
        st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=60),
    ),
    st.lists(st.tuples(st.sampled_from(FAMILIES), st.sampled_from(["kl", "reward", "", "x"]), st.sampled_from(State))),
)
def test_whatever_was_logged_and_found_there_are_eight_signs_and_no_finding_above_info_is_lost(
    tags: dict[str, list[float]], found: list[tuple[str, str, State]]
) -> None:
    findings = [finding(family, metric, Severity.WARNING, state) for family, metric, state in found]
    signs = vitals(judged(run_of(tags), findings=findings))
    assert len(signs) == 8
    for one in findings:
        sign = next((vital for vital in signs if vital.id == sign_of(one)), None)
        assert sign is None or sign.finding is not None


@pytest.mark.parametrize("folder", ["sort", "lr-jump"])
def test_a_real_run_has_its_reward_and_policy_looked_at(folder: str) -> None:
    (run,) = rlhealth.check(FIXTURES / "reports" / folder).runs
    signs = by_id(run)
    assert signs["reward"].metric is not None and signs["policy"].metric is not None
    assert signs["critic"].state is VitalState.NOT_FOR_TRAINER
    if run.verdict == "healthy":
        assert {one.state for one in signs.values()} <= {
            VitalState.WELL,
            VitalState.OVER,
            VitalState.NOT_FOR_TRAINER,
            VitalState.NOT_LOGGED,
        }
    else:
        assert any(one.state in (VitalState.SICK, VitalState.WATCH) for one in signs.values())


def test_of_preference_training_only_the_numbers_are_a_sign() -> None:
    wiggling = (0.5 + 0.1 * np.sin(np.arange(60.0))).tolist()
    preferences = {f"rewards/{name}": wiggling for name in ("margins", "chosen", "rejected", "accuracies")}
    run = run_of({"loss": wiggling, "grad_norm": wiggling} | preferences)
    signs = by_id(judge(run, load_rules()))
    assert signs.pop("numbers").state is VitalState.WELL
    assert {one.state for one in signs.values()} == {VitalState.NOT_FOR_TRAINER}
