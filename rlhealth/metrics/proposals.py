"""Proposes which metric an unrecognised name may be, by its words, if its values are possible for that
metric."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlhealth.metrics.catalogue import meaning
from rlhealth.metrics.free_names import plain
from rlhealth.metrics.recognise import spaced
from rlhealth.metrics.translation import Translation
from rlhealth.run import Run, Series

#: Groups of words, one of which must be in a name as a whole; words that must not be in it; and the proposed metric.
#: The first match is used.
_WORDS: tuple[tuple[tuple[str, ...], tuple[str, ...], str], ...] = (
    (("clip", "frac"), (), "clip_ratio/outside_mean"),
    (("clip", "ratio"), ("response", "completion", "length"), "clip_ratio/outside_mean"),
    (("trunc",), ("len",), "completions/clipped_ratio"),
    (("explained", "var"), (), "val/explained_variance"),
    (("grad", "norm"), ("critic", "value"), "grad_norm"),
    (("learning_rate",), ("critic", "value"), "learning_rate"),
    (("entropy",), ("coef", "loss", "bonus", "weight"), "entropy"),
    (("adv", "mean"), (), "advantages/mean"),
    (("kl",), ("coef", "loss", "target", "beta", "weight", "approx", "old", "skl"), "kl"),
    (("approx", "kl"), ("coef", "loss", "target"), "policy/approxkl_k1"),
    (("value", "loss"), (), "loss/value_avg"),
    (("critic", "loss"), (), "loss/value_avg"),
    (("policy", "loss"), (), "loss/policy_avg"),
    (("actor", "loss"), (), "loss/policy_avg"),
    (("pg", "loss"), (), "loss/policy_avg"),
    (("response", "len"), ("min", "max", "std"), "completions/mean_length"),
    (("completion", "len"), ("min", "max", "std"), "completions/mean_length"),
    (("episode", "len"), ("min", "max", "std"), "completions/mean_length"),
    (("reward", "std"), (), "reward_std"),
    (("eval", "reward"), ("std", "min", "max"), "eval/reward"),
    (("reward",), ("std", "min", "max", "coef", "weight", "count", "time"), "reward"),
    (("return",), ("std", "min", "max", "var", "count"), "reward"),
)


@dataclass(frozen=True)
class Proposal:
    """The metric that an unrecognised tag may be.

    Attributes:
        tag: as it was logged.
        metric: the canonical metric that it may be.
        points: how many values it has.
        low, high: the smallest and the largest of them; NaN if none is finite.
    """

    tag: str
    metric: str
    points: int
    low: float
    high: float


def proposals(run: Run, translation: Translation) -> tuple[Proposal, ...]:
    """Proposals for the unrecognised tags of a run, one tag per metric, for metrics that the run does not have yet."""
    found: dict[str, Proposal] = {}
    for tag in translation.unrecognised:
        series = run.series.get(tag)
        name = _likely(tag)
        if series is None or not name or name in found or len(translation.metrics.get(name, ())) > 0:
            continue
        proposal = _fitting(tag, name, series)
        if proposal is not None:
            found[name] = proposal
    return tuple(found.values())


def _likely(tag: str) -> str:
    words = plain(spaced(tag)).replace("/", "_")
    for all_of, none_of, name in _WORDS:
        if all(word in words for word in all_of) and not any(word in words for word in none_of):
            return name
    return ""


def _fitting(tag: str, name: str, series: Series) -> Proposal | None:
    """The proposal, unless a value is impossible for that metric."""
    values = series.values[np.isfinite(series.values)]
    low, high = (float(values.min()), float(values.max())) if len(values) else (float("nan"), float("nan"))
    known = meaning(name)
    if known is None or (known.low is not None and low < known.low) or (known.high is not None and high > known.high):
        return None
    return Proposal(tag, name, len(series), low, high)
