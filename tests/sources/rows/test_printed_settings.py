"""The settings that a trainer prints before its rows are those of the run."""

from __future__ import annotations

from pathlib import Path
from pprint import pformat
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlhealth.run import Run
from rlhealth.sources import open_runs
from rlhealth.sources.rows.printed_settings import MOST_LINES, PrintedSettings

SETTINGS: dict[str, Any] = {
    "actor_rollout_ref": {
        "actor": {"entropy_coeff": 0.001, "kl_loss_coef": 0.04, "optim": {"lr": 1e-06, "name": "braces { in a 'text'"}},
        "model": {"path": "a/model", "use_shm": False},
    },
    "data": {"max_response_length": 512, "files": ["a.parquet", "b.parquet"], "image_key": None},
    "trainer": {"total_epochs": 3, "hf_token": "hf_abcdefghijklmnopqrstuvwxyz012345"},
}
ROW = "step:{0} - actor/entropy:0.4 - critic/score/mean:0.{0} - actor/kl_loss:0.01 - actor/grad_norm:0.3"


def read(tmp_path: Path, *lines: str) -> Run:
    path = tmp_path / "train.log"
    path.write_text("\n".join(lines) + "\n")
    (run,) = open_runs(str(path))
    return run


def rows(before: str = "") -> list[str]:
    return [before + ROW.format(step) for step in range(1, 30)]


def test_a_printed_dict_of_dicts_holds_the_settings(tmp_path: Path) -> None:
    run = read(tmp_path, "starting", pformat(SETTINGS), *rows())
    assert run.config["actor_rollout_ref.actor.entropy_coeff"] == 0.001
    assert run.config["data.max_response_length"] == 512
    assert len(run.series["critic/score/mean"]) == 29


def test_lines_of_other_processes_between_its_lines_are_passed_over(tmp_path: Path) -> None:
    mine, other = "(TaskRunner pid=12) ", "(WorkerDict pid=99) "
    printed = [line for one in pformat(SETTINGS).splitlines() for line in (mine + one, other + "loading {'a': {'b': 1")]
    run = read(tmp_path, *printed, *rows(mine))
    assert run.config["actor_rollout_ref.actor.optim.lr"] == 1e-06


def test_what_is_private_is_left_out(tmp_path: Path) -> None:
    assert not any("token" in name for name in read(tmp_path, pformat(SETTINGS), *rows()).config)


@pytest.mark.parametrize(
    "printed",
    [
        "{'loss': 0.5, 'reward': 0.1}",
        pformat(SETTINGS)[:-2],
        "{'a': {'b': __import__('os').system('touch owned')}}",
        "{'a': {'b': " + "[" * 5000,
        "{'a': {'b': 1,\n" + " 'c': 2,\n" * (MOST_LINES + 5) + "}}",
    ],
    ids=["a row", "torn", "a call", "deep", "without end"],
)
def test_what_is_no_such_dict_gives_no_settings_and_costs_no_row(printed: str, tmp_path: Path) -> None:
    run = read(tmp_path, printed, *rows())
    assert run.config == {}
    assert len(run.series["critic/score/mean"]) == 29
    assert not Path("owned").exists()


_VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.lists(st.integers(), max_size=3)


@given(
    st.dictionaries(
        st.from_regex(r"\A[a-z_]{1,8}\Z"),
        st.dictionaries(st.from_regex(r"\A[a-z_]{1,8}\Z"), _VALUES, min_size=1),
        min_size=1,
    )
)
def test_whatever_pprint_prints_is_read_back(settings: dict[str, Any]) -> None:
    found = PrintedSettings()
    for line in pformat(settings).splitlines(keepends=True):
        found.read(line.encode())
    assert found.found in ({}, settings)
    if all(str(value).isascii() and str(value).isprintable() for part in settings.values() for value in part.values()):
        assert found.found == settings
