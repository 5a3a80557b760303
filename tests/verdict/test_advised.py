"""Which of a run's findings the advice is of, and when it is to change nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlhealth.check import judge
from rlhealth.reports.advice import flags, table, yaml
from rlhealth.rules.loading import load_rules
from rlhealth.run import Floats, Place, Run
from rlhealth.verdict.advised import AT_ITS_BEST, Advice, advice_of
from rlhealth.verdict.verdicts import RunVerdict

RULES = load_rules()
ROWS = 120
STEPS = np.arange(1, ROWS + 1)
LEARNING = np.concatenate([np.linspace(0.1, 0.9, 80), np.full(40, 0.9)])
LOST = np.concatenate([np.linspace(0.1, 0.9, 60), np.linspace(0.9, 0.1, 40), np.full(20, 0.1)])
DRIFT = np.concatenate([np.linspace(0.0, 1.75, 80), np.full(40, 1.75)])


def judged(config: dict[str, Any] | None = None, **series: Floats) -> RunVerdict:
    run = Run("run", Place("jsonl", "here"), config={"learning_rate": 1e-5, "beta": 0.04, **(config or {})})
    noise = np.random.default_rng(7).normal(0, 0.02, ROWS)
    usual = {
        "learning_rate": np.full(ROWS, 1e-5),
        "reward_std": np.full(ROWS, 0.3),
        "frac_reward_zero_std": np.full(ROWS, 0.1),
    }
    for tag, values in (usual | series).items():
        run.add(tag.replace("__", "/"), STEPS, values + noise * (tag == "reward"))
    return judge(run, RULES)


def told(run: RunVerdict) -> tuple[str, dict[str, Any]]:
    advice = advice_of(run)
    return advice.cause, {one.option: one.to for one in advice.changes}


def test_a_symptom_changes_nothing_while_reward_is_at_its_best() -> None:
    run = judged(kl=DRIFT, reward=LEARNING)
    assert run.verdict == "warning"
    assert advice_of(run) == Advice("", advice_of(run).title, (), (), AT_ITS_BEST)
    assert AT_ITS_BEST in table(run, advice_of(run), ())
    assert flags(run, advice_of(run)).startswith("#")
    assert AT_ITS_BEST in yaml(run, advice_of(run))


def test_the_same_symptom_is_treated_once_reward_has_been_lost() -> None:
    run = judged(kl=DRIFT, reward=LOST)
    assert not run.reward_is_best
    assert advice_of(run).changes


def test_a_critical_symptom_is_treated_however_high_the_reward() -> None:
    run = judged(kl=2.0 * DRIFT, reward=LEARNING)
    assert (run.verdict, run.reward_is_best) == ("critical", True)
    assert told(run) == ("kl-high-per-token", {"learning_rate": 3e-6})


def test_a_cause_that_is_over_comes_before_a_symptom_for_its_setting_is_the_same_still() -> None:
    cut = np.concatenate([np.full(15, 0.65), np.full(ROWS - 15, 0.1)])
    run = judged(
        {"max_completion_length": 64},
        kl=DRIFT,
        reward=LEARNING,
        completions__clipped_ratio=cut,
        completions__mean_length=np.full(ROWS, 50.0),
    )
    assert [one.rule for one in run.findings if one.severity > 0] == ["kl-high-per-token"]
    assert told(run) == ("length-limit-too-short", {"max_completion_length": 256})


def paid_for_length(rate: Floats) -> RunVerdict:
    grown = np.concatenate([np.full(20, 20.0), np.linspace(20, 64, 40), np.full(60, 64.0)])
    return judged(
        {"max_completion_length": 64, "learning_rate": float(rate[-1])},
        reward=np.concatenate([np.full(20, 0.2), np.linspace(0.2, 3.0, 40), np.full(60, 3.0)]),
        completions__mean_length=grown,
        completions__clipped_ratio=np.concatenate([np.full(40, 0.02), np.linspace(0.02, 1.0, 20), np.full(60, 1.0)]),
        learning_rate=rate,
    )


def test_a_reward_that_pays_for_length_is_no_setting_at_a_usual_rate() -> None:
    advice = advice_of(paid_for_length(np.full(ROWS, 1e-5)))
    assert advice.changes == ()
    assert [one.rule for one in advice.looks] == ["reward-hacking-length"]


def test_a_rate_far_outside_of_use_from_the_start_is_put_right_beside_it() -> None:
    run = paid_for_length(np.full(ROWS, 0.005))
    assert told(run) == ("learning-rate-unusual", {"learning_rate": 0.0005})
    assert [one.rule for one in advice_of(run).looks] == ["reward-hacking-length"]
    shown = table(run, advice_of(run), ())
    assert "that alone may not cure it (reward-hacking-length)" in shown
    assert "no setting to change" not in shown


def test_a_rate_is_lowered_to_what_models_of_its_size_are_trained_with_and_no_further() -> None:
    tiny = {"hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 58}
    series = {"reward": LOST, "kl": 2.0 * DRIFT, "learning_rate": np.full(ROWS, 0.002)}
    assert told(judged({"learning_rate": 0.002, **tiny}, **series))[1] == {"learning_rate": 0.0003}
    assert told(judged({"learning_rate": 0.002}, **series))[1] == {"learning_rate": 0.0002}
    series["learning_rate"] = np.full(ROWS, 0.03)
    assert told(judged({"learning_rate": 0.03, **tiny}, **series))[1] == {"learning_rate": 0.003}, "a tenth at most"


def test_a_rate_of_next_to_nothing_becomes_the_usual_one_of_the_models_size() -> None:
    series = {"reward": np.full(ROWS, 0.3), "learning_rate": np.full(ROWS, 1e-12)}
    large = {"hidden_size": 3584, "num_hidden_layers": 28, "vocab_size": 152064}
    assert told(judged({"learning_rate": 1e-12, **large}, **series))[1] == {"learning_rate": 1e-6}
    small = {"n_embd": 768, "n_layer": 12, "vocab_size": 50257}
    assert told(judged({"learning_rate": 1e-12, **small}, **series))[1] == {"learning_rate": 1e-5}


def test_a_rate_that_jumped_on_the_way_is_not_blamed_on_the_setting() -> None:
    run = paid_for_length(np.concatenate([np.full(90, 1e-5), np.full(30, 0.005)]))
    assert "learning_rate" not in told(run)[1]


def test_a_healthy_run_has_no_advice() -> None:
    assert advice_of(judged(kl=0.3 * DRIFT, reward=LEARNING)) == Advice("", "", (), ())


def of_control(**series: Floats) -> RunVerdict:
    run = Run("run", Place("tensorboard", "here"))
    noise = np.random.default_rng(7).normal(0, 2, ROWS)
    usual = {
        "rollout/ep_rew_mean": -100 + noise,
        "time/fps": np.full(ROWS, 900.0),
        "train/approx_kl": np.full(ROWS, 0.01),
        "train/clip_fraction": np.full(ROWS, 0.1),
        "train/policy_gradient_loss": 0.001 * noise,
    }
    for tag, values in (usual | {name.replace("__", "/"): values for name, values in series.items()}).items():
        run.add(tag, STEPS, values)
    return judge(run, RULES)


def test_a_policy_of_a_control_task_that_lost_its_entropy_is_paid_for_exploring() -> None:
    lost = np.concatenate([np.linspace(1.4, 0.001, 20), np.full(100, 0.001)])
    still = np.concatenate([np.full(30, 0.01), np.zeros(90)])
    run = of_control(train__entropy_loss=-lost, train__approx_kl=still, train__policy_gradient_loss=still)
    assert told(run) == ("exploration-exhausted", {"ent_coef": 0.01})


def test_where_no_setting_is_to_blame_in_a_control_task_its_episodes_are_to_be_looked_at() -> None:
    run = of_control(train__value_loss=np.where(STEPS < 60, 2.0, np.nan))
    text = table(run, advice_of(run), ())
    assert "the episodes of step" in text and "completions" not in text


def test_a_rate_far_outside_of_use_is_changed_beside_a_cause_that_does_not_explain_the_drift() -> None:
    drift = np.concatenate([np.linspace(0.0, 4.0, 20), np.full(100, 4.0)])
    run = judged(
        {"learning_rate": 0.005, "max_completion_length": 16},
        kl=drift,
        reward=np.full(ROWS, 0.1),
        learning_rate=np.full(ROWS, 0.005),
        completions__clipped_ratio=np.full(ROWS, 1.0),
        completions__mean_length=np.full(ROWS, 16.0),
        completions__max_length=np.full(ROWS, 16.0),
    )
    cause, changes = told(run)
    assert (cause, changes) == ("length-limit-too-short", {"max_completion_length": 64, "learning_rate": 0.0005})
    assert {one.to for found in run.findings for one in found.changes if one.setting == "learning_rate"} == {0.0005}


def test_where_the_schedule_stands_for_the_setting_its_peak_is_rounded_to_what_was_set() -> None:
    run = judged({"learning_rate": None}, kl=2.0 * DRIFT, reward=LOST, learning_rate=np.linspace(4.9986e-6, 0, ROWS))
    [change] = [one for one in advice_of(run).changes if one.setting == "learning_rate"]
    assert (change.before, change.to) == (5e-6, 1.5e-6) and "was logged" in change.why
