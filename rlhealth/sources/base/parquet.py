"""Parquet: whether it can be read here, and the values of its columns as Python values."""

from __future__ import annotations

from typing import Any


def lacking(install: str) -> tuple[str, str] | None:
    """Why Parquet cannot be read here, and what to do; None where it can.

    Args:
        install: the command that installs what is missing.
    """
    try:
        import pyarrow.parquet  # noqa: F401 (late: only where there is Parquet)
    except ModuleNotFoundError as error:
        if (error.name or "pyarrow").partition(".")[0] == "pyarrow":
            return "Parquet needs pyarrow, which is not installed", install
        return _unfit(error)
    except ImportError as error:  # as the newest ones say of an older numpy
        return _unfit(error)
    return None


def _unfit(error: ImportError) -> tuple[str, str]:
    said = str(error).partition("\n")[0][:200]
    return f"Parquet needs pyarrow, which cannot be imported: {said}", "pip install --upgrade pyarrow numpy"


def plain(cell: Any) -> Any:
    """The value of a pyarrow scalar. Text with invalid UTF-8 is decoded as far as possible. None if Python has no such
    value, such as a date in the year 100,000 or a time zone that does not exist."""
    try:
        return cell.as_py()
    except UnicodeDecodeError:
        raw = cell.as_buffer() if hasattr(cell, "as_buffer") else None
        return raw.to_pybytes().decode("utf-8", "replace") if raw is not None else None
    except Exception:  # each type of pyarrow's raises exceptions of its own: OverflowError, KeyError, ArrowInvalid …
        return None
