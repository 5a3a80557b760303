"""What a setting is usually given: by trainer, and the learning rate by the size of the model that the log tells of."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlhealth.metrics import translate
from rlhealth.metrics.usual import usual_settings, weights_of
from tests.metrics.logged import GRPO, run_of


@pytest.mark.parametrize(
    ("config", "billions"),
    [
        ({"hidden_size": 896, "num_hidden_layers": 24, "vocab_size": 151936}, 0.494),  # Qwen2.5-0.5B
        ({"model_config.hidden_size": 2048, "model_config.num_hidden_layers": 36, "model_config.vocab_size": 151936}, 3.09),
        ({"model_config.n_embd": 768, "model_config.n_layer": 12, "model_config.vocab_size": 50257}, 0.124),  # GPT-2
        ({"model/num_parameters": 7615616512, "hidden_size": 3584, "num_hidden_layers": 28}, 7.616),
    ],
)  # fmt: skip
def test_the_size_is_read_off_the_models_own_config(config: dict[str, Any], billions: float) -> None:
    found = weights_of(config)
    assert found is not None
    assert 0.6 * billions < found / 1e9 < 1.4 * billions


def test_a_size_that_the_log_does_not_tell_is_not_guessed() -> None:
    assert weights_of({"learning_rate": 1e-6}) is None
    assert weights_of({"hidden_size": 2048}) is None
    assert weights_of({"hidden_size": 2048, "num_hidden_layers": 48, "num_experts": 128}) is None
    assert weights_of({"hidden_size": "large", "num_hidden_layers": -1}) is None


def test_the_usual_rate_is_the_trainers_own_where_the_size_is_not_known() -> None:
    assert usual_settings("trl-grpo", {})["learning_rate"] == 1e-6
    assert usual_settings("trl-ppo", {})["learning_rate"] == 3e-6
    assert usual_settings("generic", {}) == {}
    assert usual_settings("generic", {"hidden_size": 64, "num_hidden_layers": 2}) == {}


def test_adapters_take_ten_times_the_rate() -> None:
    assert usual_settings("trl-grpo", {"lora_r": 16})["learning_rate"] == 1e-5
    assert usual_settings("trl-grpo", {"use_peft": "False", "lora_r": None})["learning_rate"] == 1e-6


@given(st.floats(1e2, 1e12), st.floats(1.0, 1e3))
def test_a_larger_model_never_has_a_higher_usual_rate(weights: float, times: float) -> None:
    small = usual_settings("trl-grpo", {"num_parameters": weights})["learning_rate"]
    large = usual_settings("trl-grpo", {"num_parameters": weights * times})["learning_rate"]
    assert 1e-6 <= large <= small <= 3e-4


def test_a_translated_run_carries_what_is_usual_for_it() -> None:
    run = run_of(GRPO, config={"model_config.hidden_size": 64, "model_config.num_hidden_layers": 2})
    assert translate(run).usual["learning_rate"] == 3e-4
