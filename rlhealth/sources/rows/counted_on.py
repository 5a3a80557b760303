"""Steps that restart in every epoch, or in every round of episodes, made continuous."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlhealth.sources.base.spelling import number

COUNTED_ON = "the steps begin again in every epoch: they are counted on"
ROUNDS_COUNTED_ON = "the steps begin again in every round: they are counted on"
#: If these rise and the steps restart, each epoch counts its own steps.
EPOCHS = ("epoch", "train/epoch", "Epoch")
#: If these rise and few steps restart, each round counts the episodes between two updates.
ROUNDS = ("run_id", "run", "rollout", "round", "cycle")
FEWEST_OF_A_RUN = 10  # steps; fewer are no separate run if the rounds rise


class CountedOn:
    """Counts the steps of one run.

    Attributes:
        passed: steps of earlier epochs, if every epoch counts its own.
    """

    def __init__(self) -> None:
        self.passed = 0
        self._epoch: float | None = None
        self._round: float | None = None

    def follow(self, row: Mapping[str, Any]) -> None:
        """Remembers the epoch and the round of a row whose step is known."""
        self._epoch = _latest(row, EPOCHS, self._epoch)
        self._round = _latest(row, ROUNDS, self._round)

    def step(self, row: Mapping[str, Any], said: int, first: int | None, newest: int | None) -> tuple[int, str]:
        """The continuous step of a row whose logged step is `said`, and the note on the restart; "" without a restart.

        `first`, `newest`: of the run's steps so far.
        """
        epoch, round_ = self._epoch, self._round
        self.follow(row)
        note = ""
        if first is None or newest is None:
            return said + self.passed, note
        if said <= first < newest:
            is_short = newest - self.passed - first + 1 < FEWEST_OF_A_RUN
            if _has_risen(epoch, self._epoch):
                note, self.passed = COUNTED_ON, newest + 1 - said
            elif is_short and _has_risen(round_, self._round):
                note, self.passed = ROUNDS_COUNTED_ON, newest + 1 - said
            elif epoch != self._epoch:
                self.passed = 0  # the epochs begin again too: another run
        elif said + self.passed <= newest and _is_next(epoch, self._epoch):
            note, self.passed = COUNTED_ON, newest + 1 - first  # the first steps of the epoch were not logged
        return said + self.passed, note


def _latest(row: Mapping[str, Any], names: tuple[str, ...], before: float | None) -> float | None:
    """The epoch, or the round, of a row; that of earlier rows if it has none."""
    return next((found for name in names if (found := number(row.get(name))) is not None), before)


def _has_risen(before: float | None, now: float | None) -> bool:
    return before is not None and now is not None and before < now


def _is_next(before: float | None, now: float | None) -> bool:
    return before is not None and before.is_integer() and now == before + 1
