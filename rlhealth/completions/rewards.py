"""Measures of a step's rewards together with its texts: what is rewarded, and whether rewards still distinguish
texts."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np

from rlhealth.completions.batch import Batch, is_function
from rlhealth.run import Floats

_FEWEST = 8  # texts from which a correlation says anything
_MOST_PAIRS = 6  # reward functions that are compared with one another
_LONGEST = 0.1
#: What is reported only of a run whose rewards have always been right or wrong.
SOLVED = ("text/always_solved", "text/never_solved")


def of_rewards(batch: Batch) -> dict[str, float]:
    """The measures of one step that need rewards; NaN for what is unknown."""
    found: dict[str, float] = _unanimous(batch) | _solved(batch)
    rewards, lengths = _centred(batch.total, batch.group_of), _centred(batch.lengths, batch.group_of)
    value, error = correlation(rewards, lengths)
    found["reward_length_correlation"], found["reward_length_error"] = value, error
    found["pay_for_length"] = math.copysign(max(0.0, abs(value) - 2 * error), value) + 0.0
    found["longest_reward"] = _of_longest(batch)
    found |= _form_and_answer(batch)
    for one, other in combinations(list(batch.functions)[:_MOST_PAIRS], 2):
        both, _ = correlation(batch.functions[one], batch.functions[other])
        found[f"agreement/{f'{one}+{other}'.replace('/', '_')}"] = both
    return found


def correlation(one: Floats, other: Floats) -> tuple[float, float]:
    """Pearson's correlation of two columns of shape (n,) and its standard error, (1 - r²) / sqrt(n - 2); NaN if one
    of them is constant."""
    both = np.isfinite(one) & np.isfinite(other)
    if both.sum() < _FEWEST:
        return math.nan, math.nan
    x, y = (_scaled(values[both]) for values in (one, other))
    spread = math.sqrt(float(x @ x) * float(y @ y))
    if not spread > 1e-12 * len(x):
        return math.nan, math.nan
    value = min(1.0, max(-1.0, float(x @ y) / spread))
    return value, (1 - value * value) / math.sqrt(len(x) - 2)


def _scaled(values: Floats) -> Floats:
    """The values less their mean, in units of the largest size of any of them, so that no square overflows."""
    scaled = values / max(float(np.abs(values).max()), 1e-300)
    return np.asarray(scaled - np.mean(scaled), np.float64)


def _centred(values: Floats, groups: np.ndarray[Any, np.dtype[np.int64]]) -> Floats:
    """Each value less the mean of its group, so that easy and hard prompts do not count; NaN in a group of one."""
    known = np.isfinite(values)
    count = np.bincount(groups[known], minlength=int(groups.max()) + 1)
    mean = np.bincount(groups[known], values[known], len(count)) / np.maximum(count, 1)
    return np.asarray(np.where(known & (count[groups] > 1), values - mean[groups], np.nan), np.float64)


def _extremes(batch: Batch) -> tuple[Floats, Floats]:
    """The lowest and highest reward of each group of at least two, each of shape (groups,)."""
    known = np.isfinite(batch.total)
    groups, rewards = batch.group_of[known], batch.total[known]
    if not len(groups):
        return np.empty(0), np.empty(0)
    low, high = np.full(int(groups.max()) + 1, np.inf), np.full(int(groups.max()) + 1, -np.inf)
    np.minimum.at(low, groups, rewards)
    np.maximum.at(high, groups, rewards)
    several = np.bincount(groups) > 1
    return low[several], high[several]


def _unanimous(batch: Batch) -> dict[str, float]:
    low, high = _extremes(batch)
    return {"groups_one_reward": float(np.mean(low == high)) if len(low) else math.nan}


def _solved(batch: Batch) -> dict[str, float]:
    """The shares of prompts that every text solves, and that none does, where the reward is right or wrong and nothing
    between."""
    low, high = _extremes(batch)
    if not len(low) or not is_right_or_wrong(batch):
        return {}
    return {"always_solved": float(np.mean(low == 1)), "never_solved": float(np.mean(high < 1))}


def is_right_or_wrong(batch: Batch) -> bool:
    """Whether the rewards of a step are 1 for right and 0, or -1, for wrong."""
    values = set(np.unique(batch.total[np.isfinite(batch.total)]).tolist())
    return values <= {0.0, 1.0} or values <= {-1.0, 1.0}


def _of_longest(batch: Batch) -> float:
    known = np.flatnonzero(np.isfinite(batch.total))
    if len(known) < _FEWEST:
        return math.nan
    order = known[np.argsort(batch.lengths[known], kind="stable")]
    return float(np.mean(batch.total[order[-max(1, round(_LONGEST * len(order))) :]]))


def _form_and_answer(batch: Batch) -> dict[str, float]:
    """The mean reward for the answer, and the share of texts that get the best reward for their form and none for their
    answer.

    Functions are distinguished by their names. The best reward for the form is that of the step; none for the answer is
    the step's lowest, where that is not above 0.
    """
    forms = [values for name, values in batch.functions.items() if is_function(name, "format")]
    answers = [values for name, values in batch.functions.items() if is_function(name, "answer")]
    if not forms or not answers:
        return {}
    form, answer = np.sum(forms, axis=0), np.sum(answers, axis=0)
    known = np.isfinite(form) & np.isfinite(answer)
    if known.sum() < _FEWEST or np.nanmax(form) <= 0:
        return {}
    formed = form[known] >= np.nanmax(form)
    none = answer[known] <= min(0.0, float(np.nanmin(answer)))
    return {"form_without_answer": float(np.mean(formed & none)), "answer_reward": float(np.mean(answer[known]))}
