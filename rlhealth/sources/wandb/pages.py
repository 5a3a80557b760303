"""Pages of a run's history as the SDK scans it: rows by their `_step`, none lost where the scan breaks off."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from typing import Any

Row = dict[str, Any]


class Pages:
    """The rows of a scan in lists of those within `size` steps; what came before a failure is handed out before it."""

    def __init__(self, rows: Iterator[Row], first: int, size: int) -> None:
        self._rows, self._first, self._size = rows, first, size
        self._held: list[Row] = []
        self._failure: Exception | None = None

    def following(self) -> list[Row]:
        """The next page; empty after the last one."""
        if self._failure is not None:
            raise self._failure
        page, self._held = self._held, []
        try:
            while (row := next(self._rows, None)) is not None:  # a `for` would have the SDK begin again
                if page and self._number(row) != self._number(page[0]):
                    self._held = [row]
                    break
                page.append(row)
        except Exception as error:
            self._failure = error
            if not page:
                raise
        return page

    def _number(self, row: Row) -> int:
        return (step_of(row) - self._first) // self._size


def scan(hosted: Any, first: int, size: int, keys: Sequence[str] | None, fresh: bool) -> Any:
    """The SDK's scan of a run's whole history (never the sampled one) from `_step` `first` on."""
    given: dict[str, Any] = {"page_size": size, "min_step": first}
    if keys:
        given["keys"] = list(keys)
    if "use_cache" in inspect.signature(hosted.scan_history).parameters:  # not in versions that read no exported files
        given["use_cache"] = not fresh
    return iter(hosted.scan_history(**given))


def step_of(row: Row) -> int:
    """wandb's own count of the row."""
    found = row.get("_step")
    return int(found) if isinstance(found, int | float) else 0
