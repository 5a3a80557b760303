"""Opens JSONL, JSON, CSV and console logs: a named file, stdin, and the files of a folder."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import IO, cast

from rlhealth.errors import RlhealthError
from rlhealth.run import UnreadFile
from rlhealth.sources.base.candidates import why_unread
from rlhealth.sources.base.growing import open_regular
from rlhealth.sources.base.packed import as_text, text_of
from rlhealth.sources.base.reader import Reader
from rlhealth.sources.base.temporary import no_room
from rlhealth.sources.base.walk import without_rotated
from rlhealth.sources.rows import json_steps, metric_files
from rlhealth.sources.rows.console import ConsoleLog
from rlhealth.sources.rows.csv_log import CsvLog
from rlhealth.sources.rows.formats import HEAD, sniff
from rlhealth.sources.rows.headerless import is_long, names_of
from rlhealth.sources.rows.json_log import JsonDocument, JsonLines
from rlhealth.sources.rows.last_words import raised_in, tail_of
from rlhealth.sources.rows.log_rows import log_kind
from rlhealth.sources.rows.textlog import TextLog, TextLogRun, board_tag
from rlhealth.sources.rows.trainer_state import TrainerState

FORMATS: dict[str, Callable[..., TextLog]] = {
    "jsonl": JsonLines,
    "json": JsonDocument,
    "csv": CsvLog,
    "console": ConsoleLog,
}
IN_MEMORY = 64 << 20  # bytes of stdin; more data goes to a temporary file


def find(path: Path, kind: str | None = None) -> list[Reader]:
    """A reader for every run in a file that the user named.

    Args:
        kind: the format, instead of detecting it by name and first bytes.

    Raises:
        RlhealthError: if it cannot be read, or holds no log.
    """
    with open_regular(path) as file:
        head = as_text(file, path).read(HEAD)
    kind = kind or sniff(head, path.name)
    return _readers(path, kind, names=names_of(path.name, text_of(head)) if kind == "csv" else ())


def find_stdin(stream: IO[bytes], kind: str | None = None) -> list[Reader]:
    """A reader for every run in stdin, which is read to its end.

    Raises:
        RlhealthError: if it has no log, or is too large to keep.
    """
    if stream.isatty():
        raise RlhealthError(
            "nothing is piped in", hint="pipe a log in: tail -n +1 train.log | rlhealth check -", location="-"
        )
    kept = cast("IO[bytes]", tempfile.SpooledTemporaryFile(IN_MEMORY))  # noqa: SIM115 (it lives as long as its readers)
    while block := stream.read(1 << 20):
        try:
            kept.write(block)
        except OSError as error:
            raise no_room("-", error) from None
    kept.seek(0)
    piped = as_text(kept, Path("-"))
    head = piped.read(HEAD)
    piped.seek(0)
    return _readers(Path("-"), kind or sniff(head, "stdin"), piped)


def readers(files: Iterable[Path], errors: list[RlhealthError], left: list[UnreadFile] | None = None) -> list[Reader]:
    """Readers for the files of a folder that are logs.

    A log that cannot be read is added to `errors`; a file that looks like a log but has no reader, to `left`.
    """
    found, others = json_steps.apart(without_rotated(list(files)))
    boards: dict[tuple[Path, str], CsvLog] = {}
    tags = metric_files.tags_of(path for path in others if _has_one_metric(path))
    for path in others:
        try:
            kind = log_kind(path)
            head = _head(path) if kind == "csv" else b""
            names = names_of(path.name, text_of(head)) if head else []
            tag = tags.get(path, "")
            if head and (board := _METRIC_A_FILE if tag or is_long(names) else _board(path, head)):
                key = (path.parent, board)
                if key in boards:
                    boards[key].add_export(path, names, tag)
                    continue
                boards[key] = CsvLog(path, names=names, tag=tag)
                found.append(TextLogRun(boards[key], boards[key].runs[0]))
            elif kind:
                found += _readers(path, kind, names=names)
            elif left is not None and (why := why_unread(path)):
                left.append(UnreadFile(str(path), why))
        except RlhealthError as error:
            errors.append(error)
        except OSError as error:
            errors.append(
                RlhealthError(f"{path}: {error.strerror or error}", hint="check the permissions", location=str(path))
            )
    return found


#: wandb's internal logs, and logs of steps before a training.
_OF_NO_TRAINING = re.compile(r"^debug(?:-\w+)?\.log$|(?:^|[._-])(?:install|setup|build|download)", re.IGNORECASE)


#: Words of which a console of training has one before its first row: any program can end with an exception.
_TRAINING = re.compile(
    rb"\b(?:train|trained|training|trainer|rewards?|episodes?|policy|epochs?|checkpoints?|torch|cuda|gymnasium|gym|trl|verl"
    rb"|vllm|deepspeed|accelerate|wandb|tensorboard|transformers|ray|rllib|stable_baselines3|jax|tensorflow|keras)\b",
    re.IGNORECASE,
)


def died_at_start(files: Iterable[Path]) -> list[Reader]:
    """Readers for consoles of training without rows that end with an exception, in a folder without a log: the process
    died before it logged anything."""
    found: list[Reader] = []
    for path in without_rotated(list(files)):
        if _OF_NO_TRAINING.search(path.name):
            continue
        try:
            tail = tail_of(path)
            if raised_in(tail) and _TRAINING.search(tail):
                found += _readers(path, "console")
        except (RlhealthError, OSError):
            continue  # it holds no row, and nobody named it: no log
    return found


#: A name that no run has, for reading all metrics of a folder together.
_METRIC_A_FILE = "\0metric"


def _head(path: Path) -> bytes:
    with open_regular(path) as file:
        head: bytes = as_text(file, path).read(HEAD)
        return head


def _has_one_metric(path: Path) -> bool:
    """Whether a file is a table of one metric, and no export of TensorBoard's page, which names the run too."""
    try:
        head = _head(path) if path.suffix == ".csv" else b""
        return metric_files.has_one_metric(text_of(head).partition("\n")[0]) and _board(path, head) is None
    except (RlhealthError, OSError):
        return False  # the error is reported where the file is read


def _readers(path: Path, kind: str, file: IO[bytes] | None = None, names: Sequence[str] = ()) -> list[Reader]:
    """Readers for the runs of one log.

    Args:
        file: stdin, if the log is piped in.
        names: the columns of a CSV file, if the file's name defines them.
    """
    if kind == "trainer_state":
        if file is None:
            return [TrainerState(path)]
        kind = "json"
    log = CsvLog(path, file, names) if kind == "csv" else FORMATS[kind](path, file)
    log.poll()
    return [TextLogRun(log, run) for run in log.runs if not run.is_empty]


def _board(path: Path, head: bytes) -> str | None:
    """The run whose tag TensorBoard's page exported to this file, if it is such an export with the run's name in it."""
    if not head.startswith(b"Wall time,Step,Value"):
        return None
    tag = board_tag(path)
    return path.stem.removesuffix(f"tag-{tag}") if path.stem != tag else ""
