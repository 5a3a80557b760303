"""Texts are shown where they were asked for, in the terminal and the page, and nowhere else."""

from __future__ import annotations

import json
import shutil

import pytest

from rlhealth.check import check
from rlhealth.completions.shown import SHOWN, repeated, shown_at
from rlhealth.reports import REPORTS, ReportOptions, write
from tests.conftest import FIXTURES

pytest.importorskip("pyarrow")
SICK = FIXTURES / "completions" / "one-word"
HOSTILE = "\x1b[2J\x1b]0;owned\x07<script>alert(1)</script>\x00‮ ::error::no"


@pytest.fixture(scope="module")
def verdict():
    return check(SICK, source="tensorboard")


def test_two_texts_from_before_and_two_from_the_worst_step_answer_one_prompt(verdict):
    for (_, rule, _), texts in shown_at(verdict.runs).items():
        finding = next(one for one in verdict.runs[0].findings if one.rule == rule)
        assert 1 <= len(texts) <= 4
        steps = [one.step for one in texts]
        assert steps == sorted(steps)
        if finding.first_step > 1 and len(set(steps)) == 2:
            assert min(steps) < finding.first_step and len({one.prompt for one in texts}) == 1


def test_texts_are_in_the_terminal_and_the_page_by_the_flag_alone(verdict):
    texts = shown_at(verdict.runs)
    said = "good good good good"
    assert texts
    for name in REPORTS:
        for piped in (False, True):
            assert said not in write(verdict, name, ReportOptions(piped=piped)).replace("⟦", "").replace("\n", " "), (
                name
            )
            shown = (
                write(verdict, name, ReportOptions(piped=piped, completions=texts))
                .replace("<mark>", "")
                .replace("⟦", "")
            )
            assert (said in shown) == (name in ("terminal", "html")), name


def test_a_hostile_text_steers_neither_the_terminal_nor_the_page(tmp_path):
    import pandas as pd

    shutil.copytree(SICK, tmp_path / "run")
    for path in sorted((tmp_path / "run" / "completions").iterdir()):
        table = pd.read_parquet(path)
        table["prompt"] = table["prompt"] + HOSTILE
        table["completion"] = table["completion"] + HOSTILE
        table.to_parquet(path)
    verdict = check(tmp_path / "run", source="tensorboard")
    texts = shown_at(verdict.runs)
    assert any(HOSTILE in one.completion for found in texts.values() for one in found)
    for piped in (False, True):
        shown = write(verdict, "terminal", ReportOptions(piped=piped, completions=texts, width=200))
        assert "\x1b" not in shown and "\x00" not in shown and "\u202e" not in shown and "\\x1b" in shown
        assert not any(line.startswith("::") for line in shown.splitlines())
    page = write(verdict, "html", ReportOptions(completions=texts))
    assert "<script>alert" not in page and "&lt;script&gt;alert" in page and "\x1b" not in page and "\x00" not in page


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a b c d a b c d", ["a b c d"]),
        ("good " * 8, ["good good good good good good good"]),
        ("a b c d e f g h", []),
        ("", []),
    ],
)
def test_what_repeats_is_what_four_words_say_again(text, parts):
    assert [text[start:end] for start, end in repeated(text)] == parts


def test_a_long_text_is_shown_in_part_and_the_rest_counted(verdict):
    from rlhealth.completions.shown import Excerpt
    from rlhealth.reports.excerpts import body

    one = Excerpt(1, "p", "x" * 5000, (("acc", 1.0),), (), 5000)
    assert body(one).startswith("x" * SHOWN) and body(one).endswith("400 more characters")


def test_the_command_line_shows_texts_by_the_flag_wherever_it_stands(cli, tmp_path):
    plain = cli("check", SICK, "--source", "tensorboard")
    assert "completion=" not in plain.stdout
    for args in (
        ["check", SICK, "--source", "tensorboard", "--completions"],
        ["check", SICK, "--completions", "--source", "tensorboard"],
        ["check", "--source", "tensorboard", "--completions", SICK],
    ):
        shown = cli(*args)
        assert shown.returncode == plain.returncode and "completion='good" in shown.stdout, args
    moved = tmp_path / "texts"
    shutil.copytree(SICK / "completions", moved)
    shutil.copytree(SICK / "runs", tmp_path / "run" / "runs")
    from_there = cli("check", tmp_path / "run", "--completions", moved)
    assert "completion='good" in from_there.stdout and "text-repeats-itself" in from_there.stdout
    report = json.loads(cli("check", tmp_path / "run", "--completions", moved, "-f", "json").stdout)
    assert "good good" not in json.dumps(report)
    nowhere = cli("check", tmp_path / "run", "--completions", tmp_path / "nowhere")
    assert nowhere.returncode == 2 and "no such file or folder" in nowhere.stdout + nowhere.stderr


def test_read_pages_through_the_texts_by_their_reward(cli):
    best = cli("read", SICK, "--step", "5", "--limit", "3")
    worst = cli("read", SICK, "--step", "5", "--worst", "--limit", "3")
    assert best.returncode == worst.returncode == 0 and "32 texts of 40 steps, 1 to 40" in best.stdout
    value = [float(one.stdout.split("one_word=")[1].split()[0]) for one in (best, worst)]
    assert value[0] > value[1]
    found = cli("read", SICK, "--grep", "wooden.*red")
    assert "step" in found.stdout and "wooden" in found.stdout
    assert cli("read", SICK / "completions" / "completions_00007.parquet").returncode == 0


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--step", "99"], "no completions of step 99"),
        (["--grep", "("], "--grep ("),
        (["--grep", "zzzz"], "no text matches --grep zzzz"),
    ],
)
def test_read_says_in_one_line_what_it_cannot_find(cli, args, said):
    got = cli("read", SICK, *args)
    assert got.returncode == 2 and said in got.stderr and "Traceback" not in got.stderr


def test_read_says_how_to_have_texts_where_a_run_has_none(cli):
    got = cli("read", FIXTURES / "tensorboard" / "grpo-sort")
    assert got.returncode == 2 and "log_completions=True" in got.stderr
