"""Names that nobody wrote down: under which plain names a tag of an unknown trainer may stand, the surest first."""

from __future__ import annotations

import re
from functools import lru_cache

_BETWEEN = re.compile(r"[\s.()-]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
#: First parts that say where a number comes from and nothing of what it is.
_HEADS = re.compile(
    r"train|training|trainer|rollout|rollouts|charts|chart|metrics|metric|performance|stats|statistics|"
    r"env|environment|episode|episodes|info|learner|agent|main|global|log|logs|scalars|scalar|summary|ppo|"
    r"grpo|rloo|reinforce|a2c|rl|algo|algorithm|update|updates|optim|optimizer|optimization|monitor|"
    r"results|run|history|policy_update|learning|mean|avg|average|losses"
)
#: Last parts that say along which axis a number was logged.
_TAILS = re.compile(
    r"episode|episodes|step|steps|global_step|t|info|epoch|iter|iteration|iterations|frame|frames|"
    r"timestep|timesteps|update|updates|value|train"
)
_EVALUATIONS = re.compile(r"eval|evaluation|evaluate|test|testing|validation")
#: Names that mean one thing under every first part; a number in that part says that there are several.
_PLAIN_LAST = re.compile(
    r"value_loss|policy_loss|actor_loss|critic_loss|policy_gradient_loss|pg_loss|vf_loss|"
    r"explained_variance|approx_kl|clip_fraction|clipfrac|clip_frac|policy_entropy|learning_rate|"
    r"grad_norm|gradient_norm|ep_rew_mean|ep_len_mean|episode_reward|episodic_return|episode_return|"
    r"mean_reward|reward_mean|avg_reward|average_reward|reward_std"
)


def plain(tag: str) -> str:
    """The name in lower case with underscores for spaces and points, as most trainers write it: `Grad. Norm` is
    `grad_norm`.
    """
    return _BETWEEN.sub("_", tag.strip().lower()).strip("_")


@lru_cache(maxsize=4096)
def forms(tag: str) -> tuple[str, ...]:
    """The plain names under which a tag may be known, the surest first: `Average Reward/(t)` is `average_reward`,
    `Train/Policy/Loss` is `policy/loss` and `policy_loss`, `MeanReward` is `mean_reward`.
    """
    found: list[str] = []
    for text in (tag, _HUMP.sub("_", tag)):
        parts = [part for part in (plain(part) for part in text.split("/")) if part]
        while len(parts) > 1 and _TAILS.fullmatch(parts[-1]):
            parts = parts[:-1]
        found.append("/".join(parts))
        while len(parts) > 1 and _HEADS.fullmatch(parts[0]):
            parts = parts[1:]
            found.append("/".join(parts))
        if len(parts) > 1:
            found.append("_".join(parts))
            if _PLAIN_LAST.fullmatch(parts[-1]) and not any(one.isdigit() for one in parts[0]):
                found.append(parts[-1])
    return tuple(dict.fromkeys([*found, plain(tag)]))


def evaluation(tag: str) -> str:
    """What stands behind a first part that names an evaluation, `Evaluation/Mean Reward`; "" if there is none."""
    first, _, rest = tag.partition("/")
    return rest if _EVALUATIONS.fullmatch(plain(first)) else ""
