"""Runs built from literal series, for tests about names and units."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rlhealth.run import Place, Run

GRPO = (
    "reward",
    "reward_std",
    "kl",
    "loss",
    "completions/mean_length",
    "frac_reward_zero_std",
    "entropy",
    "clip_ratio/region_mean",
    "grad_norm",
    "learning_rate",
)
PPO = (
    "objective/kl",
    "objective/entropy",
    "objective/non_score_reward",
    "objective/rlhf_reward",
    "objective/scores",
    "policy/approxkl_avg",
    "policy/clipfrac_avg",
    "policy/entropy_avg",
    "loss/policy_avg",
    "loss/value_avg",
    "val/clipfrac_avg",
    "val/ratio",
    "val/ratio_var",
    "val/num_eos_tokens",
    "lr",
    "eps",
    "episode",
)
LEGACY = (
    "env/reward_mean",
    "objective/kl",
    "objective/kl_coef",
    "ppo/mean_scores",
    "ppo/mean_non_score_reward",
    "ppo/loss/policy",
    "ppo/loss/value",
    "ppo/loss/total",
    "ppo/policy/policykl",
)
SB3 = (
    "rollout/ep_rew_mean",
    "rollout/ep_len_mean",
    "time/fps",
    "train/approx_kl",
    "train/entropy_loss",
    "train/value_loss",
    "train/clip_fraction",
    "train/clip_range",
    "train/std",
)


def run_of(
    names: Iterable[str] | Mapping[str, Iterable[float]],
    *,
    prefix: str = "",
    config: Mapping[str, Any] | None = None,
    versions: Mapping[str, str] | None = None,
) -> Run:
    """A run that logged these names at the steps 1, 2, …: 0.5 and 0.25 where no values are given."""
    run = Run("a run", Place("tensorboard", "here"))
    for name in names:
        values = list(names[name]) if isinstance(names, Mapping) else [0.5, 0.25]
        run.add(prefix + name, range(1, len(values) + 1), values)
    run.config.update(config or {})
    run.versions.update(versions or {})
    return run
