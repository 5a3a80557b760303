"""Seeds of whole files, with their names: the shapes in which logs are left about, those that must be read in linear
time, and rows that come late.
"""

from __future__ import annotations

import json
import re
import tempfile
from functools import cache
from pathlib import Path

from benchmarks.growth import SHAPES as GROWN
from tests.fuzz.seeds import SMALL
from tests.sources.sick_shapes import SHAPES, lines, sick_rows

NAME_ENDS = b"\n"  # between the name of a file and what is in it
KEPT = ("step", "loss", "reward", "kl", "grad_norm", "entropy", "epoch")


@cache
def grown() -> list[tuple[str, bytes]]:
    """Each shape of the bench of growth, at the largest size that stays small."""
    found = []
    for name, _, make in GROWN.values():
        made = (make(size) for size in (2000, 300, 60, 20))
        found.append((name, next(raw for raw in made if len(raw) <= SMALL)))
    return found


@cache
def left_about() -> list[tuple[str, bytes]]:
    """The files of each shape of a sick log, written with its first rows; what stays large is left out."""
    found: list[tuple[str, bytes]] = []
    rows = [{key: row[key] for key in KEPT if key in row} for row in sick_rows()[:4]]
    for write in SHAPES.values():
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), rows)
            files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
            found += [(path.name, path.read_bytes()) for path in files if path.stat().st_size <= SMALL]
    return found


@cache
def late() -> list[tuple[str, bytes]]:
    """Rows that come late, again, or in falling order."""
    rows = sick_rows()[:8]
    evaluated = {"step": rows[1]["step"], "eval_reward": 0.5}
    orders = ([*rows[:6], evaluated, *rows[6:]], [*rows, *rows[2:5]], rows[::-1])
    return [
        *(("history.jsonl", lines(order).encode()) for order in orders),
        *(("trainer_state.json", json.dumps({"log_history": order}).encode()) for order in orders),
        *(("train.log", "".join(f"{row}\n" for row in order).encode()) for order in orders),
    ]


@cache
def texts() -> list[tuple[str, bytes]]:
    """Completions with their rewards, which are the log of a run that has no other."""
    rows = [
        {"step": step, "completion": f"{step} and {one}, as said above", "reward": step / 10 + one}
        for step in range(1, 7)
        for one in range(4)
    ]
    return [("trace.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows).encode())]


@cache
def named_files() -> list[bytes]:
    """All of them, each as one string of bytes: its name, then what is in it."""
    return [
        name.encode() + NAME_ENDS + raw for name, raw in dict.fromkeys([*grown(), *left_about(), *late(), *texts()])
    ]


def bytes_of(*suffixes: str) -> list[bytes]:
    """What is in those whose names end like this, for the reader of that format."""
    return [raw for name, raw in dict.fromkeys([*grown(), *late()]) if name.endswith(suffixes)]


def parted(raw: bytes) -> tuple[str, bytes]:
    """The name of a file, of characters that any system takes, and what is in it."""
    name, _, rest = raw.partition(NAME_ENDS)
    told = re.sub(r"[^\w.~-]", "", name.decode("ascii", "ignore"))[:60]
    return (told if told.strip(".") else "train"), rest
