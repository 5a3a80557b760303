"""Which `.wandb` files are one run: a training that was killed and resumed has one file for each start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from rlhealth.run import Run
from rlhealth.sources.wandb.records import Settings

#: Settings by which the starts of one run may differ.
_OF_A_START = frozenset(
    {
        "run_name",
        "logging_dir",
        "resume_from_checkpoint",
        "max_steps",
        "num_train_epochs",
        "hub_model_id",
        "trainer_class",
    }
)


class FileReader(Protocol):
    """What joining needs from a reader of one file."""

    run: Run
    settings: Settings


AnyFileReader = TypeVar("AnyFileReader", bound=FileReader)


def join(readers: Sequence[AnyFileReader]) -> list[list[AnyFileReader]]:
    """Readers of the files of one folder, which have read the beginning of each, run by run; the starts of a run in
    their order.
    """
    runs: list[list[AnyFileReader]] = []
    for reader in sorted(readers, key=lambda one: one.settings.started):
        earlier = next((run for run in reversed(runs) if goes_on(run[-1], reader)), None)
        if earlier is None:
            runs.append([reader])
        else:
            earlier.append(reader)
    return sorted(runs, key=lambda run: readers.index(run[0]))


def goes_on(earlier: FileReader, later: FileReader) -> bool:
    """Whether a file continues the run of an earlier one.

    It has the same run id, or the same output folder and settings and begins at a later step than that one did.
    """
    one, other = earlier.run, later.run
    if earlier.settings.run_id and earlier.settings.run_id == later.settings.run_id:
        return True
    if (
        one.first_step is None
        or other.first_step is None
        or other.first_step <= one.first_step
        or one.step_axis == "_step"
    ):
        return False
    return (
        one.config.get("output_dir") == other.config.get("output_dir")
        and _lasting(one) == _lasting(other)
        and bool(one.config)
    )


def _lasting(run: Run) -> dict[str, object]:
    """The settings that a resume keeps: all but names and paths."""
    return {
        key: value
        for key, value in run.config.items()
        if key not in _OF_A_START and not (isinstance(value, str) and "/" in value) and value == value
    }
