"""`rlhealth check --wandb`: the runs of a project on a wandb server, chosen by number and state, through the real
SDK.
"""

from __future__ import annotations

import json

from tests.conftest import FIXTURES, Cli
from tests.sources.conftest import KEY, nobody, server  # noqa: F401 (fixtures)
from tests.sources.wandb_online import rows_of
from tests.wandb_server import HostedRun, WandbServer

SICK = FIXTURES / "wandb" / "run-grpo-old-nan.wandb"


def test_the_newest_runs_of_a_project_are_checked_and_the_key_is_never_shown(cli: Cli, server: WandbServer) -> None:
    rows = rows_of(SICK)
    for number in range(4):
        server.host(
            HostedRun(
                id=f"run{number}",
                name=f"sun-{number}",
                state="crashed" if number % 2 else "finished",
                rows=rows,
                created=f"2026-01-0{number + 1}T00:00:00Z",
            )
        )
    ours = {"WANDB_BASE_URL": server.url, "WANDB_API_KEY": KEY}
    newest = cli("check", "--wandb", "ada/grpo", "--last", "2", "-f", "json", **ours)
    ended = cli("check", "--wandb", "ada/grpo", "--state", "finished", "-f", "json", **ours)
    assert sorted(run["run"] for run in json.loads(newest.stdout)["runs"]) == ["sun-2", "sun-3"]
    assert sorted(run["run"] for run in json.loads(ended.stdout)["runs"]) == ["sun-0", "sun-2"]
    assert {run["verdict"] for run in json.loads(newest.stdout)["runs"]} == {"critical"}
    assert newest.returncode == 1
    assert KEY not in newest.stdout + newest.stderr + ended.stdout + ended.stderr
