"""Secrets for the fuzzer: planted in settings, code, printed lines and errors of logs of every kind; no report tells one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from rlhealth.errors import RlhealthError
from rlhealth.reports import REPORTS, write
from rlhealth.verdict.verdicts import Verdict
from tests.fuzz.judging import NOW, shipped

#: Of each kind one: what comes before it in a text, and the part that nobody may see.
SECRETS = (
    ("hf_", "AbCdEfGhIjKlMnOpQrStUvWxYz012345"),
    ("sk-", "proj-AbCdEfGhIjKlMnOpQrStUv_x-Y"),
    ("sk-ant-api03-", "AbCdEfGhIjKlMnOpQrStUv"),
    ("ghp_", "AbCdEfGhIjKlMnOpQrStUvWxYz0123456789"),
    ("github_pat_", "11AAAAAAA0abcdefghijkl_mnop"),
    ("gho_", "AbCdEfGhIjKlMnOpQrStUvWxYz0123456789"),
    ("glpat-", "AbCdEfGhIjKlMnOpQrSt"),
    ("xoxb-", "123456789012-abcdefghijkl"),
    ("AKIA", "ABCDEFGHIJKLMNOP"),
    ("AIza", "SyAbCdEfGhIjKlMnOpQrStUvWxYz0123456"),
    ("wandb_v1_", "AbCdEfGhIjKlMnOpQrStUvWxYz01234567890123"),
    ("", "0123456789abcdef0123456789abcdef01234567"),
    ("local-", "89abcdef0123456789abcdef0123456789abcdef"),
    ("", "alice.smith@example-lab.org"),
    ("postgres://dave:", "pa55word-of-dave@db.internal"),
    ("eyJ", "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"),
)
KEYS = ("note", "model", "run_name", "args.x", "report_to", "é", "output_dir", "a/b", "extra", "reward_funcs")
PRIVATE = ("hub_token", "api_key", "password", "WANDB_API_KEY", "aws_secret_access_key", "HF_TOKEN", "author_email")
AROUND = (
    "{}",
    " {} ",
    "key={}",
    "'{}'",
    "Bearer {}",
    "https://x/?t={}",
    "--key {}",
    "({})",
    "a\n{}\nb",
    '{{"k": "{}"}}',
)


def untold(raw: bytes, path: Path) -> bool:
    """A log of some kind with a secret somewhere: judged, and reported in every format without it."""
    from rlhealth.check import judge
    from rlhealth.sources import find_readers

    random = Random(raw)
    before, secret = random.choice(SECRETS)
    private = random.random() < 0.3
    key = random.choice(PRIVATE if private else KEYS)
    text = random.choice(AROUND).format(before + secret)
    filling = raw[: random.randrange(1 + len(raw))].decode("utf-8", "replace")[:80]
    value: Any = random.choice(
        [text, text, [text], {"in": text}, {"in": [text, 1]}, [1, {"x": text}], f"{filling} {text}"]
    )
    folder = path.with_suffix(".planted")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    name = random.choice(list(WRITERS))
    WRITERS[name](folder, key, value, filling)
    try:
        readers = find_readers(str(folder))
        for reader in readers:
            reader.poll()
    except RlhealthError as error:
        _check(secret, f"{name}, error", f"{error.message} {error.hint}")
        return False
    for run in (one.run for one in readers):
        held = (run.name, run.config, run.versions, run.problems, run.notes, list(run.series), list(run.histograms))
        _check(secret, f"{name} {key}={value!r}", json.dumps(held, default=str, ensure_ascii=False))
    if random.random() < 0.05:
        verdict = Verdict([judge(one.run, shipped(), now=NOW) for one in readers])
        for format in ("json", random.choice([one for one in REPORTS if one != "json"])):
            _check(secret, f"{name} {format} {key}={value!r}", write(verdict, format))
    return True


def _check(secret: str, where: str, told: str) -> None:
    assert secret not in told and json.dumps(secret)[1:-1] not in told, f"{where}: {secret} is reported"


def _rows(count: int = 40) -> list[dict[str, Any]]:
    return [{"step": step, "loss": 0.5, "reward": 1.0, "kl": 0.02 if step < 15 else 90.0} for step in range(1, count)]


def _lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def _jsonl(folder: Path, key: str, value: Any, filling: str) -> None:
    (folder / "log.jsonl").write_text(
        json.dumps({key: value}) + "\n" + _lines([{**one, key: value} for one in _rows()])
    )


def _settings_beside(folder: Path, key: str, value: Any, filling: str) -> None:
    import yaml

    (folder / "metrics.csv").write_text("step,reward,kl\n" + "".join(f"{n},1,{0.1 * n}\n" for n in range(30)))
    for name in ("hparams.yaml", "config.yaml"):
        (folder / name).write_text(yaml.safe_dump({key: value, "beta": 0.04}))


def _console(folder: Path, key: str, value: Any, filling: str) -> None:
    rows = "".join(f"{row}\n" for row in _rows())
    last = (
        f"Traceback (most recent call last):\n  File 'a.py', line 1\n{key}: {value}\nRuntimeError: {filling} {value}\n"
    )
    (folder / "train.log").write_text(f"{key}: {value}\nNamespace({key}={value!r})\n{rows}{last}")


def _notebook(folder: Path, key: str, value: Any, filling: str) -> None:
    name = "".join(one if one.isalnum() and one.isascii() else "_" for one in key)
    code = f"args = GRPOConfig(beta=0.1, {name}={value!r})\nGRPOTrainer(args=args).train()"
    error = {"output_type": "error", "ename": "ValueError", "evalue": f"{filling} {value}", "traceback": [f"{value}"]}
    shown = {"output_type": "stream", "name": "stdout", "text": "".join(f"{row}\n" for row in _rows())}
    cell = {"cell_type": "code", "metadata": {}, "source": code, "outputs": [shown, error], "execution_count": 1}
    (folder / "a.ipynb").write_text(json.dumps({"cells": [cell], "nbformat": 4, "nbformat_minor": 5, "metadata": {}}))


def _trainer_state(folder: Path, key: str, value: Any, filling: str) -> None:
    state = {"log_history": _rows(), "global_step": 39, "trial_params": {key: value}, key: value}
    (folder / "trainer_state.json").write_text(json.dumps(state))


def _document(folder: Path, key: str, value: Any, filling: str) -> None:
    (folder / "history.json").write_text(json.dumps({"args": {key: value, "beta": 0.1}, "history": _rows()}))


def _mlflow(folder: Path, key: str, value: Any, filling: str) -> None:
    run = folder / "mlruns" / "0" / "abc"
    for place in ("metrics", "params", "tags"):
        (run / place).mkdir(parents=True)
    (run / "meta.yaml").write_text(f"run_id: abc\nrun_name: {json.dumps(filling)}\nstatus: 3\n")
    (run / "params" / key.replace("/", "_")).write_text(str(value))
    (run / "tags" / "mlflow.user").write_text(str(value))
    (run / "metrics" / "reward").write_text("".join(f"170000000000{n} {n} {n}\n" for n in range(9)))


def _dvclive(folder: Path, key: str, value: Any, filling: str) -> None:
    import yaml

    place = folder / "plots" / "metrics"
    place.mkdir(parents=True)
    (place / "reward.tsv").write_text("step\treward\n" + "".join(f"{n}\t{n}\n" for n in range(20)))
    (folder / "params.yaml").write_text(yaml.safe_dump({key: value}))


def _wandb(folder: Path, key: str, value: Any, filling: str) -> None:
    from wandb.proto import wandb_internal_pb2 as pb

    from tests.fuzz.framing import wandb_log

    settings = pb.Record(num=2)
    settings.config.update.add(key=key, value_json=json.dumps(value))
    settings.config.update.add(nested_key=["deep", key], value_json=json.dumps(value))
    records = [pb.Record(num=1, run=pb.RunRecord(run_id="abc", display_name="a", project="p")), settings]
    for number, row in enumerate(_rows(), 3):
        record = pb.Record(num=number)
        for tag, one in row.items():
            record.history.item.add(nested_key=[tag], value_json=json.dumps(one))
        records.append(record)
    (folder / "run-abc.wandb").write_bytes(wandb_log(one.SerializeToString() for one in records))


WRITERS: dict[str, Callable[[Path, str, Any, str], None]] = {
    "jsonl": _jsonl,
    "settings beside": _settings_beside,
    "console": _console,
    "notebook": _notebook,
    "trainer_state": _trainer_state,
    "document": _document,
    "mlflow": _mlflow,
    "dvclive": _dvclive,
    "wandb": _wandb,
}


def settings_of_a_project(raw: bytes, path: Path) -> bool:
    """A settings file with a secret as a value that does not belong there: the error names the place, not the secret."""
    from rlhealth.settings.project import apply, load_settings

    random = Random(raw)
    before, secret = random.choice(SECRETS)
    text = raw.decode("utf-8", "replace").replace("SECRET", before + secret)
    path = path.with_suffix(".toml")
    path.write_text(text, encoding="utf-8")
    try:
        apply(load_settings(file=path), shipped())
    except RlhealthError as error:
        _check(secret, "settings", f"{error.message} {error.hint}")
        return False
    return True


@cache
def seeds() -> list[bytes]:
    """What the choices of kind, key, value and filling are drawn from."""
    return [bytes([number]) * 4 + b" text {value} <b>\xff" for number in range(64)]


@cache
def settings_files() -> list[bytes]:
    """Settings with a secret in them, where one may come by mistake."""
    return [
        b'notify = "SECRET"\nfail-on = "critical"\n',
        b'min-steps = "SECRET"\n',
        b'fail-on = "SECRET"\n',
        b'[gate]\nended = "SECRET"\n[rules.kl-high]\nlimit = "SECRET"\n',
        b"api_key = SECRET\n",
        b"[gate]\nended = true\n",  # one that is read
    ]
