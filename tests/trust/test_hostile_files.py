"""Files made to hurt: each gets a clear answer in bounded time and memory, through the command itself."""

from __future__ import annotations

import json
import os
import resource
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rlhealth.sources.tensorboard.crc32c import masked
from tests.conftest import FIXTURES, ROOT
from tests.fuzz.framing import event_record, wandb_log

EVENTS = next((FIXTURES / "runs").rglob("*tfevents*")).read_bytes()
MOST_MEMORY = 400  # MB; an ordinary check has about 55, with pandas 130
MOST_SECONDS = 60  # of processor time
LONG_AGO = 1_600_000_000  # seconds since 1970


@dataclass
class Answer:
    """What the command said of a file: its exit code, the report, what went to stderr, and its peak of memory in MB."""

    code: int
    report: dict[str, Any]
    said: str
    memory: int


#: The command, which leaves its own peak of memory in a file: what the system tells of a child counts the test that
#: started it too.
PROBE = """
import atexit, pathlib, re, sys
peak = pathlib.Path(sys.argv.pop(1))
atexit.register(lambda: peak.write_text(re.search(r"VmHWM:\\s*(\\d+)", pathlib.Path("/proc/self/status").read_text())[1]))
from rlhealth.cli.app import main
main()
"""


def asked(where: Path, *flags: str, folder: Path) -> Answer:
    """`rlhealth check WHERE -f json` under limits of memory and time."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (2 << 30, 2 << 30))
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))

    command = [sys.executable, "-c", PROBE, str(folder / "peak"), "check", str(where), "-f", "json", *flags]
    done = subprocess.run(command, capture_output=True, cwd=ROOT, preexec_fn=limit, check=False)
    said = done.stderr.decode()
    assert done.returncode in (0, 1, 2), said
    assert "Traceback" not in said and "internal error" not in said
    return Answer(
        done.returncode, json.loads(done.stdout) if done.stdout else {}, said, int((folder / "peak").read_text()) >> 10
    )


def length(size: int) -> bytes:
    """The head of a record of that length, with the right checksum."""
    raw = struct.pack("<Q", size)
    return raw + struct.pack("<I", masked(raw))


def tagged(tag: bytes) -> bytes:
    """A scalar under that tag as a record."""

    def field(number: int, body: bytes) -> bytes:
        size, head = len(body), bytes([number << 3 | 2])
        while size > 127:
            head, size = head + bytes([size & 127 | 128]), size >> 7
        return head + bytes([size]) + body

    return event_record(
        struct.pack("<Bd", 9, 1.7e9) + b"\x10\x01" + field(5, field(1, field(1, tag) + b"\x15\0\0\0\x3f"))
    )


HEAD = event_record(struct.pack("<Bd", 9, 1.7e9) + b"\x1a\x0dbrain.Event:2")
ROW = b'{"step": %d, "loss": 0.5}\n'
CASES: dict[str, tuple[str, Callable[[], bytes], int, str]] = {
    "an event that says it has 2^60 bytes": (
        "events.out.tfevents.1.a",
        lambda: EVENTS + length(1 << 60) + b"x" * 100,
        1,
        "damaged record",
    ),
    "an event that says it has 2^31 bytes": (
        "events.out.tfevents.1.a",
        lambda: EVENTS + length((1 << 31) - 1) + b"x" * 100,
        1,
        "",
    ),
    "an event of 2^30 bytes that are not there": (
        "events.out.tfevents.1.a",
        lambda: EVENTS[:88] + length(1 << 30) + EVENTS[88:],
        1,
        "damaged record",
    ),
    "tags of a megabyte": (
        "events.out.tfevents.1.a",
        lambda: HEAD + b"".join(tagged(b"%d" % one + b"t" * (1 << 20)) for one in range(30)),
        2,
        "longer than 4,096",
    ),
    "a row of 100,100 names": (
        "log.jsonl",
        lambda: b'{"step": 1, ' + b",".join(b'"t%d": 1' % one for one in range(100_100)) + b"}\n",
        2,
        "more than 100,000 metrics",
    ),
    "names of a megabyte": (
        "log.jsonl",
        lambda: b"".join(b'{"step": %d, "%s": 1}\n' % (one, b"t" * (1 << 20)) for one in range(1, 20)),
        2,
        "a name of 1,048,576 characters",
    ),
    "a name of thirty megabytes": (
        "log.jsonl",
        lambda: b'{"step": 1, "%s": 1}\n' % (b"t" * (30 << 20)) + ROW % 2 + ROW % 3,
        2,
        "a name of 31,457,280 characters",
    ),
    "a text of thirty megabytes": (
        "log.jsonl",
        lambda: b'{"step": 1, "loss": 0.5, "text": "%s"}\n' % (b"t" * (30 << 20)) + ROW % 2 + ROW % 3,
        2,
        '"points": 3',
    ),
    "a row nested 100,000 deep": (
        "log.jsonl",
        lambda: ROW % 1 + b'{"a": ' * 100_000 + b"1" + b"}" * 100_000 + b"\n" + ROW % 2,
        2,
        '"points": 2',
    ),
    "a number of two million digits": (
        "log.jsonl",
        lambda: ROW % 1 + b'{"step": 2, "loss": ' + b"9" * 2_000_000 + b"}\n" + ROW % 3,
        2,
        '"points": 2',
    ),
    "entries nested half a million deep": (
        "trainer_state.json",
        lambda: b'{"log_history": [' + b'{"a": ' * 500_000 + b"1" + b"}" * 500_000 + b"]}",
        2,
        "damaged entries",
    ),
    "damage before half a million spaces": (
        "trainer_state.json",
        lambda: (
            b'{"log_history": [{"step": 1, "loss": 0.@}'
            + b" " * 500_000
            + b'x, {"step": 2, "loss": 0.5}, {"step": 3, "loss": 0.5}]}'
        ),
        2,
        "1 damaged entry",
    ),
    "a list of three million lists": ("a.json", lambda: b"[" * 3_000_000, 2, "no metrics found"),
    "braces that never close": ("train.log", lambda: (b"{'" * 200_000 + b"\n") * 3, 2, "no metrics found"),
    "a table of a million bars": ("train.log", lambda: (b"| " * 400_000 + b"\n") * 2, 2, "no metrics found"),
    "a bar, a name and dashes before half a million spaces": (
        "train.log",
        lambda: (
            b"".join(begun + b" " * 500_000 + b"x\n" for begun in (b"|", b"a/b", b"a/b: 1", b"|" + b"-" * 500_000))
            + b"{'loss': 0.5, 'reward': 0.1}\n" * 3
        ),
        2,
        '"loss"',
    ),
    "a quote that never ends": (
        "a.csv",
        lambda: b'step,loss\n1,0.5\n"' + b"1,2\n" * 200_000,
        2,
        "1 line read without a quote that is never closed, the first is line 3",
    ),
    "a row of ten million cells": (
        "a.csv",
        lambda: b"step,loss\n1,0.5\n2," + b"1,2," * 5_000_000 + b"\n3,0.5\n",
        2,
        "1 line skipped, longer than 4 MiB",
    ),
    "a quote before ten million cells": (
        "a.csv",
        lambda: b'step,loss\n1,0.5\n2,"' + b"1,2," * 5_000_000 + b"\n3,0.5\n",
        2,
        "1 line skipped",
    ),
    "half a million cells above short rows": (
        "a.csv",
        lambda: b"step,loss\n1" + b"," * 500_000 + b"\n" + b"".join(b"%d,0.5\n" % step for step in range(2, 100_000)),
        2,
        "1 line skipped that could not be read, the first is line 2",
    ),
    "100,000 names above a digit a line": (
        "a.csv",
        lambda: b"step," + b",".join(b"m%d" % one for one in range(99_999)) + b"\n" + b"1\n" * 500_000,
        2,
        "500,000 lines skipped",
    ),
    "a header of ten million names": (
        "a.csv",
        lambda: b"step" + b",a" * 10_000_000 + b"\n1,0.5\n",
        2,
        "the first line is longer than 4 MiB",
    ),
    "a wandb record of 200 MB": (
        "run-a.wandb",
        lambda: wandb_log([b"\x08\x01\x12" + b"\xff" * (200 << 20)]),
        2,
        "damaged from byte 67,108,864",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_file_made_to_hurt_gets_a_clear_answer(name: str, tmp_path: Path) -> None:
    file, made, code, said = CASES[name]
    path = tmp_path / file
    path.write_bytes(made())
    os.utime(path, (LONG_AGO, LONG_AGO))  # nobody is still writing it, however long the command takes to begin
    answer = asked(path, folder=tmp_path)
    answered = json.dumps(answer.report, ensure_ascii=False) + answer.said
    assert answer.code == code, answered[:2000]
    assert said in answered
    assert answer.memory < MOST_MEMORY


def test_a_model_card_of_nothing_but_empty_lines_is_passed_by(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(ROW % 1 + ROW % 2)
    (tmp_path / "README.md").write_bytes(b"\n" * 900_000)
    assert asked(tmp_path, folder=tmp_path).report["runs"][0]["metrics"]


@pytest.mark.parametrize(
    ("file", "raw"),
    [
        ("events.out.tfevents.1.a", EVENTS),
        ("run-a.wandb", (FIXTURES / "wandb" / "run-grpo-old-nan.wandb").read_bytes()),
        ("log.jsonl", ROW % 1 + ROW % 2),
        ("train.log", b"{'loss': 0.5, 'reward': 0.1, 'epoch': 0.1}\n" * 3),
        ("a.csv", b"step,loss\n1,0.5\n"),
        ("project.db", b"SQLite format 3\0"),
        ("trainer_state.json", (FIXTURES / "trainer_state" / "ppo-nan" / "trainer_state.json").read_bytes()[:9000]),
    ],
)
def test_a_sparse_file_of_100_gb_costs_what_is_written_in_it(file: str, raw: bytes, tmp_path: Path) -> None:
    path = tmp_path / file
    path.write_bytes(raw)
    os.truncate(path, 100 << 30)
    answer = asked(path, folder=tmp_path)
    assert answer.memory < MOST_MEMORY
    assert file == "project.db" or answer.report["runs"][0]["metrics"]


def test_what_stands_behind_a_hole_of_100_gb_is_read(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1.a"
    path.write_bytes(HEAD + b"".join(tagged(b"before") for _ in range(3)))
    os.truncate(path, 100 << 30)
    with path.open("ab") as file:
        file.write(tagged(b"behind") * 3)
    answer = asked(path, folder=tmp_path)
    assert set(answer.report["runs"][0]["unrecognised"]) == {"before", "behind"}
    assert "1 damaged record skipped" in answer.report["runs"][0]["problems"][0]


def test_a_folder_full_of_traps_is_walked_through(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for name in ("a", "b"):
        (runs / name).mkdir(parents=True)
    (runs / "a" / "log.jsonl").write_bytes(ROW % 1 + ROW % 2)
    (runs / "loop").symlink_to(runs)
    (runs / "b" / "up").symlink_to("..")
    (runs / "b" / "itself").symlink_to("itself")
    (runs / "b" / "itself.jsonl").symlink_to("itself.jsonl")
    os.mkfifo(runs / "b" / "log.jsonl")
    os.mkfifo(runs / "b" / "events.out.tfevents.1.a")
    (runs / "b" / "zero.jsonl").symlink_to("/dev/zero")
    (runs / "b" / "random.db").symlink_to("/dev/urandom")
    (runs / "b" / "terminal.log").symlink_to("/dev/tty")
    answer = asked(runs, folder=tmp_path)
    assert [one["run"] for one in answer.report["runs"]] == ["a"]


@pytest.mark.parametrize("trap", ["fifo.jsonl", "/dev/zero", "/dev/null", "/dev/tty", "loop.jsonl", "gone.jsonl"])
def test_what_is_no_file_is_refused_with_a_hint(trap: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.jsonl")
    (tmp_path / "loop.jsonl").symlink_to("loop.jsonl")
    answer = asked(tmp_path / trap, folder=tmp_path)
    assert answer.code == 2
    assert answer.report["errors"][0]["hint"]


def test_a_run_that_may_not_be_read_does_not_hide_the_others(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for name in ("open", "closed"):
        (runs / name).mkdir(parents=True)
        (runs / name / "log.jsonl").write_bytes(ROW % 1 + ROW % 2)
    (runs / "closed").chmod(0)
    demote = (
        []
        if os.geteuid()
        else ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search"]
    )
    if demote and (
        not shutil.which("setpriv")
        or not subprocess.run([*demote, "ls", str(runs / "closed")], capture_output=True, check=False).returncode
    ):
        pytest.skip("this process cannot give up its rights")
    done = subprocess.run(
        [*demote, sys.executable, "-m", "rlhealth", "check", str(runs), "-f", "json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    (runs / "closed").chmod(0o755)
    report = json.loads(done.stdout)
    assert [one["run"] for one in report["runs"]] == ["open"]
    assert "permission denied" in report["errors"][0]["error"]
    assert done.returncode == 2


@pytest.mark.parametrize(
    "name",
    [
        "two\nlines",
        "\x1b[31mred\x1b]8;;http://x\x07",
        "\u202eback",
        "a" * 240,
        "-rf",
        "*?[",
        " ",
        "'\";$(touch x)",
        "%s{x}",
        b"\xff\xfe".decode("utf-8", "surrogateescape"),
    ],
)
def test_names_that_would_act_on_the_terminal_are_shown_and_do_nothing(
    name: str, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    run = tmp_path / "runs" / name
    run.mkdir(parents=True)
    (run / "log.jsonl").write_bytes(b"".join(ROW % step for step in range(1, 9)))
    for format in ("terminal", "json"):
        done = cli("check", tmp_path / "runs", "-f", format, "--all", "--color", "never")
        assert done.returncode in (0, 2)
        assert {
            one for one in done.stdout + done.stderr if not one.isprintable() and one not in "\n\u202f\u00a0"
        } == set()
        assert "internal error" not in done.stderr


YAML = {
    "bomb": "a: &a [x, x, x, x, x, x, x, x, x]\n"
    + "".join(f"{chr(98 + one)}: &{chr(98 + one)} [{', '.join(['*' + chr(97 + one)] * 9)}]\n" for one in range(12)),
    "objects": "!!python/object/apply:os.system ['touch owned']\n",
    "new": "id: !!python/object/new:os.system ['touch owned']\n",
    "deep": "[" * 100_000,
    "deep mappings": "{a: " * 100_000,
    "wide": "a: [" + "1," * 600_000 + "1]",
    "no text": "\ufffe\x00",
}


@pytest.mark.parametrize("name", YAML)
def test_a_rule_file_cannot_execute_or_explode(name: str, tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(b"".join(ROW % step for step in range(1, 9)))
    rules = tmp_path / "rules"
    rules.mkdir()
    (rules / "mine.yaml").write_text(YAML[name])
    answer = asked(tmp_path / "log.jsonl", "--rules", str(rules), folder=tmp_path)
    assert answer.code == 2
    assert "mine.yaml" in answer.said and "hint:" in answer.said
    assert answer.memory < MOST_MEMORY
    assert not list(ROOT.glob("owned")) and not list(tmp_path.glob("owned"))


def test_a_message_cannot_ask_for_a_gigabyte_or_reach_into_objects(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(
        b"".join(b'{"step": %d, "kl": 900.0, "reward": 1.0, "loss": 0.1}\n' % step for step in range(1, 40))
    )
    rule = """
id: mine
family: kl-high
title: Mine
severity: critical
when: {metric: kl, above: 1}
message: "A{value:>999999999}B {value.__class__.__mro__} {metric.__init__.__globals__} {value!r:>99999999} {limit:.999999999f}"
because: because
try: ["{tag:>999999999}"]
source: [{text: mine}]
"""
    (tmp_path / "mine.yaml").write_text(rule)
    answer = asked(tmp_path / "log.jsonl", "--rules", str(tmp_path / "mine.yaml"), "--select", "mine", folder=tmp_path)
    assert answer.code == 1
    message = answer.report["runs"][0]["findings"][0]["message"]
    assert message.startswith("A900.0B")
    assert len(message) < 300
    assert "class '" not in message and "globals" not in message.replace("__globals__", "")
    assert answer.memory < MOST_MEMORY
