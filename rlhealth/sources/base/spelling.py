"""Numbers and steps in the spellings of log files: `No Log`, `1,568,987.96`, `np.float64(1e-06)`, `2/4389`, `nan`,
`0.05%`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import pairwise

#: Columns that count the steps of training; the first that exists is used. `iteration` and `episode` come late,
#: because a trainer with steps logs them under a step name.
AXES = (
    "train/global_step",
    "global_step",
    "training/global_step",
    "trainer/global_step",
    "global_step/max_steps",
    "step",
    "Step",
    "current_steps",
    "_step",
    "time/total_timesteps",
    "total_timesteps",
    "timesteps_total",
    "num_env_steps_sampled_lifetime",
    "TotalEnvInteracts",
    "TotalEnvSteps",
    "exploration/num steps total",
    "TimestepsSoFar",
    "misc/total_timesteps",
    "training_step",
    "train_step",
    "train/step",
    "env_step",
    "env_steps",
    "serial_timesteps",
    "timestep",
    "Timestep",
    "timesteps",
    "training_iteration",
    "iteration",
    "Iteration",
    "iter",
    "update",
    "Update",
    "nupdates",
    "n_updates",
    "time/iterations",
    "episode",
    "Episode",
    "n_episode",
    "ep",
    "Ep",
    "EP",
    "frames",
    "Frames",
    "generation",
    "Generation",
    "steps",  # last: beside an episode it is that episode's length
)
#: Columns that show the progress of training: a count of steps, or of passes over the prompts.
PROGRESS = frozenset({*AXES, "epoch", "Epoch"})
#: The columns of Gym's and Stable-Baselines3's Monitor: return, length and time of each episode.
EPISODE = frozenset({"r", "l", "t"})
EVALUATED = "episode of an evaluation"  # what the rows of a table count that are no steps of a training
#: Columns that hold the wall time of a row.
CLOCKS = ("_timestamp", "timestamp", "Wall time", "wall_time", "walltime", "time", "date")
#: Columns beside the metrics of a row that show when they were logged.
BESIDE = PROGRESS | frozenset(CLOCKS)
#: Columns that are about the logging, not the training.
BOOKKEEPING = frozenset(
    {
        "_runtime",
        "_wandb",
        "index",
        "level",
        "elapsed_time",
        "remaining_time",
        "percentage",
        "train_speed(iter/s)",
        "total_steps",
        "Unnamed: 0",
        "",
    }
)
#: Words that mean that nothing was logged.
BLANKS = frozenset({"", "-", "--", "no log", "n/a", "na", "none", "null", "missing"})
FURTHEST = 2**62
EARLIEST, LATEST = 1e8, 1e11  # plausible seconds since 1970: a larger number is in milliseconds

_PLAIN = re.compile(r"[-+]?(?:[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?|\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d{1,5})?")
_WORDS = {
    "nan": math.nan,
    "inf": math.inf,
    "infinity": math.inf,
    "infty": math.inf,
    "∞": math.inf,
    "true": 1.0,
    "false": 0.0,
}
_WRAPPED = re.compile(r"(?:[A-Za-z_][\w.]{0,40})\(\s*\[?\s*([-+\w.,]{1,40}?)\s*\]?\s*(?:,\s*\w+\s*=[^()]{0,120})*\)")
FEWEST_LENGTHS = 20  # counts that it takes to recognise them as lengths
FEWEST_AGAIN = 3  # restarts of the steps; with fewer restarts, they are consecutive runs
LONGEST = 200  # characters of a number in any of these spellings


def number(value: object) -> float | None:
    """The number that `value` is, in any spelling; None if it is no number, or a word for nothing logged."""
    if isinstance(value, float):
        return value
    if isinstance(value, int):  # bool too: transformers logs flags
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    return _spelt(value.strip()) if isinstance(value, str) and len(value) <= LONGEST else None


def _spelt(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        pass
    if text[-1:] == "%":
        share = _spelt(text[:-1].rstrip())
        return None if share is None else share / 100
    if _PLAIN.fullmatch(text):
        return float(text.replace(",", "").replace("_", ""))
    bare = text.lstrip("+-").lower()
    if bare in _WORDS and len(text) - len(bare) <= 1:
        return -_WORDS[bare] if text[0] == "-" else _WORDS[bare]
    wrapped = _WRAPPED.fullmatch(text)
    return _spelt(wrapped[1]) if wrapped else None


def whole(value: object) -> int | None:
    """The step that `value` is: a whole number, or the first of "2/4389"; None if it is none."""
    if isinstance(value, str) and "/" in value:
        value = value.partition("/")[0]
    found = number(value)
    if found is None or not math.isfinite(found) or abs(found) >= FURTHEST or found != int(found):
        return None
    return int(found)


def planned(row: Mapping[str, object], axis: str | None = None) -> int | None:
    """The planned number of steps, if a row contains it: `total_steps`, or the second of "2/4389" under its axis; of
    `epoch 1/3 step 2/4389` it is unknown whether the total covers all epochs.
    """
    said = row.get("global_step/max_steps")
    if not said and axis and _has_total(row.get(axis)) and sum(map(_has_total, row.values())) == 1:
        said = row[axis]
    return whole(said.partition("/")[2] if isinstance(said, str) and "/" in said else row.get("total_steps"))


def _has_total(value: object) -> bool:
    return isinstance(value, str) and "/" in value


def clock(value: object) -> float:
    """Seconds since 1970 of a time stamp, written as a number or as an ISO date; NaN if it is neither (such as
    seconds since the start).
    """
    found = number(value)
    if found is not None:
        if found > LATEST:
            found /= 1000
        return found if EARLIEST < found < LATEST else math.nan
    if isinstance(value, str) and 10 <= len(value) <= 40:
        try:
            return datetime.fromisoformat(value).timestamp()
        except (ValueError, OverflowError, OSError):
            return math.nan
    return math.nan


def axis(rows: Iterable[Mapping[str, object]]) -> str | None:
    """The column that counts the steps of these rows, or None.

    A column is used if its values are integers (one in ten may be damaged), if it changes (in three rows or more) and
    does not go up and down like episode lengths, and if half of the rows have it, or belong to one that has it: the
    lines of a loss and of an evaluation below that of an episode. If its values restart whenever a later column
    advances, the later column is used.
    """
    seen = list(rows)
    found: list[tuple[str, list[int | None]]] = []
    for name in AXES:
        held = [row[name] for row in seen if row.get(name) is not None]
        if not held or (2 * len(held) < len(seen) and 2 * len(held) < _groups(seen, name)):
            continue
        steps = [whole(value) for value in held]
        if 10 * steps.count(None) > len(steps) or (len(steps) > 2 and len(set(steps)) == 1):
            continue
        counts = [one for one in steps if one is not None]
        if _mostly_rise(counts) if name == "steps" else not _wander(counts):
            found.append((name, steps))
    if not found:
        return None
    name, steps = found[0]
    return next((other for other, others in found[1:] if _counts_within(steps, others)), name)


def _groups(rows: Sequence[Mapping[str, object]], name: str) -> int:
    """How many rows there are if those without that column, and with no name of the rows before them, belong to the
    last one that has it."""
    groups, said = 0, set[str]()
    for row in rows:
        if not groups or row.get(name) is not None or not said.isdisjoint(row):
            groups, said = groups + 1, set()
        said.update(row)
    return groups


def _counts_within(steps: list[int | None], others: list[int | None]) -> bool:
    """Whether steps restart whenever another count advances: they count within an episode, and it counts episodes."""
    if len(steps) != len(others):
        return False
    pairs = [(a, b) for a, b in zip(steps, others, strict=True) if a is not None and b is not None]
    falls = [late[1] > early[1] for early, late in pairwise(pairs) if late[0] < early[0]]
    return len(falls) >= FEWEST_AGAIN and all(falls) and all(b[1] >= a[1] for a, b in pairwise(pairs))


def _wander(counts: list[int]) -> bool:
    """Whether many counts fall as often as they rise, mostly not back to their start, and later counts are no higher.
    By contrast, the counts of several interleaved processes rise over time, and a log written backwards only falls.
    """
    fallen = [late for early, late in pairwise(counts) if late < early]
    third = len(counts) // 3
    return (
        len(counts) >= FEWEST_LENGTHS
        and 0.3 < len(fallen) / len(counts) < 0.7
        and 2 * fallen.count(counts[0]) < len(fallen)
        and sorted(counts[-third:])[third // 2] <= sorted(counts[:third])[third // 2]
    )


def _mostly_rise(counts: list[int]) -> bool:
    """Whether counts fall no more often than those of a resumed run; episode lengths fall every other
    time.
    """
    falls = sum(late < early for early, late in pairwise(counts))
    return 10 * falls <= len(counts)
