"""Tables of any kind: says by name and first bytes whether a file is JSONL, JSON, CSV or a console log, and opens
it."""

from __future__ import annotations

import io
import json
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

from rlhealth.errors import RlhealthError
from rlhealth.run import UnreadFile
from rlhealth.sources.base.candidates import why_unread
from rlhealth.sources.base.growing import open_regular
from rlhealth.sources.base.packed import as_text, encoding_of, text_of
from rlhealth.sources.base.reader import Reader
from rlhealth.sources.base.spelling import AXES, EPISODE, number
from rlhealth.sources.base.temporary import no_room
from rlhealth.sources.base.walk import kind_of, without_rotated
from rlhealth.sources.rows.console import ConsoleLog
from rlhealth.sources.rows.csv_log import CsvLog
from rlhealth.sources.rows.headerless import (
    FEWEST_OF_A_RUN,
    is_column,
    is_list,
    is_long,
    is_of_rewards,
    list_in,
    names_of,
    stem_of,
)
from rlhealth.sources.rows.json_log import JsonDocument, JsonLines, document_rows, document_runs
from rlhealth.sources.rows.json_rows import JsonRows
from rlhealth.sources.rows.json_tables import DEEPEST, holds_numbered, holds_numbers_by_step
from rlhealth.sources.rows.printed import Printed, dict_in
from rlhealth.sources.rows.row_shapes import flatten, looks_like_rows
from rlhealth.sources.rows.textlog import TextLog, TextLogRun, board_tag
from rlhealth.sources.rows.trainer_plan import OPENING
from rlhealth.sources.rows.trainer_state import TrainerState
from rlhealth.sources.rows.wrapped_lines import Unwrapping, is_wrapped

FORMATS: dict[str, Callable[..., TextLog]] = {
    "jsonl": JsonLines,
    "json": JsonDocument,
    "csv": CsvLog,
    "console": ConsoleLog,
}
HEAD = 64 << 10  # bytes by which a format is known
LOG_HEAD = 256 << 10  # bytes of a console looked at in one go
FURTHEST = 64 << 20  # bytes of a text in which the first row must come, where nobody named it
WHOLE = 8 << 20  # bytes of a JSON file of columns that is looked into, where nobody named it
IN_MEMORY = 64 << 20  # bytes of stdin; more goes to a temporary file
#: JSON files of models and data sets, which are logs only where their rows count steps or name metrics.
NO_LOGS = re.compile(
    r"(?:^|[._-])(?:config|tokenizer|vocab|merges|special_tokens|added_tokens|preprocessor|processor|metadata|summary|package|manifest|schema|requirements|adapter"
    r"|prompts?|completions?|game_log|datasets?)|\.index\.json$",
    re.IGNORECASE,
)


def find(path: Path, kind: str | None = None) -> list[Reader]:
    """A reader for every run in a file that somebody named.

    Args:
        kind: the format, where the name and the first bytes shall not decide.

    Raises:
        RlhealthError: if it cannot be read, or holds no log.
    """
    with open_regular(path) as file:
        head = as_text(file, path).read(HEAD)
    return _readers(path, kind or sniff(head, path.name), None, path)


def find_stdin(stream: IO[bytes], kind: str | None = None) -> list[Reader]:
    """A reader for every run in what is piped in, up to its end.

    Raises:
        RlhealthError: if it holds no log, or more than can be kept.
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
    return _readers(Path("-"), kind or sniff(head, "stdin"), piped, Path("-"))


def readers(files: Iterable[Path], errors: list[RlhealthError], left: list[UnreadFile] | None = None) -> list[Reader]:
    """Readers for those of the files, come across in a folder, that are logs.

    A log that cannot be read goes to `errors`; what looks like a log and is read by nobody, to `left`.
    """
    found: list[Reader] = []
    boards: dict[tuple[Path, str], CsvLog] = {}
    for path in without_rotated(list(files)):
        try:
            kind = log_kind(path)
            names = _names(path) if kind == "csv" else []
            if kind == "csv" and (board := _METRIC_A_FILE if is_long(names) else _board(path)):
                key = (path.parent, board)
                if key in boards:
                    boards[key].add_export(path, names)
                    continue
                boards[key] = CsvLog(path, names=names)
                found.append(TextLogRun(boards[key], boards[key].runs[0]))
            elif kind:
                found += _readers(path, kind, None, path)
            elif left is not None and (why := why_unread(path)):
                left.append(UnreadFile(str(path), why))
        except RlhealthError as error:
            errors.append(error)
        except OSError as error:
            errors.append(
                RlhealthError(f"{path}: {error.strerror or error}", hint="check the permissions", location=str(path))
            )
    return found


#: The name, which no run has, under which the metrics of a folder are read together.
_METRIC_A_FILE = "\0metric"


def _names(path: Path) -> list[str]:
    with open_regular(path) as file:
        return names_of(path.name, text_of(as_text(file, path).read(HEAD)))


def sniff(head: bytes, name: str) -> str:
    """The format of a file, by its name and its first bytes: one of `FORMATS`, or "trainer_state".

    Raises:
        RlhealthError: if it is no text.
    """
    if b"\0" in head.rstrip(b"\0")[:1024] and encoding_of(head) is None:
        raise RlhealthError(
            f"{name}: no text, and no format that is known by its name",
            hint="name it as its tracker does, such as events.out.tfevents.…",
            location=name,
        )
    suffix = kind_of(name)
    text = text_of(head).lstrip("\0 \t\r\n\ufeff")
    if suffix == "csv" or (suffix == "jsonl" and not _IN_LINES.match(text)):
        return suffix
    if is_wrapped(text):
        return "console"
    if suffix != "jsonl" and names_of(name, text):
        return "csv"
    if text.startswith("{") and text[1:].lstrip()[:1] in ('"', "}", ""):
        return _json_kind(text)
    if text.startswith("["):
        is_json = text[1:].lstrip()[:1] in ("{", "]") or _POINTS.match(text) or is_list(name, text)
        return "json" if is_json else "console"
    return "csv" if _is_table(text) else "console"


#: Points as TensorBoard's page exports them: [[wall time, step, value], …].
_POINTS = re.compile(r"\[\s*\[\s*\d{9,}[\d.]*\s*,\s*-?\d+\s*,")
#: JSON that was indented: an object or a list that does not end in its first line.
_IN_LINES = re.compile(r"\[|\{[ \t]*\r?\n")


def log_kind(path: Path) -> str | None:
    """The format of a file that was come across, or None if it is no log (a data set, a model's settings, prose)."""
    doubtful = NO_LOGS.search(path.name) is not None
    with open_regular(path) as raw:
        file = as_text(raw, path)
        head = file.read(HEAD)
        if not head.strip(b"\0 \r\n\t"):
            return None
        try:
            kind = sniff(head, path.name)
        except RlhealthError:
            return None
        if kind == "console":
            head += file.read(LOG_HEAD - HEAD)
        if _holds_rows(kind, head, doubtful) or (kind == "csv" and _is_plain(path.name, text_of(head), doubtful)):
            return kind
        if kind == "json":
            whole = head + file.read(WHOLE)
            is_log = is_log_document(whole, doubtful) or (not doubtful and _is_curve(path.name, whole))
            return "json" if len(whole) < WHOLE and is_log else None
        while kind in ("jsonl", "console") and file.tell() < FURTHEST and (block := file.read(LOG_HEAD)):
            if _ROWISH.search(block) and _holds_rows(kind, block.partition(b"\n")[2], doubtful):
                return kind
    return None


_ROWISH = re.compile(rb"[\w'\"|)\]][ \t]*[:=|][ \t]*['\"]?[-+]?[\dn]")


def _is_plain(name: str, text: str, doubtful: bool) -> bool:
    """Whether a table has no line of names, in a file that is called after its numbers, or one column of rewards."""
    return bool(names_of(name, text)) or (not doubtful and is_column(name, text))


def _is_curve(name: str, text: bytes) -> bool:
    """Whether a JSON file is a list of as many rewards as a run has, by its name."""
    found = list_in(name, text) if is_of_rewards(stem_of(name)) else None
    return found is not None and len(found.values) >= FEWEST_OF_A_RUN


def is_log_document(text: bytes, doubtful: bool = False) -> bool:
    """Whether a JSON file that holds no list of rows is a log nevertheless: columns of numbers, or objects one after
    the other."""
    if runs := document_runs(text):
        return any(_are_counted(one.rows, doubtful) for one in runs)
    try:
        rows = list(islice(document_rows(text_of(text).lstrip("\ufeff")), 40))
    except (ValueError, RecursionError):  # not JSON: whether it looks like a log is judged by its words
        return False
    return len(rows) > 2 and _are_log_rows(rows, doubtful) and any(_names_a_metric(row) for row in rows)


def _are_counted(rows: Sequence[Mapping[str, Any]], doubtful: bool) -> bool:
    """Whether rows that stand under some name in a document are a log's: they count, or are numbers and no texts, and
    name metrics."""
    ends = [dict(row) for row in (*rows[:20], *rows[-20:])]
    counted = [row for row in ends if _COUNTS & row.keys() or not any(isinstance(one, str) for one in row.values())]
    telling = [row for row in counted if any(_METRIC.search(name) for name in row)]
    return len(rows) > 2 and 2 * len(telling) > len(ends) and (not doubtful or _are_log_rows(ends, doubtful))


_COUNTS = frozenset({*AXES, "epoch", "Epoch"})


def _names_a_metric(row: dict[str, Any]) -> bool:
    return any(name in AXES or _METRIC.search(name) for name in flatten(row))


_METRIC = re.compile(r"loss|reward|kl|entropy|grad_?norm|return|clip_?frac|score", re.IGNORECASE)


def _are_log_rows(rows: list[dict[str, Any]], doubtful: bool) -> bool:
    """Whether these are a log's rows, or end in a log's rows (settings may stand before them)."""
    if not any(looks_like_rows(part) for part in (rows[:20], rows[-20:]) if part):
        return False
    if not doubtful:
        return True
    telling = [row for row in rows if _names_a_metric(row) and sum(isinstance(one, str) for one in row.values()) < 2]
    return 2 * len(telling) > len(rows)


def _holds_rows(kind: str, head: bytes, doubtful: bool = False) -> bool:
    text = text_of(head).lstrip("\ufeff")
    if kind == "trainer_state":
        return True
    if kind == "json":
        rows = JsonRows(io.BytesIO(text.encode("utf-8", "replace")), OPENING)
        return _are_log_rows([row for row, _ in zip(rows, range(20), strict=False)], doubtful)
    if kind == "console" and is_wrapped(text):
        text = Unwrapping().text(text.encode("utf-8", "replace")).decode("utf-8", "replace")
    lines = text.splitlines()
    if kind == "jsonl":
        return _are_log_rows([row for line in lines[:2000] if (row := _row(line)) is not None], doubtful)
    if kind == "csv":
        header = next((line for line in lines if line.strip() and not line.startswith("#")), "")
        names = {name.strip(' "').rpartition(" - ")[2] for name in re.split(r"[,\t;|]", header)}
        if len(names) < 2 or header.lower().startswith("name"):
            return False
        return (
            bool(names & _STEPS)
            or names >= EPISODE
            or (sum(bool(_METRIC.search(name)) for name in names) > 1 and _is_table(text))
        )
    printed = Printed()
    found = (row for line in lines for row in printed.rows(line))
    return any(len(row) > 1 or "objective/kl" in row for row in found) or any(True for _ in printed.end())


_STEPS = {*AXES, "epoch", "Wall time", "value"}


def _row(line: str) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        row = dict_in(line)
    return row if isinstance(row, dict) else None


def _json_kind(text: str) -> str:
    line, _, rest = text.partition("\n")
    row = _row(line)
    if row is not None:
        lists = any(_holds_columns(value) for value in row.values()) or holds_numbered(row)
        return "trainer_state" if '"log_history"' in line else "json" if lists and not rest.strip() else "jsonl"
    if '"log_history"' in text:
        return "trainer_state"
    return (
        "json"
        if OPENING.search(text) or text.lstrip("{").lstrip(" ").startswith(("\n", "\r")) or len(line) >= HEAD // 2
        else "jsonl"
    )


def _holds_columns(value: object, depth: int = 0) -> bool:
    """Whether a value of a JSON object is a column, or an object of columns: the object is no row then."""
    if isinstance(value, dict):
        return holds_numbers_by_step(value) or (
            depth < DEEPEST and any(_holds_columns(one, depth + 1) for one in value.values())
        )
    return isinstance(value, list) and len(value) > 1


_HEAD_NAME = re.compile(r"[A-Za-z_][^\n{}=]{0,200}|")


def _is_table(text: str) -> bool:
    """Whether the first lines have the same number of cells, and the first of them names."""
    lines = [line for line in text.splitlines()[:6] if line and not line.startswith("#")]
    for comma in ",\t;":
        counts = [line.count(comma) for line in lines[:5]]
        if len(counts) > 1 and counts[0] and len(set(counts[: max(2, len(counts) - 1)])) == 1 and "{" not in lines[0]:
            heads = [cell.strip(' "') for cell in lines[0].split(comma)]
            if not all(_HEAD_NAME.fullmatch(head) for head in heads) and not all(
                number(head) is not None for head in heads
            ):
                continue  # the lines of a console have commas and tabs too
            cells = [cell.strip(' "') for cell in lines[1].split(comma)]
            return sum(number(cell) is not None or not cell for cell in cells) * 2 >= len(cells)
    return False


def _readers(path: Path, kind: str, file: IO[bytes] | None, place: Path) -> list[Reader]:
    if kind == "trainer_state":
        if file is None:
            return [TrainerState(path)]
        kind = "json"
    log = CsvLog(path, file, _names(path) if file is None else ()) if kind == "csv" else FORMATS[kind](path, file)
    log.poll()
    return [TextLogRun(log, run) for run in log.runs if run.series or run.histograms]


def _board(path: Path) -> str | None:
    """The run whose tag TensorBoard's page exported to this file, where it is such an export with the run's name in
    it."""
    with open_regular(path) as file:
        if not as_text(file, path).read(64).startswith(b"Wall time,Step,Value"):
            return None
    tag = board_tag(path)
    return path.stem.removesuffix(f"tag-{tag}") if path.stem != tag else ""
