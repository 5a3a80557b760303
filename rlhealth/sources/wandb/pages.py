"""Pages of a run's history: rows by their `_step`; several pages are requested at once, and none is lost if one
fails."""

from __future__ import annotations

import inspect
import itertools
import json
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

import orjson

from rlhealth.errors import RlhealthError
from rlhealth.sources.wandb.one_host import stopped
from rlhealth.sources.wandb.session import Session
from rlhealth.system.threads import begun

Row = dict[str, Any]
#: Pages of one run requested at once, at first and at most: one more after every second page, so that a short run
#: requests nothing that it does not need.
AHEAD, MOST_AHEAD = 2, 16
#: The query with which the SDK reads rows that were not exported.
_PAGE = """query HistoryPage($entity: String!, $project: String!, $run: String!, $minStep: Int64!, $maxStep: Int64!,
    $pageSize: Int!) { project(name: $project, entityName: $entity) { run(name: $run) {
    history(minStep: $minStep, maxStep: $maxStep, samples: $pageSize) } } }"""


def scanned(
    session: Session, hosted: Any, place: str, *, first: int, size: int, keys: Sequence[str] | None, fresh: bool
) -> Iterator[list[Row]]:
    """History rows from `_step` `first` on, exported files and all, in lists of those that fall within `size` steps:
    the SDK's scan of the whole history, never the sampled one.

    Args:
        keys: only rows that have all of these, and of them only these.
        fresh: asks the server for its exported files again, of which it may have written newer ones.
    """
    before, came = stopped(session.server), False
    if not session.asks_pages:
        try:
            pages = _Pages(session.once(lambda _: _scan(hosted, first, size, keys, fresh), place), first, size)
            while rows := session.once(lambda _: pages.following(), place):
                came = True
                yield rows
            return
        except RlhealthError:  # rows of files on another host, or too large, can be queried instead
            session.asks_pages = stopped(session.server) > before
            if came or not session.asks_pages:
                raise
    last = session.once(lambda _: int(hosted.lastHistoryStep), place)
    for page in asked(session, hosted, place, first=first, last=last, size=size):
        yield page if keys is None else [{key: row[key] for key in keys} for row in page if row.keys() >= set(keys)]


def asked(session: Session, hosted: Any, place: str, *, first: int, last: int, size: int) -> Iterator[list[Row]]:
    """History rows of `_step` `first` to `last` that were not exported, in lists of those that fall within `size`
    steps, in order; several are asked for at once, the first ones already now, and kept as text until it is their turn.
    """
    starts = iter(range(first, last + 1, size))
    ahead: deque[Future[list[str]]] = deque()

    def begin(most: int) -> None:
        for start in itertools.islice(starts, most - len(ahead)):
            ahead.append(begun(partial(_page, session, hosted, place, start, min(start + size - 1, last))))

    def come() -> Iterator[list[Row]]:
        for taken in itertools.count(1):
            if not ahead:
                return
            texts = ahead.popleft().result()
            begin(min(AHEAD + taken // 2, MOST_AHEAD))
            if texts:
                yield _rows(texts)

    begin(AHEAD)
    return come()


def _page(session: Session, hosted: Any, place: str, first: int, last: int) -> list[str]:
    """The rows of `_step` `first` to `last` as JSON; an answer that is too large is asked for in eight parts."""
    size = last - first + 1
    given = {"entity": hosted.entity, "project": hosted.project, "run": hosted.id}
    given |= {"minStep": first, "maxStep": last + 1, "pageSize": size}
    before = stopped(session.server)

    def ask(api: Any) -> list[str]:
        return list(api._service_api.execute_graphql(_PAGE, given, parse=orjson.loads)["project"]["run"]["history"])

    try:
        return session.once(ask, place)
    except RlhealthError:
        if size == 1 or stopped(session.server) == before:
            raise
        part = max(1, size // 8)
        return [
            text
            for start in range(first, last + 1, part)
            for text in _page(session, hosted, place, start, min(start + part - 1, last))
        ]


def _rows(texts: Sequence[str]) -> list[Row]:
    together = f"[{','.join(texts)}]"
    try:
        return list(orjson.loads(together))
    except orjson.JSONDecodeError:  # NaN and Infinity, which Python's own parser takes
        return list(json.loads(together))


def _scan(hosted: Any, first: int, size: int, keys: Sequence[str] | None, fresh: bool) -> Any:
    given: dict[str, Any] = {"page_size": size, "min_step": first}
    if keys:
        given["keys"] = list(keys)
    if "use_cache" in inspect.signature(hosted.scan_history).parameters:  # not in versions that read no exported files
        given["use_cache"] = not fresh
    return iter(hosted.scan_history(**given))


class _Pages:
    """The rows of a scan in lists of those within `size` steps; rows received before a failure are yielded first."""

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
            while (row := next(self._rows, None)) is not None:  # a `for` would make the SDK start again
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


def merged(rows: Iterable[Row]) -> Iterator[Row]:
    """One row for each step of rows ordered by step, without what is null."""
    one: Row | None = None
    for row in rows:
        full = {key: value for key, value in row.items() if value is not None} if None in row.values() else row
        if one is None:
            one = full
        elif step_of(full) == step_of(one):
            one = {**one, **full}
        else:
            yield one
            one = full
    if one is not None:
        yield one


def steps_of(page: Sequence[Row]) -> list[int]:
    """wandb's own count of each row."""
    found: list[Any] = [row.get("_step") for row in page]
    return found if {int}.issuperset(map(type, found)) else list(map(step_of, page))


def step_of(row: Row) -> int:
    """wandb's own count of the row."""
    found = row.get("_step")
    return int(found) if isinstance(found, int | float) else 0
