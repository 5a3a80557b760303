"""Values of Parquet's columns as Python's own."""

from __future__ import annotations

from typing import Any


def plain(cell: Any) -> Any:
    """The value of one of pyarrow's scalars: text that is no UTF-8 as far as it is; None for what Python has no value
    for, as a date of the year 100,000 or a time zone that does not exist."""
    try:
        return cell.as_py()
    except UnicodeDecodeError:
        raw = cell.as_buffer() if hasattr(cell, "as_buffer") else None
        return raw.to_pybytes().decode("utf-8", "replace") if raw is not None else None
    except Exception:  # each type of pyarrow's raises exceptions of its own: OverflowError, KeyError, ArrowInvalid …
        return None
