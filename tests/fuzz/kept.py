"""What rlhealth keeps for its next process, for the fuzzer: whatever lies in the file of a kept value, the answer is
the value that is made from the sources.
"""

from __future__ import annotations

import json
import marshal
import os
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from rlhealth.system import cache as kept

SOURCES = {"a.yaml": b"x: 1", "parser": b"code"}
VALUE = (["Rule", {"id": "a", "limit": 1.5}, {}], {"none": None, "deep": ({"list": [1, 2]},)})


def made_anew(raw: bytes, path: Path) -> bool:
    """The bytes as the file, or behind a sum that is right: never another value, and the next process finds it kept."""
    os.environ["RLHEALTH_CACHE_DIR"] = str(path.with_suffix(".kept"))
    random = Random(raw)
    place = kept._place("fuzzed")
    assert place is not None
    place.parent.mkdir(mode=0o700, exist_ok=True)
    whole = kept._HEADER + kept._sum_of(raw) + raw if random.random() < 0.3 and _is_values(raw) else raw
    with os.fdopen(os.open(place, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "wb") as file:
        file.write(whole)
    asked: list[int] = []

    def make() -> Any:
        asked.append(1)
        return VALUE

    assert kept.cached("fuzzed", SOURCES, make) == VALUE, "a value that was made from something else"
    first = len(asked)
    assert kept.cached("fuzzed", SOURCES, make) == VALUE and len(asked) == first, "what was written cannot be read"
    return not first


def _is_values(raw: bytes) -> bool:
    """Whether these are values that rlhealth itself could have kept under right sums: of other sources."""
    return raw.startswith(b"{")


@cache
def files() -> list[bytes]:
    """The file as it is written, as it was for other sources, and values of other forms behind a right sum."""

    def framed(value: Any) -> bytes:
        body = marshal.dumps(value)
        return kept._HEADER + kept._sum_of(body) + body

    others = (None, 1, (), (1,), (SOURCES, 1, 2), [], "text", ({}, VALUE), (SOURCES | {"b": b""}, VALUE), (None, None))
    return [framed((SOURCES, VALUE)), *map(framed, others), json.dumps({"a": 1}).encode(), b""]
