"""Discovery, again and again: runs that are there when a watch begins, and those that appear later."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from rlhealth.errors import RlhealthError, Unavailable
from rlhealth.run import UnreadFile
from rlhealth.sources.base.reader import Reader
from rlhealth.sources.base.walk import walk
from rlhealth.sources.discovery.find import find_readers
from rlhealth.sources.discovery.registry import is_online
from rlhealth.sources.wandb.address import parse

QUICK = 0.05  # seconds for a walk through a folder; one that takes longer …
RARER = 50  # … is done so many times its own cost apart
SELDOM = 8  # looks between two questions to a place that holds several runs


class Discovery:
    """The runs at some places. Folders are walked for new files at every look, and opened only where there are any.

    Attributes:
        waiting: place -> why no run was found there yet.
        left_out: place -> files there that look like logs and are not read.
    """

    def __init__(self, places: Sequence[str], source: str | None = None) -> None:
        self.places = list(places)
        self.source = source
        self.waiting: dict[str, RlhealthError] = {}
        self.left_out: dict[str, list[UnreadFile]] = {}
        self._files: dict[str, frozenset[Path]] = {}
        self._found: set[str] = set()
        self._grows: set[str] = set()
        self._looks = 0
        self._rests: dict[str, float] = {}

    def look(self) -> dict[str, list[Reader]]:
        """Readers of all runs at each place where something changed since the last look; an address is tried until it
        responds.

        Raises:
            RlhealthError: for a place where no run can appear.
        """
        found: dict[str, list[Reader]] = {}
        self._looks += 1
        for place in self.places:
            if self._is_settled(place):
                continue
            try:
                self.left_out[place] = []
                readers = find_readers(place, source=self.source, left=self.left_out[place])
            except RlhealthError as error:
                if not is_worth_waiting_for(place, error):
                    raise
                self.waiting[place] = error
                continue
            self.waiting.pop(place, None)
            self._found.add(place)
            if _may_hold_more(place, readers):
                self._grows.add(place)
            found[place] = readers
        return found

    def _is_settled(self, place: str) -> bool:
        """Whether nothing new can be found there: it was found and is one thing, or no file appeared.

        A project on a server gets new runs without a new file, and a file may become a log: both are checked at every
        few looks.
        """
        if place in self._grows and place in self._found and self._looks % SELDOM == 0:
            return False
        if "://" in place or place == "-" or not Path(place).expanduser().is_dir():
            return place in self._found
        if time.perf_counter() < self._rests.get(place, 0.0):
            return place in self._found
        begun = time.perf_counter()
        folder = Path(os.path.abspath(Path(place).expanduser()))  # noqa: PTH100 (links stay as they are named)
        walked = walk(folder)
        files = frozenset(path for paths in (*walked.files.values(), walked.others) for path in paths)
        cost = time.perf_counter() - begun
        if cost > QUICK:  # a folder of a million files is not walked at every look
            self._rests[place] = begun + cost * RARER
        settled = self._files.get(place) == files
        self._files[place] = files
        return settled and place in self._found


def is_worth_waiting_for(place: str, error: RlhealthError) -> bool:
    """Whether it makes sense to wait for a run there: files appear and networks come back, but a wrong address stays
    wrong, and so does a link that points to itself.
    """
    if isinstance(error, Unavailable):
        return True
    return place.startswith("trackio://") or not ("://" in place or place == "-" or _is_loop(place))


def _is_loop(place: str) -> bool:
    """Whether the links of a path form a loop."""
    try:
        os.stat(os.path.expanduser(place))  # noqa: PTH111, PTH116 (pathlib hides which error it was)
    except OSError as error:
        return error.errno == errno.ELOOP
    except ValueError:  # a NUL in the name
        return False
    return False


def _may_hold_more(place: str, readers: Sequence[Reader]) -> bool:
    """Whether new runs may come to a place without a new file. Runs that begin in a followed file or database are
    reported by its own readers.
    """
    if is_online(place):
        return parse(place).run is None
    if place.startswith("trackio://"):
        return False
    return len(readers) > 1 if "://" in place else Path(place).expanduser().is_dir()


def appeared(reader: Reader) -> list[Reader]:
    """Readers for the runs in its file or database that have no reader yet."""
    offered: Callable[[], list[Reader]] | None = getattr(getattr(reader, "main", reader), "appeared", None)
    return offered() if offered is not None else []


def covered(reader: Reader) -> frozenset[tuple[str, str]]:
    """The files or the address that a reader reads, each with which of its runs ("": there is one): two readers that
    share one are of the same run.
    """
    place = reader.run.place
    found = {(place.file, place.part)}
    main: Any = getattr(reader, "main", reader)
    launches = getattr(main, "_launches", None)
    for paths in (
        getattr(main, "paths", ()),
        getattr(launches, "files", ()),
        [path for path, _ in getattr(launches, "parts", ())],
    ):
        found |= {(str(path), "") for path in paths}
    if place.kind == "tensorboard":
        found = {one for one in found if not Path(one[0]).is_dir()} or found
    if place.kind == "trackio":  # one database holds many runs
        found = {(place.file, getattr(main, "name", reader.run.name))}
    if place.kind == "trainer_state":
        found.add((str(output_of(Path(place.file))), ""))
    return frozenset(found)


def output_of(state: Path) -> Path:
    """The output folder of a trainer's state, which moves from checkpoint to checkpoint."""
    return state.parent.parent if state.parent.name.startswith("checkpoint-") else state.parent


def elsewhere(reader: Reader) -> frozenset[tuple[str, str]]:
    """Where the same run was written too."""
    others: Iterable[Reader] = getattr(reader, "others", ())
    return frozenset(place for one in others for place in covered(one))
