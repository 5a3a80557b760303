"""Runs in an object store (s3://, gs://, hf:// and a few more that fsspec knows): what is new of each log is copied into a private folder, and read there."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

from rlhealth.errors import Blind, RlhealthError
from rlhealth.run import Place, Run
from rlhealth.sources.reader import Reader
from rlhealth.sources.walk import PASSED_BY, kind_of

STORES = ("file", "s3", "s3a", "gs", "gcs", "hf", "az", "abfs", "abfss", "memory")  # file and memory are fsspec's own, for trying things out
INSTALL = "pip install 'rlhealth[remote]'"
FRESH = 1.0  # seconds for which a listing serves: the readers of many runs poll one after the other
PIECE = 16 << 20  # bytes asked for at once of one object …
TOGETHER = 64 << 20  # … and of several
OVERLAP = 4096  # bytes before the new ones that are asked for again: where they differ, the object was not grown but replaced
GROWING = ("tensorboard", "wandb", "jsonl", "csv", "console")  # logs to which a writer appends; others are written anew each time
SETTINGS = (".yaml", ".yml")
LARGEST_SETTINGS = 1 << 20
NO_LOGS = frozenset({"tokenizer.json", "vocab.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"})  # beside every checkpoint

_mirrors: dict[str, Mirror] = {}


def find(where: str, **options: Any) -> list[Reader]:
    """A reader for every run below an address of an object store; `options` are those of `find_readers`.

    Raises:
        RlhealthError: where the packages for that kind of store are not installed, or no run is found.
        Blind: where the store cannot be asked now.
    """
    from rlhealth.sources import find_readers

    mirror = _mirrors.get(where) or Mirror(where)
    mirror.renew()
    _mirrors[where] = mirror
    if not mirror.kept:
        hint = "check the spelling; a folder there needs logs in it or below: event files, *.wandb, trainer_state.json, *.jsonl, *.csv"
        raise RlhealthError(f"{where}: no logs found in it or below", hint=hint, location=where)
    try:
        return [Remote(one, mirror) for one in find_readers(str(mirror.local), **options)]
    except RlhealthError as error:
        raise mirror.translated(error) from None


class Mirror:
    """The logs below one address, copied as far as they have come.

    Attributes:
        local: the folder, or the one file, that stands for the address.
        kept: object -> what the store said of it when it was copied.
        taken: bytes that were asked for so far.
    """

    def __init__(self, where: str) -> None:
        self.where = where.rstrip("/")
        self.store, self.path = _store(self.where)
        self._folder = tempfile.TemporaryDirectory(prefix="rlhealth-", ignore_cleanup_errors=True)
        self.root = Path(self._folder.name) / (PurePosixPath(self.path).name or "runs")
        self.local = self.root
        self.kept: dict[str, tuple[int, str]] = {}
        self.taken = 0
        self._renewed = -FRESH

    def renew(self) -> None:
        """Copies what is new; nothing where that was done a moment ago.

        Raises:
            RlhealthError: where there is no such place, or no permission.
            Blind: where the store cannot be asked now.
        """
        if time.monotonic() - self._renewed < FRESH:
            return
        try:
            self.store.invalidate_cache()
            listed = self.store.find(self.path, detail=True)
            self._copy([(name, found) for name, found in sorted(listed.items()) if self._is_log(name, int(found.get("size") or 0))])
        except FileNotFoundError:
            raise RlhealthError(f"{self.where}: there is nothing", hint="check the spelling, and the bucket", location=self.where) from None
        except PermissionError as error:
            hint = "the store takes your usual credentials: AWS_PROFILE or AWS_ACCESS_KEY_ID, gcloud auth, huggingface-cli login"
            raise RlhealthError(f"{self.where}: no permission: {error}", hint=hint, location=self.where) from None
        except _failures() as error:
            said = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise Blind(f"{self.where}: cannot be read now: {said}", hint="check the network and the credentials", location=self.where, reason=said) from None
        self._renewed = time.monotonic()

    def translated(self, error: RlhealthError) -> RlhealthError:
        """An error with the address in the place of the copy."""
        kind = Blind if isinstance(error, Blind) else RlhealthError
        return kind(self.address(error.message), hint=self.address(error.hint), location=self.address(error.location))

    def address(self, text: str) -> str:
        """A text with the address in the place of the copy."""
        return text.replace(str(self.local), self.where)

    def _is_log(self, name: str, size: int) -> bool:
        inside = PurePosixPath(name)
        if ".." in inside.parts or inside.name in NO_LOGS or PASSED_BY & set(inside.parts):
            return False
        return kind_of(inside.name) is not None or (inside.suffix in SETTINGS and size <= LARGEST_SETTINGS)

    def _copy(self, listed: Iterable[tuple[str, dict[str, Any]]]) -> None:
        wanted, changed = [], []
        for name, found in listed:
            size, mark = int(found.get("size") or 0), str(found.get("ETag") or found.get("etag") or _modified(found))
            if self.kept.get(name) == (size, mark):
                continue
            path = self._place(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            before = path.stat().st_size if path.exists() else 0
            start = before if size > before and kind_of(path.name) in GROWING else 0
            wanted.append((name, path, max(0, start - OVERLAP), start, size))
            changed.append((name, path, (size, mark), _modified(found)))
        self._append(wanted)
        for name, path, said, modified in changed:
            if modified:
                os.utime(path, (modified, modified))
            self.kept[name] = said

    def _append(self, wanted: list[tuple[str, Path, int, int, int]]) -> None:
        """Fetches from each object what lies behind its copy; all of it where what lies before is no longer the same."""
        again = []
        heads = self._fetch([(name, first, min(end, start + PIECE)) for name, _, first, start, end in wanted])
        for (name, path, first, start, end), new in zip(wanted, heads, strict=True):
            if start and not _ends_with(path, new[: start - first]):
                again.append((name, path, 0, 0, end))
                continue
            _write(path, new[start - first :], anew=not start)
            for at in range(start + PIECE, end, PIECE):
                (more,) = self._fetch([(name, at, min(end, at + PIECE))])
                _write(path, more, anew=False)
        if again:
            self._append(again)

    def _fetch(self, ranges: list[tuple[str, int, int]]) -> Iterator[bytes]:
        """The bytes of each (object, start, end), several at once."""
        while ranges:
            count, room = 0, TOGETHER
            while count < len(ranges) and (not count or room >= ranges[count][2] - ranges[count][1]):
                room -= ranges[count][2] - ranges[count][1]
                count += 1
            part, ranges = ranges[:count], ranges[count:]
            if some := [one for one in part if one[2] > one[1]]:
                found = iter(self.store.cat_ranges(*map(list, zip(*some, strict=True)), on_error="raise"))
            for _, start, end in part:
                new = bytes(next(found)) if end > start else b""
                self.taken += len(new)
                yield new

    def _place(self, name: str) -> Path:
        """Where an object is copied to; an address that is one object stands for that file."""
        inside = name.removeprefix(self.path).lstrip("/")
        if inside:
            return self.root / inside
        self.local = self.root.parent / (PurePosixPath(name).parent.name or "runs") / PurePosixPath(name).name
        return self.local


class Remote:
    """A run in an object store: each poll first fetches what is new."""

    def __init__(self, reader: Reader, mirror: Mirror) -> None:
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
        run.place = Place(run.place.kind, self.mirror.address(run.place.location))
        return run

    @run.setter
    def run(self, run: Run) -> None:
        self.reader.run = run

    def poll(self) -> bool:
        """Reads what is new; True where anything was. Raises as `Mirror.renew` and the reader of the files do."""
        self.mirror.renew()
        try:
            return self.reader.poll()
        except RlhealthError as error:
            raise self.mirror.translated(error) from None

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise TypeError("the copy of a store belongs to one process")


def _store(where: str) -> tuple[Any, str]:
    kind = where.partition("://")[0]
    if kind not in STORES:
        hint = "s3://bucket/runs, gs://bucket/runs, hf://datasets/user/name, wandb://entity/project/run or trackio://project/run"
        raise RlhealthError(f"{where}: this kind of address is not read", hint=hint, location=where)
    try:
        import fsspec
    except ImportError:
        raise RlhealthError(f"{where}: object stores are read with fsspec, which is not installed here", hint=INSTALL, location=where) from None
    try:
        store, path = fsspec.core.url_to_fs(where)
        return store, str(path).rstrip("/")
    except (ImportError, ValueError) as error:
        raise RlhealthError(f"{where}: {kind}:// cannot be read here: {error}", hint=INSTALL, location=where) from None


def _failures() -> tuple[type[Exception], ...]:
    """What a store's own library raises where it cannot reach its server."""
    usual = (OSError, ValueError, RuntimeError)
    try:
        from botocore.exceptions import BotoCoreError, ClientError
    except ImportError:
        return usual
    return (*usual, BotoCoreError, ClientError)


def _modified(found: dict[str, Any]) -> float:
    """When an object was written, seconds since 1970; 0 where the store does not tell."""
    said = next((found[key] for key in ("LastModified", "mtime", "updated", "last_modified") if found.get(key)), None)
    if isinstance(said, str):
        try:
            said = datetime.fromisoformat(said)
        except ValueError:
            return 0.0
    return said.timestamp() if isinstance(said, datetime) else float(said or 0)


def _ends_with(path: Path, end: bytes) -> bool:
    with path.open("rb") as file:
        file.seek(-len(end), os.SEEK_END)
        return file.read() == end


def _write(path: Path, new: bytes, *, anew: bool) -> None:
    if anew:  # as a file of its own, so that a reader sees that the old one was replaced
        fresh = path.with_name(f".{path.name}.new")
        fresh.write_bytes(new)
        fresh.replace(path)
        return
    with path.open("ab") as file:
        file.write(new)
