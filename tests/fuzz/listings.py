"""Listings of an object store for the fuzzer: any names, sizes and times, and objects that change while they are read."""

from __future__ import annotations

import contextlib
import json
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from rlhealth.errors import RlhealthError
from rlhealth.sources import find_readers
from rlhealth.sources.remote import reader as remote
from rlhealth.sources.remote.mirror import Mirror

WHERE = "memory://bucket/runs"
ROWS = b"".join(b'{"step": %d, "reward": 0.5, "kl": 0.1}\n' % step for step in range(1, 9))


@cache
def _store() -> type:
    """The class of a store whose server lists what it likes; fsspec is an extra."""
    from fsspec.implementations.memory import MemoryFileSystem

    class Store(MemoryFileSystem):
        """A store whose server lists what it likes.

        Attributes:
            listed: object -> what the server says of it.
            held: object -> its bytes; the last ones, for any other.
        """

        cachable = False

        def __init__(self) -> None:
            super().__init__()
            self.listed: dict[str, dict[str, Any]] = {}
            self.held: dict[str, bytes] = {}

        def find(self, path: str, **_: Any) -> dict[str, dict[str, Any]]:
            """The listing."""
            return self.listed

        def cat_ranges(self, paths: Any, starts: Any, ends: Any, **_: Any) -> list[bytes]:
            """The bytes that are there, which may be fewer than were asked for."""
            return [self.held.get(one, ROWS)[start:end] for one, start, end in zip(paths, starts, ends, strict=True)]

    return Store


def mirrored(raw: bytes, path: Path) -> bool:
    """Two listings, one after the other: each object lies in the mirror's own folder, and what can be read is read."""
    try:
        listings = [json.loads(part) for part in raw.decode("utf-8", "replace").split("\x1e")][:2]
    except (ValueError, RecursionError):
        return False
    if not all(isinstance(one, dict) for one in listings):
        return False
    mirror = Mirror(WHERE)
    mirror.store = store = _store()()
    read = False
    around = mirror.root.parent
    for listing in listings:
        store.listed = {f"/bucket/runs{name}": _told(one) for name, one in listing.items()}
        store.held = {
            f"/bucket/runs{name}": one["bytes"].encode("utf-8", "replace")
            for name, one in listing.items()
            if isinstance(one, dict) and isinstance(one.get("bytes"), str)
        }
        mirror._renewed = -10.0
        remote._mirrors[WHERE] = mirror
        with contextlib.suppress(RlhealthError):
            for one in find_readers(WHERE):
                with contextlib.suppress(RlhealthError):
                    one.poll()
                    read |= bool(one.run.series)
        for name in store.listed:
            inside = name.removeprefix("/bucket/runs").lstrip("/")
            assert not (".." in inside.split("/") and name in mirror.kept), "a name that leads out of the mirror"
        assert all(one.is_relative_to(around) for one in around.rglob("*"))
    remote._mirrors.pop(WHERE, None)
    return read


def _told(one: Any) -> dict[str, Any]:
    """What the server says of an object; a time in seconds may be a time of its own kind."""
    if not isinstance(one, dict):
        return {"size": len(ROWS)}
    told = {key: value for key, value in one.items() if key != "bytes"}
    told.setdefault("size", len(one["bytes"]) if isinstance(one.get("bytes"), str) else len(ROWS))
    seconds = told.get("LastModified")
    if isinstance(seconds, int) and not isinstance(seconds, bool) and 0 < seconds < 1 << 37:
        told["LastModified"] = datetime.fromtimestamp(seconds, UTC)
    return told


@cache
def listings() -> list[bytes]:
    """A run that grows, is replaced, shrinks; names that lead elsewhere; sizes and times of any form."""
    rows = ROWS.decode()
    first = {"/a/log.jsonl": {"bytes": rows, "ETag": "1", "LastModified": 1_795_000_000}, "/a/notes": {"size": 5}}
    pairs: list[tuple[dict[str, Any], dict[str, Any]]] = [
        (first, {"/a/log.jsonl": {"bytes": rows * 2, "ETag": "2", "LastModified": "2026-01-01T00:00:00Z"}}),
        (first, {"/a/log.jsonl": {"bytes": rows[5:] * 2, "ETag": "2", "mtime": 1.7e9}}),
        (first, {"/a/log.jsonl": {"bytes": rows[:60], "size": 999, "ETag": "3", "updated": "yesterday"}}),
        ({"/a": {"bytes": rows}, "/a/b.jsonl": {"bytes": rows}, "/a/b.jsonl/c.csv": {}}, {"": {"bytes": rows}}),
        ({"/../x.jsonl": {}, "//etc/passwd": {}, "/a/..": {}, "/a//b.jsonl": {}, "/.": {}, "/": {}}, first),
        ({"/0/meta.yaml": {"bytes": "a: b"}, "/0/metrics/kl": {"bytes": "1 0.5 1\n"}}, first),
        ({"/" + "n" * 300 + ".jsonl": {}, "/a\u0000b.jsonl": {}, "/a\\b.jsonl": {}, "/é\n.jsonl": {}}, first),
        (
            {"/a.jsonl": {"size": None}, "/b.jsonl": {"size": -5}, "/c.csv": {"mtime": 1e300}, "/d.csv": {"mtime": -1}},
            {},
        ),
        ({"/a.jsonl": {"size": 10**15, "bytes": rows}}, first),
    ]
    return [f"{json.dumps(one)}\x1e{json.dumps(two)}".encode() for one, two in pairs]


WORDS = (
    *(b'"/', b'.jsonl"', b'.csv"', b"/..", b"//", b"\\u0000", b"\\ud800", b"\x1e", b"{}", b"null", b"-1", b"1e308"),
    *(b'"size": ', b'"ETag": ', b'"LastModified": ', b'"mtime": ', b'"updated": ', b'"bytes": ', b"9" * 25, b'"x"'),
    *(b"/metrics/", b"meta.yaml", b'{"size": "12"}', b'{"size": [1]}', b'{"mtime": {}}', b'"0001-01-01T00:00:00"'),
    *(b"events.out.tfevents.1", b"trainer_state.json", b".wandb", b"Infinity", b"NaN", b'"9999-12-31T23:59:59"'),
)
