"""The logs that are measured on: written by the trackers' own code, or as they write them."""

from __future__ import annotations

import json
import random
import shutil
import struct
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.reading import ROOT, TAGS, written

ROWS, KEYS = 100_000, 30


def quickly_written(folder: Path, steps: int) -> Path:
    """An event file as TensorBoard's writer would write it, by the same messages, ten times as fast: for the
    largest.
    """
    import google_crc32c
    from tensorboard.compat.proto.event_pb2 import Event

    folder.mkdir(parents=True)
    path, began = folder / f"events.out.tfevents.{int(time.time())}.bench.1.0", time.time()

    def framed(body: bytes) -> bytes:
        length = struct.pack("<Q", len(body))
        return length + _masked(google_crc32c.value(length)) + body + _masked(google_crc32c.value(body))

    with path.open("wb") as file:
        file.write(framed(Event(wall_time=began, file_version="brain.Event:2").SerializeToString()))
        event = Event()
        values = [event.summary.value.add() for _ in range(1)]
        for step in range(1, steps + 1):
            rows = []
            for number, tag in enumerate(TAGS):
                event.step, event.wall_time = step, began + step * 3.2 + number * 1.1e-5
                values[0].tag, values[0].simple_value = f"train/{tag}", (step * 7919 + number * 104729) % 65521 / 65521
                rows.append(framed(event.SerializeToString()))
            file.write(b"".join(rows))
    return path


def _masked(crc: int) -> bytes:
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def many_runs(folder: Path, count: int = 1000, steps: int = 200) -> Path:
    """So many runs; ten are written, and the others are copies of them."""
    for number in range(count):
        if number < 10:
            written(folder / f"run{number:04d}", steps)
        else:
            shutil.copytree(folder / f"run{number % 10:04d}", folder / f"run{number:04d}")
    return folder


def healthy_runs(folder: Path, count: int = 1000) -> Path:
    """So many healthy runs as trainers log them: copies of those in fixtures/."""
    names = ("grpo-sort", "grpo-resumed", "ppo-sentences", "legacy-ppo", "cartpole")
    for number in range(count):
        shutil.copytree(ROOT / "fixtures" / "tensorboard" / names[number % len(names)], folder / f"run{number:04d}")
    return folder


def dated_runs(folder: Path, count: int = 10_000) -> Path:
    """So many launches side by side, each in a folder with the time at which it began, as transformers makes them."""
    log = written(folder / "first", 4)
    for number in range(count):
        minute, hour, day = number % 60, number // 60 % 24, number // 1440 + 1
        launch = folder / "runs" / f"Nov{day:02d}_{hour:02d}-{minute:02d}-00_host"
        launch.mkdir(parents=True)
        shutil.copy(log, launch / f"events.out.tfevents.{1_700_000_000 + number}.host.{number}.0")
    return folder / "runs"


def growing_run(folder: Path, steps: int) -> Path:
    """A run, and twenty more steps of it beside."""
    written(folder / "run", steps)
    written(folder / "more", 20, steps + 1)
    return folder


def wide_rows(folder: Path, rows: int = ROWS, keys: int = KEYS) -> Path:
    """The same rows as a .wandb file (of wandb's own messages), as lines of JSON and as trainer_state.json."""
    from tests.sources.wandb_writing import HEADER, frame, history

    folder.mkdir(parents=True)
    names = [f"train/{tag}" for tag in (*TAGS, "beta", "tokens", "lag")][:keys]
    log = []
    with (folder / "run-x.wandb").open("wb") as store, (folder / "rows.jsonl").open("w") as lines:
        store.write(HEADER)
        for step in range(1, rows + 1):
            row = {name: (step * 7919 + number * 104729) % 65521 / 65521 for number, name in enumerate(names)}
            whole = {
                **row,
                "train/global_step": step,
                "_step": step,
                "_runtime": step * 3.2,
                "_timestamp": 1.7e9 + step * 3.2,
            }
            store.write(frame([history(whole, step, flat_keys=True)], store.tell()))
            lines.write(json.dumps(whole) + "\n")
            log.append({**{name.removeprefix("train/"): value for name, value in row.items()}, "step": step})
    (folder / "trainer_state.json").write_text(
        json.dumps({"global_step": rows, "max_steps": rows, "log_history": log}, indent=2)
    )
    return folder


def large_notebook(folder: Path) -> Path:
    """A notebook of five megabytes."""
    from tests.sources.notebooks.books import large

    folder.mkdir(parents=True)
    path = folder / "large.ipynb"
    path.write_bytes(large(5_000_000))
    return path


def many_texts(folder: Path) -> Path:
    """Ten thousand texts of 4 KB of two thousand words, parted by NUL."""
    draw = random.Random(2)
    words = ["".join(draw.choices("abcdefghij", k=draw.randint(1, 9))) for _ in range(2000)]
    long = " ".join(draw.choices(words, k=720_000))
    folder.mkdir(parents=True)
    path = folder / "texts"
    path.write_text("\0".join(long[start : start + 4096] for start in draw.sample(range(len(long) - 4096), 10_000)))
    return path


#: Table -> what writes its logs below a folder, and answers where they are.
WRITTEN: dict[str, Callable[[Path], Path]] = {
    "many": many_runs,
    "healthy": healthy_runs,
    "discovery": dated_runs,
    "notebook": large_notebook,
    "texts": many_texts,
    "start-up": lambda folder: written(folder, 200).parent,
}
