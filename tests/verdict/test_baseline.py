"""The gate: what is accepted stays accepted until it worsens, what is required must have looked, and what is too
short is no answer.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlhealth.check import check
from rlhealth.errors import RlhealthError
from rlhealth.reports import REPORTS, write
from rlhealth.verdict.baseline import Baseline, read_baseline, write_baseline
from rlhealth.verdict.findings import Severity
from tests.conftest import FIXTURES, SICK, Cli

HEALTHY = FIXTURES / "reports" / "sort"
FOUND = len(check(SICK).runs[0].findings)


def test_what_was_accepted_no_longer_fails_and_is_counted(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "known.json"
    written = cli("check", SICK, "--write-baseline", file)
    again = cli("check", SICK, "--baseline", file, "-f", "json")
    assert (written.returncode, again.returncode) == (0, 0)
    assert f"{FOUND} ignored" in written.stdout.splitlines()[-1]
    run = json.loads(again.stdout)["runs"][0]
    assert run["findings"] == []
    assert {one["reason"] for one in run["ignored"]} == {"baseline"}
    assert len(run["ignored"]) == FOUND


def test_only_what_is_new_fails(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "known.json"
    cli("check", SICK, "--write-baseline", file)
    said = json.loads(file.read_text())
    said["accepted"] = [one for one in said["accepted"] if one["rule"] != "length-collapse"]
    file.write_text(json.dumps(said))
    done = cli("check", SICK, "--baseline", file, "-f", "json", "--fail-on", "warning")
    assert done.returncode == 1
    assert [one["rule"] for one in json.loads(done.stdout)["runs"][0]["findings"]] == ["length-collapse"]


def test_a_finding_that_worsened_is_new_and_one_that_eased_is_not() -> None:
    run = check(SICK).runs[0]
    mild = next(one for one in run.findings if one.severity is Severity.WARNING)
    known = Baseline({(run.name, mild.rule, mild.metric): Severity.WARNING})
    assert known.knows(run.name, mild)
    assert known.knows(
        run.name, replace(mild, severity=Severity.INFO, first_step=3, conditions=(replace(mild.lead, value=9.0),))
    )
    assert not known.knows(run.name, replace(mild, severity=Severity.CRITICAL))
    assert not known.knows("another run", mild)
    assert not known.knows(run.name, replace(mild, rule="another-rule"))
    assert not known.knows(run.name, replace(mild, conditions=(replace(mild.lead, metric="another/metric"),)))


def test_writing_over_a_baseline_keeps_other_runs_and_forgets_what_is_gone(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "known.json"
    name = json.loads(cli("check", SICK, "-f", "json").stdout)["runs"][0]["run"]
    elsewhere = {"run": "elsewhere", "rule": "kl-high-per-token", "metric": "kl", "severity": "warning"}
    gone = {"run": name, "rule": "no-longer-found", "metric": "kl", "severity": "warning"}
    file.write_text(json.dumps({"schema": "rlhealth.baseline/1", "accepted": [elsewhere, gone]}))
    cli("check", SICK, "--baseline", file, "--write-baseline", file)
    rows = json.loads(file.read_text())["accepted"]
    assert elsewhere in rows
    assert gone not in rows
    assert len(rows) == FOUND + 1


@pytest.mark.parametrize("format", [one for one in REPORTS if one != "html"])
def test_every_format_counts_what_was_accepted(format: str) -> None:
    known = Baseline().with_findings(check(SICK).runs)
    verdict = check(SICK, baseline=known)
    assert verdict.exit_code == 0
    text = write(verdict, format)
    assert f"{FOUND} ignored" in text or FOUND in (
        text.count("(ignored: baseline)"),
        text.count('"reason": "baseline"'),
    )


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", ":1:1: not JSON"),
        ('{"schema": "rlhealth.baseline/1",\n "accepted": [}', ":2:15: not JSON"),
        ("[]", "not a baseline"),
        ('{"schema": "rlhealth.report/1", "accepted": []}', "not a baseline"),
        ('{"schema": "rlhealth.baseline/1", "accepted": [{"run": "a"}]}', "accepted finding 1 is not whole"),
        (
            '{"schema": "rlhealth.baseline/1", "accepted": [{"run": "a", "rule": '
            '"b", "metric": "c", "severity": "awful"}]}',
            "accepted finding 1",
        ),
        ('{"schema": "rlhealth.baseline/1", "accepted": [7]}', "accepted finding 1"),
    ],
)
def test_a_file_that_is_no_baseline_is_refused_with_its_place(cli: Cli, tmp_path: Path, text: str, place: str) -> None:
    (tmp_path / "known.json").write_text(text)
    with pytest.raises(RlhealthError, match=r"known\.json") as caught:
        read_baseline(tmp_path / "known.json")
    assert place in caught.value.message
    assert caught.value.hint


def test_a_baseline_that_is_missing_is_no_answer(cli: Cli, tmp_path: Path) -> None:
    done = cli("check", SICK, "--baseline", tmp_path / "none.json")
    assert done.returncode == 2
    assert "--write-baseline makes the file" in done.stderr


NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(st.dictionaries(st.tuples(NAMES, NAMES, NAMES), st.sampled_from(list(Severity)), max_size=8))
def test_whatever_a_run_is_called_the_file_gives_it_back(accepted: dict[tuple[str, str, str], Severity]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        write_baseline(Baseline(accepted), Path(folder) / "known.json")
        assert read_baseline(Path(folder) / "known.json").accepted == accepted


def test_a_required_rule_that_could_not_look_fails_and_names_itself(cli: Cli) -> None:
    done = cli("check", HEALTHY, "--require", "reward-trend, value-loss", "--require", "entropy")
    assert done.returncode == 2
    assert "required rule could not run: value-loss" in done.stdout
    assert cli("check", HEALTHY, "--require", "reward-trend,entropy").returncode == 0


def test_a_rule_that_was_not_selected_cannot_be_met(cli: Cli) -> None:
    assert cli("check", HEALTHY, "--select", "kl-high", "--require", "entropy").returncode == 2


def test_a_required_rule_that_there_is_not_is_a_wrong_flag(cli: Cli) -> None:
    done = cli("check", HEALTHY, "--require", "reward-trnd")
    assert done.returncode == 2
    assert "did you mean `reward-trend`" in done.stderr


def test_a_run_with_too_few_steps_is_no_answer_in_every_format(cli: Cli, tmp_path: Path) -> None:
    shutil.copytree(HEALTHY, tmp_path / "run")
    written = [one for one in REPORTS if one != "html"]
    outputs = [word for one in written for word in ("-f", one, "-o", str(tmp_path / one))]
    assert cli("check", tmp_path / "run", "--min-steps", "121", *outputs).returncode == 2
    for one in written:
        assert "120 of the 121 steps" in (tmp_path / one).read_text(encoding="utf-8").replace("\\-", "-"), one
    assert cli("check", tmp_path / "run", "--min-steps", "120", *outputs).returncode == 0
