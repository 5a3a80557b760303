"""What rewards and texts say together."""

from __future__ import annotations

import numpy as np
import pytest

from rlhealth.completions.batch import batches
from rlhealth.completions.rewards import correlation, of_rewards


def batch(prompts, lengths, **rewards):
    return batches(
        {"step": [1] * len(prompts), "prompt": prompts, "completion": ["x" * n for n in lengths], **rewards}
    )[0]


def test_length_is_paid_within_groups_though_hard_prompts_get_long_answers_and_little_reward():
    prompts = ["easy"] * 8 + ["hard"] * 8
    lengths = [*range(10, 18), *range(100, 108)]
    reward = [*np.linspace(0.5, 0.9, 8), *np.linspace(0.0, 0.4, 8)]
    found = of_rewards(batch(prompts, lengths, reward=reward))
    assert found["reward_length_correlation"] == pytest.approx(1.0) and found["pay_for_length"] > 0.99
    assert found["longest_reward"] == pytest.approx(np.mean(reward[-2:]))


def test_the_error_of_a_correlation_is_taken_off_before_length_is_said_to_be_paid():
    rng = np.random.default_rng(3)
    lengths, reward = rng.integers(1, 100, 16), rng.random(16)
    found = of_rewards(batch(["p"] * 16, lengths, reward=reward))
    value, error = correlation(np.asarray(reward) - np.mean(reward), lengths - np.mean(lengths))
    assert abs(found["pay_for_length"]) == pytest.approx(max(0.0, abs(value) - 2 * error))


@pytest.mark.parametrize("rewards", [[0.5] * 16, [float("nan")] * 16, [1e308, *[0.0] * 15]])
def test_where_nothing_differs_no_correlation_is_reported(rewards):
    found = of_rewards(batch(["p"] * 16, [5] * 16, reward=rewards))
    assert not np.isfinite(found["reward_length_correlation"])


def test_prompts_are_solved_always_never_or_now_and_then():
    prompts = ["a"] * 4 + ["b"] * 4 + ["c"] * 4 + ["d"] * 4
    found = of_rewards(batch(prompts, range(16), reward=[1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0]))
    assert found["always_solved"] == 0.25 and found["never_solved"] == 0.5 and found["groups_one_reward"] == 0.75
    assert "always_solved" not in of_rewards(batch(prompts, range(16), reward=np.linspace(0, 1, 16)))


def test_the_form_is_right_and_the_answer_wrong():
    form, answer = [1.0] * 8 + [0.0] * 2, [1.0, 1.0] + [0.0] * 8
    found = of_rewards(batch(["p"] * 10, range(10), format_reward=form, accuracy_reward=answer))
    assert found["form_without_answer"] == pytest.approx(0.6) and found["answer_reward"] == pytest.approx(0.2)
    assert "form_without_answer" not in of_rewards(batch(["p"] * 10, range(10), polite=form, short=answer))
    assert "agreement/format_reward+accuracy_reward" in found
