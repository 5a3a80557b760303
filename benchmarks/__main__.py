"""Speed and memory of rlhealth compared with other tools, as tables for docs/performance.md.

    python -m benchmarks [--rounds 3] [--only check start-up …] [--write docs/performance.md] [--long]

Every measurement runs in a separate process, is timed after the imports, and takes turns with its peers; the table
shows medians.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import logs, online, reading, rows

STEPS = 40_000
TITLES = {
    "reading": f"Reading: {len(reading.TAGS)} tags x {STEPS:,} steps in one event file of TensorBoard's writer",
    "check": "Checking the same file by every rule",
    "growth": "Growth: read and checked, by the number of points",
    "tick": "A tick of `watch`: one more step of 27 metrics, read and judged",
    "start-up": "Start-up: processor time of a whole process",
    "discovery": "Discovery: 10,000 runs of 4 steps, each in a dated folder of its own",
    "many": "1,000 runs of 200 steps, by the clock: a call of the library, and the whole command",
    "healthy": "1,000 healthy runs as trainers log them, of 50 to 120 rows: copies of five in fixtures/",
    "online": f"A sweep of {online.RUNS} runs x {online.ROWS:,} rows on a wandb server that takes "
    f"{online.DELAY * 1e3:.0f} ms for each answer, and {online.LIVE} live runs on it",
    "notebook": "A notebook of 5 MB: its runs, against parsers of the whole",
    "texts": "10,000 completions of 4 KB, the texts of one step",
    "wandb": f"A .wandb file of {logs.ROWS:,} rows x {logs.KEYS} keys, against orjson "
    "over its values, and over the same rows as lines",
    "jsonl": f"Lines of JSON, {logs.ROWS:,} rows x {logs.KEYS} keys, against parsers of JSON over the same lines",
    "trainer_state": f"trainer_state.json of {logs.ROWS:,} rows x {logs.KEYS} keys, "
    "against parsers of JSON over the same bytes",
}
Measured = dict[str, float]


def here(table: str, label: str, path: Path) -> Measured:
    """One measurement, in this process."""
    read = rows.TABLES[table][label](path)
    before = reading._resident("VmRSS")
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    children, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    read()
    seconds = time.perf_counter() - began
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    if table == "start-up":
        seconds = used.ru_utime + used.ru_stime - children.ru_utime - children.ru_stime
        return {"seconds": seconds, "megabytes": used.ru_maxrss / 1024}
    return {
        "seconds": seconds,
        "megabytes": max(reading._resident("VmHWM") - before, used.ru_maxrss / 1024),
    }  # of the largest process


def elsewhere(table: str, label: str, path: Path) -> Measured:
    """One measurement, in a separate process. Raises RuntimeError with its last words where it fails."""
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks", "--one", table, label, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=reading.ROOT)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["it said nothing"])[-1])
    found: Measured = json.loads(done.stdout.splitlines()[-1])
    return found


def in_turns(labels: list[tuple[str, str, Path]], rounds: int) -> dict[str, Measured]:
    """Medians of so many rounds, in each of which every label has its turn."""
    found: dict[str, list[Measured]] = {}
    for _ in range(rounds):
        for table, label, path in labels:
            try:
                one = reading.elsewhere(label, path, STEPS) if table == "reading" else elsewhere(table, label, path)
                found.setdefault(label, []).append(one)
            except RuntimeError as error:
                print(f"{label}: not measured ({error})", file=sys.stderr)
    return {
        label: {key: statistics.median(one[key] for one in taken) for key in ("seconds", "megabytes")}
        for label, taken in found.items()
    }


def table(name: str, found: dict[str, Measured], against: str) -> str:
    """One table in Markdown; `against` is the row that the ratios are of."""
    base = found[against]["seconds"] if against in found else math.nan
    lines = [f"### {TITLES[name]}", "", f"| | ms | x {against} | peak MB |", "|---|---:|---:|---:|"]
    lines += [
        f"| {label} | {one['seconds'] * 1e3:,.1f} | {one['seconds'] / base:,.2f} | {one['megabytes']:,.0f} |"
        for label, one in found.items()
    ]
    return "\n".join([*lines, ""])


def measured(name: str, folder: Path, rounds: int, long: bool) -> str:
    """Writes the logs of one table, measures it, and gives it in Markdown."""
    place = folder / name
    if name in ("reading", "check"):
        path = reading.written(place, STEPS)
        labels = list(reading.READERS) if name == "reading" else list(rows.TABLES[name])
        return table(
            name,
            in_turns([(name, one, path) for one in labels], rounds),
            "rlhealth" if name == "reading" else labels[0],
        )
    if name == "online":
        with online.serving(place) as url:
            labels = list(rows.TABLES[name])
            return table(name, in_turns([(name, one, url) for one in labels], rounds), labels[0])
    if name == "growth":
        return growth(place, rounds, long)
    if name == "tick":
        places = {
            f"after {count * len(reading.TAGS):,} points": logs.growing_run(place / str(count), count)
            for count in (400, 4_000, STEPS)
        }
        found = {
            label: in_turns([(name, "a tick of watch", path)], rounds)["a tick of watch"]
            for label, path in places.items()
        }
        return table(name, found, next(iter(found)))
    labels = list(rows.TABLES[name])
    if name in ("wandb", "jsonl", "trainer_state"):
        path = folder / "wide"
        if not path.exists():
            logs.wide_rows(path)
        against = next(label for label in labels if label.startswith("orjson"))
    else:
        path = logs.WRITTEN[name](place)
        against = "a bare typer app, a command with a word" if name == "start-up" else labels[0]
    long_ones = ("many", "healthy", "discovery")
    often = rounds if name in long_ones else max(rounds, 15 if name == "start-up" else 5)
    return table(name, in_turns([(name, one, path) for one in labels], often), against)


def growth(place: Path, rounds: int, long: bool) -> str:
    """Read and checked, from ten thousand points up; the exponent is the slope between the ends and between the
    largest two.
    """
    found: dict[str, Measured] = {}
    seconds: list[tuple[int, float]] = []
    for steps in (400, 4_000, 40_000, *((400_000,) if long else ())):
        path = logs.quickly_written(place / str(steps), steps)
        one = in_turns([("check", "check, all rules", path)], rounds)["check, all rules"]
        seconds.append((steps, one["seconds"]))
        found[f"{steps * len(reading.TAGS):,} points"] = one
    slopes = [
        math.log(b[1] / a[1]) / math.log(b[0] / a[0])
        for a, b in ((seconds[0], seconds[-1]), (seconds[-2], seconds[-1]))
    ]
    return (
        table("growth", found, next(iter(found)))
        + f"\nExponent: {slopes[0]:.2f} from end to end, {slopes[1]:.2f} between the largest two.\n"
    )


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--rounds", type=int, default=3)
    ask.add_argument("--only", nargs="+", choices=list(TITLES), default=list(TITLES))
    ask.add_argument("--long", action="store_true", help="ten million points too")
    ask.add_argument("--write", type=Path, help="put the tables between the marks of this file")
    ask.add_argument("--one", nargs=3, metavar=("TABLE", "ROW", "PATH"), help=argparse.SUPPRESS)
    args = ask.parse_args()
    if args.one:
        print(json.dumps(here(args.one[0], args.one[1], Path(args.one[2]))))
        return
    load = f"load {os.getloadavg()[0]:.1f} before" if hasattr(os, "getloadavg") else ""
    parts = [
        f"{platform.system()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"medians of {args.rounds}; {load}.\n"
    ]
    print(parts[0])
    with tempfile.TemporaryDirectory() as folder:
        for name in args.only:
            parts.append(measured(name, Path(folder), args.rounds, args.long))
            print(parts[-1], flush=True)
    if args.write:
        begin, end = "<!-- measured -->", "<!-- /measured -->"
        before, _, rest = args.write.read_text().partition(begin)
        args.write.write_text(f"{before}{begin}\n{chr(10).join(parts)}{end}{rest.partition(end)[2]}")


if __name__ == "__main__":
    main()
