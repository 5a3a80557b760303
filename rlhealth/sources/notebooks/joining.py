"""From tables to runs: which tables show the same run, which continue a run, and which trainer each belongs to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rlhealth.sources.notebooks.code import Code, Trainer
from rlhealth.sources.notebooks.document import Cell, Document, printed_text
from rlhealth.sources.notebooks.outputs import tables_of, trains
from rlhealth.sources.notebooks.table import Table, goes_on, is_same, joined
from rlhealth.sources.rows.last_words import caught_in, counts_on
from rlhealth.sources.rows.row_names import names_reward
from rlhealth.sources.rows.solved import solved_in

#: Trainers that learn from rewards; a table with rewards is one of theirs.
_REWARDED = re.compile(
    r"(?:GRPO|RLOO|PPO|OnlineDPO|NashMD|XPO|DDPO|PPOv2)\w*Trainer$|^(?:PPO|A2C|DQN|SAC|TD3|DDPG|TRPO)$"
)
_REWARD = re.compile(
    r"^(?:reward|rewards/(?!chosen|rejected|margins|accuracies).*|objective/.*|env/reward.*|.*ep_rew_mean)$"
)

#: What the code of one's own loop names where it learns from rewards.
_LEARNS_FROM_REWARDS = re.compile(
    r"rewards?(?![a-z])|returns?_|advantages?(?![a-z])|\benvs?\.step\(|q_?learning|rllib\b"
    r"|(?:\b|_)(?:grpo|ppo|trpo|dqn|(?:ma)?ddpg|td3|a[23]c|(?-i:SAC)|reinforce|qmix)",
    re.IGNORECASE,
)


@dataclass
class NotebookRun:
    """One run as a notebook shows it.

    Attributes:
        parts: its tables, in order; a later one continues the run, or follows a resume.
        trainer: the trainer that the code creates; None if that is ambiguous.
        error: the exception that ended its last cell, or the message of a dead kernel.
        solved: the line in which its last cell says that the task is solved.
    """

    parts: list[Table]
    trainer: Trainer | None = None
    error: str = ""
    solved: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def points(self) -> int:
        """How many numbers its tables hold."""
        return sum(part.points for part in self.parts)


def runs_of(document: Document, code: Code) -> list[NotebookRun]:
    """The runs that a notebook shows, in the order of their first tables; a run that is shown twice counts once."""
    found: list[NotebookRun] = []
    for cell in document.cells:
        tables = tables_of(cell)
        if not tables:
            continue
        fresh: list[NotebookRun] = []
        for table in tables:
            _take(table, found, fresh)
        _assign(fresh, cell.number, code)
        if fresh:
            printed = printed_text(cell.outputs)
            fresh[-1].error = cell.error or caught_in(printed)
            fresh[-1].solved = solved_in(printed)
        for run in fresh:
            before = next((one for one in reversed(found) if _continues(one, run)), None)
            if before is not None:
                before.parts += run.parts
                before.error, before.solved = run.error, run.solved
            else:
                found.append(run)
    return found


def died_at_start(document: Document, code: Code) -> tuple[Trainer, str] | None:
    """The last training by rewards that was started, with the exception that ended its cell; or that was to follow the
    last cell that ran, which an exception ended. None if that cell completed or printed that it went on, or if there is
    none."""
    planned: Trainer | None = None
    is_last = True
    for cell in reversed(document.cells):
        trainer = _rewarded_trainer(cell, code)
        if trainer is not None and cell.has_run:
            return (trainer, cell.error) if cell.error and not counts_on(printed_text(cell.outputs)) else None
        if cell.has_run and is_last and planned is not None and cell.error:
            return planned, cell.error
        is_last = is_last and not cell.has_run
        planned = trainer or planned
    return None


def _rewarded_trainer(cell: Cell, code: Code) -> Trainer | None:
    """The last trainer that a cell starts and that learns from rewards, without a name if it is a loop of one's own;
    None if it starts none."""
    if started := code.trainings.get(cell.number):
        return next((one for one in reversed(started) if _REWARDED.search(one.name)), None)
    return Trainer("") if trains(cell.code) and _LEARNS_FROM_REWARDS.search(cell.code) else None


def _take(table: Table, found: list[NotebookRun], fresh: list[NotebookRun]) -> None:
    """Adds a table to the run that it shows, among the runs of its own cell (`fresh`) and of earlier cells."""
    for run in [*reversed(fresh), *reversed(found)]:
        index = next((index for index, part in enumerate(run.parts) if is_same(part, table)), None)
        if index is not None:
            kept = run.parts[index]
            run.parts[index] = joined(kept, table)
            if kept.cell != table.cell:
                run.notes.append(f"cells {kept.cell} and {table.cell} show the same run; the longer table was read")
            return
    fresh.append(NotebookRun([table]))


def _continues(before: NotebookRun, after: NotebookRun) -> bool:
    same_trainer = (
        before.trainer is None
        or after.trainer is None
        or (before.trainer.name == after.trainer.name and before.trainer.settings == after.trainer.settings)
    )
    return same_trainer and goes_on(before.parts[-1], after.parts[0])


def _assign(fresh: Sequence[NotebookRun], cell: int, code: Code) -> None:
    """Sets the trainer of each run of one cell, where the code is unambiguous."""
    started = code.trainings.get(cell, [])
    made = [trainer for number, trainer in code.trainers if number <= cell]
    for index, run in enumerate(fresh):
        tags = [tag for part in run.parts for tag in part.tags]
        # A reward model's trainer logs mean_reward; where it was not started, that is of a loop of one's own.
        rewarded = any(map(_REWARD.match, tags)) or (not started and names_reward(tags))
        if len(started) == len(fresh):
            run.trainer = started[index]
        elif started and len({trainer.name for trainer in started}) == 1:
            run.trainer = Trainer(started[0].name, _shared([trainer.settings for trainer in started]))
        elif len({trainer.name for trainer in made}) == 1:
            run.trainer = Trainer(made[-1].name, _shared([trainer.settings for trainer in made]))
        elif rewarded and len({one.name for one in made if _REWARDED.search(one.name)}) == 1:
            fitting = [trainer for trainer in made if _REWARDED.search(trainer.name)]
            run.trainer = Trainer(fitting[-1].name, _shared([trainer.settings for trainer in fitting]))
        if run.trainer is not None and rewarded and not _REWARDED.search(run.trainer.name):
            run.trainer = None


def _shared(settings: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The settings on which all agree."""
    first, *others = settings
    return {key: value for key, value in first.items() if all(key in one and one[key] == value for one in others)}
