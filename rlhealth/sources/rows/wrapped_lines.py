"""Console lines that a platform stores as JSON, one record per line: Docker's json-file, Kaggle's logs, JSON loggers.
The printed text is extracted from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from rlhealth.sources.base.spelling import CLOCKS

#: Keys of the printed text, the most reliable first.
TEXTS = ("data", "log", "message", "msg", "textPayload", "line")
#: Numbers of a record that are about the logging.
_COUNTS = frozenset(
    {*CLOCKS, "ts", "pid", "process", "thread", "lineno", "levelno", "level", "msecs", "created", "seq"}
)
_STREAMS = frozenset({"stdout", "stderr"})
LOOKED_AT = 5  # lines that show whether a log is wrapped


def is_wrapped(head: str) -> bool:
    """Whether the first lines of a file are records of printed text."""
    lines = [line for line in head.split("\n")[: LOOKED_AT + 1] if line.strip(" \r[],")]
    records = [_record(line.encode()) for line in lines[:LOOKED_AT]]
    return len(records) > 1 and all(_text(record) is not None for record in records[:-1])


class Unwrapping:
    """Extracts the printed text from records, block by block; an incomplete line waits for its end."""

    def __init__(self) -> None:
        self._rest = b""

    def text(self, block: bytes) -> bytes:
        """The complete printed lines, up to the end of these complete records."""
        found = [self._rest]
        for line in block.split(b"\n"):
            record = _record(line)
            text = _text(record)
            if text is not None and record is not None:
                is_piece = _STREAMS & {record.get("stream_name"), record.get("stream")}
                found.append(text.encode() if is_piece or text.endswith("\n") else text.encode() + b"\n")
        whole, feed, self._rest = b"".join(found).rpartition(b"\n")
        return whole + feed


def _record(line: bytes) -> Mapping[str, Any] | None:
    try:
        found = orjson.loads(line.strip(b" \t\r[],"))
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _text(record: Mapping[str, Any] | None) -> str | None:
    """The printed text of a record; None if there is none, or if the record has numbers besides."""
    if record is None or any(type(one) in (int, float) and name not in _COUNTS for name, one in record.items()):
        return None
    return next((one for name in TEXTS if isinstance(one := record.get(name), str)), None)
