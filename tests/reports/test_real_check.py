"""Reports of a real check of real logs, from the file to the text."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from rlhealth.check import check
from rlhealth.reports import REPORTS, ReportOptions, write
from rlhealth.verdict.verdicts import Verdict

FIXTURES = Path(__file__).parents[2] / "fixtures" / "reports"


@pytest.fixture(scope="module")
def verdict() -> Verdict:
    return check([FIXTURES / "lr-jump", FIXTURES / "sort"])


@pytest.mark.parametrize("format", list(REPORTS))
def test_every_format_tells_the_sick_run_and_its_onset(format: str, verdict: Verdict) -> None:
    text = write(verdict, format, ReportOptions(width=100, piped=format == "terminal"))
    sick = next(run for run in verdict.runs if run.name == "lr-jump")
    assert sick.verdict == "critical"
    assert sick.name in text
    assert all(one.rule in text for one in sick.findings)
    assert str(min(one.first_step for one in sick.findings)) in text


def test_the_json_report_of_a_real_check_follows_the_schema(verdict: Verdict) -> None:
    schema = json.loads((files("rlhealth.reports") / "report.schema.json").read_text("utf-8"))
    report = json.loads(write(verdict, "json"))
    Draft202012Validator(schema).validate(report)
    assert [run["verdict"] for run in report["runs"]] == ["critical", "healthy"]
    assert report["exit_code"] == 1
    assert all(
        finding["worst_value"] is not None and finding["try"] for run in report["runs"] for finding in run["findings"]
    )
