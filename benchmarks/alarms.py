"""Alarms on healthy runs made of noise: a reward that rises and stays, under the kinds of noise that logs have.

    python -m benchmarks.alarms [--runs 60] [--seed 1000]

Each line is one kind of noise and how many of the runs raised each rule at warning or above; none should. A reward that
never rises, a slow wander and a mean over the last 100 points show how the statistics fail beyond what they promise.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from rlhealth.authoring.shorthand import correlated
from rlhealth.check import judge
from rlhealth.rules.loading import load_rules
from rlhealth.rules.model import Rule
from rlhealth.run import Floats, Place, Run
from rlhealth.verdict.findings import Severity

Random = np.random.Generator
Series = Callable[[Random], dict[str, Floats]]


def rise(length: int) -> Floats:
    """From 0 to 10 in the first half, then a plateau; shape (length,)."""
    return np.asarray(10 * np.minimum(np.arange(length) / (length / 2), 1.0))


def _rising(length: int, correlation: float, spread: float = 1.0) -> Series:
    return lambda random: {"train/reward": rise(length) + correlated(random.normal(0, spread, length), correlation)}


def _heavy(freedom: float) -> Series:
    return lambda random: {"train/reward": rise(500) + random.standard_t(freedom, 500)}


def _lengths(random: Random) -> dict[str, Floats]:
    reward = np.linspace(0.1, 0.8, 300) + random.normal(0, 0.05, 300)
    return {"train/reward": reward, "train/completions/mean_length": 200 * np.exp(random.normal(0, 0.5, 300))}


def _counted(random: Random) -> dict[str, Floats]:
    right = 0.1 + 0.06 * rise(300)
    return {"train/reward": random.binomial(8, right) / 8}


def _averaged(random: Random) -> dict[str, Floats]:
    sums = np.cumsum(np.append(0.0, rise(600) + random.normal(0, 10, 600)))
    return {"train/reward": (sums[100:] - sums[:-100])[:500] / 100}


#: What is promised to stay quiet.
QUIET: dict[str, Series] = {
    **{f"correlation {one}, 500 points": _rising(500, one) for one in (0.0, 0.5, 0.8, 0.9)},
    **{f"correlation {one}, 100 points": _rising(100, one) for one in (0.0, 0.5, 0.8, 0.9)},
    **{f"heavy tails, t with {one} degrees of freedom": _heavy(one) for one in (1.5, 2.0, 3.0)},
    "independent lengths, sigma 0.5": _lengths,
    "shares of 8 completions": _counted,
}
#: What is not.
BEYOND: dict[str, Series] = {
    "correlation 0.9, twice as loud": _rising(500, 0.9, 2.0),
    "correlation 0.9, and no rise at all": lambda random: {"train/reward": correlated(random.normal(0, 1, 300), 0.9)},
    "a mean over the last 100 points": _averaged,
}


def alarms(series: Series, rules: Sequence[Rule], runs: int, seed: int) -> Counter[str]:
    """How many of so many runs raised each rule at warning or above; how a run ended does not count."""
    found: Counter[str] = Counter()
    for number in range(runs):
        random = np.random.default_rng(seed + number)
        run = Run("healthy", Place("jsonl", "healthy.jsonl"))
        logged = series(random)
        length = len(logged["train/reward"])
        for tag, values in {**logged, "train/kl": np.linspace(0.001, 0.05, length)}.items():
            run.add(tag, np.arange(1, length + 1), values)
        told = {one.rule for one in judge(run, rules).findings if one.severity >= Severity.WARNING}
        found.update(told - {rule.id for rule in rules if rule.family == "stalled"})
    return found


def main() -> None:
    """Prints a line for each kind of noise."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--runs", type=int, default=60)
    ask.add_argument("--seed", type=int, default=1000)
    said = ask.parse_args()
    rules = load_rules()
    for name, series in {**QUIET, **BEYOND}.items():
        found = alarms(series, rules, said.runs, said.seed)
        print(f"{name:44} {', '.join(f'{rule} {count}' for rule, count in found.most_common()) or 'none'}", flush=True)


if __name__ == "__main__":
    main()
