"""A printed row: its metrics, and how it was printed."""

from __future__ import annotations

from typing import Any

from rlhealth.sources.rows.row_names import names_step


class PrintedRow(dict[str, Any]):
    """A row, and how it was printed.

    Attributes:
        form: "dict", "box", "steps" (verl's), "line" (several pairs), "block" (a pair a line), "bar" (beside a
            progress bar) or "warning" (of the trainer's own).
        rank: of the process that printed it; "" if it is not given; with a colon if it is a bare number.
        trial: the trial of a search that it is of, as Ray names it; "" if it is not given.
        is_cut: whether its end is missing.
        below_heading: whether its step is that of a heading above it.
        again: whether an earlier row below that heading had some of its names.
        is_listed: whether it is the rewards of a step that were printed as a list.
        names_sample: whether it names its sample, as rows of single rollouts do.
        bar: the progress of the bar on its line; None without one.
    """

    form = "dict"
    rank = ""
    trial = ""
    is_cut = False
    below_heading = False
    again = False
    is_listed = False
    names_sample = False
    bar: int | None = None

    def of_evaluation(self) -> None:
        """Marks its metrics as those of an evaluation; step names are kept."""
        found = {name if names_step(name) or name.startswith("eval") else f"eval/{name}": self[name] for name in self}
        self.clear()
        self.update(found)
