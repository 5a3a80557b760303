"""A verdict for TensorBoard: an event file in a separate folder beside the run, which TensorBoard shows as a separate
run."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from rlhealth.errors import RlhealthError
from rlhealth.sources.base.walk import OURS

if TYPE_CHECKING:
    from rlhealth.publishing.published import Published


def folder_beside(file: str) -> Path:
    """The folder for what is written of the run in a file or folder: `runs/exp1.rlhealth` for `runs/exp1`."""
    base = Path(file)
    base = (base if base.is_dir() else base.parent).resolve()
    return base.with_name(f"{base.name}{OURS}")


def write_back(file: str, report: Published) -> str:
    """Writes the report as text, the verdict as a hyperparameter, and the page; replaces what was written before.

    Raises:
        RlhealthError: if the folder cannot be written.
    """
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.plugins.hparams import summary_v2 as hparams
    from tensorboard.plugins.text import metadata
    from tensorboard.summary.writer.event_file_writer import EventFileWriter
    from tensorboard.util.tensor_util import make_tensor_proto

    folder = folder_beside(file)
    step = report.first_step or 0
    text = Summary()
    text.value.add(
        tag="rlhealth",
        metadata=metadata.create_summary_metadata(display_name="rlhealth", description=report.headline),
        tensor=make_tensor_proto([report.markdown.encode()]),
    )
    try:
        if folder.is_dir():
            for old in folder.glob("events.out.tfevents.*"):
                old.unlink()
        folder.mkdir(exist_ok=True)
        writer = EventFileWriter(str(folder))
        writer.add_event(
            Event(step=0, summary=_again(hparams.hparams_pb(dict(report.facts), trial_id=report.name), Summary))
        )
        writer.add_event(Event(step=step, summary=text))
        writer.close()
        shutil.copyfile(report.page, folder / report.page.name)
    except OSError as error:
        said = (error.strerror or type(error).__name__).lower()
        raise RlhealthError(
            f"{folder}: {said}", hint="--write-back needs a folder beside the run", location=str(folder)
        ) from None
    return f"{folder}: text, hyperparameters and {report.page.name}"


def _again(summary: object, kind: type) -> object:
    """The summary as TensorBoard's own class, whichever copy of the protocol it was made with."""
    made = kind()
    made.ParseFromString(summary.SerializeToString())  # type: ignore[attr-defined]
    return made
