"""Usual values of settings: by trainer, and the learning rate by the number of trained weights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any

from rlhealth.metrics.catalogue import FOLDER
from rlhealth.metrics.settings import plain
from rlhealth.parsing.own_texts import read_texts

#: Where a tracker stores the model's config: Hugging Face's TensorBoard callback nests it, wandb's does not.
_MODEL = ("", "model_config.", "model_config.text_config.", "text_config.")
_WIDTH, _LAYERS = ("hidden_size", "n_embd", "d_model"), ("num_hidden_layers", "n_layer", "num_layers")
_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")
_ADAPTERS = ("is_peft_model", "use_peft", "peft_config", "lora_r", "lora_rank", "lora_config")


def usual_settings(framework: str, config: Mapping[str, Any]) -> dict[str, float]:
    """Usual values of settings in such a run, by canonical name; empty if nothing is published.

    Args:
        config: the run's settings as logged; if they include the size of the model, the learning rate is that for
                models of its size.
    """
    known = _known()
    found = {name: float(value) for name, value in known["frameworks"].get(framework, {}).items()}
    weights = weights_of(config)
    if weights is not None and "learning_rate" in found:
        found["learning_rate"] = _by_size(weights)
    if "learning_rate" in found and has_adapters(config):
        found["learning_rate"] *= float(known["adapters"])
    return {name: float(f"{value:.1g}") if name == "learning_rate" else value for name, value in found.items()}


def weights_of(config: Mapping[str, Any]) -> float | None:
    """How many weights the model has: as logged, or 12 x layers x width^2 and the vocabulary's (Kaplan et al. 2020).

    None if the log does not show it, or the model is a mixture of experts.
    """
    logged = _number(config, ("model/num_parameters", "num_parameters"))
    if logged is not None:
        return logged
    if _number(config, _EXPERTS) is not None:
        return None
    width, layers = _number(config, _WIDTH), _number(config, _LAYERS)
    if width is None or layers is None:
        return None
    return 12.0 * layers * width**2 + (_number(config, ("vocab_size",)) or 0.0) * width


def has_adapters(config: Mapping[str, Any]) -> bool:
    """Whether adapters are trained rather than all weights, as far as the log shows."""
    return any(plain(config[name]) not in (None, False, 0, "", {}) for name in _ADAPTERS if name in config)


def _number(config: Mapping[str, Any], names: tuple[str, ...]) -> float | None:
    for place in _MODEL:
        for name in names:
            value = plain(config.get(place + name))
            if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e15:
                return float(value)
    return None


def _by_size(weights: float) -> float:
    """The usual learning rate of models with so many weights."""
    rows = [(float(one["weights"]), float(one["learning_rate"])) for one in _known()["by_size"]]
    if weights <= rows[0][0] or weights >= rows[-1][0]:
        return rows[0 if weights <= rows[0][0] else -1][1]
    for (low, first), (high, last) in pairwise(rows):
        if weights <= high:
            share = math.log(weights / low) / math.log(high / low)
            return float(first * (last / first) ** share)
    return rows[-1][1]


@lru_cache(maxsize=1)
def _known() -> dict[str, Any]:
    found: dict[str, Any] = read_texts(FOLDER / "usual.yaml")
    return found
