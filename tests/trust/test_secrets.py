"""What a log knows about people and machines stays in it: keys, tokens, passwords, e-mail addresses, host names,
users and command lines.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from wandb.proto import wandb_internal_pb2 as pb

from rlhealth.reports import REPORTS
from rlhealth.sources import open_runs
from rlhealth.sources.base.values import training_config
from tests.conftest import Cli
from tests.fuzz.framing import event_record, wandb_log
from tests.fuzz.seeds import small_database

SECRETS = {
    "hub_token": "hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345",
    "push_to_hub_token": "hf_ZyXwVuTsRqPoNmLkJiHgFeDcBa543210",
    "api_key": "0123456789abcdef0123456789abcdef01234567",
    "wandb_api_key": "local-89abcdef0123456789abcdef0123456789abcdef",
    "openai.key": "sk-proj-AbCdEfGhIjKlMnOpQrStUv",
    "password": "hunter2-secret-pw",
    "secret_access_key": "AKIAABCDEFGHIJKLMNOP",
    "note": "write to alice.smith@example-lab.org",
    "author_email": "bob@example-lab.org",
    "host": "gpu-node-17.internal",
    "hostname": "gpu-node-18.internal",
    "username": "alice_smith",
    "command": "/home/carol/train.py --flag-of-the-command-line",
    "database_url": "postgres://dave:pa55word-of-dave@db.internal/x",
    "github": "ghp_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789",
    "nested": {"deep": {"auth_token": "deep-token-value-1"}},
    "list_of": ["sk-ListAbCdEfGhIjKlMnOpQr"],
    "of_lists": [[{"servers": ["sk-InnerAbCdEfGhIjKlMnOp"]}], {"password": "hidden-in-a-list"}],
    "password_of": {"token": {"of": "a-value-below-a-private-name"}},
    "newer": "the key wandb_v1_AbCdEfGhIjKlMnOpQrStUvWxYz01234567890123 of wandb",
    "google": "AIzaSyAbCdEfGhIjKlMnOpQrStUvWxYz0123456",
    "gitlab": "glpat-AbCdEfGhIjKlMnOpQrSt",
    "web": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3",
    "as_python": "['a\\nsk-AfterALineBreakAbCdEf']",
    "given": "--key fedcba9876543210fedcba9876543210fedcba98",
}
PLANTED = [
    "hf_AbCd",
    "hf_ZyXw",
    "0123456789abcdef0123",
    "local-89ab",
    "sk-proj",
    "hunter2",
    "AKIAABCD",
    "alice.smith",
    "bob@example",
    "gpu-node",
    "alice_smith",
    "carol",
    "flag-of-the-command",
    "pa55word",
    "ghp_AbCd",
    "deep-token",
    "sk-List",
    "sk-Inner",
    "hidden-in-a-list",
    "a-value-below",
    "wandb_v1",
    "AIzaSy",
    "glpat-",
    "eyJhbG",
    "AfterALine",
    "fedcba98",
    "environment-key",
    "frank@example",
    "frank-host",
    "frank_user",
]
ROWS = [
    {
        "train/global_step": step,
        "train/loss": 0.5,
        "train/reward": 1.0 + step % 3,
        "train/kl": 0.02 if step < 15 else 90.0,
        "train/entropy": 1.0,
    }
    for step in range(1, 41)
]


def wandb_run(path: Path) -> Path:
    """A run as the SDK records it: who, where, how, with which settings."""
    run = pb.Record(num=1, run=pb.RunRecord(run_id="abc", display_name="planted", host="frank-host", project="p"))
    run.run.git.remote_url = "https://frank_user:ghp_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789@github.com/x"
    settings = pb.Record(num=2)
    for key, value in SECRETS.items():
        settings.config.update.add(key=key, value_json=json.dumps(value))
    settings.config.update.add(key="beta", value_json="0.04")
    about = pb.Record(num=3)
    about.environment.args.extend(["--api-key", "environment-key"])
    about.environment.program, about.environment.email, about.environment.host, about.environment.username = (
        "/home/carol/train.py",
        "frank@example-lab.org",
        "frank-host",
        "frank_user",
    )
    rows = []
    for number, row in enumerate(ROWS, 4):
        record = pb.Record(num=number)
        for key, value in row.items():
            record.history.item.add(nested_key=[key], value_json=json.dumps(value))
        rows.append(record)
    path.write_bytes(wandb_log(record.SerializeToString() for record in [run, settings, about, *rows]))
    return path


def event_run(path: Path) -> Path:
    """A run whose arguments are written as text, as transformers does."""
    text = Summary.Value(
        tag="args/text_summary",
        tensor=TensorProto(dtype=7, string_val=[json.dumps({**SECRETS, "beta": 0.04}).encode()]),
    )
    text.metadata.CopyFrom(SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="text")))
    events = [
        Event(wall_time=1.7e9, file_version="brain.Event:2"),
        Event(wall_time=1.7e9, summary=Summary(value=[text])),
    ]
    for row in ROWS:
        values = [
            Summary.Value(tag=tag, simple_value=value) for tag, value in row.items() if tag != "train/global_step"
        ]
        events.append(
            Event(
                wall_time=1.7e9 + row["train/global_step"],
                step=int(row["train/global_step"]),
                summary=Summary(value=values),
            )
        )
    path.write_bytes(b"".join(event_record(event.SerializeToString()) for event in events))
    return path


def trackio_run(path: Path) -> Path:
    small_database(path, 0)
    database = sqlite3.connect(path)
    database.execute("DELETE FROM configs")
    database.execute(
        "INSERT INTO configs (run_id, run_name, config, created_at) VALUES ('1', 'planted', ?, '2026')",
        (json.dumps({**SECRETS, "beta": 0.04, "_Username": "frank_user"}),),
    )
    columns = {row[1] for row in database.execute("PRAGMA table_info(alerts)")}
    given = {
        "run_id": "1",
        "run_name": "planted",
        "title": "look",
        "text": "mail alice.smith@example-lab.org the key sk-proj-AbCdEfGhIjKlMnOpQrStUv",
        "level": "warn",
        "step": 3,
        "timestamp": "2026-01-01T00:00:00",
        "alert_id": "1",
    }
    given = {key: value for key, value in given.items() if key in columns}
    database.execute(
        f"INSERT INTO alerts ({','.join(given)}) VALUES ({','.join('?' * len(given))})", list(given.values())
    )
    for row in ROWS:
        database.execute(
            "INSERT INTO metrics (run_id, run_name, step, timestamp, metrics) VALUES "
            "('1', 'planted', ?, '2026-01-01T00:00:00', ?)",
            (row["train/global_step"], json.dumps(row)),
        )
    database.commit()
    database.close()
    return path


def row_log(path: Path) -> Path:
    path.write_text(
        "".join(
            json.dumps({**row, "hub_token": "hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345", "hostname": "gpu-node-17.internal"})
            + "\n"
            for row in ROWS
        )
    )
    return path


MADE = {
    "wandb": (wandb_run, "run-abc.wandb"),
    "tensorboard": (event_run, "events.out.tfevents.1.a"),
    "trackio": (trackio_run, "p.db"),
    "jsonl": (row_log, "log.jsonl"),
}
ENVIRONMENT = {
    "WANDB_API_KEY": "environment-key-wandb",
    "HF_TOKEN": "environment-key-hf",
    "HOSTNAME": "frank-host",
    "USER": "frank_user",
    "EMAIL": "frank@example-lab.org",
}


@pytest.mark.parametrize("kind", MADE)
def test_no_setting_that_is_private_gets_behind_the_reader(kind: str, tmp_path: Path) -> None:
    made, name = MADE[kind]
    (run,) = open_runs(str(made(tmp_path / name)))
    assert kind == "jsonl" or run.config["beta"] == 0.04
    held = repr((run.config, run.versions, run.problems, run.notes, list(run.series), list(run.histograms), run.name))
    assert [secret for secret in PLANTED if secret in held] == []


def test_names_of_models_paths_and_layers_are_not_taken_for_keys() -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    shown = {
        "model": f"/models/models--Qwen--Qwen3/snapshots/{commit}",
        "pinned": f"Qwen/Qwen3@{commit}",
        "adapter": "r8_lora_alpha_16_dropout_0",
        "where": "local-deepspeed-configuration",
        "tokenizer": "xai-org/grok-tokenizer-2",
        "layers": ["q_proj", "k_proj", {"task-of-a-disk-with-a-long-name": 1}],
    }
    assert training_config(shown).keys() == shown.keys()


@pytest.mark.parametrize("kind", MADE)
def test_no_report_tells_a_secret_of_the_log_or_of_the_environment(kind: str, tmp_path: Path, cli: Cli) -> None:
    made, name = MADE[kind]
    path, flags = made(tmp_path / name), []
    for format in REPORTS:
        flags += ["-f", format, "-o", tmp_path / f"report.{format}"]
    done = cli("check", path, "--all", *flags, **ENVIRONMENT)
    assert done.returncode == 1, "judged, with findings to report"
    unknown = cli("check", path, "--all", "--min-steps", "1000", **ENVIRONMENT)
    assert unknown.returncode == 2, "what is said of a run without a verdict holds its alerts and problems"
    reports = [(tmp_path / f"report.{format}").read_text() for format in REPORTS]
    reports += [
        one.stdout + one.stderr
        for one in (
            done,
            unknown,
            cli("metrics", path, **ENVIRONMENT),
            cli("check", tmp_path / "nothing", **ENVIRONMENT),
        )
    ]
    assert all(reports[: len(REPORTS)])
    assert [secret for secret in PLANTED if any(secret in one for one in reports)] == []
