"""Counts in sentences: `1 row says`, `1,204 rows say`."""

from __future__ import annotations


def counted(count: int, one: str, many: str) -> str:
    """A count with its words: `one` if it is 1, otherwise `many`."""
    return f"{count:,} {one if count == 1 else many}"


def out_of_order(count: int) -> str:
    """The note that so many rows were out of order, and how they were used."""
    rows = counted(count, "row", "rows")
    kept = "it is kept at its own step" if count == 1 else "they are kept at their own steps"
    return f"{rows} came out of order: {kept}, and nothing was replaced"
