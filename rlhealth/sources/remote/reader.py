"""Runs in an object store (s3://, gs://, hf:// and a few more that fsspec knows): what is new of each log is
mirrored, and read in the mirror.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rlhealth.errors import RlhealthError
from rlhealth.run import Run, UnreadFile
from rlhealth.sources.base.reader import Reader
from rlhealth.sources.remote.mirror import Mirror, MirrorCopy

_mirrors: dict[str, Mirror] = {}


def find(
    where: str, find_readers: Callable[..., list[Reader]], *, left: list[UnreadFile] | None = None, **options: Any
) -> list[Reader]:
    """A reader for every run below an address of an object store; `find_readers` finds them in the mirror, with
    `options`.

    Args:
        left: takes the objects that look like logs and are not read, each with its reason.

    Raises:
        RlhealthError: if the packages for that kind of store are not installed, or no run is found.
        Unavailable: if the store cannot be asked now.
    """
    mirror = _mirrors.get(where) or Mirror(where)
    mirror.renew()
    _mirrors[where] = mirror
    if not mirror.kept:
        hint = (
            "check the spelling; a folder there needs logs in it or below: event files, "
            "*.wandb, trainer_state.json, *.jsonl, *.csv"
        )
        raise RlhealthError(f"{where}: no logs found in it or below", hint=hint, location=where)
    unread: list[UnreadFile] = []
    try:
        found: list[Reader] = [Remote(one, mirror) for one in find_readers(str(mirror.local), left=unread, **options)]
        if left is not None:
            left += [replace(one, location=mirror.address(one.location)) for one in unread] + mirror.left
        return found
    except RlhealthError as error:
        raise mirror.translated(error) from None


class Remote:
    """A run in an object store: each poll first fetches what is new. Another process of this machine reads what was
    fetched.
    """

    def __init__(self, reader: Reader, mirror: MirrorCopy) -> None:
        self.reader = reader
        self.mirror = mirror

    def __getattr__(self, name: str) -> Any:
        if name in ("reader", "mirror"):
            raise AttributeError(name)
        return getattr(self.reader, name)

    @property
    def run(self) -> Run:
        """The run, at its address in the store."""
        run = self.reader.run
        run.place = replace(run.place, file=self.mirror.address(run.place.file))
        return run

    @run.setter
    def run(self, run: Run) -> None:
        self.reader.run = run

    def poll(self) -> bool:
        """Reads what is new; True if anything was. Raises as `Mirror.renew` and the reader of the files do."""
        self.mirror.renew()
        try:
            return self.reader.poll()
        except RlhealthError as error:
            raise self.mirror.translated(error) from None
