"""Help comes in panels, fits the terminal, and its examples name flags that exist."""

from __future__ import annotations

import re
import shlex

import pytest

from rlhealth.cli import panels
from tests.conftest import Cli

EXAMPLES = {"check": panels.CHECK_EXAMPLES, "watch": panels.WATCH_EXAMPLES}


def headings(shown: str) -> list[str]:
    return re.findall(r"^([A-Z][A-Za-z ]+):$", shown, re.MULTILINE)


def test_every_option_of_check_watch_and_compare_stands_under_a_panel(cli: Cli) -> None:
    for command in (*EXAMPLES, "compare"):
        shown = cli(command, "--help").stdout
        assert re.findall(r"--[a-z-]+", shown.split("\nOptions:\n")[1].split("\nExamples:")[0]) == ["--help"]


def test_panels_come_in_one_order_and_a_shared_flag_stands_under_the_same_one(cli: Cli) -> None:
    under = {}
    for command in EXAMPLES:
        shown = cli(command, "--help").stdout
        found = [one for one in headings(shown) if one in panels.PANELS]
        assert found == [one for one in panels.PANELS if one in found]
        assert set(headings(shown)) - {*panels.PANELS} == {"Arguments", "Options", "Examples"}
        parts = re.split(r"^([A-Z][A-Za-z ]+):$", shown, flags=re.MULTILINE)
        under[command] = {
            flag: name
            for name, text in zip(parts[1::2], parts[2::2], strict=True)
            if name in panels.PANELS
            for flag in re.findall(r"^  (?:-\w, )?(--[a-z-]+)", text, re.MULTILINE)
        }
    shared = under["check"].keys() & under["watch"].keys()
    assert len(shared) >= 15
    assert {flag: under["check"][flag] for flag in shared} == {flag: under["watch"][flag] for flag in shared}


@pytest.mark.parametrize("columns", [80, 140])
@pytest.mark.parametrize("command", EXAMPLES)
def test_help_fits_the_terminal_and_uses_its_width(cli: Cli, command: str, columns: int) -> None:
    widest = max(map(len, cli(command, "--help", COLUMNS=str(columns)).stdout.splitlines()))
    assert widest <= columns
    assert columns == 80 or widest > 100


@pytest.mark.parametrize("command", EXAMPLES)
def test_the_examples_use_flags_of_the_command(cli: Cli, command: str) -> None:
    shown = cli(command, "--help").stdout
    options, _, shown_examples = shown.partition("\nExamples:\n")
    for line, _ in EXAMPLES[command]:
        assert f"  {line} " in shown_examples
        assert shlex.split(line)[:2] == ["rlhealth", command]
        for flag in re.findall(r"(?<= )--?[a-z][a-z-]*", line):
            assert re.search(rf"^  (-\w, )?{flag}\b", options, re.MULTILINE), flag
