"""An unrecognised name is proposed for the metric that its words say, where its values do not speak against it."""

from __future__ import annotations

from rlhealth.metrics import translate
from rlhealth.metrics.proposals import proposals
from rlhealth.run import Place, Run


def proposed(**series: list[float]) -> dict[str, str]:
    run = Run("run", Place("jsonl", ""))
    for tag, values in series.items():
        run.add(tag.replace("__", "/"), list(range(1, len(values) + 1)), values)
    return {one.tag: one.metric for one in proposals(run, translate(run))}


def test_words_and_values_together_make_a_proposal() -> None:
    assert proposed(my__entropy_now=[1.0, 0.5], gradient_norm_l2=[3.0, 2.0], mean_env_reward=[0.1, 0.2]) == {
        "my/entropy_now": "entropy",
        "gradient_norm_l2": "grad_norm",
        "mean_env_reward": "reward",
    }


def test_a_value_that_the_metric_cannot_have_speaks_against_it() -> None:
    assert proposed(weird_clip_frac=[3.0, 2.0]) == {}
    assert proposed(my_grad_norm_signed=[-3.0, 2.0]) == {}


def test_a_metric_that_the_run_has_is_proposed_for_nothing_else() -> None:
    assert proposed(reward=[1.0], other_env_reward=[2.0]) == {}


def test_coefficients_and_counts_are_not_proposed() -> None:
    assert proposed(kl_coef_now=[0.1], entropy_bonus_weight=[0.1], reward_count=[3.0]) == {}
