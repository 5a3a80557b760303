"""Requests of agents for the fuzzer: any arguments, in a folder with a few runs; the answer is plain JSON or one line."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
from functools import cache
from pathlib import Path
from typing import Any

from tests.fuzz.seeds import FIXTURES
from tests.fuzz.strictness import strict_json

SICK = FIXTURES / "runs" / "lr-jump"
TOOLS = ("list_runs", "check", "advise", "explain", "compare", "series")


@cache
def _server() -> Any:
    from rlhealth.integrations.mcp_server import server

    logging.disable(logging.CRITICAL)
    return server()


@cache
def _folder(path: Path) -> Path:
    """A folder with three short runs, which is the working folder from then on."""
    path.mkdir(exist_ok=True)
    for name in ("a", "b", "c"):
        rows = [json.dumps({"step": step, "reward": step * 0.1, "kl": 0.1}) for step in range(1, 40)]
        (path / f"{name}.jsonl").write_text("\n".join(rows) + "\n")
    (path / "torn.jsonl").write_bytes(b'{"step": 1, "reward"')
    shutil.copytree(SICK, path / "sick", dirs_exist_ok=True)
    os.chdir(path)
    return path


def answered(raw: bytes, path: Path) -> bool:
    """A call of a tool as JSON: what comes back is strict JSON, or an error of one line; never a fault of the server."""
    from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError

    _folder(path.with_suffix(".runs"))
    try:
        call = json.loads(raw.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return False
    if not isinstance(call, dict) or not isinstance(call.get("arguments"), dict):
        return False
    given = {
        key: _inside(value) if key in ("where", "baselines") else value for key, value in call["arguments"].items()
    }
    try:
        answer = asyncio.run(_server().call_tool(str(call.get("name")), given))
    except UnexpectedToolError:
        raise
    except ToolError as error:
        assert "Traceback" not in str(error)
        return False
    strict_json(json.dumps(answer.structured_content))
    answer.model_dump_json()
    return True


def _inside(value: Any) -> Any:
    """Places stay in the folder: the fuzzer reads neither the whole disk nor the network."""
    if isinstance(value, list):
        return [_inside(one) for one in value]
    if not isinstance(value, str):
        return value
    away = value.startswith(("/", "~")) or ".." in value or "://" in value
    return value.replace("/", "_").replace("..", "_").replace("~", "_").replace(":", "_") if away else value


@cache
def requests() -> list[bytes]:
    """Calls that agents make, and some that they should not."""
    calls: list[tuple[str, dict[str, Any]]] = [
        ("list_runs", {"where": "."}),
        ("check", {"where": "a.jsonl"}),
        ("check", {"where": ".", "run": "b", "full": True}),
        ("check", {"where": "sick", "full": True}),
        ("check", {"where": "torn.jsonl", "run": "zz"}),
        ("advise", {"where": "sick"}),
        ("advise", {"where": "torn.jsonl"}),
        ("explain", {"rule": "kl-high"}),
        ("explain", {"rule": ""}),
        ("compare", {"where": "a.jsonl", "baselines": ["b.jsonl", "c.jsonl"]}),
        ("compare", {"where": "sick", "baselines": []}),
        ("series", {"where": "sick", "metric": "kl", "points": 20}),
        ("series", {"where": "a.jsonl", "metric": "reward", "points": -5, "run": ""}),
        ("series", {"where": ".", "metric": "nan", "points": 10**30}),
    ]
    return [json.dumps({"name": name, "arguments": arguments}).encode() for name, arguments in calls]


WORDS = (
    *(f'"{name}"'.encode() for name in TOOLS),
    *(b'"where": ', b'"run": ', b'"metric": ', b'"points": ', b'"baselines": ', b'"full": ', b'"rule": '),
    *(b'"\\u0000"', b'"\\ud800"', b'"sick"', b'"a.jsonl"', b'"."', b'""', b"[]", b"{}", b"-1", b"0", b"1e400", b"true"),
    b'"' + b"x" * 5000 + b'"',
    b'"a\\nb"',
    b'"\\u001b[31m"',
    b'"[*]"',
)
