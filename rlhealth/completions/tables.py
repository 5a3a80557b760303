"""Files that hold completions: parquet, wandb's tables, JSON lines; each read into batches, one a step."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlhealth.completions.batch import LONGEST_TEXT, Batch, batches, holds_texts, in_columns
from rlhealth.errors import RlhealthError
from rlhealth.sources.base.growing import GrowingFile, open_regular
from rlhealth.sources.base.parquet import plain

#: A larger table of JSON is not read: it must be in memory as a whole.
LARGEST_TABLE = 512 << 20
#: Rows of one file that are read, and characters of their texts; what is more is left out, and counted.
MOST_ROWS = 200_000
MOST_CHARACTERS = 512 << 20
_AT_ONCE = 256  # rows of parquet; a row may hold a text of megabytes
INSTALL = "pip install 'rlhealth[completions]'"


class NoCompletions(RlhealthError):
    """A table without completions."""


def read(path: Path, step: int | None = None) -> list[Batch]:
    """The completions in a file, one batch per step.

    Args:
        step: of rows that do not give theirs.

    Raises:
        RlhealthError: if it cannot be read, is damaged, or holds no completions (`NoCompletions`).
        ImportError: for parquet, where pyarrow is not installed.
    """
    if path.suffix == ".parquet":
        return _parquet(path, step)
    if path.suffix in (".jsonl", ".ndjson"):
        return _lines(path, step)
    return _table(path, step)


def _parquet(path: Path, step: int | None) -> list[Batch]:
    import pyarrow
    import pyarrow.parquet

    columns: dict[str, list[Any]] = {}
    rows = characters = 0
    with open_regular(path) as file:
        try:
            table = pyarrow.parquet.ParquetFile(file)
            check(table.schema_arrow.names, path)
            total = table.metadata.num_rows
            for part in table.iter_batches(batch_size=_AT_ONCE):
                names: list[str] = part.schema.names
                for name in dict.fromkeys(names):  # of columns that share a name, the first counts
                    columns.setdefault(name, []).extend(map(_short, _python(part.column(names.index(name)))))
                rows += part.num_rows
                characters += part.nbytes
                if rows >= MOST_ROWS or characters >= MOST_CHARACTERS:
                    break
        except (pyarrow.ArrowException, OSError, ValueError, KeyError, RecursionError) as error:
            raise _damaged(path, error) from error
    return _with_left_out(batches(columns, step), total - rows)


def _python(column: Any) -> list[Any]:
    """The values of a column; text that is no UTF-8 is read as far as it is, and what Python has no value for is left
    out."""
    try:
        found: list[Any] = column.to_pylist()
    except Exception:  # pyarrow raises what the type of the column happens to raise
        found = [plain(one) for one in column]
    return found


def _lines(path: Path, step: int | None) -> list[Batch]:
    lines = GrowingFile(path)
    rows: list[dict[str, Any]] = []
    damaged = left_out = 0
    for _, line in lines.lines():
        if len(rows) >= MOST_ROWS:
            left_out += 1
        elif (row := row_of(line)) is not None:
            rows.append(row)
        else:
            damaged += bool(line.strip())
    if (row := row_of(lines.take_rest())) is not None:
        rows.append(row)
    columns = in_columns(rows)
    check(columns, path)
    return _with_left_out(batches(columns, step), left_out + damaged + lines.too_long)


def row_of(line: bytes) -> dict[str, Any] | None:
    """A line of JSON that is an object; None for any other."""
    try:
        found = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return {name: _short(one) for name, one in found.items()} if isinstance(found, dict) else None


def _table(path: Path, step: int | None) -> list[Batch]:
    with open_regular(path) as file:
        text = file.read(LARGEST_TABLE + 1)
    if len(text) > LARGEST_TABLE:
        raise RlhealthError(f"{path}: larger than {LARGEST_TABLE >> 20} MB, not read", location=str(path))
    try:
        found = json.loads(text.decode("utf-8", "replace"))
        names, rows = found["columns"], found["data"]
        columns = {str(name): [_short(row[place]) for row in rows[:MOST_ROWS]] for place, name in enumerate(names)}
    except (ValueError, TypeError, KeyError, IndexError, RecursionError) as error:
        raise _damaged(path, error) from error
    check(columns, path)
    return _with_left_out(batches(columns, step), max(0, len(rows) - MOST_ROWS))


def check(names: Any, path: Path) -> None:
    """Raises NoCompletions for a table without completions; `names` are its columns."""
    if not holds_texts(names):
        said = ", ".join(str(one)[:40] for one in list(names)[:8]) or "nothing"
        hint = "a table of completions has columns prompt and completion (or input and output, query and response)"
        raise NoCompletions(f"{path}: no completions in it (its columns: {said})", hint=hint, location=str(path))


def _short(value: Any) -> Any:
    """A text of megabytes is kept as far as anybody could read it; its length shows that it was cut."""
    return TruncatedText(value) if isinstance(value, str) and len(value) > LONGEST_TEXT else value


class TruncatedText(str):
    """The beginning of a text that is longer than is kept.

    Attributes:
        whole: characters of the whole text.
    """

    whole: int

    def __new__(cls, text: str) -> TruncatedText:
        """Keeps the beginning of the text."""
        found = super().__new__(cls, text[:LONGEST_TEXT])
        found.whole = len(text)
        return found


def _with_left_out(found: list[Batch], rows: int) -> list[Batch]:
    if found and rows > 0:
        found[-1].left_out += rows
    return found


def _damaged(path: Path, error: Exception) -> RlhealthError:
    said = str(error).split("\n", 1)[0][:150] or type(error).__name__
    return RlhealthError(f"{path}: damaged or not whole: {said}", location=str(path))


def rows_of(found: Any) -> Iterator[dict[str, Any]]:
    """The rows of a table that Trackio keeps in a row of metrics."""
    for row in found if isinstance(found, list) else []:
        if isinstance(row, dict):
            yield {str(name): _short(one) for name, one in row.items()}
