"""What a server reports about a run's history before its rows are requested: keys, length, and so the page size."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

#: Rows of a page, and values in it: wandb serves 1,000 rows by default; of wide rows fewer keep the memory small.
ROWS_A_PAGE = 1000
VALUES_A_PAGE = 100_000
#: The most pages of one scan, so that a scan over steps without rows ends.
MOST_PAGES = 50_000


class HistoryInfo(NamedTuple):
    """What the server reports about a history.

    Attributes:
        keys: how often each key was logged; 0 if the server does not say.
        last: the last `_step`; -1 if it does not say.
        rows: how many there are; 0 if it does not say.
    """

    keys: dict[str, int]
    last: int
    rows: int

    @property
    def page_size(self) -> int:
        """How many steps a page spans; see `page_size`."""
        return page_size(len(self.keys), self.last, self.rows)


def history_info(hosted: Any) -> HistoryInfo:
    """What the server reported, from the SDK's object of a run."""
    keys, last = keys_of(hosted)
    rows = getattr(hosted, "historyLineCount", None)
    return HistoryInfo(keys, last, rows if isinstance(rows, int) else 0)


def keys_of(hosted: Any) -> tuple[dict[str, int], int]:
    """How often the run logged each of its keys (0 if the server does not say), and its last `_step` (-1 if it
    does not say).
    """
    logged = getattr(hosted, "historyKeys", None)
    if not isinstance(logged, Mapping):
        return {}, -1
    last, keys = logged.get("lastStep"), logged.get("keys")
    return {str(key): _count(value) for key, value in keys.items()} if isinstance(
        keys, Mapping
    ) else {}, last if isinstance(last, int) else -1


def _count(entry: object) -> int:
    types = entry.get("typeCounts") if isinstance(entry, Mapping) else None
    counts = [one.get("count") for one in types if isinstance(one, Mapping)] if isinstance(types, list) else []
    return sum(count for count in counts if isinstance(count, int))


def page_size(keys: int, last: int, counted: int) -> int:
    """How many steps a page spans, so that it holds about `ROWS_A_PAGE` rows even where steps are skipped, and fewer
    where rows are wide.
    """
    rows = min(ROWS_A_PAGE, max(20, VALUES_A_PAGE // max(keys, 1)))
    spanned = rows * max(1, math.ceil((last + 1) / counted)) if counted > 0 else rows
    return max(spanned, math.ceil((last + 1) / MOST_PAGES))
