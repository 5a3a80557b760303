"""Reading one large event file: rlhealth against tbparse, TensorBoard's EventAccumulator, its Rust data server and a
bare read of the bytes.

    python benchmarks/reading.py [--steps 40000] [--rounds 3] [--folder REAL_RUNS]

The file is what a trainer writes: 27 tags a step, by TensorBoard's EventFileWriter. Every reading is a process of its
own, which imports first and is timed afterwards; readers take turns, the table shows medians. Peak memory is what the
process held beyond its imports.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
TAGS = [
    "loss",
    "grad_norm",
    "learning_rate",
    "epoch",
    "num_tokens",
    "step_time",
    "reward",
    "reward_std",
    "frac_reward_zero_std",
    "rewards/accuracy/mean",
    "rewards/accuracy/std",
    "entropy",
    "kl",
    "completions/mean_length",
    "completions/min_length",
    "completions/max_length",
    "completions/clipped_ratio",
    "completions/mean_terminated_length",
    "completions/min_terminated_length",
    "completions/max_terminated_length",
    "clip_ratio/low_mean",
    "clip_ratio/high_mean",
    "clip_ratio/region_mean",
    "clip_ratio/low_min",
    "clip_ratio/high_max",
    "sampling/sampling_logp_difference/mean",
    "sampling/importance_sampling_ratio/mean",
]
Timed = Callable[[], int]


def written(folder: Path, steps: int, first: int = 1) -> Path:
    """An event file of so many steps, in that folder."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer, began = EventFileWriter(str(folder), max_queue_size=1000), time.time()
    for step in range(first, first + steps):
        for number, tag in enumerate(TAGS):
            value = Summary.Value(tag=f"train/{tag}", simple_value=(step * 7919 + number * 104729) % 65521 / 65521)
            writer.add_event(
                Event(wall_time=began + step * 3.2 + number * 1.1e-5, step=step, summary=Summary(value=[value]))
            )
    writer.close()
    return next(folder.iterdir())


# Each of these imports what it needs and returns what is timed, which returns the number of points that it read.


def bare(path: Path, steps: int) -> Timed:
    """All bytes at once, nothing done with them."""
    return lambda: len(path.read_bytes())


def rlhealth(path: Path, steps: int) -> Timed:
    """A run, checksums verified."""
    import google_crc32c  # noqa: F401 (an import that is not to be timed)

    from rlhealth.sources.tensorboard.reader import find

    def read() -> int:
        (reader,) = find(path)
        reader.poll()
        return sum(len(series) for series in reader.run.series.values())

    return read


def singly(path: Path, steps: int) -> Timed:
    """The same without the vectorised path."""
    from rlhealth.sources.tensorboard.eventfile import EventFile

    return lambda: sum(
        len(points.arrays()[0])
        for batch in EventFile(path, vectorised=False).read()
        for points in batch.points.values()
    )


def tbparse(path: Path, steps: int) -> Timed:
    from tbparse import SummaryReader

    return lambda: len(SummaryReader(str(path), pivot=False, event_types={"scalars"}).scalars)


def accumulator(path: Path, steps: int) -> Timed:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    def read() -> int:
        found = EventAccumulator(str(path), size_guidance={"scalars": 0, "tensors": 0})
        found.Reload()
        return sum(len(found.Scalars(tag)) for tag in found.Tags()["scalars"])

    return read


def data_server(path: Path, steps: int) -> Timed:
    """Until the server holds all points; they stay in it. It does not verify checksums."""
    from tensorboard.context import RequestContext
    from tensorboard.data.server_ingester import SubprocessServerDataIngester, get_server_binary
    from tensorboard.util.grpc_util import ChannelCredsType

    def read() -> int:
        server = SubprocessServerDataIngester(
            server_binary=get_server_binary(),
            logdir=str(path.parent),
            reload_interval=3600,
            channel_creds_type=ChannelCredsType.LOCAL,
            samples_per_plugin={"scalars": 0},  # all of them
        )
        server.start()
        while True:
            runs = server.data_provider.list_scalars(RequestContext(), experiment_id="", plugin_name="scalars")
            found = [series.max_step for tags in runs.values() for series in tags.values()]
            if len(found) == len(TAGS) and min(found) == steps:
                return len(TAGS) * steps
            time.sleep(0.005)

    return read


READERS: dict[str, Callable[[Path, int], Timed]] = {
    "bare read of the bytes": bare,
    "rlhealth": rlhealth,
    "rlhealth, record by record": singly,
    "TensorBoard data server (Rust)": data_server,
    "TensorBoard EventAccumulator": accumulator,
    "tbparse": tbparse,
}


def measured(name: str, path: Path, steps: int) -> dict[str, float]:
    """Seconds, points and memory of one reading, in this process."""
    read = READERS[name](path, steps)
    before = _resident("VmRSS")
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # the peak so far is forgotten
    began = time.perf_counter()
    points = read()
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "points": points, "megabytes": _resident("VmHWM") - before}


def _resident(field: str) -> float:
    """Memory of this process and its children, in MB; NaN if /proc does not say."""
    try:
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        texts = [Path(f"/proc/{process}/status").read_text() for process in ["self", *children]]
        return sum(int(re.findall(rf"{field}:\s+(\d+)", text)[0]) / 1024 for text in texts)
    except (OSError, IndexError):
        return float("nan")


def elsewhere(name: str, path: Path, steps: int) -> dict[str, float]:
    """The same in a process of its own."""
    command = [sys.executable, "-W", "ignore", __file__, "--steps", str(steps), "--one", name, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["it said nothing"])[-1])
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    if name != "bare read of the bytes" and found["points"] != len(TAGS) * steps:
        raise RuntimeError(f"{found['points']} points")
    return found


def one_file(steps: int, rounds: int) -> None:
    """The table for one large file."""
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder) / "run", steps)
        print(
            f"{len(TAGS)} tags x {steps:,} steps: {len(TAGS) * steps:,} points, "
            f"{path.stat().st_size / 1e6:.0f} MB; medians of {rounds}\n"
        )
        found: dict[str, list[dict[str, float]]] = {}
        for _ in range(rounds):
            for name in READERS:
                try:
                    reading = elsewhere(name, path, steps)
                    found.setdefault(name, []).append(reading)
                except RuntimeError as error:
                    print(f"{name}: not measured ({error})", file=sys.stderr)
    ours = statistics.median(one["seconds"] for one in found["rlhealth"])
    print(f"{'reader':<34}{'seconds':>9}{'to rlhealth':>13}{'Mpoints/s':>11}{'peak MB':>9}")
    for name, readings in found.items():
        seconds = statistics.median(one["seconds"] for one in readings)
        points = f"{len(TAGS) * steps / seconds / 1e6:.2f}" if name != "bare read of the bytes" else ""
        memory = statistics.median(one["megabytes"] for one in readings)
        print(f"{name:<34}{seconds:>9.3f}{seconds / ours:>12.2f}x{points:>11}{memory:>9.0f}")
    print(f"\nthe arrays that result: {len(TAGS) * steps * 24 / 1e6:.0f} MB (step, value and time of each point)")
    tick(steps)


def tick(steps: int) -> None:
    """What a poll costs that finds one more step after so many."""
    from rlhealth.sources.tensorboard.reader import find

    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder) / "run", steps)
        more = written(Path(folder) / "more", 20, steps + 1).read_bytes()
        (reader,) = find(path.parent)
        reader.poll()
        begin = 16 + int.from_bytes(more[:8], "little")  # after the record with the version of the file
        size, taken = (len(more) - begin) // 20, []
        for number in range(20):
            with path.open("ab") as stream:
                stream.write(more[begin + number * size : begin + (number + 1) * size])
            began = time.perf_counter()
            reader.poll()
            taken.append(time.perf_counter() - began)
        assert sum(len(series) for series in reader.run.series.values()) == len(TAGS) * (steps + 20)
    print(
        f"a poll that finds {len(TAGS)} new points after {len(TAGS) * steps:,}: {statistics.median(taken) * 1e3:.2f} ms"
    )


def real_files(folder: Path, rounds: int) -> None:
    """All event files below a folder in one process, against tbparse."""
    from tbparse import SummaryReader

    from rlhealth.sources.tensorboard.reader import find

    paths = sorted(path for path in folder.rglob("*tfevents*") if path.is_file())
    seconds: dict[str, list[float]] = {"rlhealth": [], "tbparse": []}
    for _ in range(rounds):
        began = time.perf_counter()
        for path in paths:
            for reader in find(path):
                reader.poll()
        seconds["rlhealth"].append(time.perf_counter() - began)
        began = time.perf_counter()
        for path in paths:
            _ = SummaryReader(str(path), pivot=False, event_types={"scalars"}).scalars
        seconds["tbparse"].append(time.perf_counter() - began)
    ours, theirs = (statistics.median(seconds[name]) for name in ("rlhealth", "tbparse"))
    print(
        f"{len(paths)} real event files in one process: rlhealth {ours:.3f} s, tbparse "
        f"{theirs:.3f} s ({theirs / ours:.1f}x); medians of {rounds}"
    )


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--steps", type=int, default=40_000)
    ask.add_argument("--rounds", type=int, default=3)
    ask.add_argument(
        "--folder",
        type=Path,
        default=ROOT / "fixtures",
        help="real runs, read by rlhealth and by tbparse (default: the fixtures)",
    )
    ask.add_argument("--one", nargs=2, metavar=("READER", "FILE"), help=argparse.SUPPRESS)
    args = ask.parse_args()
    sys.path.insert(0, str(ROOT))
    if args.one:
        print(json.dumps(measured(args.one[0], Path(args.one[1]), args.steps)))
        return
    one_file(args.steps, args.rounds)
    real_files(args.folder, args.rounds)


if __name__ == "__main__":
    main()
