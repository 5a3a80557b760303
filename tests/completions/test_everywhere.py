"""Texts count wherever a run is judged: in a comparison, in a training loop, in a watch that shows them."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import rlhealth
from rlhealth.completions.tables import read
from rlhealth.errors import RlhealthError
from rlhealth.sources.discovery.opening import open_runs
from tests.conftest import FIXTURES, Cli

RUNS = FIXTURES / "completions"
WORD = RUNS / "one-word"


def rows(file: Path) -> list[dict[str, object]]:
    """What the trainer wrote of one step, as a training loop has it in hand."""
    [batch] = read(file)
    named = {name: values.tolist() for name, values in batch.functions.items()}
    return [
        {"prompt": prompt, "completion": text, **{name: values[at] for name, values in named.items()}}
        for at, (prompt, text) in enumerate(zip(batch.prompts, batch.completions, strict=True))
    ]


def test_a_comparison_says_which_measure_of_the_texts_left_the_usual(tmp_path: Path) -> None:
    good = [Path(shutil.copytree(RUNS / "sort", tmp_path / f"good-{number}")) for number in (1, 2)]
    verdict = rlhealth.compare(WORD, good)
    assert any(one.metric.startswith("text/") for one in verdict.runs[0].findings)
    same = rlhealth.compare(shutil.copytree(RUNS / "sort", tmp_path / "mine"), good)
    assert same.runs[0].findings == []


def test_a_training_loop_finds_in_its_texts_what_a_check_finds() -> None:
    [run] = open_runs(WORD / "runs")
    checked = rlhealth.check(WORD).runs[0]
    monitor = rlhealth.Monitor("loop", config=run.config, versions=run.versions)
    for file in sorted((WORD / "completions").glob("*.parquet")):
        step = int(file.stem.rpartition("_")[2])
        monitor.log_completions(step, rows(file))
        logged = {tag: float(one.values[one.steps == step][0]) for tag, one in run.series.items() if step in one.steps}
        monitor.log(step, logged)
    mine = monitor.finish()
    texts = {tag: one for tag, one in checked.run.series.items() if tag.startswith("text/")}
    assert texts and "text/repetition" in texts
    for tag, one in texts.items():
        np.testing.assert_array_equal(mine.run.series[tag].steps, one.steps)
        np.testing.assert_allclose(mine.run.series[tag].values, one.values)
    found = {one.rule for one in checked.findings if one.family == "text"}
    assert found and found == {one.rule for one in mine.findings if one.family == "text"}


def test_rows_without_texts_are_one_line() -> None:
    with pytest.raises(RlhealthError, match="the rows hold no texts"):
        rlhealth.Monitor().log_completions(1, [{"reward": 1.0}])


def test_a_watch_shows_texts_only_where_it_is_asked_to(cli: Cli) -> None:
    [batch] = read(sorted((WORD / "completions").glob("*.parquet"))[-1])
    word = batch.completions[0].split()[0]
    plain = cli("watch", WORD, "--interval", "0.1")
    shown = cli("watch", WORD, "--completions", "--interval", "0.1")
    named = cli("watch", WORD, "--completions", WORD / "completions", "--interval", "0.1")
    assert plain.returncode == shown.returncode == named.returncode
    assert f"{word} {word}" not in plain.stdout
    texts = [one.stdout[one.stdout.rindex("fail-on") - 2000 :].replace("⟦", "") for one in (shown, named)]
    assert texts[0] == texts[1] and f"{word} {word}" in texts[0]
