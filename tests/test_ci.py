"""CI, ready-made: the steps of action.yml, the snippets of docs/ci.md, the pre-commit hook and the pytest helper do
what they say.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from junitparser import JUnitXml

from rlhealth.errors import RlhealthError
from rlhealth.testing import assert_healthy
from tests.conftest import FIXTURES, ROOT, SICK, Cli

HEALTHY = FIXTURES / "reports" / "sort"
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
GUIDE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")


class Runner:
    """What GitHub's runner does with a composite action, as far as a machine without GitHub can: inputs, expressions
    of ours, outputs, `run` with bash.
    """

    def __init__(self, folder: Path, **inputs: str) -> None:
        self.folder = folder
        self.known = {f"inputs.{name}": str(entry.get("default", "")) for name, entry in ACTION["inputs"].items()}
        self.known |= {f"inputs.{name.replace('_', '-')}": value for name, value in inputs.items()}
        self.known["github.action_path"] = str(ROOT)
        self.said = ""

    def value(self, text: str) -> str:
        """A text with its expressions filled in; only `name` and `name || name` are used."""
        return EXPRESSION.sub(
            lambda found: next((one for name in found[1].split(" || ") if (one := self.known.get(name, ""))), ""), text
        )

    def run(self, step: dict[str, Any], **environment: str) -> int:
        output, summary = self.folder / "output", self.folder / "summary"
        output.write_text("")
        kept = {key: value for key, value in os.environ.items() if key in ("HOME", "LANG", "TMPDIR")}
        settings = {key: self.value(text) for key, text in step.get("env", {}).items()}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            env=kept
            | {
                "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
                "GITHUB_ACTIONS": "true",
                "GITHUB_OUTPUT": str(output),
                "GITHUB_STEP_SUMMARY": str(summary),
            }
            | {"PYTHONPATH": str(ROOT)}
            | settings
            | environment,
        )
        self.said += done.stdout + done.stderr
        for line in output.read_text().splitlines():
            name, _, value = line.partition("=")
            self.known[f"steps.{step.get('id')}.outputs.{name}"] = value
        return done.returncode

    def outcome(self) -> int:
        """Runs the steps that judge, in order; the code of the first that fails."""
        return next((code for step in STEPS if step["name"] in ("Check", "Gate") and (code := self.run(step))), 0)


def step(name: str) -> dict[str, Any]:
    return next(one for one in STEPS if one["name"] == name)


def test_no_input_is_ever_part_of_a_script() -> None:
    scripts = [one["run"] for one in STEPS if "run" in one]
    assert len(scripts) >= 3
    assert not any("${{" in script for script in scripts)
    assert all(one["shell"] == "bash" for one in STEPS if "run" in one)


def test_every_expression_names_an_input_that_there_is() -> None:
    named = set(re.findall(r"inputs\.([a-z-]+)", (ROOT / "action.yml").read_text(encoding="utf-8")))
    assert named == set(ACTION["inputs"])


def test_a_sick_run_fails_the_job_and_leaves_every_report(tmp_path: Path) -> None:
    runner = Runner(tmp_path, path=str(SICK))
    assert runner.outcome() == 1
    reports = tmp_path / "rlhealth-reports"
    assert {one.name for one in reports.iterdir()} == {
        "rlhealth.sarif",
        "rlhealth.xml",
        "rlhealth.md",
        "rlhealth.html",
        "rlhealth.json",
    }
    assert json.loads((reports / "rlhealth.sarif").read_text())["version"] == "2.1.0"
    assert runner.known["steps.check.outputs.verdict"] == "critical"
    assert runner.known["steps.check.outputs.exit-code"] == "1"
    assert "::error title=" in runner.said
    assert "rlhealth: critical" in (tmp_path / "summary").read_text(encoding="utf-8")


def test_a_healthy_run_passes_and_still_reports(tmp_path: Path) -> None:
    runner = Runner(tmp_path, path=str(HEALTHY), formats="gitlab, csv", reports="out")
    assert runner.outcome() == 0
    assert {one.name for one in (tmp_path / "out").iterdir()} == {
        "rlhealth.gitlab.json",
        "rlhealth.csv",
        "rlhealth.json",
    }
    assert runner.known["steps.check.outputs.verdict"] == "healthy"


def test_several_runs_and_every_input_reach_the_check(tmp_path: Path) -> None:
    rules = tmp_path / "own rules"
    shutil.copytree(ROOT / "rules" / "entropy", rules)
    inputs = {
        "path": f"{HEALTHY}\n{SICK}\n",
        "require": "reward-trend,entropy",
        "min_steps": "100",
        "ignore": "kl-high, length",
        "rules": str(rules),
    }
    runner = Runner(tmp_path, **inputs, fail_on="never")
    assert runner.outcome() == 0, runner.said
    report = json.loads((tmp_path / "rlhealth-reports" / "rlhealth.json").read_text())
    assert len(report["runs"]) == 2
    assert report["gate"] == {
        "fail_on": "never",
        "exit_zero": False,
        "require": ["reward-trend", "entropy"],
        "min_steps": 100,
        "strict": False,
        "fail_on_past": False,
    }
    ignored = {one["finding"]["family"] for run in report["runs"] for one in run["ignored"]}
    assert ignored == {"kl-high", "length"}


def test_a_run_that_was_killed_and_came_as_an_artifact_fails_where_the_runs_are_over(tmp_path: Path) -> None:
    """The log is seconds old, so that without `ended` the run may be going on."""
    log = tmp_path / "there" / "trainer_log.jsonl"
    log.parent.mkdir()
    training = (
        "import json, sys, time\n"
        "with open(sys.argv[1], 'w') as log:\n"
        "    for step in range(1, 201):\n"
        "        row = {'current_steps': step, 'total_steps': 200, 'reward': step % 3 + step / 50, 'reward_std': 0.5}\n"
        "        print(json.dumps(row), file=log, flush=True)\n"
        "        time.sleep(60 if step == 40 else 0)\n"
    )
    killed = subprocess.Popen([sys.executable, "-c", training, str(log)])
    while not log.exists() or len(log.read_text().splitlines()) < 40:
        time.sleep(0.02)
    killed.kill()
    killed.wait()
    artifact = shutil.make_archive(str(tmp_path / "artifact"), "zip", log.parent)
    shutil.unpack_archive(artifact, tmp_path / "runs")
    over = Runner(tmp_path, path="runs", ended="true")
    assert over.outcome() == 1 and "nothing was written after step 40 of 200 planned" in over.said
    going_on = Runner(tmp_path, path="runs")
    going_on.outcome()
    assert "nothing was written after" not in going_on.said


def test_a_baseline_lets_known_findings_pass(cli: Cli, tmp_path: Path) -> None:
    cli("check", SICK, "--write-baseline", tmp_path / "known.json")
    assert Runner(tmp_path, path=str(SICK), baseline=str(tmp_path / "known.json")).outcome() == 0


@pytest.mark.parametrize(
    "inputs",
    [
        {},
        {"path": "no/such/run"},
        {"path": str(HEALTHY), "min_steps": "5000"},
        {"path": str(HEALTHY), "fail_on": "dreadful"},
    ],
)
def test_no_answer_fails_the_job(tmp_path: Path, inputs: dict[str, str]) -> None:
    runner = Runner(tmp_path, **inputs)
    assert runner.outcome() == 2
    assert "::error" in runner.said


@pytest.mark.parametrize("hostile", ['"; touch pwned; "$(touch pwned)`touch pwned`', "--rules=/", "-h", "a b'c"])
def test_a_hostile_input_is_a_name_that_is_not_found_and_nothing_else(tmp_path: Path, hostile: str) -> None:
    for name in ("path", "baseline", "rules", "require", "ignore"):
        runner = Runner(tmp_path, **{"path": str(HEALTHY), name: hostile})
        assert runner.outcome() == 2, (name, runner.said)
    assert not (tmp_path / "pwned").exists()


def test_a_run_in_wandb_is_asked_for_at_its_address(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "rlhealth").write_text('#!/bin/sh\nprintf "%s\\n" "$@" > asked\n')
    (tmp_path / "bin" / "rlhealth").chmod(0o755)
    runner = Runner(tmp_path, wandb="team/project/run1")
    runner.run(step("Check"), PATH=f"{tmp_path / 'bin'}:{Path(sys.executable).parent}:/usr/bin:/bin")
    assert (tmp_path / "asked").read_text().splitlines()[-2:] == ["--", "wandb://team/project/run1"]


def test_the_install_step_installs_this_version(tmp_path: Path) -> None:
    target = tmp_path / "site"
    offline = {"PIP_TARGET": str(target), "PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_NO_INDEX": "1"}
    runner = Runner(tmp_path)
    assert runner.run(step("Install rlhealth"), **offline) == 0, runner.said
    assert (target / "rlhealth" / "check.py").is_file()
    assert any((target / "rlhealth" / "_rules").rglob("*.yaml"))


def test_code_scanning_gets_the_file_that_the_check_wrote() -> None:
    upload = step("Upload to code scanning")
    assert upload["uses"].startswith("github/codeql-action/upload-sarif@")
    assert upload["with"]["sarif_file"] == "${{ inputs.reports }}/rlhealth.sarif"
    assert "always()" in upload["if"]


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)


def test_every_snippet_of_the_guide_is_yaml() -> None:
    assert len(blocks("yaml")) >= 4
    for block in blocks("yaml"):
        assert yaml.safe_load(block)


def test_the_github_examples_name_inputs_that_the_action_has() -> None:
    used = [
        one
        for block in blocks("yaml")
        for one in _steps(yaml.safe_load(block))
        if "rlhealth@" in str(one.get("uses", ""))
    ]
    assert len(used) == 3
    for one in used:
        assert set(one["with"]) <= set(ACTION["inputs"])


def _steps(snippet: Any) -> list[dict[str, Any]]:
    if isinstance(snippet, list):
        return [one for one in snippet if isinstance(one, dict)]
    jobs = snippet.get("jobs", {}).values()
    return [one for job in jobs for one in job["steps"]]


def test_the_gitlab_job_writes_the_artifacts_that_it_names(tmp_path: Path) -> None:
    job = next(yaml.safe_load(block)["health"] for block in blocks("yaml") if "codequality" in block)
    shutil.copytree(SICK, tmp_path / "runs")
    command = next(line for line in job["script"] if line.startswith("rlhealth "))
    done = _shell(command, tmp_path)
    assert done.returncode == 1, done.stderr
    for name in job["artifacts"]["paths"]:
        assert (tmp_path / name).stat().st_size > 100
    assert JUnitXml.fromfile(str(tmp_path / job["artifacts"]["reports"]["junit"])).failures > 0
    assert json.loads((tmp_path / job["artifacts"]["reports"]["codequality"]).read_text())


def test_the_shell_commands_of_the_guide_run(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "compare" / "forgets", tmp_path / "runs" / "new")
    for name in ("good-polite", "good-tight-kl", "good-strong-kl"):
        shutil.copytree(FIXTURES / "compare" / name, tmp_path / "runs" / "good" / name)
    commands = [line for block in blocks("sh") for line in block.splitlines()]
    assert len(commands) == 2
    for command in commands:
        done = _shell(command, tmp_path)
        assert done.returncode == 1, done.stderr


def _shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "PYTHONPATH": str(ROOT),
        "HOME": str(folder),
        "LANG": "C.UTF-8",
    }
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, capture_output=True, text=True, env=environment, check=False
    )


def test_the_flags_of_the_guide_are_flags(cli: Cli) -> None:
    shown = cli("check", "--help").stdout
    for flag in re.findall(r"^\| `(--[a-z-]+)", GUIDE, re.MULTILINE):
        assert flag in shown


def test_the_pytest_example_passes_on_a_run_that_learns_and_shows_the_report_of_one_that_does_not(
    tmp_path: Path,
) -> None:
    (tmp_path / "test_smoke.py").write_text(blocks("python")[0])
    for source, code in ((HEALTHY, 0), (SICK, 1)):
        shutil.rmtree(tmp_path / "runs", ignore_errors=True)
        shutil.copytree(source, tmp_path / "runs" / "smoke")
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "LANG": "C.UTF-8"},
            check=False,
        )
        assert done.returncode == code, done.stdout
        assert ("critical[" in done.stdout) is bool(code)
        assert "rlhealth/integrations/testing.py" not in done.stdout


def test_a_sick_run_fails_the_assertion_with_its_report() -> None:
    with pytest.raises(AssertionError, match=r"critical\[") as caught:
        assert_healthy(SICK)
    assert str(caught.value).rstrip().endswith("exit 1")
    assert "try" in str(caught.value)


def test_a_run_that_cannot_be_judged_fails_the_assertion(tmp_path: Path) -> None:
    for where, wanted in ((tmp_path, r"the\s+folder\s+is\s+empty"), (HEALTHY, "120 of the 500 steps")):
        with pytest.raises(AssertionError, match=wanted):
            assert_healthy(where, min_steps=500)
    with pytest.raises(AssertionError, match="required rule could not run: value-loss"):
        assert_healthy(HEALTHY, require=["value-loss"])


def test_a_healthy_run_passes_the_assertion_and_gives_its_verdict(cli: Cli, tmp_path: Path) -> None:
    assert assert_healthy(HEALTHY, "info", require=["reward-trend"], min_steps=120).verdict in ("healthy", "warning")
    cli("check", SICK, "--write-baseline", tmp_path / "known.json")
    assert assert_healthy(SICK, baseline=tmp_path / "known.json").runs[0].ignored


def test_a_name_that_is_no_rule_is_not_an_assertion_error() -> None:
    with pytest.raises(RlhealthError, match="did you mean `reward-trend`"):
        assert_healthy(HEALTHY, require=["reward-trnd"])


HOOK = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))[0]


def test_the_hook_is_the_one_in_the_guide_and_takes_rule_files_only() -> None:
    snippet = next(yaml.safe_load(block) for block in blocks("yaml") if "pre-commit" in block)
    assert snippet["repos"][0]["hooks"] == [{"id": HOOK["id"]}]
    for path, taken in (
        ("rules/kl-high/kl.yaml", True),
        ("my/rules/own.test.yml", True),
        ("rules/README.md", False),
        ("config/app.yaml", False),
    ):
        assert bool(re.search(HOOK["files"], path)) is taken


def test_the_hook_passes_good_rules_and_stops_broken_ones(cli: Cli, tmp_path: Path) -> None:
    command, *arguments = shlex.split(HOOK["entry"])
    assert command == "rlhealth"
    shutil.copytree(ROOT / "rules" / "entropy", tmp_path / "rules" / "entropy")
    files = sorted(one.relative_to(tmp_path) for one in tmp_path.rglob("*.yaml"))
    assert cli(*arguments, *files, cwd=tmp_path).returncode == 0
    rule = tmp_path / "rules" / "entropy" / "entropy-collapse.yaml"
    rule.write_text(rule.read_text().replace("severity:", "severty:"))
    broken = cli(*arguments, *files, cwd=tmp_path)
    assert broken.returncode == 2
    assert "entropy-collapse.yaml" in broken.stdout + broken.stderr
