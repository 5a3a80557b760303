"""What is measured: each row imports what it needs, and returns what is timed, which returns how much it read."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import online
from benchmarks.reading import ROOT, TAGS
from rlhealth.sources.discovery.places import RunSelection, find_all

Timed = Callable[[], int]
Row = Callable[[Path], Timed]

BARE = '''import typer
app = typer.Typer(name="bare", no_args_is_help=True)
def made(number):
    def command(where: str, fail_on: str = "critical", quiet: bool = False) -> None:
        """Does one thing."""
    command.__name__ = f"command{number}"
    return command
for number in range(8):
    app.command()(made(number))
app()
'''
ONE = '''import typer
app = typer.Typer(name="bare")
@app.command()
def command(where: str) -> None:
    """Does nothing."""
app()
'''
#: The same command, importing what every check imports, in a process with no more to do beside it than a check's own.
FLOOR = '''import typer
from rlhealth.system.process import settled
app = typer.Typer(name="bare")
@app.command()
def command(where: str) -> None:
    """Does nothing."""
    import numpy
with settled():
    app()
'''


def read_all(path: Path) -> Timed:
    """All scalars of an event file, checksums verified."""
    import google_crc32c  # noqa: F401 (an import that is not to be timed)

    from rlhealth.sources.tensorboard.reader import find

    def read() -> int:
        (reader,) = find(path)
        reader.poll()
        return sum(len(one) for one in reader.run.series.values())

    return read


def check_all(path: Path) -> Timed:
    """The same, and all rules over it."""
    import google_crc32c  # noqa: F401

    import rlhealth
    from rlhealth.rules.loading import load_rules
    from rlhealth.sources.tensorboard import reader as tensorboard  # noqa: F401

    rules = load_rules()
    rlhealth.check(ROOT / "fixtures" / "tensorboard", rules=rules)  # what is imported at the first need is there

    def read() -> int:
        (found,) = rlhealth.check(path, rules=rules).runs
        return sum(len(one) for one in found.run.series.values())

    return read


def command(*words: str, kept: bool = True) -> Row:
    """A whole process; as a start-up, timed by the processor time that it took. Its modules are compiled by the
    first of them, as those of an installed program are; `kept`: so are rlhealth's rules and names, in its cache folder.
    """

    def row(path: Path) -> Timed:
        given = [str(path) if word == "PATH" else word for word in words]
        environment = {name: said for name, said in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment |= {"PYTHONWARNINGS": "ignore"} | ({} if kept else {"RLHEALTH_CACHE_DIR": ""})

        return lambda: subprocess.run(given, capture_output=True, check=False, cwd=ROOT, env=environment).returncode

    return row


def discovered(path: Path) -> Timed:
    """Every run below a folder, found and not read."""
    from rlhealth.sources.tensorboard import reader  # noqa: F401 (an import that is not to be timed)

    return lambda: len(find_all([path], RunSelection(None), []))


def read_many(path: Path) -> Timed:
    """Every run below a folder, found and read."""
    from rlhealth.sources.tensorboard import reader  # noqa: F401

    def read() -> int:
        readers = find_all([path], RunSelection(None), [])
        return sum(one.poll() for one in readers)

    return read


def many(jobs: int, ray: str | None = None) -> Row:
    """Every run of a folder, over so many processes, or on a Ray cluster that stands already."""

    def row(path: Path) -> Timed:
        import rlhealth
        from rlhealth.rules.loading import load_rules

        rules = load_rules()
        if ray is not None:
            import ray as cluster

            cluster.init(address=ray, num_cpus=2, log_to_driver=False, configure_logging=False, include_dashboard=False)
            rlhealth.check(sorted(path.iterdir())[:4], rules=rules, ray=ray)  # its processes have begun
        return lambda: len(rlhealth.check(path, rules=rules, jobs=jobs, ray=ray).runs)

    return row


def notebook(read: Callable[[Path], object]) -> Row:
    """A notebook, read by `read`."""
    return lambda path: lambda: bool(read(path))


def with_rlhealth(path: Path) -> object:
    """The runs in a notebook's outputs."""
    from rlhealth.sources.notebooks.reader import find

    return find(path)


def with_nbformat(path: Path) -> object:
    """The notebook, checked against its schema."""
    import nbformat

    return nbformat.read(path, as_version=4)


def with_json(path: Path) -> object:
    """The notebook as JSON."""
    return json.loads(path.read_bytes())


def texts(measure: Callable[[list[str]], int]) -> Row:
    """The texts in a file, parted by NUL, measured by `measure`."""

    def row(path: Path) -> Timed:
        read = path.read_text(encoding="utf-8").split("\0")
        return lambda: measure(read)

    return row


def every_measure(texts: list[str]) -> int:
    """Repetition, likeness, templates, scripts and the pay for length of one step's completions."""
    from rlhealth.completions.batch import batches
    from rlhealth.completions.measures import measured

    columns = {
        "step": [1] * len(texts),
        "prompt": [f"prompt {number // 4}" for number in range(len(texts))],
        "completion": texts,
        "accuracy": [number * 7919 % 65521 / 65521 for number in range(len(texts))],
    }
    return measured(batches(columns)[0])[1]


def compressed(texts: list[str]) -> int:
    """How far each text can be compressed, which is the plainest measure of repetition."""
    import zlib

    return sum(len(zlib.compress(one.encode(), 6)) for one in texts)


def counted(texts: list[str]) -> int:
    """How often each word stands in each text."""
    from collections import Counter

    return sum(len(Counter(one.split())) for one in texts)


def tick(path: Path) -> Timed:
    """A look of a watcher that finds one more step: the median of ten, each timed by itself. The folder holds the
    run and `more` of it.
    """
    from rlhealth.rules.loading import load_rules
    from rlhealth.sources.tensorboard.reader import find
    from rlhealth.watch.follower import Follower

    log = next((path / "run").iterdir())
    more = next((path / "more").iterdir()).read_bytes()
    whole = log.stat().st_size
    (reader,) = find(log.parent)
    follower = Follower(reader, load_rules())
    follower.look(1)
    begin = 16 + int.from_bytes(more[:8], "little")
    size = (len(more) - begin) // 20
    taken = []
    for number in range(10):
        with log.open("ab") as stream:
            stream.write(more[begin + number * size : begin + (number + 1) * size])
        began = time.perf_counter()
        follower.look(1)
        taken.append(time.perf_counter() - began)
    assert sum(len(one) for one in reader.run.series.values()) % len(TAGS) == 0
    os.truncate(log, whole)
    return lambda: time.sleep(statistics.median(taken)) or len(TAGS)


def rows_in(name: str) -> Row:
    """All rows of a log of rows."""

    def row(path: Path) -> Timed:
        from rlhealth.sources import find_readers
        from rlhealth.sources.wandb import file as wandb_file  # noqa: F401 (imports that are not to be timed)

        def read() -> int:
            (reader,) = find_readers(str(path / name))
            reader.poll()
            return sum(len(one) for one in reader.run.series.values())

        return read

    return row


def stdlib_json(name: str) -> Row:
    return lambda path: lambda: len(json.loads((path / name).read_bytes()))


def orjson_whole(name: str) -> Row:
    def row(path: Path) -> Timed:
        import orjson

        return lambda: len(orjson.loads((path / name).read_bytes()))

    return row


def each_line(loads: str) -> Row:
    """The rows of the wandb file as lines of JSON, one after another."""

    def row(path: Path) -> Timed:
        parse = __import__(loads).loads
        return lambda: sum(1 for line in (path / "rows.jsonl").read_bytes().splitlines() if parse(line))

    return row


def records(path: Path) -> Timed:
    """The records of the wandb file as wandb's own messages, every value by orjson; the SDK has no reader of its own
    in Python any more.
    """
    import orjson
    from wandb.proto import wandb_internal_pb2 as messages

    from rlhealth.sources.wandb.log import RecordLog

    def read() -> int:
        count = 0
        for found in RecordLog(path / "run-x.wandb").read():
            for start, end in zip(found.start.tolist(), found.end.tolist(), strict=True):
                record = messages.Record()
                record.ParseFromString(found.buffer[start:end])
                count += len({item.key: orjson.loads(item.value_json) for item in record.history.item})
        return count

    return read


PYTHON = sys.executable
#: Table -> (what is measured, by its label; the first is what the others are set against).
TABLES: dict[str, dict[str, Row]] = {
    "check": {"read all scalars": read_all, "check, all rules": check_all},
    "start-up": {
        "a bare typer app, --help": command(PYTHON, "-c", BARE, "--help"),
        "rlhealth --help": command(PYTHON, "-m", "rlhealth", "--help"),
        "wandb --help": command(PYTHON, "-m", "wandb", "--help"),
        "a bare typer app, a command with a word": command(PYTHON, "-c", ONE, "where"),
        "the same, importing numpy": command(PYTHON, "-c", FLOOR, "where"),
        "rlhealth check, a run of 200 steps": command(PYTHON, "-m", "rlhealth", "check", "PATH"),
        "the same, nothing kept": command(PYTHON, "-m", "rlhealth", "check", "PATH", kept=False),
        "rlhealth --version": command(PYTHON, "-m", "rlhealth", "--version"),
    },
    "discovery": {"10,000 runs found": discovered},
    "many": {
        "reading them": read_many,
        "one process": many(1),
        "two processes": many(2),
        "Ray, two cores": many(1, "local"),
        "rlhealth check -j 1": command(PYTHON, "-m", "rlhealth", "check", "PATH", "-q", "-j", "1"),
        "rlhealth check -j 2": command(PYTHON, "-m", "rlhealth", "check", "PATH", "-q", "-j", "2"),
    },
    "healthy": {"reading them": read_many, "one process": many(1), "two processes": many(2)},
    "tick": {"a tick of watch": tick},
    "online": {
        "scan_history of the SDK, run by run": online.sdk,
        "rlhealth, one request at a time": online.checked(1),
        "rlhealth, 20 at once": online.checked(None),
        "rlhealth check --wandb, the whole command": online.command,
        "a look of watch at the live runs": online.look,
    },
    "notebook": {
        "json": notebook(with_json),
        "rlhealth": notebook(with_rlhealth),
        "nbformat": notebook(with_nbformat),
    },
    "texts": {
        "zlib, of each text": texts(compressed),
        "rlhealth, every measure": texts(every_measure),
        "a count of each text's words": texts(counted),
    },
    "wandb": {
        "rlhealth": rows_in("run-x.wandb"),
        "orjson, over the same bytes": records,
        "orjson, line by line": each_line("orjson"),
        "json, line by line": each_line("json"),
    },
    "jsonl": {
        "rlhealth": rows_in("rows.jsonl"),
        "orjson, line by line": each_line("orjson"),
        "json, line by line": each_line("json"),
    },
    "trainer_state": {
        "rlhealth": rows_in("trainer_state.json"),
        "orjson": orjson_whole("trainer_state.json"),
        "json": stdlib_json("trainer_state.json"),
    },
}
