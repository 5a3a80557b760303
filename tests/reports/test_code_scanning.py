"""Reports for services that read them: each is checked with the service's own schema or reader."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from jsonschema import Draft4Validator
from junitparser import JUnitXml

from rlhealth.reports import ReportOptions, github, write
from rlhealth.run import Place
from rlhealth.verdict.findings import Severity
from rlhealth.verdict.gate import Gate
from rlhealth.verdict.verdicts import Verdict

ANSWERS = ["healthy", "sick", "unknown", "nothing", "many", "hostile"]
SARIF = json.loads((Path(__file__).parent / "schemas" / "sarif-2.1.0-rtm.5.json").read_text("utf-8"))


@pytest.mark.parametrize("name", ANSWERS)
def test_sarif_follows_the_official_schema(name: str, request: pytest.FixtureRequest) -> None:
    Draft4Validator(SARIF).validate(json.loads(write(request.getfixturevalue(name), "sarif")))


def test_sarif_results_point_at_rules_with_help_and_ignored_ones_are_suppressed(sick: Verdict) -> None:
    run = json.loads(write(sick, "sarif"))["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    assert all(rules[one["ruleIndex"]]["id"] == one["ruleId"] for one in run["results"])
    assert all("What to try:\n- Lower the learning rate" in rule["help"]["text"] for rule in rules)
    assert [one["level"] for one in run["results"]] == [
        "error",
        "error",
        "warning",
        "warning",
        "warning",
        "note",
        "warning",
    ]
    assert run["results"][-1]["suppressions"] == [{"kind": "external", "justification": "known since May"}]
    said = [one["message"]["text"] for one in run["invocations"][0]["toolConfigurationNotifications"]]
    assert "polite-lr-jump: kl-coef-rising could not run: objective/kl_coef was not logged" in said


def test_a_finding_keeps_its_fingerprint_while_the_run_goes_on(sick: Verdict) -> None:
    def prints(verdict: Verdict) -> list[str]:
        return [
            one["partialFingerprints"]["rlhealth/v1"]
            for one in json.loads(write(verdict, "sarif"))["runs"][0]["results"]
        ]

    before = prints(sick)
    sick.runs[0].findings = [
        replace(one, last_step=one.last_step + 50, conditions=(replace(one.lead, value=99.0),), message="other words")
        for one in sick.runs[0].findings
    ]
    assert prints(sick) == before
    assert len(set(before)) == len(before)
    sick.runs[0].run.name = "another run"
    assert not set(prints(sick)) & set(before)


@pytest.mark.parametrize("name", ANSWERS)
def test_junit_is_read_back_with_a_suite_for_each_run(name: str, request: pytest.FixtureRequest) -> None:
    verdict: Verdict = request.getfixturevalue(name)
    suites = list(JUnitXml.fromstring(write(verdict, "junit").encode()))
    assert len(suites) == len(verdict.runs) + len(verdict.errors) + 1
    for suite, run in zip(suites, verdict.runs, strict=False):
        assert suite.tests == len(list(suite))
        failed = {one.rule for one in verdict.gate.hits(run.findings)}
        required = {rule for other, rule in verdict.unmet if other is run}
        assert suite.failures == len(failed) + len(required)
        assert suite.skipped == len(run.skipped) + len(run.ignored) - sum(
            one.rule in required or one.family in required for one in run.skipped
        )


def test_junit_fails_what_the_gate_fails_and_no_more(sick: Verdict) -> None:
    def failing(fail_on: Severity | None) -> set[str]:
        sick.gate = Gate(fail_on)
        return {
            case.name
            for suite in JUnitXml.fromstring(write(sick, "junit").encode())
            for case in suite
            if any(type(one).__name__ == "Failure" for one in case.result)
        }

    assert failing(Severity.CRITICAL) == {"step-size-too-big", "kl-high"}
    assert failing(Severity.WARNING) == {
        "step-size-too-big",
        "kl-high",
        "grad-norm-spike",
        "entropy-collapse",
        "no-group-signal",
    }
    assert failing(None) == set()


def test_a_required_rule_that_could_not_look_fails_in_junit_and_is_an_error_in_github(healthy: Verdict) -> None:
    healthy.gate = Gate(require=("value-loss-spike",))
    assert healthy.exit_code == 2
    assert 'failure message="loss/value_avg was not logged" type="required rule could not run"' in write(
        healthy, "junit"
    )
    assert "::error title=rlhealth%3A value-loss-spike could not run::" in write(healthy, "github")


def test_github_shows_the_worst_first_at_most_ten_of_a_kind_and_counts_the_rest(many: Verdict) -> None:
    twin = replace(many.runs[-2], run=replace(many.runs[-2].run, name="lr1e-3_s2"))
    many.runs.append(twin)
    lines = write(many, "github").splitlines()
    kinds = [line.split()[0] for line in lines]
    assert kinds == sorted(kinds, key=["::error", "::warning", "::notice"].index)
    assert {kind: kinds.count(kind) for kind in kinds} == {"::error": 8, "::warning": 10, "::notice": 4}
    assert lines[0].startswith(
        "::error title=rlhealth%3A could not be read::runs/lr1e-4_s2: runs/lr1e-4_s2: "
        "the event file is empty%0ATry: delete it"
    )
    assert lines[17] == "::warning title=rlhealth::… and 3 more like these; the report has them all"
    assert lines[-1].startswith(
        "::notice title=rlhealth::31 runs: 24 healthy, 2 warning, 3 critical, 1 unknown, "
        "1 unreadable; 1 damaged, 3 ignored, 4 rules skipped"
    )


def test_a_github_annotation_escapes_what_ends_a_command(hostile: Verdict) -> None:
    for line in write(hostile, "github").splitlines():
        command, title, message = line.split(" ", 1)[0], *line.split(" title=", 1)[1].split("::", 1)
        assert command in ("::error", "::warning", "::notice")
        assert ":" not in title and "," not in title
        assert all(part[:2] in ("25", "0A", "3A", "2C") for part in f"{title}{message}".split("%")[1:])


def test_the_job_summary_is_the_markdown_report(sick: Verdict) -> None:
    assert github.summary(sick, ReportOptions()) == write(sick, "markdown").removesuffix("\n") + "\n"


@pytest.mark.parametrize("name", ANSWERS)
def test_gitlab_issues_have_what_gitlab_needs(name: str, request: pytest.FixtureRequest) -> None:
    verdict: Verdict = request.getfixturevalue(name)
    issues = json.loads(write(verdict, "gitlab"))
    assert len({one["fingerprint"] for one in issues}) == len(issues), "GitLab keeps one issue a fingerprint"
    for one in issues:
        assert set(one) == {"description", "check_name", "fingerprint", "severity", "location"}
        assert one["severity"] in ("info", "minor", "major", "critical", "blocker")
        assert one["location"]["lines"] == {"begin": 1}
        assert not one["location"]["path"].startswith(("/", "./"))
    assert sum(one["severity"] != "blocker" and one["check_name"] != "not-judged" for one in issues) == sum(
        len(run.findings) for run in verdict.runs
    )


@pytest.mark.parametrize("name", ANSWERS)
def test_csv_has_a_row_for_every_finding_and_for_every_silence(name: str, request: pytest.FixtureRequest) -> None:
    verdict: Verdict = request.getfixturevalue(name)
    rows = list(csv.DictReader(StringIO(write(verdict, "csv"))))
    kinds = [row["kind"] for row in rows]
    assert kinds.count("finding") == sum(len(run.findings) for run in verdict.runs)
    assert kinds.count("skipped") == sum(len(run.skipped) for run in verdict.runs)
    assert kinds.count("ignored") == sum(len(run.ignored) for run in verdict.runs)
    assert kinds.count("healthy") == sum(run.verdict == "healthy" for run in verdict.runs)
    assert kinds.count("unreadable") == len(verdict.errors)


def test_csv_numbers_are_whole_and_no_cell_is_a_formula(sick: Verdict, hostile: Verdict) -> None:
    first = next(csv.DictReader(StringIO(write(sick, "csv"))))
    assert (first["rule"], first["first_step"], first["worst_value"], first["limit"], first["active"]) == (
        "step-size-too-big",
        "81",
        "9.4",
        "4.0",
        "True",
    )
    cells = [cell for row in csv.reader(StringIO(write(hostile, "csv"))) for cell in row]
    assert not [cell for cell in cells if cell[:1] in ("=", "+", "@") or (cell[:1] == "-" and cell != "-Infinity")]


def _locations(verdict: Verdict) -> set[str]:
    results = json.loads(write(verdict, "sarif"))["runs"][0]["results"]
    issues = json.loads(write(verdict, "gitlab"))
    found = {one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in results}
    return found | {one["location"]["path"] for one in issues}


@pytest.mark.parametrize("said_by", ["GITHUB_WORKSPACE", "CI_PROJECT_DIR", "git"])
def test_a_location_is_seen_from_the_top_of_the_repository(
    sick: Verdict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said_by: str
) -> None:
    for name in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
    below = tmp_path / "repo" / "experiments"
    log = below / "runs" / "a run"
    log.mkdir(parents=True)
    if said_by == "git":
        (tmp_path / "repo" / ".git").mkdir()
    else:
        monkeypatch.setenv(said_by, str(tmp_path / "repo"))
    monkeypatch.chdir(below)
    for location in ("runs/a run", "./runs/a run", "../experiments/runs/a run", str(log)):
        sick.runs[0].run.place = Place("tensorboard", location)
        assert _locations(sick) == {"experiments/runs/a%20run"}
        Draft4Validator(SARIF).validate(json.loads(write(sick, "sarif")))


def test_a_run_of_a_file_of_several_is_located_in_the_file(
    sick: Verdict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "train.ipynb").touch()
    monkeypatch.chdir(tmp_path)
    sick.runs[0].run.place = Place("notebook", "train.ipynb#2")
    assert _locations(sick) == {"train.ipynb"}
    (tmp_path / "train.ipynb#2").touch()
    assert _locations(sick) == {"train.ipynb%232"}


def test_a_log_outside_the_repository_keeps_its_own_path(
    sick: Verdict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path / "repo"))
    sick.runs[0].run.place = Place("tensorboard", "/data/runs/exp1")
    assert _locations(sick) == {"data/runs/exp1"}
    sick.runs[0].run.place = Place("wandb", "wandb://ada/grpo/abc")
    assert _locations(sick) == {"wandb/ada/grpo/abc"}
