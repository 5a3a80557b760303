"""Whatever a log holds, no format lets it act: one test over all of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlhealth.reports import REPORTS, ReportOptions, write
from rlhealth.verdict.verdicts import Verdict

NARROW = "\u202f"
OURS = "\n\u202f\u00a0\u200d"


@pytest.mark.parametrize("format", list(REPORTS))
def test_no_control_character_or_hidden_direction_survives(format: str, hostile: Verdict) -> None:
    text = write(hostile, format, ReportOptions(width=100))
    assert {one for one in text if not one.isprintable() and one not in OURS} == set()
    text.encode("utf-8")  # no lone surrogate


@pytest.mark.parametrize("format", list(REPORTS))
def test_every_format_answers_for_every_answer(
    format: str, healthy: Verdict, sick: Verdict, unknown: Verdict, nothing: Verdict, many: Verdict
) -> None:
    for verdict in (healthy, sick, unknown, nothing, many, Verdict([])):
        assert write(verdict, format).strip()


@pytest.mark.parametrize("format", list(REPORTS))
def test_two_hundred_runs_are_all_counted(format: str, many: Verdict) -> None:
    first = many.runs
    many.runs = [
        replace(one, run=replace(one.run, name=f"{one.name}-{number}")) for number in range(7) for one in first
    ][:199]
    text = write(many, format, ReportOptions(width=100)).replace(NARROW, "")
    assert "200 runs" in text or (
        format in ("json", "csv", "gitlab") and all(run.name in text for run in many.runs if run.verdict != "healthy")
    )
    assert len(text) < 4_000_000


@pytest.mark.parametrize("format", [one for one in REPORTS if one != "terminal"])
def test_what_was_ignored_or_skipped_is_reported_in_every_format(format: str, sick: Verdict) -> None:
    text = write(sick, format).replace("\\-", "-")
    assert "ignored" in text
    assert "skipped" in text
