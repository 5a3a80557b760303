"""A mirror: the logs below one address of an object store, copied into a private folder as far as they have come."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from rlhealth.errors import RlhealthError, Unavailable
from rlhealth.run import UnreadFile
from rlhealth.sources.base.candidates import is_never_a_log
from rlhealth.sources.base.temporary import ANOTHER, temporary_folder
from rlhealth.sources.base.walk import PASSED_BY, kind_of
from rlhealth.sources.remote.listed import may_be_written, modified, size_of
from rlhealth.sources.remote.reach import check_reachable

AZURE = ("az", "abfs", "abfss")
STORES = (
    "file",
    "s3",
    "s3a",
    "gs",
    "gcs",
    "hf",
    *AZURE,
    "memory",
)  # file and memory are fsspec's own, for trying things out
LIBRARIES = ("fsspec", "s3fs", "gcsfs", "huggingface_hub", "adlfs")
INSTALL = "pip install 'rlhealth[remote]'"
FRESH = 1.0  # seconds for which a listing serves: the readers of many runs poll one after another
PIECE = 16 << 20  # bytes asked for at once of one object …
TOGETHER = 64 << 20  # … and of several
OVERLAP = (
    4096  # bytes before the new ones that are asked for again: where they differ, the object was not grown but replaced
)
GROWING = (
    "tensorboard",
    "wandb",
    "jsonl",
    "csv",
    "console",
)  # logs to which a writer appends; others are written anew each time
_NOWHERE = logging.NullHandler()
SETTINGS = (".yaml", ".yml")
LARGEST_SETTINGS = 1 << 20
LARGEST_UNKNOWN = 1 << 20  # bytes of an object whose name is of no kind; larger ones are not fetched
UNKNOWN = "its name is not one of a log, and it is larger than 1 MiB: name the object itself to read it"
NO_FILE = "no file of this machine can have its name, or there is a folder of that name"
NO_LOGS = frozenset(
    {"tokenizer.json", "vocab.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"}
)  # beside every checkpoint


class MirrorCopy:
    """A mirror as other processes of this machine see it: files that stand for an address.

    Attributes:
        where: the address.
        local: the folder, or the one file, that stands for it.
    """

    def __init__(self, where: str, local: Path) -> None:
        self.where = where
        self.local = local

    def renew(self) -> None:
        """Nothing: it is for the process that has the mirror to fetch what is new."""

    def translated(self, error: RlhealthError) -> RlhealthError:
        """An error with the address in the place of the copy."""
        kind = Unavailable if isinstance(error, Unavailable) else RlhealthError
        return kind(self.address(error.message), hint=self.address(error.hint), location=self.address(error.location))

    def address(self, text: str) -> str:
        """A text with the address in the place of the copy."""
        return text.replace(str(self.local), self.where)


class Mirror(MirrorCopy):
    """The logs below one address, copied as far as they have come.

    Attributes:
        kept: object -> what the store said of it when it was copied.
        left: objects that may be logs and are not copied.
        taken: bytes that were asked for so far.
    """

    def __init__(self, where: str) -> None:
        where = where.rstrip("/")
        self.store, self.path = _store(where)
        self._folder = temporary_folder(where)
        self.root = Path(self._folder.name) / (PurePosixPath(self.path).name or "runs")
        super().__init__(where, self.root)
        self.kept: dict[str, tuple[int, str]] = {}
        self.left: list[UnreadFile] = []
        self.taken = 0
        self._mlflow: frozenset[PurePosixPath] = frozenset()  # folders that MLflow keeps a run in
        self._renewed = -FRESH

    def __reduce__(self) -> tuple[Any, ...]:
        return MirrorCopy, (self.where, self.local)

    def renew(self) -> None:
        """Copies what is new; nothing if that was done a moment ago.

        Raises:
            RlhealthError: if there is no such place, no permission, or no room for the copy.
            Unavailable: if the store cannot be asked now.
        """
        if time.monotonic() - self._renewed < FRESH:
            return
        check_reachable(self.where)
        with self._asking():
            self.store.invalidate_cache()
            listed = self.store.find(self.path, detail=True)
        wanted = []
        self.left = []
        self._mlflow = frozenset(one.parent for one in map(PurePosixPath, listed) if one.name == "meta.yaml")
        for name, found in sorted(listed.items()):
            size = size_of(found)
            if name == self.path or self._is_log(name, size):
                wanted.append((name, found))
            elif self._may_be_log(name) and size:
                if size <= LARGEST_UNKNOWN:
                    wanted.append((name, found))
                else:
                    self.left.append(UnreadFile(self.where + name.removeprefix(self.path), UNKNOWN))
        try:
            self._copy(wanted)
        except OSError as error:
            raise RlhealthError(
                f"{self.where}: cannot be copied: {error.strerror or error}", hint=ANOTHER, location=self.where
            ) from None
        self._renewed = time.monotonic()

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """What the store's library says while it is asked, as an error of this address; each has exceptions of its
        own.
        """
        try:
            yield
        except FileNotFoundError:
            raise RlhealthError(
                f"{self.where}: there is nothing", hint="check the spelling, and the bucket", location=self.where
            ) from None
        except PermissionError as error:
            hint = (
                "the store takes your usual credentials: AWS_PROFILE or AWS_ACCESS_KEY_ID, "
                "gcloud auth, huggingface-cli login"
            )
            raise RlhealthError(f"{self.where}: no permission: {error}", hint=hint, location=self.where) from None
        except Exception as error:
            said = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise Unavailable(
                f"{self.where}: cannot be read now: {said}",
                hint="check the network and the credentials",
                location=self.where,
                reason=said,
            ) from None

    def _is_log(self, name: str, size: int) -> bool:
        inside = PurePosixPath(name)
        if self._is_passed_by(inside):
            return False
        if self._is_metric(inside):
            return True
        return kind_of(inside.name) is not None or (inside.suffix in SETTINGS and size <= LARGEST_SETTINGS)

    def _is_metric(self, inside: PurePosixPath) -> bool:
        """Whether an object is a metric of a run of MLflow, which is called as the metric is."""
        return any(one.name == "metrics" and one.parent in self._mlflow for one in inside.parents)

    def _may_be_log(self, name: str) -> bool:
        """Whether an object may be a log though its name is of no kind."""
        inside = PurePosixPath(name)
        known = kind_of(inside.name) is not None or inside.suffix in SETTINGS
        return not known and not self._is_passed_by(inside) and not is_never_a_log(inside.name)

    def _is_passed_by(self, inside: PurePosixPath) -> bool:
        return ".." in inside.parts or inside.name in NO_LOGS or bool(PASSED_BY & set(inside.parts))

    def _copy(self, listed: Iterable[tuple[str, dict[str, Any]]]) -> None:
        wanted, changed = [], []
        placed = [(name, self._place(name), found) for name, found in listed]
        folders = {self.root, *(folder for _, path, _ in placed for folder in path.parents)}
        for name, path, found in placed:
            size, mark = size_of(found), str(found.get("ETag") or found.get("etag") or modified(found))
            if self.kept.get(name) == (size, mark):
                continue
            if path in folders or not may_be_written(path):
                self.left.append(UnreadFile(self.where + name.removeprefix(self.path), NO_FILE))
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            before = path.stat().st_size if path.exists() else 0
            grows = kind_of(path.name) in GROWING or self._is_metric(PurePosixPath(name))
            start = before if size > before and grows else 0
            wanted.append((name, path, max(0, start - OVERLAP), start, size))
            changed.append((name, path, mark, modified(found)))
        self._append(wanted)
        for name, path, mark, moment in changed:
            if moment:
                os.utime(path, (moment, moment))
            self.kept[name] = path.stat().st_size, mark  # fewer bytes than were listed: the rest is asked for again

    def _append(self, wanted: list[tuple[str, Path, int, int, int]]) -> None:
        """Fetches from each object what lies behind its copy; all of it where what lies before is no longer the
        same.
        """
        again = []
        heads = self._fetch([(name, first, min(end, start + PIECE)) for name, _, first, start, end in wanted])
        for (name, path, first, start, end), new in zip(wanted, heads, strict=True):
            if start and not _ends_with(path, new[: start - first]):
                again.append((name, path, 0, 0, end))
                continue
            _write(path, new[start - first :], anew=not start)
            at, got = start + PIECE, len(new) - (start - first)
            while at < end and got == PIECE:  # a shorter piece is the last one, whatever the list says
                (more,) = self._fetch([(name, at, min(end, at + PIECE))])
                _write(path, more, anew=False)
                at, got = at + PIECE, len(more)
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
                with self._asking():
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


def _store(where: str) -> tuple[Any, str]:
    kind = where.partition("://")[0]
    if kind not in STORES:
        hint = (
            "s3://bucket/runs, gs://bucket/runs, hf://datasets/user/name, "
            "wandb://entity/project/run or trackio://project/run"
        )
        raise RlhealthError(f"{where}: this kind of address is not read", hint=hint, location=where)
    try:
        import fsspec
    except ImportError:
        raise RlhealthError(
            f"{where}: object stores are read with fsspec, which is not installed here", hint=INSTALL, location=where
        ) from None
    for library in LIBRARIES:
        logging.getLogger(library).addHandler(_NOWHERE)  # else Python prints what they log if no one has set up logging
    check_reachable(where)  # before the library looks for credentials: for Google's it asks a machine of Google's
    try:
        store, path = fsspec.core.url_to_fs(where)
        return store, str(path).rstrip("/")
    except (ImportError, ValueError) as error:
        hint = "pip install adlfs" if kind in AZURE else INSTALL
        raise RlhealthError(f"{where}: {kind}:// cannot be read here: {error}", hint=hint, location=where) from None


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
