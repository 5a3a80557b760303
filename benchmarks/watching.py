"""Eight hours of watching at speed: 2,000 looks at an event file that grows to 1,000,000 points; what a look costs, and
the memory.

    python benchmarks/watching.py [--looks 2000] [--points 1000000]

Also what a step costs inside a training loop, through `Monitor`. Times are of the processor, so that a busy machine
gives nothing about them.
"""

from __future__ import annotations

import argparse
import os
import resource
import struct
import tempfile
import time
from pathlib import Path

import numpy as np

from rlhealth.integrations.monitor import Monitor
from rlhealth.reports import ReportOptions
from rlhealth.rules.loading import load_rules
from rlhealth.sources.tensorboard.crc32c import masked
from rlhealth.watch.clock import Clock
from rlhealth.watch.loop import Watch
from rlhealth.watch.screen import drawn

TAGS = [
    "loss",
    "grad_norm",
    "learning_rate",
    "num_tokens",
    "completions/mean_length",
    "completions/min_length",
    "completions/max_length",
    "completions/clipped_ratio",
    "completions/mean_terminated_length",
    "completions/min_terminated_length",
    "completions/max_terminated_length",
    "rewards/accuracy/mean",
    "rewards/accuracy/std",
    "reward",
    "reward_std",
    "frac_reward_zero_std",
    "kl",
    "entropy",
    "clip_ratio/low_mean",
    "clip_ratio/low_min",
    "clip_ratio/high_mean",
    "clip_ratio/high_max",
    "clip_ratio/region_mean",
    "step_time",
    "epoch",
]


class Hours(Clock):
    """Lets the seconds between two looks pass at once."""

    def __init__(self) -> None:
        self.gone = 0.0
        self.begun = time.time()

    def monotonic(self) -> float:
        return self.gone

    def passed(self) -> float:
        return self.gone

    def wall(self) -> float:
        return self.begun + self.gone

    def wait(self, seconds: float) -> None:
        self.gone += seconds


def record(event: bytes) -> bytes:
    header = struct.pack("<Q", len(event))
    return header + struct.pack("<I", masked(header)) + event + struct.pack("<I", masked(event))


def varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def scalar(tag: str, step: int, moment: float, value: float) -> bytes:
    name = f"train/{tag}".encode()
    one = b"\x0a" + varint(len(name)) + name + b"\x15" + struct.pack("<f", value)
    summary = b"\x0a" + varint(len(one)) + one
    return record(
        b"\x09" + struct.pack("<d", moment) + b"\x10" + varint(step) + b"\x2a" + varint(len(summary)) + summary
    )


def rows(random: np.random.Generator, steps: range) -> list[dict[str, float]]:
    """A healthy run, according to the rules."""
    noise = random.normal(size=(len(steps), len(TAGS))) * 0.02
    level = dict.fromkeys(TAGS, 0.5) | {
        "learning_rate": 1e-6,
        "kl": 0.02,
        "completions/mean_length": 120,
        "completions/clipped_ratio": 0.02,
        "frac_reward_zero_std": 0.1,
    }
    return [{tag: level[tag] * (1 + float(part)) for tag, part in zip(TAGS, line, strict=True)} for line in noise]


def resident() -> float:
    """Megabytes in use now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def watching(looks: int, points: int) -> None:
    per_look = max(1, points // looks // len(TAGS))
    random, clock = np.random.default_rng(0), Hours()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "events.out.tfevents.1.host.1.0"
        file.write_bytes(record(b"\x09" + struct.pack("<d", clock.wall()) + b"\x1a\x0dbrain.Event:2"))
        subject = Watch([folder], load_rules(), clock=clock)
        costs: list[float] = []
        draws: list[float] = []
        print(
            f"{'looks':>6} {'points':>9} {'look ms':>8} {'p99 ms':>7} {'draw ms':>8} {'memory MB':>10} {'file MB':>8}"
        )
        for look in range(looks):
            steps = range(1 + look * per_look, 1 + (look + 1) * per_look)
            with file.open("ab") as out:
                for step, row in zip(steps, rows(random, steps), strict=True):
                    out.write(
                        b"".join(scalar(tag, step, clock.wall() + step % per_look, value) for tag, value in row.items())
                    )
            clock.wait(15)
            os.utime(file, (clock.wall(), clock.wall()))
            begun = time.process_time()
            events = subject.look()
            costs.append(time.process_time() - begun)
            begun = time.process_time()
            drawn(subject, [(clock.wall(), one) for one in events], ReportOptions(100), 100, 40)
            draws.append(time.process_time() - begun)
            if (look + 1) % (looks // 8) == 0:
                part, painted = np.array(costs[-looks // 8 :]) * 1e3, np.array(draws[-looks // 8 :]) * 1e3
                held = sum(len(one) for one in subject.followers[0].reader.run.series.values())
                print(
                    f"{look + 1:>6} {held:>9,} {np.median(part):>8.2f} {np.percentile(part, 99):>7.2f} "
                    f"{np.median(painted):>8.2f} {resident():>10.1f} {file.stat().st_size / 2**20:>8.1f}"
                )


def monitoring(steps: int) -> None:
    random = np.random.default_rng(1)
    for seconds in (0.0, 0.1, 5.0):
        passed = 0.0

        def clock() -> float:
            return passed + time.process_time()  # noqa: B023 (read while it is this loop's)

        monitor = Monitor("loop", rules=load_rules(), clock=clock)
        costs = []
        for step, row in enumerate(rows(random, range(steps)), 1):
            passed += seconds
            begun = time.process_time()
            monitor.log(step, row)
            costs.append(time.process_time() - begun)
        part = np.array(costs) * 1e3
        print(
            f"Monitor.log, {seconds:g} s a step: mean {part.mean():.3f} ms, median {np.median(part):.3f}, p99 "
            f"{np.percentile(part, 99):.2f}, after the first 100: mean {part[100:].mean():.3f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--looks", type=int, default=2000)
    parser.add_argument("--points", type=int, default=1_000_000)
    asked = parser.parse_args()
    watching(asked.looks, asked.points)
    monitoring(1000)


if __name__ == "__main__":
    main()
