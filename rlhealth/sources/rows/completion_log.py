"""Files of JSON lines with the completions of all steps and their rewards, one per row: the log of a run without any
other log.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from rlhealth.errors import RlhealthError
from rlhealth.sources.base.growing import GrowingFile
from rlhealth.sources.base.spelling import AXES, axis, number, whole
from rlhealth.sources.rows.formats import row_in
from rlhealth.sources.rows.row_names import names_reward
from rlhealth.sources.rows.split_rows import FEWEST_ROWS, VARIANTS, written

_LOOKED_AT = 16 << 20  # bytes that show whether a file contains the completions of many steps
FEWEST_STEPS = 5  # that it must contain; evaluations of a few checkpoints are no log
NEARLY = 0.9  # the share of steps that must have several texts, and of rows that must have a reward
_EVALUATED = re.compile(r"(?:^|[^a-z])(?:eval|val|valid|test|bench)", re.IGNORECASE)
#: Columns that distinguish writers, runs or environments at one step: their rows are no samples of that step.
_SEVERAL = ("agent", "agent_id", "player", "env", "env_id", "seed", "run_id", "run", *VARIANTS)


def columns_of_texts(file: Path) -> frozenset[str]:
    """The columns of a file of JSON lines whose beginning has completions with rewards, several at each of many steps;
    empty for any other file.
    """
    rows = [] if _EVALUATED.search(file.name) else _first_rows(file)
    return frozenset().union(*rows) if are_texts_of_steps(rows) else frozenset()


def _first_rows(file: Path) -> list[dict[str, Any]]:
    """The rows at the beginning of a file of JSON lines; none if the first row is no completion."""
    rows: list[dict[str, Any]] = []
    text = GrowingFile(file)
    try:
        for _, line in text.lines():
            row = row_in(line.decode("utf-8", "replace"))
            if not rows and not (row and _may_be_completion(row)):
                return []
            if row is not None:
                rows.append(row)
            if text.offset > _LOOKED_AT:
                break
    except (RlhealthError, OSError):
        return []
    return rows


def are_texts_of_steps(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether rows are completions with rewards: steps only rise, and nearly all steps have several rows with different
    texts; the newest step may still be incomplete.
    """
    name = axis(rows)
    if name is None or any(len({written(row[one]) for row in rows if one in row}) > 1 for one in _SEVERAL):
        return False
    paid = sum(any(names_reward((one,)) and number(value) is not None for one, value in row.items()) for row in rows)
    steps = [(step, list(found)) for step, found in groupby(rows, lambda row: whole(row.get(name)))]
    counts = [step for step, _ in steps if step is not None]
    if len(counts) < len(steps) or any(late <= early for early, late in pairwise(counts)):
        return False
    several = [len(found) >= FEWEST_ROWS and _differ(found) for _, found in steps[:-1]]
    return len(several) >= FEWEST_STEPS and sum(several) >= NEARLY * len(several) and paid >= NEARLY * len(rows)


def _may_be_completion(row: Mapping[str, Any]) -> bool:
    """Whether a row has a step, a reward and a text."""
    return (
        any(name in row for name in AXES)
        and names_reward(row)
        and any(isinstance(value, str) and number(value) is None for value in row.values())
    )


def _differ(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether any column has texts that are not all the same."""
    texts = [{one for one, value in row.items() if isinstance(value, str) and number(value) is None} for row in rows]
    shared = set.intersection(*texts)
    return any(len({row[one] for row in rows}) > 1 for one in shared)
