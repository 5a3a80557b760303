"""What a line that names only a step says of the rows below it: `Learning iteration 3/1500` is their heading."""

from __future__ import annotations

from rlhealth.sources.rows.printed_row import PrintedRow
from rlhealth.sources.rows.printed_steps import PrintedStep, heads_evaluation
from rlhealth.sources.rows.row_names import has_step, names_step

MOST_REPEATS = 20  # rows of the same names below one heading: the epochs or mini-batches of an update
EPOCHS = frozenset({"epoch", "Epoch"})
LENGTHS = frozenset({"steps"}) | EPOCHS  # beside an episode


class Heading:
    """The newest heading, and the rows below it.

    Attributes:
        step: what it counts; None where no heading applies.
        epoch: of the rows below it, whose step may count within that epoch.
    """

    def __init__(self) -> None:
        self.step: PrintedStep | None = None
        self.epoch: int | None = None
        self._is_evaluation = False
        self._said: set[str] = set()
        self._repeats = 0

    def begin(self, text: str, step: PrintedStep) -> None:
        """Takes the next heading."""
        self.step, self._said, self._repeats = step, set(), 0
        self._is_evaluation = heads_evaluation(text)
        if step.name == "epoch":
            self.epoch = step.count
        elif step.epoch is not None:
            self.epoch = step.epoch

    def applies_to(self, step: PrintedStep | None) -> bool:
        """Whether a line with that step, or without one, stands below the heading and does not replace it."""
        return self.step is not None and (step is None or step.name != self.step.name)

    def name(self, row: PrintedRow, step: PrintedStep | None) -> None:
        """Gives a row the step and the epoch of its own line (`step`), or else those of the heading."""
        self._name_step(row, step)
        if row.below_heading and self._is_evaluation:
            row.of_evaluation()
        epoch = step.epoch if step is not None and step.epoch is not None else self.epoch
        if epoch is not None and has_step(row) and EPOCHS.isdisjoint(row):
            row["epoch"] = epoch

    def _name_step(self, row: PrintedRow, step: PrintedStep | None) -> None:
        weaker = LENGTHS if step is not None and step.name == "episode" else EPOCHS
        if has_step(row) and not (step and all(name in weaker for name in row if names_step(name))):
            return
        if step is None and self.step is not None:
            row.again = bool(self._said & row.keys())
            self._repeats += row.again
            if self._repeats > MOST_REPEATS:
                self.step = None  # it does not apply to every row
            else:
                self._said |= row.keys()
                step, row.below_heading = self.step, True
        if step is not None:
            if step.name == "steps" and "Steps" in row:
                row[step.name] = row.pop("Steps")
            row.setdefault(step.name, step.count)
            if step.total is not None and step.name != "epoch":
                row.setdefault("total_steps", step.total)
