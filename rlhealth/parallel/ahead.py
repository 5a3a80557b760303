"""Runs on a server, whose answers are waited for: several are read at once, each in a thread."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from rlhealth.sources.base.reader import Reader

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")
U = TypeVar("U")


def at_once(reader: Reader) -> int:
    """How many such readers may be polled at the same time: 1 for files, whose reading keeps a processor busy."""
    most: int = getattr(reader, "at_once", 1)
    return most


def ahead(items: Iterable[T], read: Callable[[T], U], most: int) -> Iterator[tuple[int, T, Callable[[], U]]]:
    """Each item as soon as it has been read: its number, and what gives the result of `read`. Up to `most` items are
    read at once, and as many may wait to be taken.
    """
    from concurrent.futures import FIRST_COMPLETED, wait  # late: most runs are on this machine

    from rlhealth.system.threads import begun

    rest = enumerate(items)
    begun_items: dict[Future[U], tuple[int, T]] = {}

    def begin() -> None:
        reading = sum(not one.done() for one in begun_items)
        for number, item in itertools.islice(rest, min(most - reading, 2 * most - len(begun_items))):
            begun_items[begun(partial(read, item))] = number, item

    begin()
    while begun_items:
        done = wait(begun_items, return_when=FIRST_COMPLETED).done
        first = min(done, key=lambda one: begun_items[one][0])
        number, item = begun_items.pop(first)
        begin()  # under way while this one is judged
        yield number, item, first.result


def in_order(found: Iterable[tuple[int, T]]) -> Iterator[T]:
    """What comes with a number, 0, 1, 2, …, in the order of the numbers."""
    waiting: dict[int, T] = {}
    following = 0
    for number, one in found:
        waiting[number] = one
        while following in waiting:
            yield waiting.pop(following)
            following += 1


def in_turn(
    items: Iterable[T], reader_of: Callable[[T], Reader], read: Callable[[T], U]
) -> Iterator[tuple[T, Callable[[], U]]]:
    """Each item in order, with what gives the result of `read`: ahead of its turn where its reader allows that."""
    for most, part in itertools.groupby(items, lambda item: at_once(reader_of(item))):
        if most > 1:
            yield from in_order((number, (item, result)) for number, item, result in ahead(part, read, most))
        else:
            yield from ((item, partial(read, item)) for item in part)
