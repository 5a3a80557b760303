"""A wandb server on loopback that takes 250 ms for each answer, in a process of its own, and what is measured against
it: a sweep of 24 runs x 2,000 rows, and a look of `watch` at 50 live runs.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

RUNS, ROWS, LIVE, DELAY = 24, 2000, 50, 0.25
LIVE_ROWS, LOOKS = 200, 5
ROOT = Path(__file__).resolve().parents[1]
SWEEP, WATCHED = "wandb://ada/sweep", "wandb://ada/live"


@contextmanager
def serving(folder: Path) -> Iterator[Path]:
    """The server's process, while it is asked; gives the file that holds its address."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "benchmarks.online"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None and server.stdin is not None
        (folder / "url").write_text(server.stdout.readline().strip())
        try:
            yield folder / "url"
        finally:
            server.stdin.close()


def asking(url: Path) -> None:
    """Has this process ask that server, and no other one, with nothing of the user's own settings."""
    from tests.wandb_server import KEY

    os.environ |= {"WANDB_BASE_URL": url.read_text(), "WANDB_API_KEY": KEY, "HOME": tempfile.mkdtemp()}
    from wandb.apis import public  # noqa: F401 (the SDK, whose import is not to be timed)


def sdk(url: Path) -> Any:
    """Every row of the sweep by the SDK's own scan, one run after another."""
    asking(url)

    def read() -> int:
        import wandb

        return sum(1 for run in wandb.Api().runs("ada/sweep") for _ in run.scan_history())

    return read


def checked(at_once: int | None) -> Any:
    """The sweep, read and judged by all rules, by so many requests at once."""

    def row(url: Path) -> Any:
        asking(url)
        import rlhealth
        from rlhealth.rules.loading import load_rules
        from rlhealth.sources.discovery.places import RunSelection
        from rlhealth.sources.wandb import api  # noqa: F401 (the same)

        rules = load_rules()
        rlhealth.check(ROOT / "fixtures" / "tensorboard", rules=rules)  # what is imported at the first need is there

        def check() -> int:
            found = rlhealth.check(SWEEP, rules=rules, choice=RunSelection(at_once=at_once))
            assert len(found.runs) == RUNS and all(one.run.last_step == ROWS for one in found.runs), found.errors
            return len(found.runs)

        return check

    return row


def command(url: Path) -> Any:
    """The whole command, as a user types it."""
    asking(url)
    given = [sys.executable, "-m", "rlhealth", "check", "--wandb", "ada/sweep", "-q"]
    return lambda: subprocess.run(given, cwd=ROOT, capture_output=True, check=False).returncode


def look(url: Path) -> Any:
    """A look of `watch` at the live runs, each of which has logged one more row since: the median of five."""
    asking(url)
    from rlhealth.rules.loading import load_rules
    from rlhealth.watch.loop import Watch

    watch = Watch([WATCHED], load_rules())
    watch.look()
    taken = []
    for _ in range(LOOKS):
        before = sum(one.reader.run.last_step or 0 for one in watch.followers)
        began = time.perf_counter()
        watch.look()
        taken.append(time.perf_counter() - began)
        assert sum(one.reader.run.last_step or 0 for one in watch.followers) == before + LIVE
    return lambda: time.sleep(statistics.median(taken)) or LIVE


def serve() -> None:
    """Hosts both projects until stdin ends; every live run logs one more row before each list of them."""
    import numpy as np

    from benchmarks.watching import rows
    from tests.wandb_server import HostedRun, WandbServer, answers

    pages: dict[str, str] = {}

    class Sweep(WandbServer):
        """Writes each page of the sweep once: the processor is the clients', as that of a server elsewhere would be."""

        def body(self, operation: str, given: Mapping[str, Any]) -> str:
            if operation != "HistoryPage" or given["project"] != "sweep":
                return super().body(operation, given)
            key = repr(sorted(given.items()))
            if key not in pages:
                pages[key] = super().body(operation, given)
            return pages[key]

    random, server = np.random.default_rng(0), Sweep()
    server.delay = DELAY

    def host(project: str, number: int, count: int, state: str) -> None:
        made = f"2026-01-01T{number // 60:02d}:{number % 60:02d}:00Z"
        run = HostedRun(id=f"{project}{number}", name=f"{project}-{number}", state=state, created=made)
        run.config, run.requirements = {"beta": 0.04, "learning_rate": 1e-6}, "trl==0.24.0\ntransformers==4.57.0\n"
        for step, row in enumerate(rows(random, range(count)), 1):
            clipped = {tag: value * 0.04 for tag, value in row.items() if tag.startswith("clip_ratio/")}
            rising = 0.3 * step / count + 0.2 * random.normal()
            reward = {tag: row[tag] + rising for tag in ("reward", "rewards/accuracy/mean")}
            values = {f"train/{tag}": value for tag, value in {**row, **clipped, **reward}.items()}
            run.log(**values, **{"train/global_step": step})
        run.keys()
        server.host(run, project=project)

    for number in range(RUNS):
        host("sweep", number, ROWS, "finished")
    for number in range(LIVE):
        host("live", number, LIVE_ROWS, "running")
    listed, growing = answers.ANSWERS["Runs"], threading.Lock()

    def grown(server: WandbServer, given: Mapping[str, Any]) -> dict[str, Any]:
        with growing:
            for run in server.projects["ada", "live"].values() if given["project"] == "live" else ():
                last = {tag: value for tag, value in run.rows[-1].items() if not tag.startswith("_")}
                run.log(**{**last, "train/global_step": last["train/global_step"] + 1})
            return listed(server, given)

    answers.ANSWERS["Runs"] = grown
    with server.serving():
        print(server.url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    serve()
