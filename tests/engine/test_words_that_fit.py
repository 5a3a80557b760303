"""What a finding says fits the run: its units, its settings, and whether there is a checkpoint to go back to."""

from __future__ import annotations

import numpy as np

from rlhealth.check import judge
from rlhealth.rules.filling import advise, back_to
from rlhealth.rules.loading import load_rules
from rlhealth.run import Place, Run
from rlhealth.verdict.findings import Finding

rng = np.random.default_rng(3)


def findings_of(**series: np.ndarray) -> dict[str, Finding]:
    run = Run("run", Place("csv", "here"))
    for tag, values in series.items():
        run.add(tag.replace("__", "/"), list(range(1, len(values) + 1)), values)
    return {f"{one.rule} {one.metric}": one for one in judge(run, load_rules()).findings}


def sb3(points: int = 80, **more: np.ndarray) -> dict[str, Finding]:
    usual = {
        "rollout__ep_rew_mean": 20 + rng.normal(size=points),
        "time__fps": np.full(points, 900.0),
        "train__approx_kl": np.full(points, 3.0),
        "train__clip_fraction": np.full(points, 0.95),
        "train__entropy_loss": -np.linspace(1.4, 0.0001, points),
        "train__policy_gradient_loss": 0.01 * rng.normal(size=points),
    }
    return findings_of(**(usual | more))


def test_nobody_tells_stable_baselines_of_tokens_or_a_coefficient_of_the_reference() -> None:
    found = sb3()
    assert len(found) >= 3
    for one in found.values():
        for text in (one.message, *one.advice):
            assert "token" not in text, text
            assert "KL coefficient" not in text, text
    assert any("nats per action" in one.message for one in found.values())
    assert any("of the actions" in one.message for one in found.values())


def test_no_advice_to_go_back_to_before_the_first_step() -> None:
    broken = np.full(40, np.nan)
    early = findings_of(reward=rng.normal(size=40), reward_std=np.ones(40), grad_norm=broken)["nonfinite grad_norm"]
    assert early.advice[0].startswith("Start the run again")
    fine = np.where(np.arange(40) < 20, 0.5, np.nan)
    late = findings_of(reward=rng.normal(size=40), reward_std=np.ones(40), grad_norm=fine)["nonfinite grad_norm"]
    assert late.advice[0] == "Go back to the last checkpoint before step 21."


def test_every_nan_names_its_metric() -> None:
    broken = np.where(np.arange(40) < 20, 0.5, np.nan)
    found = findings_of(reward=rng.normal(size=40), reward_std=np.ones(40), grad_norm=broken, loss=broken)
    for metric in ("grad_norm", "loss"):
        assert metric in found[f"nonfinite {metric}"].message


def test_advice_on_a_setting_that_the_trainer_lacks_is_left_out_while_other_advice_is_left() -> None:
    said = {"lacks": frozenset({"option.kl_coef"})}
    assert advise(["Raise {option.kl_coef}.", "Look[[ at {option.kl_coef}]]."], said) == ("Look.",)
    assert advise(["Raise {option.kl_coef}."], said) == ("Raise the KL coefficient.",)


def test_a_checkpoint_is_older_than_a_few_points() -> None:
    assert back_to(4, 5).startswith("start the run again")
    assert back_to(5, 6) == "go back to the last checkpoint before step 6"
