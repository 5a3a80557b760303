"""Pages of a run's history as the SDK scans it: rows by their `_step`, none lost where the scan breaks off."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

Row = dict[str, Any]
#: The question by which the SDK reads rows that were not exported, and did read all before there were exports.
_PAGE = """query HistoryPage($entity: String!, $project: String!, $run: String!, $minStep: Int64!, $maxStep: Int64!,
    $pageSize: Int!) { project(name: $project, entityName: $entity) { run(name: $run) {
    history(minStep: $minStep, maxStep: $maxStep, samples: $pageSize) } } }"""


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


def can_ask(hosted: Any) -> bool:
    """Whether the SDK can be asked for pages directly; versions that cannot, read no exported files."""
    return hasattr(getattr(hosted, "_service_api", None), "execute_graphql")


def asked(
    hosted: Any, first: int, last: int, size: int, keys: Sequence[str] | None, cut_off: Callable[[], int]
) -> Iterator[Row]:
    """Rows of `_step` `first` to `last`, asked for page by page, without the exported files, which may lie on another
    host.

    Args:
        keys: only rows that have all of these, and of them only these.
        cut_off: counts the answers that were too large until now; such a page is asked for again in smaller ones.
    """
    wanted = {*keys} if keys else None
    while first <= last:
        given = {
            "entity": hosted.entity,
            "project": hosted.project,
            "run": hosted.id,
            "minStep": first,
            "maxStep": min(first + size, last + 1),
            "pageSize": size,
        }
        before = cut_off()
        try:
            answer = hosted._service_api.execute_graphql(_PAGE, given)
        except Exception:
            if size == 1 or cut_off() == before:
                raise
            size = max(1, size // 8)
            continue
        for text in answer["project"]["run"]["history"]:
            row = json.loads(text)
            if wanted is None:
                yield row
            elif wanted <= row.keys():
                yield {key: row[key] for key in wanted}
        first += size


def step_of(row: Row) -> int:
    """wandb's own count of the row."""
    found = row.get("_step")
    return int(found) if isinstance(found, int | float) else 0
