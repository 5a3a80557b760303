"""Turns logged values into the canonical unit: signs, factors, fillers, and numbers from distributions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlhealth.run import Floats

Step = Callable[[Floats], Floats]
Change = Callable[[Floats], tuple[NDArray[np.bool_], Floats]]
Reduce = Callable[[Floats, Floats, float], float]


def change_of(transform: str, settings: Mapping[str, Any], keep_unscaled: bool = False) -> Change | str | None:
    """The function from logged to canonical values, of any shape (n,): returns which of them are measurements, and all
    changed values.

    Args:
        transform: words joined by commas: negate, one-minus, percent-to-fraction, scale:C, clamp:A:B, missing:X (a
            value that means "not measured", which may be nan: its points are left out), over:SETTING (divided by that
            setting).
        settings: canonical settings of the run.
        keep_unscaled: whether the values are useful even if that setting is unknown.

    Returns:
        None if there is nothing to do; if a required setting is unknown, a sentence that says so.
    """
    steps: list[Step] = []
    missing: list[float] = []
    for word in filter(None, transform.split(",")):
        kind, _, rest = word.partition(":")
        if kind == "missing":
            missing.append(float(rest))
        elif kind == "over":
            divisor = settings.get(rest)
            if isinstance(divisor, int | float) and divisor > 0:
                steps.append(partial(_divided, by=float(divisor)))
            elif not keep_unscaled:
                return f"its unit needs {rest.replace('_', ' ')}, which is not in the configuration"
        else:
            steps.append(_word(kind, rest))
    return _Chain(tuple(steps), tuple(missing)) if steps or missing else None


def reduction_of(transform: str) -> Reduce:
    """One number from a distribution of probability ratios: from its edges (b+1,), its counts (b,) and the half
    width of the clip range.
    """
    return _REDUCTIONS[transform]


@dataclass(frozen=True)
class _Chain:
    """Applies steps in order. Its parts are named functions, so that it can be pickled for another process."""

    steps: tuple[Step, ...]
    missing: tuple[float, ...]

    def __call__(self, values: Floats) -> tuple[NDArray[np.bool_], Floats]:
        drops_nan = any(np.isnan(one) for one in self.missing)
        keep = (
            ~(np.isin(values, self.missing) | (np.isnan(values) & drops_nan))
            if self.missing
            else np.ones(len(values), np.bool_)
        )
        for step in self.steps:
            values = step(values)
        return keep, values


def _word(kind: str, rest: str) -> Step:
    if kind == "negate":
        return np.negative
    if kind == "one-minus":
        return partial(np.subtract, 1.0)
    if kind == "percent-to-fraction":
        return partial(_divided, by=100.0)
    if kind == "scale":
        return partial(np.multiply, float(rest))
    if kind == "clamp":
        low, _, high = rest.partition(":")
        return partial(_clamped, low=float(low), high=float(high))
    raise ValueError(f"unknown transform {kind!r}")


def _divided(values: Floats, by: float) -> Floats:
    return values / by


def _clamped(values: Floats, low: float, high: float) -> Floats:
    return np.clip(values, low, high)


def _bins(edges: Floats, counts: Floats, clip_range: float) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
    """Low edges, high edges and counts of the bins that hold ratios, and which of them are to be read as ratio 1.

    Ratios are positive: a bin at or below 0 holds the filler -1 that TRL pads with. Prompt and padding positions are
        exactly 1, so a bin
    around 1 that is wider than the clip range (a far outlier makes all of them wide) is read as 1: its centre would
    invent a drift.
    """
    holds = (counts > 0) & (edges[1:] > 0)
    low, high = edges[:-1][holds], edges[1:][holds]
    at_one = (low <= 1) & (high >= 1) & (high - low > 2 * clip_range) | (low < 0)
    return low, high, counts[holds], at_one


def _mean(edges: Floats, counts: Floats, clip_range: float) -> float:
    low, high, held, at_one = _bins(edges, counts, clip_range)
    if not len(held):
        return float("nan")
    return float(np.average(np.where(at_one, 1.0, (low + high) / 2), weights=held))


def _max(edges: Floats, counts: Floats, clip_range: float) -> float:
    _, high, held, _ = _bins(edges, counts, clip_range)
    return float(high[-1]) if len(held) else float("nan")


def _min(edges: Floats, counts: Floats, clip_range: float) -> float:
    low, _, held, _ = _bins(edges, counts, clip_range)
    if not len(held):
        return float("nan")
    return float(low[0]) if low[0] >= 0 else 1.0


def _outside(edges: Floats, counts: Floats, clip_range: float) -> float:
    low, high, held, at_one = _bins(edges, counts, clip_range)
    if not len(held):
        return float("nan")
    inside = np.clip(np.minimum(high, 1 + clip_range) - np.maximum(low, 1 - clip_range), 0, None)
    share = np.where(
        at_one,
        1.0,
        np.divide(
            inside,
            high - low,
            out=((low >= 1 - clip_range) & (high <= 1 + clip_range)).astype(np.float64),
            where=high > low,
        ),
    )
    return float(1 - np.sum(held * share) / np.sum(held))


_REDUCTIONS: dict[str, Reduce] = {
    "histogram-mean": _mean,
    "histogram-max": _max,
    "histogram-min": _min,
    "histogram-outside": _outside,
}
