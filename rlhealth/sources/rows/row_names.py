"""What the names of a printed row show: whether it is a log row, whether it is about learning, and whether it is of a
single rollout."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from rlhealth.sources.base.spelling import AXES, number

#: Words that identify a printed row as a log row, because settings are printed too.
_TELLING = re.compile(
    r"(?:^|[^a-z])(?:loss(?:es)?|rewards?|rew|return|returns|scores?|kl|approxkl|kldiv|entropy|entloss|grad_?norm"
    r"|advantages?|clip_?frac(?:tion)?|clipfrac|accuracy|(?:train_)?runtime|fps|ep_?rew_?mean|ep_?len_?mean|eprewmean"
    r"|eplenmean|epret|averageepret|avg_?r(?:et)?|mean_?r(?:et)?|ep_r|rwd|fitness|r_mean|ret|explained_variance|ev|succ"
    r"|last_length|[ac]loss|(?:success|succ|solved?|win|pass|correct|resolved?|resolution)_?rate|(?:mean|avg)@\d{1,5}|mean_?100)(?:$|[^a-z])"
    r"|loss$|reward$|^rewards?/|^(?:eval|train)_"
)
_LEARNING = re.compile(
    r"(?:^|[^a-z])(?:loss(?:es)?|kl|approx_?kl|kldiv|entropy|entloss|grad(?:ient)?_?norm|grad\. norm|lr|learning_rate"
    r"|learning rate|clip_?frac(?:tion)?|explained_variance|advantages?|value_loss)(?:$|[^a-z])|loss$"
)
#: Settings that share their names with metrics, and summaries of a whole run.
_SETTINGS = re.compile(
    r"coef|weight|fn$|func$|type$|threshold|target|clip_?range|beta|gamma|lambda|scal(?:e|ing)$|^best(?!_fitness)|max_grad|batch_?size"
    r"|reward_?clip|clip_?rewards?|^(?:normali[sz]e|use|with|pbt|async)_|_gap(?:_absolute)?$|^(?:eval|train)_(?:stats|for|every|script|dir)"
    r"|^return_(?:raw|full|multi|dict|tensors|tokens?|logprobs?|attention|hidden|prompts?|only)(?:_|$)"
)
#: Names that only a row of one rollout has, not one of a step; and the number of a list item, `1) reward=0.5`.
_SAMPLE = re.compile(
    r"(?:^|[^\w])['\"]?(?:(?:task|sample|prompt|problem|question|rollout|trajectory|traj|instance|example|group|env|data|session)_?(?:id|idx|index)|uid)['\"]?\s?[:=]"
    r"|\A\s*\d{1,4}\)\s",
    re.IGNORECASE,
)
#: An environment step, which states whether it ended the episode: `step=3 reward=0.5 done=false`.
_ENDS = re.compile(r"(?<!\w)['\"]?(?:done|terminated)['\"]?\s?[:=]\s?(?:true|false)\b", re.IGNORECASE)
_EPISODE = re.compile(r"\W*ep(?:isode)?\W{0,3}\d{1,15}\b", re.IGNORECASE)
_OF_ONE_STEP = re.compile(r"(?<![\w/])['\"]?reward['\"]?\s?[:=]", re.IGNORECASE)
#: Names of an episode's reward that are used beside the episode's number.
_OF_EPISODE = frozenset({"R", "r"})
_REWARD = re.compile(r"(?:^|[^a-z])(?:rewards?|rew|returns?)(?:$|[^a-z])")
#: Names of a reward in a text.
PAID = re.compile(
    r"reward|return|score|rwd|\bep_r\b|(?:\b|_)(?:ep_?|mean_?|avg_?)?re[tw](?:\b|_)|fitness|\bmean_?100\b",
    re.IGNORECASE,
)
_AXES = frozenset(AXES) | {"epoch", "train/epoch", "Epoch"}


def words(name: str) -> str:
    """The name in lower case, with an underscore before capital letters inside a word: `Grad Norm`, `gradNorm` and
    `grad_norm` become equal."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).replace(" ", "_").lower()


def is_log_row(row: Mapping[str, Any]) -> bool:
    """Whether a printed row is a log row: it has a number under a typical log name."""
    return "data" in row or any(
        is_log_name(name) and (number(value) is not None or isinstance(value, dict)) for name, value in row.items()
    )


def is_of_episode(row: Mapping[str, Any]) -> bool:
    """Whether a row has an episode's reward under a name that means a reward only beside the episode's number."""
    return not _OF_EPISODE.isdisjoint(row)


@lru_cache(maxsize=4096)
def is_log_name(name: str) -> bool:
    """Whether that name identifies a log row."""
    return _TELLING.search(words(name)) is not None and not is_setting(name)


def is_setting(name: str) -> bool:
    """Whether that is the name of a setting, though a metric has it too: `target_kl`."""
    return _SETTINGS.search(words(name)) is not None


def is_learning(names: Iterable[str]) -> bool:
    """Whether some of the names are about learning: a loss, KL, entropy, gradients, a learning rate."""
    return _some_learn(tuple(names))


@lru_cache(maxsize=64)
def _some_learn(names: tuple[str, ...]) -> bool:
    return any(map(_learns, names))


@lru_cache(maxsize=4096)
def _learns(name: str) -> bool:
    return _LEARNING.search(words(name)) is not None


def names_reward(names: Iterable[str]) -> bool:
    """Whether one of the names is a reward's, which a progress bar may show alone."""
    return any(_REWARD.search(words(name)) is not None and is_log_name(name) for name in names)


def names_sample(text: str) -> bool:
    """Whether a printed row names its sample: a task, a prompt, a trajectory; or is a single environment step."""
    if _SAMPLE.search(text) is not None:
        return True
    is_end = _ENDS.search(text) is not None and not _EPISODE.match(text)
    return is_end and _OF_ONE_STEP.search(text) is not None


def has_step(row: Mapping[str, Any]) -> bool:
    """Whether the row has a step, epoch or other position in training."""
    return not _AXES.isdisjoint(row)


def names_step(name: str) -> bool:
    """Whether a name is that of a step, epoch or other position in training."""
    return name in _AXES
