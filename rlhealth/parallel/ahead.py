"""Runs on a server, whose answers are waited for: several are read at once, each in a thread; they come in order."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait
from functools import partial
from typing import TypeVar

from rlhealth.sources.base.reader import Reader
from rlhealth.system.threads import begun

T = TypeVar("T")
U = TypeVar("U")


def at_once(reader: Reader) -> int:
    """How many such readers may be polled at the same time: 1 for files, whose reading keeps a processor busy."""
    most: int = getattr(reader, "at_once", 1)
    return most


def ahead(items: Iterable[T], read: Callable[[T], U], most: int) -> Iterator[tuple[T, Callable[[], U]]]:
    """Each item in order, with what gives the result of `read`; up to `most` items are read at once, and no more than
    that wait to be taken.
    """
    rest = iter(items)
    waiting: deque[tuple[T, Future[U]]] = deque()
    while True:
        for item in itertools.islice(rest, most - len(waiting)):
            waiting.append((item, begun(partial(read, item))))
        if not waiting:
            return
        item, result = waiting.popleft()
        wait([result])
        for following in itertools.islice(rest, 1):  # under way while this one is judged
            waiting.append((following, begun(partial(read, following))))
        yield item, result.result


def in_turn(
    items: Iterable[T], reader_of: Callable[[T], Reader], read: Callable[[T], U]
) -> Iterator[tuple[T, Callable[[], U]]]:
    """Each item in order, with what gives the result of `read`: ahead of its turn where its reader allows that."""
    for most, part in itertools.groupby(items, lambda item: at_once(reader_of(item))):
        if most > 1:
            yield from ahead(part, read, most)
        else:
            yield from ((item, partial(read, item)) for item in part)
