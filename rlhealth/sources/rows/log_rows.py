"""Log rows: whether a file that was found in a folder is a log, by rows that count steps or name metrics, or no log (a
data set, settings, prose)."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from rlhealth.errors import RlhealthError
from rlhealth.metrics.languages import in_english
from rlhealth.sources.base.growing import open_regular
from rlhealth.sources.base.packed import as_text, text_of
from rlhealth.sources.base.spelling import AXES, EPISODE, PROGRESS, number
from rlhealth.sources.base.walk import kind_of
from rlhealth.sources.rows.commented import without_comments
from rlhealth.sources.rows.formats import HEAD, is_table, row_in, sniff
from rlhealth.sources.rows.headerless import (
    FEWEST_OF_A_RUN,
    counts_rewards,
    is_column,
    is_of_rewards,
    list_in,
    names_of,
    stem_of,
)
from rlhealth.sources.rows.json_log import document_rows, document_runs
from rlhealth.sources.rows.json_rows import JsonRows
from rlhealth.sources.rows.printed import Printed
from rlhealth.sources.rows.printed_row import PrintedRow
from rlhealth.sources.rows.row_names import PAID, is_learning, is_log_name
from rlhealth.sources.rows.row_shapes import flatten, looks_like_rows
from rlhealth.sources.rows.search_table import is_search, names_setting
from rlhealth.sources.rows.trainer_plan import OPENING
from rlhealth.sources.rows.wrapped_lines import Unwrapping, is_wrapped

LOG_HEAD = 256 << 10  # bytes of a console per read
FURTHEST = 64 << 20  # bytes of a text within which the first row must come, if the user did not name the file
WHOLE = 8 << 20  # the largest JSON file of columns that is read, if the user did not name it
FEWEST_REWARDS = 20  # lines that hold nothing but a reward, and make a log
FEWEST_WARNINGS = 3  # warnings with a metric that make a log; fewer may be quoted in a text
#: JSON files of models and data sets, which are logs only if their rows count steps or name metrics.
NO_LOGS = re.compile(
    r"(?:^|[._-])(?:config|tokenizer|vocab|merges|special_tokens|added_tokens|preprocessor|processor|metadata|summary|package|manifest|schema|requirements|adapter"
    r"|prompts?|completions?|game_log|datasets?)|\.index\.json$",
    re.IGNORECASE,
)


def log_kind(path: Path) -> str | None:
    """The format of a file that was found in a folder, or None if it is no log (a data set, a model's settings,
    prose)."""
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
        if kind == "jsonl" and _sums_up(path.name, text_of(head)):
            return None
        if kind == "console":
            head += file.read(LOG_HEAD - HEAD)
        if _holds_rows(kind, head, doubtful) or (kind == "csv" and _is_plain(path.name, text_of(head), doubtful)):
            return kind
        if kind == "json":
            whole = head + file.read(WHOLE)
            is_log = is_log_document(whole, doubtful, path.name) or (not doubtful and _is_curve(path.name, whole))
            return "json" if len(whole) < WHOLE and is_log else None
        while kind in ("jsonl", "console") and file.tell() < FURTHEST and (block := file.read(LOG_HEAD)):
            if _ROWISH.search(block) and _holds_rows(kind, block.partition(b"\n")[2], doubtful):
                return kind
    return None


_ROWISH = re.compile(rb"[\w'\"|)\]][ \t]*[:=|][ \t]*['\"]?[-+]?[\dn]")


def _sums_up(name: str, text: str) -> bool:
    """Whether a JSON file is one object of numbers without a step: a final result, `{"episodes": 60, "mean_reward":
    0.7}`, and no log row."""
    if kind_of(name) != "json" or len(text.strip().splitlines()) > 1:
        return False
    row = row_in(text.strip())
    return row is not None and PROGRESS.isdisjoint(flatten(row))


def _is_plain(name: str, text: str, doubtful: bool) -> bool:
    """Whether a table has no header, in a file that is named after its numbers, or is one column of rewards."""
    return bool(names_of(name, text)) or (not doubtful and is_column(name, text))


def _is_curve(name: str, text: bytes) -> bool:
    """Whether a JSON file is a list of as many rewards as a run has, by its name."""
    found = list_in(name, text) if is_of_rewards(stem_of(name)) else None
    return found is not None and len(found.values) >= FEWEST_OF_A_RUN


def is_log_document(text: bytes, doubtful: bool = False, name: str = "") -> bool:
    """Whether a JSON file without a list of rows is a log nevertheless: columns of numbers, or consecutive objects."""
    if runs := document_runs(text, name):
        return any(_are_counted(one.rows, doubtful) for one in runs)
    try:
        rows = list(islice(document_rows(text_of(text).lstrip("\ufeff")), 40))
    except (ValueError, RecursionError):  # not JSON: whether it looks like a log is judged by its words
        return False
    return len(rows) > 2 and _are_log_rows(rows, doubtful) and any(_names_a_metric(row) for row in rows)


def _are_counted(rows: Sequence[Mapping[str, Any]], doubtful: bool) -> bool:
    """Whether rows under a key of a document are log rows: they count steps, or are numbers without texts and name
    metrics."""
    ends = [dict(row) for row in (*rows[:20], *rows[-20:])]
    counted = [row for row in ends if PROGRESS & row.keys() or not any(isinstance(one, str) for one in row.values())]
    telling = [row for row in counted if any(_METRIC.search(name) for name in row)]
    return len(rows) > 2 and 2 * len(telling) > len(ends) and (not doubtful or _are_log_rows(ends, doubtful))


def _names_a_metric(row: dict[str, Any]) -> bool:
    return any(name in AXES or _METRIC.search(name) for name in flatten(row))


_METRIC = re.compile(r"loss|reward|kl|entropy|grad_?norm|return|clip_?frac|score", re.IGNORECASE)


def _are_log_rows(rows: list[dict[str, Any]], doubtful: bool) -> bool:
    """Whether these are log rows, or end with log rows (settings may come before them)."""
    if not any(looks_like_rows(part) for part in (rows[:20], rows[-20:]) if part) or _are_trials(rows):
        return False
    if not doubtful:
        return True
    telling = [row for row in rows if _names_a_metric(row) and sum(isinstance(one, str) for one in row.values()) < 2]
    return 2 * len(telling) > len(rows)


def _are_trials(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether rows are one tried setting or one solved task each: they count no steps, and each names a different
    setting or task."""
    key = next((one for one in _TRIED if all(one in row for row in rows)), None)
    if key is None or any(not _COUNTS.isdisjoint(row) for row in rows):
        return False
    if key in _OF_TASKS and any(map(is_learning, rows)):
        return False  # the task of a step
    return isinstance(rows[0][key], dict) or len({str(row[key]) for row in rows}) == len(rows)


_COUNTS = PROGRESS - {"steps"}  # beside a task, "steps" are those that it took
#: Names of fields that name the setting or the task of a row.
_OF_TASKS = frozenset({"task_id", "sample_id"})
_TRIED = (
    "params",
    "hyperparameters",
    "hyperparams",
    "hparams",
    "trial",
    "trial_id",
    "config_id",
    "task_id",
    "sample_id",
)


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
        return _are_log_rows([row for line in lines[:2000] if (row := row_in(line)) is not None], doubtful)
    if kind == "csv":
        lines = without_comments(lines)
        if not lines:
            return False
        header = lines[0] = in_english(lines[0])
        names = {name.strip(' "').rpartition(" - ")[2] for name in re.split(r"[,\t;|]", header)}
        if len(names) < 2 or header.lower().startswith("name") or is_search(lines[:-1]):
            return False
        metrics = sum(bool(_METRIC.search(name)) for name in names)
        return (
            bool(names & _STEPS)
            or names >= EPISODE
            or ((metrics > 1 or _is_indexed(lines, metrics) or counts_rewards(lines)) and is_table(text))
        )
    printed = Printed()
    found = (row for line in lines for row in printed.rows(line) if not row.is_listed)
    return _are_printed(found) or any(True for _ in printed.end())


def _is_indexed(lines: Sequence[str], metrics: int) -> bool:
    """Whether a table has only numbers after the index that pandas writes, and half of its columns are metrics, not
    counting settings of the training: any data set may have an index."""
    cells = [[cell.strip(' "') for cell in line.split(",")] for line in lines[:4]]
    if len(cells) < 2 or cells[0][0] or 2 * metrics < sum(not names_setting(head) for head in cells[0][1:]):
        return False
    return all(number(cell) is not None for line in cells[1:] for cell in line)


def _are_printed(rows: Iterable[PrintedRow]) -> bool:
    """Whether there is a row of several numbers, more warnings than a text would quote, or as many rewards alone on
    their lines as a training prints."""
    warnings = rewards = 0
    for row in rows:
        warnings += row.form == "warning"
        rewards += len(row) == 1 and any(is_log_name(name) and PAID.search(name) is not None for name in row)
        if warnings >= FEWEST_WARNINGS or rewards >= FEWEST_REWARDS or (len(row) > 1 and row.form != "warning"):
            return True
    return False


_STEPS = {*PROGRESS, "Wall time", "value"}
