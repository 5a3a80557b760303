"""Healthy is earned: by a reward and one witness that something was learned, both with enough points."""

from __future__ import annotations

import numpy as np
import pytest

from rlhealth.check import judge
from rlhealth.engine.earned import is_solved, not_recognised, why_not_healthy
from rlhealth.metrics import translate
from rlhealth.rules.loading import load_rules
from rlhealth.run import Place, Run

rng = np.random.default_rng(3)


@pytest.fixture(autouse=True)
def the_same_noise_for_each_test_in_whatever_order() -> None:
    global rng
    rng = np.random.default_rng(3)


def logged(points: int = 60, config: dict[str, object] | None = None, **series: object) -> Run:
    """A run with those tags; a value that is one number stands for all points."""
    run = Run("run", Place("json", "here"), config=dict(config or {}))
    for tag, values in series.items():
        steps = list(range(1, points + 1))
        run.add(tag.replace("__", "/"), steps, np.broadcast_to(np.asarray(values, float), points))
    return run


def wiggling(level: float, points: int = 60) -> np.ndarray:
    return level + 0.1 * level * rng.normal(size=points)


GRPO = {"reward": wiggling(0.5) + 0.06 * np.arange(60) / 60, "completions__mean_length": wiggling(100.0)}


@pytest.mark.parametrize("witness", ["kl", "entropy", "grad_norm", "frac_reward_zero_std", "clip_ratio__region_mean"])
def test_a_reward_and_one_witness_of_learning_are_enough(witness: str) -> None:
    assert why_not_healthy(translate(logged(**GRPO, **{witness: wiggling(0.2)}))) == ""


def test_a_reward_alone_says_nothing_of_learning() -> None:
    assert "nothing but the reward" in why_not_healthy(translate(logged(**GRPO)))


def test_a_witness_without_a_reward_says_nothing_of_success() -> None:
    run = logged(loss=wiggling(0.1), grad_norm=wiggling(0.2), clip_fraction=wiggling(0.1), kl=wiggling(0.2))
    assert "no reward was recognised" in why_not_healthy(translate(run))


def test_a_reward_that_never_was_a_number_is_named() -> None:
    run = logged(reward=wiggling(np.nan), kl=wiggling(0.2))
    assert why_not_healthy(translate(run)).startswith("reward is a finite number at none of its 60 points")


def test_a_witness_that_never_moves_is_none() -> None:
    assert "KL never moved" in why_not_healthy(translate(logged(**GRPO, kl=0.0)))
    assert (
        why_not_healthy(translate(logged(**GRPO, frac_reward_zero_std=0.0))) == ""
    )  # every group has spread: that is a look


def test_an_entropy_that_stays_the_same_to_three_digits_is_no_witness() -> None:
    uniform = np.log(7) - 1e-4 * rng.random(60)
    assert "entropy never moved" in why_not_healthy(translate(logged(**GRPO, entropy=uniform)))
    assert why_not_healthy(translate(logged(**GRPO, entropy=uniform * np.linspace(1, 0.9, 60)))) == ""


def test_a_success_rate_that_surely_rose_proves_what_a_wavering_reward_does_not() -> None:
    wavering = np.concatenate([np.linspace(-800, 500, 8), 500 + 200 * rng.normal(size=17)])
    success = np.concatenate([np.zeros(4), 1 - 0.02 * rng.random(21)])
    alone = logged(25, ep_rew_mean=wavering)
    assert "rose too little to be sure of it" in why_not_healthy(translate(alone))
    assert "did not rise" in why_not_healthy(translate(logged(25, ep_rew_mean=-wavering)))
    assert why_not_healthy(translate(logged(25, ep_rew_mean=wavering, success_rate=success))) == ""
    assert why_not_healthy(translate(logged(25, ep_rew_mean=-wavering, success_rate=success))) != ""


def test_what_a_reward_loses_while_nearly_every_episode_succeeds_is_no_doubt() -> None:
    worse = {
        "ep_rew_mean": np.concatenate(
            [-0.3 + 0.1 * rng.random(20), -0.2 + 0.01 * rng.random(40), -0.3 + 0.01 * rng.random(30)]
        )
    }
    learned = {"train/approx_kl": wiggling(0.01, 90)}
    assert "has lost" in why_not_healthy(translate(logged(90, **worse, **learned)))
    assert why_not_healthy(translate(logged(90, **worse, **learned, success_rate=1 - 0.05 * rng.random(90)))) == ""
    assert why_not_healthy(translate(logged(90, **worse, **learned, success_rate=np.full(90, 0.6)))) != ""
    assert why_not_healthy(translate(logged(90, **worse, success_rate=np.ones(90)))) != "", (
        "nothing says that it learns"
    )


def test_the_reward_of_evaluations_that_surely_rose_proves_what_that_of_training_does_not() -> None:
    wavering, rising = 50 * rng.normal(size=40), np.linspace(0, 100, 40) + rng.normal(size=40)
    assert why_not_healthy(translate(logged(40, ep_rew_mean=wavering, eval__ep_rew_mean=rising))) == ""
    assert why_not_healthy(translate(logged(40, ep_rew_mean=wavering, eval__ep_rew_mean=-rising))) != ""
    accuracy = rising / 200 + 0.4  # may be that of a classifier
    assert why_not_healthy(translate(logged(40, train_loss=-wavering, train_acc=0.4, val_acc=accuracy))) != ""


def test_a_reward_that_rises_in_training_and_in_none_of_many_evaluations_shows_no_learning() -> None:
    """Its exploration shrank, and what it does without exploring is what it did at the start."""
    rising, still = np.linspace(0, 100, 60) + rng.normal(size=60), -28.2 + 0.03 * np.sin(np.arange(60))
    trained = {"rollout/ep_rew_mean": rising, "train/approx_kl": wiggling(0.01)}
    assert why_not_healthy(translate(logged(**trained))) == ""
    said = why_not_healthy(translate(logged(**trained, eval__mean_reward=still)))
    assert "the reward of 60 evaluations has not risen" in said
    assert why_not_healthy(translate(logged(**trained, eval__mean_reward=rising - 30))) == ""
    solved = {"eval__mean_reward": still, "eval__success_rate": 1 - 0.05 * rng.random(60)}
    assert why_not_healthy(translate(logged(**trained, **solved))) == "", "before it was evaluated first"
    assert why_not_healthy(translate(logged(**trained, **solved | {"eval__success_rate": np.full(60, 0.6)}))) != ""
    few = np.where(np.arange(60) % 6 == 0, still, np.nan)
    assert why_not_healthy(translate(logged(**trained, eval__mean_reward=few))) == ""


def test_a_reward_that_rises_while_no_answer_was_ever_right_shows_no_learning() -> None:
    formed = {"reward": np.linspace(0, 0.5, 40) + 0.02 * rng.normal(size=40), "kl": wiggling(0.01, 40)}
    assert why_not_healthy(translate(logged(40, **formed))) == ""
    wrong = {"rewards/correctness_reward_func/mean": np.zeros(40)}
    said = why_not_healthy(translate(logged(40, **formed, **wrong)))
    assert "no answer has earned anything (rewards/correctness_reward_func/mean is 0 in each of 40 points)" in said
    once = np.where(np.arange(40) == 30, 0.125, 0.0)
    assert why_not_healthy(translate(logged(40, **formed, **{"rewards/correctness_reward_func/mean": once}))) == ""
    seldom = np.where(np.arange(40) % 4 == 0, 0.0, np.nan)
    assert why_not_healthy(translate(logged(40, **formed, **{"rewards/correctness_reward_func/mean": seldom}))) == ""
    reached = {"rollout/ep_rew_mean": formed["reward"], "train/approx_kl": wiggling(0.01, 40)}
    assert why_not_healthy(translate(logged(40, **reached, **{"rollout/success_rate": np.zeros(40)}))) == ""


def test_a_rating_that_surely_rose_is_a_proof_without_a_witness() -> None:
    printed = {"Mean Reward": np.zeros(60), "Mean Group Reward": wiggling(0.0) + 0.2 * rng.normal(size=60)}
    assert why_not_healthy(translate(logged(**printed))) != ""
    assert why_not_healthy(translate(logged(**printed, **{"Training. ELO": 1200 + np.arange(60.0)}))) == ""


def test_in_self_play_the_rating_proves_what_a_reward_between_equals_does_not() -> None:
    even, rising = wiggling(0.2, 90), 1200 + 10 * np.arange(90) + 5 * rng.normal(size=90)
    lost = np.concatenate([wiggling(0.1, 30), wiggling(0.5, 30), wiggling(0.1, 30)])
    fields = {"Policy/Entropy": wiggling(0.2, 90), "Losses/Policy Loss": wiggling(0.1, 90)}
    for reward in (even, lost):
        alone = logged(90, **{"Environment/Cumulative Reward": reward, **fields})
        assert why_not_healthy(translate(alone)) != ""
        rated = logged(90, **{"Environment/Cumulative Reward": reward, "Self-play/ELO": rising, **fields})
        assert why_not_healthy(translate(rated)) == ""


def test_a_reward_that_has_just_sunk_below_all_it_was_is_not_healthy() -> None:
    reward = GRPO["reward"].copy()
    reward[-5:] = reward.min() - 0.1
    assert "lie below all before them" in why_not_healthy(
        translate(logged(**GRPO | {"reward": reward}, kl=wiggling(0.2)))
    )


def test_components_that_rise_prove_nothing_where_their_few_totals_fall() -> None:
    rising = np.linspace(0, 1, 12) + 0.01 * rng.normal(size=12)
    parts = {"rewards__upright__mean": rising, "rewards__effort__mean": -3 * rising, "kl": wiggling(0.2, 12)}
    assert why_not_healthy(translate(logged(12, **parts))) == ""
    assert "of the 15 points" in why_not_healthy(translate(logged(12, reward=-2 * rising, **parts)))


def test_few_points_earn_nothing() -> None:
    few = logged(14, reward=wiggling(0.5, 14), reward_std=wiggling(0.5, 14), kl=wiggling(0.2, 14))
    assert "14 of the 15 points" in why_not_healthy(translate(few))
    enough = np.linspace(0.2, 0.6, 15) + 0.02 * rng.normal(size=15)
    assert why_not_healthy(translate(logged(15, reward=enough, kl=wiggling(0.2, 15)))) == ""


def test_a_quiet_run_whose_reward_did_not_rise_is_not_healthy() -> None:
    still = {**GRPO, "reward": wiggling(0.5), "kl": wiggling(0.2)}
    assert "the reward has not risen beyond its noise in 60 points" in why_not_healthy(translate(logged(**still)))
    falling = {**still, "reward": wiggling(0.5) - 0.3 * np.arange(60) / 60}
    assert "has not risen" in why_not_healthy(translate(logged(**falling)))


def test_a_reward_that_lost_half_of_its_gain_is_not_healthy() -> None:
    level = np.interp(np.arange(90), [0, 40, 50, 60, 90], [0.1, 0.7, 0.7, 0.4, 0.4])
    run = logged(90, reward=level + 0.02 * rng.normal(size=90), kl=wiggling(0.2, 90))
    assert "has lost" in why_not_healthy(translate(run))


def test_a_reward_that_fell_at_the_very_end_is_not_healthy() -> None:
    for newest, said in ((60, "tenth"), (100, "sixth")):
        level = np.interp(np.arange(600), [0, 300, 600 - newest, 601 - newest, 600], [0.1, 0.7, 0.7, 0.45, 0.45])
        run = logged(600, reward=level + 0.02 * rng.normal(size=600), kl=wiggling(0.2, 600))
        assert f"the newest {said} of the run has lost" in why_not_healthy(translate(run))


def test_a_reward_that_dips_and_comes_back_is_healthy() -> None:
    level = np.interp(np.arange(90), [0, 40, 50, 60, 90], [0.1, 0.7, 0.4, 0.7, 0.7])
    run = logged(90, reward=level + 0.02 * rng.normal(size=90), kl=wiggling(0.2, 90))
    assert why_not_healthy(translate(run)) == ""


def test_one_reward_function_that_rose_does_not_stand_for_a_total_that_did_not() -> None:
    rose = {"rewards__form__mean": wiggling(0.1) + np.arange(60) / 60, "kl": wiggling(0.2)}
    assert why_not_healthy(translate(logged(**rose))) == ""
    assert "has not risen" in why_not_healthy(translate(logged(**rose, reward=wiggling(0.5))))


def test_a_reward_that_rose_is_a_witness_itself() -> None:
    rising = 100 * np.tanh(np.arange(300) / 80) + rng.normal(size=300)
    assert why_not_healthy(translate(logged(300, episode_reward=rising))) == ""
    assert why_not_healthy(translate(logged(300, episode_reward=-rising)))


def test_few_points_are_enough_where_reward_has_clearly_risen() -> None:
    rising = np.array([0.0, 0.01, 0.07, 0.25, 0.29, 0.31, 0.26, 0.31, 0.29, 0.26, 0.26, 0.34])
    assert why_not_healthy(translate(logged(12, reward=rising, kl=wiggling(0.2, 12)))) == ""
    assert "12 of the 15 points" in why_not_healthy(
        translate(logged(12, reward=rising[::-1].copy(), kl=wiggling(0.2, 12)))
    )


def test_few_evaluations_are_enough_where_they_rose_by_many_of_their_own_errors() -> None:
    results = [-13.0, -2.0, 80.0, 313.0, 672.0, 681.0, 688.0, 687.0, 687.0, 687.0, 453.0, 688.0]
    sure, unsure = (logged(12, evaluations__results=results, evaluations__error=error) for error in (10.0, 300.0))
    assert why_not_healthy(translate(sure)) == ""
    assert "12 of the 15 points" in why_not_healthy(translate(unsure))


def test_a_rise_is_seen_through_the_heavy_tails_of_single_episodes() -> None:
    returns = np.where(
        rng.random(600) < 0.1, 2000 * rng.random(600), 50 + np.minimum(np.arange(600), 200) / 2 + rng.normal(size=600)
    )
    assert why_not_healthy(translate(logged(600, episode_reward=returns))) == ""
    still = np.where(rng.random(600) < 0.1, 2000 * rng.random(600), 50.0)
    assert why_not_healthy(translate(logged(600, episode_reward=still)))


def test_a_steep_rise_at_the_start_is_no_noise() -> None:
    steep = -7 - 130 * np.exp(-np.arange(900) / 30) + rng.normal(size=900)
    assert why_not_healthy(translate(logged(900, episode_reward=steep))) == ""


def test_noise_alone_seldom_looks_like_a_rise() -> None:
    earned = 0
    for _ in range(200):
        noise = np.empty(200)
        noise[0] = rng.normal()
        for at in range(1, 200):
            noise[at] = 0.8 * noise[at - 1] + 0.6 * rng.normal()
        earned += why_not_healthy(translate(logged(200, episode_reward=noise))) == ""
    assert earned <= 8


def test_exploration_before_the_first_update_is_no_health() -> None:
    exploring = {
        "rollout__ep_rew_mean": wiggling(0.3) + 0.05 * np.arange(60) / 60,
        "time__fps": wiggling(500.0),
        "rollout__ep_len_mean": wiggling(9.0),
    }
    assert why_not_healthy(translate(logged(**exploring)))
    assert why_not_healthy(translate(logged(**exploring, train__loss=wiggling(0.2)))) == ""


def test_supervised_training_is_named() -> None:
    run = logged(loss=wiggling(2.0), grad_norm=wiggling(0.5), mean_token_accuracy=wiggling(0.7))
    verdict = judge(run, load_rules())
    assert verdict.verdict == "unknown"
    assert "supervised fine-tuning" in verdict.no_answer


def test_a_classifier_is_no_reinforcement_learning() -> None:
    run = logged(train_loss=wiggling(2.0), val_loss=wiggling(2.1), train_acc=wiggling(0.3), val_acc=wiggling(0.3))
    assert why_not_healthy(translate(run)).startswith("this is supervised training of a classifier")
    run = logged(train_loss=wiggling(2.0), val_loss=wiggling(2.1), val_acc=wiggling(0.3), mean_reward=wiggling(0.3))
    assert translate(run).is_rl


def test_an_accuracy_that_rises_beside_a_loss_alone_is_that_of_any_classifier() -> None:
    rising = np.linspace(0.3, 0.9, 60)
    for names in (("Loss", "Acc"), ("train_loss", "accuracy"), ("loss", "Train Accuracy")):
        run = logged(**dict(zip(names, (wiggling(2.0), rising), strict=True)))
        assert "classifier" in why_not_healthy(translate(run)), names
    run = logged(loss=wiggling(2.0), accuracy=rising, response_length=wiggling(100.0))
    assert why_not_healthy(translate(run)) == ""
    for other in ("pg_loss", "epsilon", "solve_rate", "pass@1", "correct"):  # then they are not alone
        assert translate(logged(loss=wiggling(2.0), accuracy=rising, **{other: wiggling(0.5)})).is_rl, other


def test_rows_that_count_no_steps_and_have_many_unknown_names_may_be_in_any_order() -> None:
    rising = np.linspace(0.0, 1.0, 60)
    tasks = translate(logged(score=rising, size=wiggling(4.0), states=wiggling(9.0), moves=wiggling(7.0)))
    assert "any order is possible" in why_not_healthy(tasks, "row")
    assert why_not_healthy(tasks, "episode") == ""
    assert why_not_healthy(translate(logged(score=rising)), "row") == ""
    learning = logged(score=rising, loss=wiggling(1.0), size=wiggling(4.0), states=wiggling(9.0), moves=wiggling(7.0))
    assert why_not_healthy(translate(learning), "row") == ""


def test_a_log_of_evaluations_alone_is_judged_by_their_reward() -> None:
    falls = np.concatenate([np.linspace(50.0, 300.0, 40), np.linspace(300.0, 20.0, 40)]) + wiggling(5.0, 80)
    verdict = judge(logged(80, eval__mean_reward=falls, eval__mean_ep_length=wiggling(200.0, 80)), load_rules())
    (found,) = [one for one in verdict.findings if one.rule == "reward-decline"]
    assert found.metric == "reward" and verdict.verdict == "critical"
    same = {one.reason for one in verdict.skipped if one.family == "evaluation"}
    assert "the only reward is that of the evaluations" in same


def test_the_reward_of_training_goes_before_that_of_evaluations() -> None:
    logs = logged(rollout__ep_rew_mean=wiggling(3.0), eval__mean_reward=wiggling(100.0), train__loss=wiggling(1.0))
    metrics = translate(logs).metrics
    assert metrics["reward"].tag == "rollout/ep_rew_mean"
    assert metrics["eval/reward"].tag == "eval/mean_reward"


def test_of_supervised_training_only_numbers_that_are_not_finite_are_reported() -> None:
    supervised = {"grad_norm": 0.0, "mean_token_accuracy": wiggling(0.7)}
    loss = wiggling(2.0)
    overflowed, broken = loss.copy(), loss.copy()
    overflowed[10], broken[30:] = np.inf, np.nan
    by_loss = [judge(logged(loss=one, **supervised), load_rules()) for one in (loss, overflowed, broken)]
    assert [one.verdict for one in by_loss] == ["unknown", "unknown", "critical"]
    assert [one.rule for one in by_loss[2].findings] == ["nonfinite"]
    assert all("supervised fine-tuning" in one.no_answer for one in by_loss[:2])


def test_a_log_of_which_only_the_loss_was_understood_is_unknown_and_says_what_it_did_not_understand() -> None:
    names = {f"my__{name}": wiggling(1.0) for name in ("thing", "other", "kl_mean", "value")}
    verdict = judge(logged(loss=wiggling(0.1), **names), load_rules())
    assert verdict.verdict == "unknown"
    assert "4 names not recognised, among them my/kl_mean: --alias" in verdict.no_answer


def test_likely_names_are_reported_first() -> None:
    run = logged(**GRPO, zebra=wiggling(1.0), kl_to_ref=wiggling(1.0))
    assert not_recognised(translate(run)) == "2 names not recognised, among them kl_to_ref"
    assert not_recognised(translate(logged(**GRPO))) == ""


def test_what_is_wrong_counts_though_health_was_not_earned() -> None:
    verdict = judge(
        logged(reward=wiggling(0.5), reward_std=wiggling(0.5), loss=[*[0.1] * 59, float("nan")]), load_rules()
    )
    assert (verdict.verdict, verdict.no_answer) == ("critical", "")


@pytest.mark.parametrize(
    ("rewards", "is_believed"),
    [
        ([0.0, 0.1, 0.3, 0.5], True),
        ([0.0, 0.1, 0.5, 0.3], False),  # it was higher, and four points show no rise
        ([0.5, 0.5, 0.5, 0.5], False),
        ([*np.linspace(0, 1, 20), 0.95], True),
    ],
)
def test_a_script_that_says_its_task_is_solved_is_believed_unless_its_reward_says_otherwise(
    rewards: list[float], is_believed: bool
) -> None:
    run = logged(len(rewards), reward=rewards)
    assert not is_solved(run, translate(run)), "nobody says so"
    run.solved = "Environment solved in 354 episodes!"
    assert is_solved(run, translate(run)) == is_believed


def test_a_task_that_is_solved_excuses_no_finding() -> None:
    run = logged(reward=np.append(np.linspace(0, 1, 40), np.zeros(20)), kl=wiggling(0.2))
    run.solved = "Environment solved in 354 episodes!"
    assert judge(run, load_rules()).verdict in ("warning", "critical")
