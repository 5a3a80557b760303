"""What is fuzzed, and what must hold of every input: an answer or an `RlhealthError`, nothing else, and a run that keeps its promises."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rlhealth.errors import RlhealthError
from rlhealth.run import Run
from tests.fuzz import asked, exports, kept, listings, planted, seeds, shapes
from tests.fuzz.framing import event_file, wandb_file

#: Tries one input; the path is a file it may use. True where something could be read in it.
Attempt = Callable[[bytes, Path], bool]

NUMBERS = (
    b"NaN",
    b"Infinity",
    b"-Infinity",
    b"1e999",
    b"-1e-320",
    b"9" * 400,
    b"1e308",
    b"4611686018427387904",
    b"-9223372036854775809",
    b"0",
    b"null",
    b"true",
    b'"nan"',
)
JSON_WORDS = (
    *NUMBERS,
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b'"',
    b'"step"',
    b'"global_step"',
    b'"log_history"',
    b'"epoch"',
    b"\\u0000",
    b"\\ud800",
    b"[" * 50,
    b'{"a":' * 50,
    b"\n",
)
PICKLE_WORDS = (
    b"]",
    b"}",
    b"(",
    b"e.",
    b"R",
    b"b",
    b"\x81",
    b"h\x00",
    b"j\xff\xff\xff\x7f",
    b"r\xff\xff\xff\x7f",
    b"G\x7f\xf8\x00\x00\x00\x00\x00\x00",
    b"cos\nsystem\n",
    b"cnumpy\ndtype\n",
    b"cbuiltins\nlist\n",
    b"\x8c\x07rewards\x94",
)
ARRAY_WORDS = (
    b"\x93NUMPY\x01\x00",
    b"(99999999999,)",
    b"(-1,)",
    b"(2, 3)",
    b"()",
    b"'|O'",
    b"'<f8'",
    b"'<c16'",
    b"True",
    b"PK\x03\x04",
)
YAML_WORDS = (
    *NUMBERS,
    b"!!python/object/apply:os.system [x]",
    b"&a [*a]",
    b"*a",
    b"? [a]\n: b",
    b"{}",
    b"[]",
    b"- ",
    b": ",
    b"\n  ",
    b"|\n",
    b".nan",
    b".inf",
    b"<<",
    b"---\n",
    b"%YAML 9.9\n",
    b"when:",
    b"above:",
    b"below:",
    b"last:",
    b"held_for:",
    b"measure:",
    b"versus:",
    b"start:",
    b"cause:",
    b"any:",
    b"all:",
    b"{value:>99999999}",
    b"{value.__class__}",
    b"{0}",
    b"{",
    b"}",
    b"[[",
    b"]]",
    b"harmless_once: reward-rose\n",
    b"harmless_once: reward-is-back\n",
    b"harmless_once: its-end\n",
    b"over_once: reward-rose\n",
    b"severity_when_over: info\n",
    b"standard_errors: -3.5",
    b"standard_errors: 1e308",
    b"frameworks: [language-models, control, 'trl-*', '[', '']\n",
    b"only_if: {beta: {above: 0}}\n",
    b"aspects:\n  - {title: a, severity: info, when: {metric: kl, last: 3, measure: mean, above: 0}, message: m}\n",
    b"vanished: kl",
    b"ending: [crashed]",
    b"mean_fraction",
    b"drop_from_best",
    b"gain_since_start",
    b"share_nonfinite",
    b"correlation",
    b"divided_by: {metric: kl, power: -2}",
    b"if_logged: true",
    b"unless_logged: kl|entropy",
    b"each_metric: true",
    b"full_precision: true",
    b"any_training: true",
    b"metric: kl",
    b"value",
    b"kl*",
    b"!!binary aGk=",
    b"!!timestamp 2020-01-01",
    b"[" * 50,
)
TEXT_WORDS = (
    *NUMBERS,
    b"{'loss': ",
    b"'",
    b"{",
    b"}",
    b"|",
    b"\t",
    b"-----\n",
    b"step:",
    b" - ",
    b"tensor(",
    b"np.float64(",
    b")",
    b"=",
    b": ",
    b"\r",
    b"\n",
    b"\x1b[31m",
    b"1,000.5",
    b"50%",
    b"2/10",
    b"Step 3/100",
    b"=== Step 4 ===\n",
    "│ a │ 1 │\n".encode(),
    "├──┤\n".encode(),
    b"[rank1]: ",
    b"task_id=",
    b"ppo_trainer.py:9: UserWarning: KL divergence is starting to become negative: -1.5 - this might be\n",
    b"UserWarning: The average ratio of batch (12.5) exceeds threshold 10.00. Skipping batch.\n",
)
NOTEBOOK_WORDS = (
    b'"cells"',
    b'"outputs": [',
    b'"output_type": "display_data"',
    b"<<<<<<< HEAD\n",
    b"=======\n",
    b">>>>>>> b\n",
    b"<table>",
    b"</table>",
    b"<tr><td>",
    b"<th>Step</th>",
    b"[10/20 00:10]",
    b"No log",
    b"...",
    b"\\\n\n",
    b"GRPOConfig(",
    b"GRPOTrainer(args=GRPOConfig(beta=0.1)).train()",
    b"%%writefile a.py\n",
    b"!ls\n",
    b"<td colspan=99999999 rowspan=-1>",
    b"<table><tr><td><table>",
    b"<tr>" * 500,
    b"<td>" * 500,
    b"<!-- ",
    b"<script>",
    b"&#x0;&#1114112;&lt;",
    b"&nbsp;",
    b"<thead>",
    b"<tbody>",
    b"||||||| base\n",
    b'<<<<<<< HEAD\n "a",\n=======\n',
    b"(" * 300,
    b"-" * 3000,
    b"1+" * 300,
    b"9" * 5000,
    b"a." * 300 + b"train()\n",
    b"x = y = GRPOConfig(**x)\n",
    b'"""',
    b"for x in y:\n",
    b"\x1e",
)
CSV_WORDS = (
    *NUMBERS,
    b",",
    b";",
    b"\t",
    b'"',
    b"\n",
    b"\r\n",
    b"\0",
    b"step",
    b"Wall time",
    b"Step",
    b"Value",
    b" - kl",
    b"tag",
    b"run",
    b"#",
    b"\xff\xfe",
    b"2024-01-01T00:00:00",
    b"train/loss",
)
TOML_WORDS = (
    *NUMBERS,
    b"[rules.kl-high]",
    b"[[ignore]]",
    b"[aliases]",
    b"[tool.rlhealth]",
    b"tool = 3",
    b"nan",
    b"-inf",
    b"2027-01-01",
    b"25:99:99",
    b'"""',
    b"'",
    b"=",
    b"[",
    b"]",
    b".",
    b"#",
    b"\n",
)
BINARY_WORDS = (
    b"\xff" * 9 + b"\x01",
    b"\x08\x80\x80\x80\x80\x80\x80\x80\x80\x40",
    b"\x0a\xff\xff\xff\xff\x07",
    b"\x12",
    b"\x1a",
    b"\xf8\x7f",
    b"\x00\x00\xf0\x7f",
    b"\xff\xff\xff\x7f",
    b"{}",
    b"NaN",
    b"[[[[",
)


@dataclass(frozen=True)
class Target:
    """One thing that reads what others wrote.

    Attributes:
        attempt: tries one input.
        seeds: what its inputs are made from.
        words: of its format, for the mutator.
        quick: inputs of the pass in the suite.
        needs: a package of an extra, without which there is nothing to try.
    """

    name: str
    attempt: Attempt
    seeds: Callable[[], Sequence[bytes]]
    words: Sequence[bytes] = ()
    quick: int = 150
    needs: str = ""


def put(path: Path, raw: bytes) -> None:
    """Writes an input where the reader finds it; in place, which is the quickest."""
    with path.open("wb") as file:
        file.write(raw)


def sound(run: Run) -> bool:
    """What holds of every run, whatever it was read from."""
    for series in run.series.values():
        steps = series.steps
        assert len(steps) == len(series.values) == len(series.times)
        assert not np.any(steps[1:] <= steps[:-1]), "steps that do not rise"
    for histogram in run.histograms.values():
        assert all(
            len(edges) == len(counts) + 1 for edges, counts in zip(histogram.edges, histogram.counts, strict=True)
        )
    assert all(isinstance(problem, str) and len(problem) < 5_000 for problem in [*run.problems, *run.notes])
    assert run.first_step is None or run.first_step <= (run.last_step or run.first_step)
    return bool(run.series)


def reading(find: Callable[[Path], Sequence[object]]) -> Attempt:
    """Reads the file twice, as a watch does: the second poll finds nothing new."""

    def attempt(raw: bytes, path: Path) -> bool:
        put(path, raw)
        found = False
        try:
            for reader in find(path):
                try:
                    reader.poll()  # type: ignore[attr-defined]
                    found |= sound(reader.run)  # type: ignore[attr-defined]
                    assert not reader.poll(), "something new in a file that nobody wrote"  # type: ignore[attr-defined]
                except RlhealthError:
                    continue
        except RlhealthError:
            return False
        return found

    return attempt


def framed(frame: Callable[[bytes], bytes], attempt: Attempt) -> Attempt:
    """The same for records that are framed first, so that their checksums hold."""
    return lambda raw, path: attempt(frame(raw), path)


def _tensorboard(path: Path) -> Sequence[object]:
    from rlhealth.sources.tensorboard.reader import find

    return find(path, reader="fast")


def _wandb(path: Path) -> Sequence[object]:
    from rlhealth.sources.wandb.file import find

    return find(path)


def _trackio(path: Path) -> Sequence[object]:
    from rlhealth.sources.trackio.reader import find

    return find(path)


def _table(kind: str) -> Callable[[Path], Sequence[object]]:
    def find(path: Path) -> Sequence[object]:
        from rlhealth.sources.rows import table

        return table.find(path, kind)

    return find


def _come_across(path: Path) -> Sequence[object]:
    """As a file of no known name in a folder: it is read, counted as left out, or silent."""
    from rlhealth.sources.base.candidates import others
    from rlhealth.sources.rows import table

    _, texts, left = others([path])
    return table.readers(texts, [], left)


def _notebook(path: Path) -> Sequence[object]:
    from rlhealth.sources.notebooks.reader import find

    return find(path)


def _evaluations(path: Path) -> Sequence[object]:
    from rlhealth.sources.evaluations.reader import find

    return find(path)


def _curve(path: Path) -> Sequence[object]:
    from rlhealth.sources.arrays.reader import find

    return find(path)


def _curves(path: Path) -> Sequence[object]:
    from rlhealth.sources.arrays.reader import find

    is_list = path.read_bytes()[:1] == b"["
    return find(path.rename(path.with_name("rewards.json" if is_list else "rewards.csv")))


def _pickled(path: Path) -> Sequence[object]:
    from rlhealth.sources.arrays.reader import find

    return find(path.rename(path.with_name("history.pkl")))


def _packed_arrays(raw: bytes, path: Path) -> bool:
    """A sound archive, whose arrays hold anything."""
    import io
    import zipfile

    text = io.BytesIO()
    with zipfile.ZipFile(text, "w") as archive:
        for name in ("timesteps", "results", "ep_lengths"):
            archive.writestr(f"{name}.npy", raw)
    return reading(_evaluations)(text.getvalue(), path)


def _swanlab(path: Path) -> Sequence[object]:
    from rlhealth.sources.swanlab.reader import find

    return find(path)


def _mlflow(path: Path) -> Sequence[object]:
    from rlhealth.sources.mlflow.reader import find

    return find(path)


def _metric_lines(raw: bytes, path: Path) -> bool:
    """A folder of MLflow's and one of DVCLive's, whose files hold anything."""
    import tempfile

    from rlhealth.sources.dvclive.reader import DvcLive
    from rlhealth.sources.mlflow.folder import MlflowFolder

    found = False
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        for name in ("metrics/kl", "params/beta", "plots/metrics/kl.tsv", "meta.yaml", "params.yaml"):
            file = Path(folder) / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(raw)
        for reader in (
            MlflowFolder(Path(folder), Path(folder) / "metrics"),
            DvcLive(Path(folder) / "plots" / "metrics"),
        ):
            with contextlib.suppress(RlhealthError):
                reader.poll()
                found |= sound(reader.run)
                assert not reader.poll(), "something new in a file that nobody wrote"
    return found


def _notebook_outputs(raw: bytes, path: Path) -> bool:
    """A sound notebook, whose code, streams and HTML hold anything."""
    import json

    parts = [part.decode("utf-8", "replace") for part in [*raw.split(b"\x1e"), b"", b""][:3]]
    shown = [
        {"output_type": "stream", "name": "stdout", "text": parts[1]},
        {"output_type": "display_data", "metadata": {}, "data": {"text/html": parts[2]}},
        {"output_type": "execute_result", "metadata": {}, "data": {"text/plain": parts[1]}},
    ]
    cell = {"cell_type": "code", "metadata": {}, "source": parts[0], "outputs": shown}
    return reading(_notebook)(json.dumps({"cells": [cell, cell], "nbformat": 4}).encode(), path)


def _any(path: Path) -> Sequence[object]:
    from rlhealth.sources import find_readers

    return find_readers(str(path))


def _named_file(raw: bytes, path: Path) -> bool:
    """A file in a folder under any name: found by name and by what is in it, read, counted as left out, or silent."""
    import tempfile

    name, inside = shapes.parted(raw)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        return reading(lambda _: _any(Path(folder)))(inside, Path(folder) / name)


def _trackio_rows(raw: bytes, path: Path) -> bool:
    """A sound database whose cells hold anything: time, step and metrics of each row, the settings."""
    import sqlite3

    path.unlink(missing_ok=True)
    database = sqlite3.connect(path)
    database.execute("PRAGMA synchronous = 0")
    database.execute("CREATE TABLE metrics (id INTEGER PRIMARY KEY AUTOINCREMENT, timestamp, run_name, step, metrics)")
    database.execute("CREATE TABLE configs (id INTEGER PRIMARY KEY, run_name, config, created_at)")
    for number, line in enumerate(raw.split(b"\n")):
        text: object = line.decode("utf-8", "replace") if number % 3 else line
        database.execute(
            "INSERT INTO metrics (timestamp, run_name, step, metrics) VALUES (?, 'a', ?, ?)",
            (f"2026-01-01T00:00:{number:02}", number if number % 5 else text, text),
        )
    database.execute("INSERT INTO configs VALUES (1, 'a', ?, '')", (raw.decode("utf-8", "replace"),))
    database.commit()
    database.close()
    return reading(_trackio)(path.read_bytes(), path)


def _rule(raw: bytes, path: Path) -> bool:
    """A rule that can be read must be one that can judge, explain and document itself."""
    from rlhealth.rules.loading import read_rule, text_of
    from rlhealth.rules.words import advice, in_words, scope
    from tests.fuzz.judging import judged

    put(path, raw)
    try:
        rule = read_rule(text_of(path), "fuzzed.yaml")
        in_words(rule), scope(rule), advice(rule)
        judged(rule)
    except RlhealthError:
        return False
    return True


def _aliases(raw: bytes, path: Path) -> bool:
    from rlhealth.metrics.aliases import read_aliases

    put(path, raw)
    try:
        return bool(read_aliases(path))
    except RlhealthError:
        return False


def _settings(raw: bytes, path: Path) -> bool:
    from rlhealth.settings.project import apply, load_settings
    from tests.fuzz.judging import shipped

    shared = path.with_name("pyproject.toml")
    put(path, raw)
    with contextlib.suppress(RlhealthError):
        apply(load_settings(file=path), shipped())
    put(shared, raw)
    try:
        return bool(apply(load_settings(file=shared), shipped()))
    except RlhealthError:
        return False


def _baseline(raw: bytes, path: Path) -> bool:
    from rlhealth.verdict.baseline import read_baseline

    put(path, raw)
    try:
        return bool(read_baseline(path).accepted)
    except RlhealthError:
        return False


def _rule_tests(raw: bytes, path: Path) -> bool:
    from rlhealth.authoring.case_runs import find_cases, run_case
    from tests.fuzz.judging import shipped

    path = path.with_name("entropy-collapse.test.yaml")
    put(path, raw)
    try:
        for location, tests in find_cases([path], shipped()):
            for case in tests.cases[:2]:
                run_case(case, next(rule for rule in shipped() if rule.id == tests.rule), shipped(), location)
    except RlhealthError:
        return False
    return True


def _reports(raw: bytes, path: Path) -> bool:
    from tests.fuzz.judging import reported

    return reported(raw.decode("utf-8", "surrogateescape"))


def _printed_dict(raw: bytes, path: Path) -> bool:
    from rlhealth.sources.rows.printed import Printed
    from rlhealth.sources.rows.printed_dicts import dict_in

    text = raw.decode("utf-8", "replace")
    printed = Printed()
    rows = [row for line in [*text.split("\n"), ""] for row in printed.rows(line)] + list(printed.end())
    return bool(rows) | (dict_in(text, cut=True) is not None)


def _engine(raw: bytes, path: Path) -> bool:
    from tests.fuzz.judging import judged_points

    return judged_points(raw)


def _points() -> Sequence[bytes]:
    return [
        np.asarray(values, np.float64).tobytes()
        for values in (
            [1.0] * 40,
            np.arange(60.0),
            [1.0, np.nan, np.inf, -np.inf, 5e-324, 1e308] * 8,
            np.sin(np.arange(50.0)),
        )
    ]


def _rule_test_files() -> Sequence[bytes]:
    return [(seeds.ROOT / "rules" / "entropy" / "entropy-collapse.test.yaml").read_bytes()]


def _baselines() -> Sequence[bytes]:
    return [
        b'{"schema": "rlhealth.baseline/1", "accepted": [\n  {"run": "a", "rule": "kl-high", "metric": "kl", "severity": "critical"}\n]}\n',
        b"{}",
    ]


def _texts() -> Sequence[bytes]:
    return [
        b"train/kl",
        "run🏃‍♀️ é\u202e".encode(),
        b"<script>alert(1)</script>",
        b"::error file=a::b%0A",
        b"]]>\x1b[31m",
        b"| a | b |\n# head",
        b"=cmd|' /C calc'!A0",
        b"{x} %s {value:>99}",
    ]


TEXTS = (
    b"\x1b",
    b"\x00",
    b"\r\n",
    b"<",
    b">",
    b"&",
    b"'",
    b'"',
    b"]]>",
    b"::",
    b"%0A",
    b"|",
    b"`",
    b"\xe2\x80\xae",
    b"\xed\xa0\x80",
    b"{value}",
    b"[red]",
    b"[/]",
    b"</script>",
    b"\\",
    b"=",
    b"x" * 300,
)

TARGETS = {
    one.name: one
    for one in (
        Target("event-file", reading(_tensorboard), seeds.event_files, BINARY_WORDS),
        Target("event-records", framed(event_file, reading(_tensorboard)), seeds.event_records, BINARY_WORDS),
        Target("wandb-file", reading(_wandb), lambda: [*seeds.wandb_files(), *shapes.bytes_of(".wandb")], BINARY_WORDS),
        Target("wandb-records", framed(wandb_file, reading(_wandb)), seeds.wandb_records, (*BINARY_WORDS, *NUMBERS)),
        Target("trackio-file", reading(_trackio), seeds.databases, BINARY_WORDS, 60),
        Target("trackio-rows", _trackio_rows, seeds.rows_of_json, JSON_WORDS, 60),
        Target("swanlab-file", reading(_swanlab), seeds.swanlab_files, BINARY_WORDS, 60),
        Target("mlflow-file", reading(_mlflow), seeds.mlflow_databases, BINARY_WORDS, 40),
        Target("metric-lines", _metric_lines, seeds.metric_lines, (*TEXT_WORDS, *YAML_WORDS), 60),
        Target("evaluations", reading(_evaluations), seeds.evaluations, ARRAY_WORDS, 40),
        Target("curve", reading(_curve), seeds.curves, ARRAY_WORDS, 40),
        Target("curves", reading(_curves), seeds.tables_of_curves, (b",0,1,2\n", b"[[", b"],[", b"nan", b"1e400"), 40),
        Target("pickled", reading(_pickled), seeds.pickles, PICKLE_WORDS, 100),
        Target("evaluations-arrays", _packed_arrays, seeds.arrays, ARRAY_WORDS, 40),
        Target("notebook", reading(_notebook), seeds.notebooks, (*JSON_WORDS, *NOTEBOOK_WORDS), 60),
        Target("notebook-outputs", _notebook_outputs, seeds.notebook_outputs, (*TEXT_WORDS, *NOTEBOOK_WORDS), 60),
        Target(
            "trainer-state",
            reading(_table("trainer_state")),
            lambda: [*seeds.trainer_states(), *shapes.bytes_of("state.json")],
            JSON_WORDS,
        ),
        Target(
            "jsonl", reading(_table("jsonl")), lambda: [*seeds.rows_of_json(), *shapes.bytes_of(".jsonl")], JSON_WORDS
        ),
        Target("json", reading(_table("json")), lambda: [*seeds.documents(), *shapes.bytes_of(".json")], JSON_WORDS),
        Target("csv", reading(_table("csv")), lambda: [*seeds.tables(), *shapes.bytes_of(".csv")], CSV_WORDS, 60),
        Target(
            "console", reading(_table("console")), lambda: [*seeds.consoles(), *shapes.bytes_of(".log")], TEXT_WORDS
        ),
        Target("come-across", reading(_come_across), seeds.shapes, (*JSON_WORDS, *TEXT_WORDS)),
        Target("named-file", _named_file, shapes.named_files, (*JSON_WORDS, *TEXT_WORDS), 60),
        Target("printed-dict", _printed_dict, seeds.consoles, TEXT_WORDS, 300),
        Target(
            "any-file",
            reading(_any),
            lambda: [*seeds.consoles(), *seeds.tables(), *seeds.trainer_states(), *seeds.event_files()[:2]],
            TEXT_WORDS,
            60,
        ),
        Target("parquet-file", exports.read_file, exports.files, BINARY_WORDS, 60, "pyarrow"),
        Target("parquet-columns", exports.read_columns, exports.cells, NUMBERS, 60, "pyarrow"),
        Target("kept", kept.made_anew, kept.files, BINARY_WORDS),
        Target("asked", asked.answered, asked.requests, asked.WORDS, 60, "mcp"),
        Target("listing", listings.mirrored, listings.listings, listings.WORDS, 60, "fsspec"),
        Target("secrets", planted.untold, planted.seeds, quick=60),
        Target("settings-secrets", planted.settings_of_a_project, planted.settings_files, TOML_WORDS),
        Target("rule", _rule, seeds.rules, YAML_WORDS, 60),
        Target("rule-test", _rule_tests, _rule_test_files, YAML_WORDS, 30),
        Target("aliases", _aliases, lambda: [b"my/kl: kl\nother: reward\n", b'{"a": kl, b: "reward"}'], YAML_WORDS),
        Target("settings", _settings, seeds.settings_files, TOML_WORDS, 100),
        Target("baseline", _baseline, _baselines, JSON_WORDS),
        Target("reports", _reports, _texts, TEXTS, 15),
        Target(
            "engine",
            _engine,
            _points,
            (
                b"\x00\x00\x00\x00\x00\x00\xf8\x7f",
                b"\x00\x00\x00\x00\x00\x00\xf0\x7f",
                b"\x01" + bytes(7),
                b"\xff" * 6 + b"\xef\x7f",
            ),
            15,
        ),
    )
}


def scratch(folder: str, target: Target) -> Path:
    """Where a target's input is written; no known suffix, so that the named reader takes it."""
    return Path(folder) / f"{os.getpid()}-{target.name}"
