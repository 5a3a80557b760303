"""Shapes of one real sick log, as trainers, rotations, shells and people leave them: each takes rows and a folder,
and writes files.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parents[2] / "fixtures"
Rows = list[dict[str, Any]]
Shape = Callable[[Path, Rows], None]
SHAPES: dict[str, Shape] = {}


def sick_rows() -> Rows:
    """The rows of a real run that went critical."""
    rows: Rows = json.loads((FIXTURES / "reports" / "lr-jump" / "trainer_state.json").read_text())["log_history"]
    return [row for row in rows if "loss" in row]


def lines(rows: Rows) -> str:
    """The rows as JSONL."""
    return "".join(json.dumps(row) + "\n" for row in rows)


def table(rows: Rows, names: dict[str, str] | None = None) -> str:
    """The rows as CSV, columns renamed by `names`; an empty name leaves a column out."""
    columns = [key for key in dict.fromkeys(key for row in rows for key in row) if (names or {}).get(key, key)]
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([(names or {}).get(key, key) for key in columns])
    writer.writerows([[row.get(key, "") for key in columns] for row in rows])
    return out.getvalue()


def printed(rows: Rows) -> str:
    """The rows as a trainer prints them."""
    return "".join(f"{row}\n" for row in rows)


def shape(name: str) -> Callable[[Shape], Shape]:
    """Registers a shape."""

    def add(write: Shape) -> Shape:
        SHAPES[name] = write
        return write

    return add


def _named(name: str, make: Callable[[Rows], str | bytes] = lines) -> None:
    def write(folder: Path, rows: Rows) -> None:
        made = make(rows)
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(made if isinstance(made, bytes) else made.encode())

    SHAPES[f"{name} ({make.__name__})" if name in SHAPES else name] = write


def in_state(rows: Rows) -> str:
    """The rows as a trainer's state."""
    return json.dumps({"global_step": rows[-1]["step"], "log_history": rows})


for _name in (
    "train.JSONL",
    "train.jsonlines",
    "train.ndjson",
    "train.NDJSON",
    "train.ldjson",
    "train.jsonl.1",
    "train.jsonl.bak",
    "train.jsonl.old",
    "train.jsonl~",
    "train.jsonl-20260131",
    "config.jsonl",
    "run_config.jsonl",
    "adapter.jsonl",
    "adapter_metrics.jsonl",
    "summary.jsonl",
    "train_summary.jsonl",
    "completions.jsonl",
    "completions_log.jsonl",
    "tokenizer_metrics.jsonl",
    "dataset.jsonl",
    "prompts.jsonl",
    "metadata.jsonl",
    "train",
    "rank0",
    "metrics.dat",
    "metrics.data",
    "metrics.bin",
    "model.pt",
    "metrics.tmp",
    "metrics.jl",
    "slurm-4711",
):
    _named(_name)
for _name in ("train.LOG", "train.err", "STDOUT", "slurm-4711.out", "train.log.3", "console", "train.log.2026-01-31"):
    _named(_name, printed)
for _name in ("progress.CSV", "progress.tsv.csv", "metrics", "config.csv", "summary.csv"):
    _named(_name, table)
for _name in ("Trainer_State.JSON", "TRAINER_STATE.json", "state.json", "adapter_config.json", "config.json"):
    _named(_name, in_state)


@shape("gzip")
def _gzip(folder: Path, rows: Rows) -> None:
    (folder / "train.jsonl.gz").write_bytes(gzip.compress(lines(rows).encode()))


@shape("gzip under another name")
def _gzip_unnamed(folder: Path, rows: Rows) -> None:
    (folder / "train.jsonl").write_bytes(gzip.compress(lines(rows).encode()))


@shape("gzipped state")
def _gzip_state(folder: Path, rows: Rows) -> None:
    (folder / "trainer_state.json.gz").write_bytes(gzip.compress(in_state(rows).encode()))


@shape("gzipped console")
def _gzip_console(folder: Path, rows: Rows) -> None:
    (folder / "train.log.GZ").write_bytes(gzip.compress(printed(rows).encode()))


@shape("gzipped table")
def _gzip_table(folder: Path, rows: Rows) -> None:
    (folder / "progress.csv.gz").write_bytes(gzip.compress(table(rows).encode()))


@shape("bzip2")
def _bzip2(folder: Path, rows: Rows) -> None:
    (folder / "train.jsonl.bz2").write_bytes(bz2.compress(lines(rows).encode()))


@shape("xz")
def _xz(folder: Path, rows: Rows) -> None:
    (folder / "train.jsonl.xz").write_bytes(lzma.compress(lines(rows).encode()))


@shape("zip")
def _zip(folder: Path, rows: Rows) -> None:
    with zipfile.ZipFile(folder / "backup.zip", "w") as archive:
        archive.writestr("train.jsonl", lines(rows))


@shape("zstd by its name")
def _zstd(folder: Path, rows: Rows) -> None:
    (folder / "train.jsonl.zst").write_bytes(b"\x28\xb5\x2f\xfd" + bytes(200))


@shape("gzipped event file")
def _gzip_events(folder: Path, rows: Rows) -> None:
    (event,) = (FIXTURES / "runs" / "lr-jump").rglob("events*")
    (folder / f"{event.name}.gz").write_bytes(gzip.compress(event.read_bytes()))


@shape("event file under another name")
def _events(folder: Path, rows: Rows) -> None:
    (event,) = (FIXTURES / "runs" / "lr-jump").rglob("events*")
    (folder / "board.bin").write_bytes(event.read_bytes())


@shape("wandb file under another name")
def _wandb(folder: Path, rows: Rows) -> None:
    (folder / "run.bin").write_bytes((FIXTURES / "wandb" / "run-legacy-ppo.wandb").read_bytes())


@shape("rotated, sick in its oldest part")
def _rotated(folder: Path, rows: Rows) -> None:
    third = len(rows) // 3
    (folder / "train.jsonl.2.gz").write_bytes(gzip.compress(lines(rows[:third]).encode()))
    (folder / "train.jsonl.1").write_text(lines(rows[third : 2 * third]))
    (folder / "train.jsonl").write_text(lines(rows[2 * third :]))


@shape("first row after 300 KiB of console")
def _late_console(folder: Path, rows: Rows) -> None:
    (folder / "train.log").write_text("loading shard of the model, please wait\n" * 8000 + printed(rows))


@shape("first row after 3 MiB of console")
def _later_console(folder: Path, rows: Rows) -> None:
    (folder / "train.log").write_text("loading shard of the model, please wait\n" * 80_000 + printed(rows))


@shape("first row after 300 KiB of JSONL")
def _late_lines(folder: Path, rows: Rows) -> None:
    (folder / "train.jsonl").write_text('{"event": "loading", "what": "a shard of the model"}\n' * 6000 + lines(rows))


@shape("a text of over 200 characters in each row")
def _long(folder: Path, rows: Rows) -> None:
    (folder / "train.jsonl").write_text(lines([row | {"note": "so it goes " * 40} for row in rows]))


@shape("a long text in each row, no step")
def _long_unnumbered(folder: Path, rows: Rows) -> None:
    bare = [{key: value for key, value in row.items() if key != "step"} for row in rows]
    (folder / "train.jsonl").write_text(lines([row | {"note": "so it goes " * 40} for row in bare]))


@shape("samples of completions")
def _samples(folder: Path, rows: Rows) -> None:
    both = [row | {"prompt": "p" * 300, "completion": text * 300} for row in rows for text in "ab"]
    (folder / "completions.jsonl").write_text(lines(both))


@shape("a table whose step has another name")
def _it(folder: Path, rows: Rows) -> None:
    (folder / "progress.csv").write_text(table(rows, {"step": "it", "epoch": ""}))


@shape("a table without steps")
def _no_step(folder: Path, rows: Rows) -> None:
    (folder / "progress.csv").write_text(table(rows, {"step": "", "epoch": ""}))


@shape("a table with few known names and no step")
def _few(folder: Path, rows: Rows) -> None:
    some = [{"it": row["step"], "reward": row.get("reward", 0.0), "x": 1.0} for row in rows]
    (folder / "progress.csv").write_text(table(some))


@shape("a table after settings")
def _table_after(folder: Path, rows: Rows) -> None:
    (folder / "progress.csv").write_text("".join(f"option {n} is on\n" for n in range(25)) + table(rows))


@shape("25 lines of settings first")
def _settings_first(folder: Path, rows: Rows) -> None:
    settings = [{"setting": f"option {n}", "value": "on"} for n in range(25)]
    (folder / "train.jsonl").write_text(lines(settings) + lines(rows))


@shape("2,500 lines of settings first")
def _many_settings_first(folder: Path, rows: Rows) -> None:
    settings = [{"setting": f"option {n}", "value": "on"} for n in range(2500)]
    (folder / "train.jsonl").write_text(lines(settings) + lines(rows))


@shape("indented rows in JSON")
def _indented(folder: Path, rows: Rows) -> None:
    (folder / "history.json").write_text(json.dumps(rows, indent=4))


@shape("indented rows in JSONL")
def _indented_list(folder: Path, rows: Rows) -> None:
    (folder / "history.jsonl").write_text(json.dumps(rows, indent=4))


@shape("indented objects one after the other")
def _indented_lines(folder: Path, rows: Rows) -> None:
    (folder / "train.jsonl").write_text("\n".join(json.dumps(row, indent=2) for row in rows))


@shape("indented objects one after the other, .json")
def _indented_objects(folder: Path, rows: Rows) -> None:
    (folder / "train.json").write_text("\n".join(json.dumps(row, indent=2) for row in rows))


@shape("columns in JSON")
def _columns(folder: Path, rows: Rows) -> None:
    (folder / "history.json").write_text(json.dumps({key: [row.get(key) for row in rows] for key in rows[0]}))


@shape("indented columns in JSON")
def _indented_columns(folder: Path, rows: Rows) -> None:
    (folder / "history.json").write_text(json.dumps({key: [row.get(key) for row in rows] for key in rows[0]}, indent=2))


@shape("objects by step in JSON")
def _by_step(folder: Path, rows: Rows) -> None:
    (folder / "history.json").write_text(json.dumps({str(row["step"]): row for row in rows}))


@shape("rows behind 200 KB of settings in JSON")
def _behind(folder: Path, rows: Rows) -> None:
    (folder / "history.json").write_text(json.dumps({"template": "x" * 200_000, "history": rows}))


@shape("a folder 33 deep")
def _deep(folder: Path, rows: Rows) -> None:
    place = folder.joinpath(*["d"] * 33)
    place.mkdir(parents=True)
    (place / "train.jsonl").write_text(lines(rows))


@shape("a folder 700 deep")
def _deeper(folder: Path, rows: Rows) -> None:
    place = folder.joinpath(*["d"] * 700)
    place.mkdir(parents=True)
    (place / "train.jsonl").write_text(lines(rows))


@shape("a hidden folder")
def _hidden(folder: Path, rows: Rows) -> None:
    (folder / ".run").mkdir()
    (folder / ".run" / ".train.jsonl").write_text(lines(rows))


@shape("equals signs in yaml-like text")
def _pairs(folder: Path, rows: Rows) -> None:
    lines = "".join(f"step={row['step']} loss={row['loss']} kl={row.get('kl', 0)}\n" for row in rows)
    (folder / "train.txt").write_text(lines)


@shape("a table of blanks")
def _blanks(folder: Path, rows: Rows) -> None:
    lines = "".join(f"{row['step']} {row['loss']} {row.get('kl', 0.0)}\n" for row in rows)
    (folder / "train.dat").write_text("step loss kl\n" + lines)


@shape("parquet by its name")
def _parquet(folder: Path, rows: Rows) -> None:
    whole = (FIXTURES / "wandb_export" / "part-0.parquet").read_bytes()
    (folder / "metrics.parquet").write_bytes(whole.replace(b"_step", b"_stop"))  # no history of wandb's


for _encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "utf-8-sig"):

    def _encoded(folder: Path, rows: Rows, encoding: str = _encoding) -> None:
        (folder / "train.jsonl").write_bytes(lines(rows).encode(encoding))

    def _encoded_log(folder: Path, rows: Rows, encoding: str = _encoding) -> None:
        (folder / "train.log").write_bytes(printed(rows).encode(encoding))

    def _encoded_state(folder: Path, rows: Rows, encoding: str = _encoding) -> None:
        (folder / "trainer_state.json").write_bytes(in_state(rows).encode(encoding))

    def _encoded_table(folder: Path, rows: Rows, encoding: str = _encoding) -> None:
        (folder / "progress.csv").write_bytes(table(rows).encode(encoding))

    SHAPES[f"lines in {_encoding}"] = _encoded
    SHAPES[f"console in {_encoding}"] = _encoded_log
    SHAPES[f"state in {_encoding}"] = _encoded_state
    SHAPES[f"table in {_encoding}"] = _encoded_table
