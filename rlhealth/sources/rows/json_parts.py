"""What the lists in an object mean if their names do not show it: lists of tasks, agents or seeds under a key that
names rewards (`{"rewards_per_episode": {"easy": […], "hard": […]}}`), and lists that are one run each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rlhealth.sources.base.spelling import BESIDE, PROGRESS, number
from rlhealth.sources.rows.headerless import FEWEST_OF_A_RUN, is_of_rewards, stem_of, tag_of
from rlhealth.sources.rows.row_names import is_log_name, words
from rlhealth.sources.rows.split_rows import VARIANTS

MOST_RUNS = 200  # in one list
#: Keys that each name a run: a seed, a repetition, a tried setting.
_EACH_A_RUN = re.compile(
    r"(?:seed|run|trial|rep|repeat|replicate|fold|lr|alpha|gamma|eps|epsilon)?[ _=-]?\d+(?:\.\d+)?(?:e-?\d+)?"
)
_OF_SOMEBODY = re.compile(r"(?:seed|run|trial|rep|agent|player|policy|env|worker)[ _-]?\d+")
#: Names of fields that name the run of a row; the first that exists is used.
_RUN_KEYS = ("run_name", "name", "run_id", "run", "seed", *VARIANTS)
#: Names that only a record of one episode or one sample has.
_OF_A_RECORD = re.compile(
    r"(?:^|_)(?:prompts?|questions?|completions?|responses?|samples?|trajectory|trajectories|actions?|states?"
    r"|observations?|messages|task_id|episode_id)(?:_|$)"
)
_HISTORY = re.compile(r"(?:^|_)(?:history|logs?|curve|episodes|records)$")
_DATA = re.compile(r"_data$")


def are_of_rewards(holder: str) -> bool:
    """Whether a name, an object's key or a file without suffix, shows that the values below it are rewards."""
    plain = _DATA.sub("", words(holder))
    return is_of_rewards(plain) and not plain.endswith(("score", "scores"))


def names_below(holder: str, names: Sequence[str]) -> dict[str, str]:
    """Metric names for columns: prefixed with the name of their holder, if none of their names is recognised and the
    holder's is; empty if the names are kept."""
    if not names or any(is_log_name(one) for one in names) or not is_log_name(holder):
        return {}
    of = "rewards" if are_of_rewards(holder) else holder
    return {one: f"{of}/{one}" for one in names}


def tag_below(holder: str) -> str:
    """The metric name of a list that is a separate run, by its holder: `rewards_data` holds episode_rewards."""
    return tag_of(_DATA.sub("", holder)) if are_of_rewards(holder) else holder


def are_runs(names: Sequence[str]) -> bool:
    """Whether lists are one run each, by their names: seeds, numbers, settings."""
    return len(names) > 1 and all(_EACH_A_RUN.fullmatch(words(one)) for one in names)


def names_by_file(file: str, names: list[str]) -> list[str]:
    """The names of a table's columns. In a file that is named after rewards, columns of seeds, agents and algorithms
    are rewards: `episode,seed_0,seed_1` or `Episode,DQN,Double-DQN` in `rewards.csv`."""
    others = [one for one in names if one and one not in BESIDE]
    counts = len(others) > 1 and any(one in PROGRESS for one in names)
    if not are_of_rewards(stem_of(file)) or not (counts or all(_OF_SOMEBODY.fullmatch(words(one)) for one in others)):
        return names
    below = names_below(stem_of(file), others)
    return [below.get(one, one) for one in names]


def unsplit(found: Mapping[str, Any]) -> Mapping[str, Any]:
    """The columns of a table in pandas' split format, `{"columns": […], "index": […], "data": [[…], …]}`; any other
    object unchanged."""
    names, rows = found.get("columns"), found.get("data")
    if not isinstance(names, list) or not isinstance(rows, list) or not rows or not all(map(_is_text, names)):
        return found
    if not all(isinstance(row, list) and len(row) == len(names) for row in rows):
        return found
    return {name: list(cells) for name, cells in zip(names, zip(*rows, strict=True), strict=True)}


def run_names(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names of runs, if each row of a list is a whole run, `[{"seed": 1, "episode_rewards": […]}, …]`; empty if the
    rows are something else: steps, episodes, samples."""
    if not 1 < len(rows) <= MOST_RUNS or not all(holds_run(row) for row in rows):
        return []
    key = next((one for one in _RUN_KEYS if all(one in row for row in rows)), "")
    named = [str(row[key]) for row in rows] if key else []
    return [f"{key} {one}" if one.isdigit() else one for one in named] if len(set(named)) == len(rows) else []


def is_of_a_record(row: Mapping[str, Any]) -> bool:
    """Whether a row has a field that only an episode or a sample has: a prompt, actions, a task."""
    return any(_OF_A_RECORD.search(words(name)) for name in row)


def holds_run(row: Mapping[str, Any]) -> bool:
    """Whether a row has a reward curve, directly or in its `history`, and is neither a step nor a sample."""
    if is_of_a_record(row):
        return False
    if any(number(row[name]) is not None for name in PROGRESS & row.keys()):
        return False
    return any(
        any(_is_curve(*pair) for pair in value.items())
        if isinstance(value, dict) and _is_history(name)
        else _is_curve(name, value)
        for name, value in row.items()
    )


def _is_curve(name: str, value: object) -> bool:
    """Whether a value under a name is the rewards of a whole run, or its rows."""
    if not isinstance(value, list) or len(value) < FEWEST_OF_A_RUN:
        return False
    return _is_history(name) if isinstance(value[0], dict) else is_of_rewards(name) and number(value[0]) is not None


def _is_history(name: str) -> bool:
    return _HISTORY.search(words(name)) is not None


def _is_text(value: object) -> bool:
    return isinstance(value, str)
