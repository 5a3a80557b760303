"""How many messages a watch sends: logged runs are replayed row by row, and the changes of their incidents counted.

    python -m benchmarks.messages FOLDER… [--longest 25000] [--verbose]

A FOLDER holds index.json (a list of rows with `id` and `want`: sick, healthy or another word) and logs/<id>/, or
labels.json (`run`, `verdict`, `sources`) and runs/; any other folder is one of logs without labels. Each run is
followed as `rlhealth watch` follows it, with one more row at every look. The goal: a median of 2 and at most 4 messages
for an unhealthy run, none for a healthy one; `check` itself calls some runs unhealthy that are labelled healthy, and
they are counted apart.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from rlhealth.errors import RlhealthError
from rlhealth.rules.loading import load_rules
from rlhealth.run import Run
from rlhealth.sources import find_readers
from rlhealth.watch.clock import Clock
from rlhealth.watch.follower import Follower
from rlhealth.watch.lines import described

MOST = 4  # messages for one run


@dataclass
class Replayed:
    """What a watch reported of one run.

    Attributes:
        want: the label of its log.
        verdict: what a check says of the whole.
        reported: each change, with the row at which it was reported.
    """

    name: str
    want: str
    verdict: str
    rows: int
    reported: list[tuple[int, str]] = field(default_factory=list)


class Standing(Clock):
    """Stands where the newest row was written."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def passed(self) -> float:
        return self.now

    def wall(self) -> float:
        return self.now


class RowByRow:
    """A reader that shows one more row of a whole run at every poll."""

    def __init__(self, whole: Run) -> None:
        self.whole = whole
        self.run = Run(
            whole.name,
            whole.place,
            config=whole.config,
            versions=whole.versions,
            planned_steps=whole.planned_steps,
            modified=whole.modified,
        )
        steps = [one.steps for one in whole.series.values()]
        self.steps = np.unique(np.concatenate(steps)) if steps else np.empty(0, np.int64)
        self.row = 0

    def poll(self) -> bool:
        """Adds the next row; the end of the run is known with the last."""
        if self.row >= len(self.steps):
            return False
        step = int(self.steps[self.row])
        for tag, one in self.whole.series.items():
            place = int(np.searchsorted(one.steps, step))
            if place < len(one) and one.steps[place] == step:
                self.run.add(tag, *(part[place : place + 1] for part in (one.steps, one.values, one.times)))
        for tag, shape in self.whole.histograms.items():
            if step in shape.steps:
                place = shape.steps.index(step)
                self.run.histogram(tag).add(step, shape.edges[place], shape.counts[place], shape.times[place])
        self.row += 1
        if self.row == len(self.steps):
            self.run.exit_code, self.run.clean = self.whole.exit_code, self.whole.clean
            self.run.heartbeat = self.whole.heartbeat
        return True


def replay(name: str, want: str, place: str, longest: int) -> list[Replayed]:
    """Every run at a place, replayed; what cannot be read, and what is longer, is left out."""
    found = []
    try:
        readers = find_readers(place)
    except RlhealthError:
        return []
    for reader in readers:
        try:
            reader.poll()
        except RlhealthError:
            continue
        rows, clock = RowByRow(reader.run), Standing()
        if not 0 < len(rows.steps) <= longest:
            continue
        follower = Follower(rows, load_rules(), clock=clock)
        reported: list[tuple[int, str]] = []
        for row in range(len(rows.steps)):
            clock.now = rows.run.last_time if np.isfinite(rows.run.last_time) else 0.0
            reported += [(row, described(one.change)) for one in follower.look(15.0) if one.change is not None]
        clock.now = time.time()
        reported += [(len(rows.steps), described(one.change)) for one in follower.finish() if one.change is not None]
        assert follower.verdict is not None
        title = name if len(readers) == 1 else f"{name}/{reader.run.name}"
        found.append(Replayed(title, want, follower.verdict.verdict, len(rows.steps), reported))
    return found


def logs(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Name, label and place of each log in a folder."""
    if (folder / "index.json").exists():
        for row in json.loads((folder / "index.json").read_text()):
            if (folder / "logs" / row["id"]).exists():
                yield row["id"], row["want"], str(folder / "logs" / row["id"])
    elif (folder / "labels.json").exists():
        for row in json.loads((folder / "labels.json").read_text()):
            place = next((one for one in row["sources"].values() if isinstance(one, str)), None)
            if place is not None and not row.get("visibility"):
                yield row["run"], "healthy" if row["verdict"] == "healthy" else "sick", str(folder / "runs" / place)
    else:
        yield folder.name, "unlabelled", str(folder)


def table(found: Iterable[Replayed]) -> str:
    """Messages a run for each label, healthy runs apart by what a check says of them."""
    counts: dict[str, list[int]] = {}
    for one in found:
        label = one.want if one.want != "healthy" else f"healthy, and check says {one.verdict}"
        counts.setdefault(label, []).append(len(one.reported))
    lines = [f"{'label':<40} {'runs':>5} {'median':>7} {'mean':>6} {'most':>5} {f'over {MOST}':>7} {'any':>5}"]
    for label, each in sorted(counts.items()):
        over, any_ = sum(one > MOST for one in each), sum(one > 0 for one in each)
        lines.append(
            f"{label:<40} {len(each):>5} {statistics.median(each):>7g} {statistics.mean(each):>6.2f} {max(each):>5} "
            f"{over:>7} {any_:>5}"
        )
    return "\n".join(lines)


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("folders", nargs="+", type=Path)
    ask.add_argument("--longest", type=int, default=25_000, help="rows of the longest run that is replayed")
    ask.add_argument("--jobs", type=int, default=2)
    ask.add_argument("--verbose", action="store_true", help="every message of every run")
    asked = ask.parse_args()
    jobs = [(*one, asked.longest) for folder in asked.folders for one in logs(folder)]
    with ProcessPoolExecutor(asked.jobs) as pool:
        found = [one for part in pool.map(replay, *zip(*jobs, strict=True)) for one in part]
    for one in found:
        if asked.verbose or len(one.reported) > MOST:
            print(f"{one.name} ({one.want}, {one.rows} rows; check says {one.verdict})")
            print("".join(f"  row {row}: {said[:200]}\n" for row, said in one.reported), end="")
    print(table(found))


if __name__ == "__main__":
    main()
