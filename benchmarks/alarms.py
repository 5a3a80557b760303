"""Alarms on healthy runs made of noise: a reward that rises and stays, under the kinds of noise that logs have.

    python -m benchmarks.alarms [--runs 60] [--seed 1000]

Each line is one kind of noise and how many of the runs raised each rule at warning or above; none should. The last line
says what part of all healthy runs raised any. A reward that never rises, a slow drift and a mean over the last 100
points show how the statistics fail outside their assumptions.
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


def _louder(random: Random) -> dict[str, Floats]:
    """Noise that grows with the reward, as returns do: a tenth of the spread at first."""
    level = rise(400)
    return {"train/reward": level + (0.1 + 0.1 * level) * random.normal(0, 1, 400)}


def _episodes(random: Random) -> dict[str, Floats]:
    """Returns of single episodes: most go well, some fail at once."""
    return {"train/reward": rise(1000) * np.where(random.random(1000) < 0.15, random.random(1000), 1.0)}


def _epochs(random: Random) -> dict[str, Floats]:
    """Prompts in one order that comes again every 50 steps, the hard ones last."""
    wave = np.sin(2 * np.pi * np.arange(400) / 50)
    return {"train/reward": rise(400) + 1.5 * wave + random.normal(0, 0.5, 400)}


def _curriculum(random: Random) -> dict[str, Floats]:
    """Each stage begins a fifth of the gain lower, and ends above the one before."""
    stages = [np.linspace(2 * stage, 2 * stage + 4, 100) for stage in range(4)]
    return {"train/reward": np.concatenate(stages) + random.normal(0, 0.5, 400)}


def _wandering(random: Random) -> dict[str, Floats]:
    """A plateau that wanders slowly, by a twentieth of the gain, below independent noise."""
    return {
        "train/reward": rise(600) + correlated(random.normal(0, 0.5, 600), 0.97) + random.normal(0, 0.5, 600),
    }


def _outliers(random: Random) -> dict[str, Floats]:
    """One row in 50 is off by ten times the noise, up or down."""
    off = np.where(random.random(400) < 0.02, random.choice([-10.0, 10.0], 400), 0.0)
    return {"train/reward": rise(400) + random.normal(0, 1, 400) + off}


def _bad_end(random: Random) -> dict[str, Floats]:
    """The last rows are unlucky: three of them lie three times the noise below the rest."""
    values = rise(200) + random.normal(0, 1, 200)
    values[-3:] -= 3
    return {"train/reward": values}


def _drift(random: Random) -> dict[str, Floats]:
    """KL whose rows are means over few completions: heavy tails upwards around a slow growth."""
    kl = np.linspace(0.01, 0.3, 300) * np.exp(random.normal(0, 0.7, 300))
    return {"train/reward": 0.1 * rise(300) + random.normal(0, 0.2, 300), "train/kl": kl}


def _cut_off(random: Random) -> dict[str, Floats]:
    """A third of twelve completions is cut off all along."""
    share = random.binomial(12, 0.33, 300) / 12
    reward = 0.1 * rise(300) + random.normal(0, 0.2, 300)
    return {"train/reward": reward, "train/completions/clipped_ratio": share}


def _groups(random: Random) -> dict[str, Floats]:
    """A third of four groups is unanimous all along, while reward rises."""
    share = random.binomial(4, 0.33, 300) / 4
    return {"train/reward": 0.1 * rise(300) + random.normal(0, 0.1, 300), "train/frac_reward_zero_std": share}


#: What is promised to stay quiet.
QUIET: dict[str, Series] = {
    **{f"correlation {one}, 500 points": _rising(500, one) for one in (0.0, 0.5, 0.8, 0.9)},
    **{f"correlation {one}, 100 points": _rising(100, one) for one in (0.0, 0.5, 0.8, 0.9)},
    **{f"heavy tails, t with {one} degrees of freedom": _heavy(one) for one in (1.5, 2.0, 3.0)},
    "independent lengths, sigma 0.5": _lengths,
    "shares of 8 completions": _counted,
    **{f"correlation {one}, 30 points": _rising(30, one) for one in (0.0, 0.5)},
    "noise that grows with the reward": _louder,
    "returns of episodes, some of which fail": _episodes,
    "a wave that comes with each epoch": _epochs,
    "a curriculum of four stages": _curriculum,
    "a plateau that wanders slowly": _wandering,
    "outliers, up and down": _outliers,
    "three unlucky rows at the end": _bad_end,
    "KL of few completions": _drift,
    "a third cut off all along": _cut_off,
    "a third of the groups unanimous": _groups,
}
#: What is not.
BEYOND: dict[str, Series] = {
    "correlation 0.9, twice as loud": _rising(500, 0.9, 2.0),
    "correlation 0.9, and no rise at all": lambda random: {"train/reward": correlated(random.normal(0, 1, 300), 0.9)},
    "a mean over the last 100 points": _averaged,
}


def alarms(series: Series, rules: Sequence[Rule], runs: int, seed: int, every: int = 1) -> Counter[str]:
    """How many of so many runs raised each rule at warning or above, and `any` of them; how a run ended does not count.

    `every`: steps between the rows.
    """
    found: Counter[str] = Counter()
    ended = {rule.id for rule in rules if rule.family == "stalled"}
    for number in range(runs):
        random = np.random.default_rng(seed + number)
        run = Run("healthy", Place("jsonl", "healthy.jsonl"))
        logged = series(random)
        length = len(logged["train/reward"])
        for tag, values in {"train/kl": np.linspace(0.001, 0.05, length), **logged}.items():
            run.add(tag, np.arange(1, length + 1) * every, values)
        raised = {one.rule for one in judge(run, rules).findings if one.severity >= Severity.WARNING} - ended
        found.update(raised | ({"any"} if raised else set()))
    return found


def main() -> None:
    """Prints a line for each kind of noise."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--runs", type=int, default=60)
    ask.add_argument("--seed", type=int, default=1000)
    ask.add_argument("--every", type=int, default=1, help="steps between the rows")
    said = ask.parse_args()
    rules = load_rules()
    total = 0
    for name, series in {**QUIET, **BEYOND}.items():
        found = alarms(series, rules, said.runs, said.seed, said.every)
        some = found.pop("any", 0)
        total += some if name in QUIET else 0
        print(f"{name:44} {', '.join(f'{rule} {count}' for rule, count in found.most_common()) or 'none'}", flush=True)
    print(f"{'of all healthy runs':44} {total / (said.runs * len(QUIET)):.1%}")


if __name__ == "__main__":
    main()
