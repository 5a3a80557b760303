"""Whose server: the key goes to the server that the user has configured, whatever a judged folder says and wherever
that server points.
"""

from __future__ import annotations

import http.server
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sources.wandb_online import RUN
from tests.wandb_server import KEY, HostedRun, WandbServer

ROOT = Path(__file__).parents[3]


class Listener(http.server.ThreadingHTTPServer):
    """Counts every request to a host that must get none."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Asked)
        self.asked: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class Asked(http.server.BaseHTTPRequestHandler):
    server: Listener

    def answer(self) -> None:
        self.server.asked.append(f"{self.command} {self.path}")
        self.send_response(200)
        self.end_headers()

    do_GET = do_POST = do_HEAD = do_CONNECT = answer

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def stranger() -> Iterator[Listener]:
    with Listener() as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield listening
        listening.shutdown()


def asked(*words: str, folder: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """rlhealth as a person calls it, from inside a folder."""
    given = {**os.environ, "PYTHONPATH": str(ROOT), **(env or {})}
    given = {name: value for name, value in given.items() if value}
    command = [sys.executable, "-m", "rlhealth", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=folder, env=given, check=False)


@pytest.mark.parametrize("setting", ["base_url", "http_proxy", "https_proxy"])
def test_settings_in_the_folder_stood_in_choose_no_server(
    hosted: HostedRun, server: WandbServer, stranger: Listener, tmp_path: Path, setting: str
) -> None:
    (tmp_path / "wandb").mkdir()
    (tmp_path / "wandb" / "settings").write_text(f"[default]\n{setting} = {stranger.url}\napi_key = {'x' * 40}\n")
    done = asked("check", RUN, "-f", "json", folder=tmp_path)
    assert stranger.asked == []
    assert '"points": 5' in done.stdout, done.stderr


def test_without_a_server_of_the_users_own_a_folder_names_none(
    hosted: HostedRun, stranger: Listener, tmp_path: Path
) -> None:
    (tmp_path / "wandb").mkdir()
    (tmp_path / "wandb" / "settings").write_text(f"[default]\nbase_url = {stranger.url}\n")
    address = f"{stranger.url}/e/p/runs/r"
    done = asked("check", address, folder=tmp_path, env={"WANDB_BASE_URL": ""})
    assert done.returncode == 2 and stranger.asked == []
    assert "not on the server of wandb that is set" in done.stdout


def test_the_users_own_settings_file_names_the_server(hosted: HostedRun, server: WandbServer, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.mkdir()
    (config / "settings").write_text(f"[default]\nbase_url = {server.url}\napi_key = {KEY}\n")
    env = {"WANDB_BASE_URL": "", "WANDB_API_KEY": "", "WANDB_CONFIG_DIR": str(config)}
    done = asked("check", RUN, "-f", "json", folder=tmp_path, env=env)
    assert '"points": 5' in done.stdout, done.stderr


def test_a_redirect_to_another_host_gets_no_request(stranger: Listener, nobody: None, tmp_path: Path) -> None:
    class Redirecting(Asked):
        def answer(self) -> None:
            self.server.asked.append(self.path)
            self.send_response(307)
            self.send_header("Location", stranger.url + self.path)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST = do_HEAD = answer

    with Listener() as turning:
        turning.RequestHandlerClass = Redirecting
        threading.Thread(target=turning.serve_forever, daemon=True).start()
        env = {"WANDB_BASE_URL": turning.url, "WANDB_API_KEY": KEY}
        done = asked("watch", "wandb://e/p/r", "--timeout", "3", folder=tmp_path, env=env)
        turning.shutdown()
    assert turning.asked and stranger.asked == []
    assert done.returncode == 2 and KEY not in done.stdout + done.stderr


def test_a_file_address_on_another_host_gets_no_request(
    server: WandbServer, stranger: Listener, tmp_path: Path
) -> None:
    run = server.host(HostedRun(requirements="trl==1.16.0\n"))
    run.log(train__global_step=1, train__reward=0.1)
    at_home = asked("check", RUN, "-f", "json", folder=tmp_path)
    assert '"location"' in at_home.stdout
    server.files_at = stranger.url
    elsewhere = asked("check", RUN, "-f", "json", folder=tmp_path)
    assert '"location"' in elsewhere.stdout
    assert stranger.asked == []


@pytest.mark.parametrize("summary", [[1, 2], 7, "text", None])
def test_a_summary_that_is_no_mapping_is_one_plain_answer(server: WandbServer, tmp_path: Path, summary: object) -> None:
    run = server.host(HostedRun(state="finished", summary=summary))  # type: ignore[arg-type]
    for step in range(1, 6):
        run.log(train__global_step=step, train__reward=step / 10)
    done = asked("watch", RUN, "--timeout", "2", folder=tmp_path)
    assert "internal error" not in done.stdout + done.stderr and "Traceback" not in done.stderr
    assert done.returncode in (0, 2)
