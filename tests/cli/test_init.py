"""`rlhealth init`: the commented settings file holds every setting, does nothing as written, and is never lost."""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import BaseModel

from rlhealth.rules.loading import load_rules
from rlhealth.settings.project import apply, load_settings
from rlhealth.settings.schema import CriticalLimits, GateSettings, Ignore, Parameters, SettingsFile, WatchSettings
from tests.conftest import SICK, Cli


def test_the_written_file_changes_nothing(cli: Cli, tmp_path: Path) -> None:
    done = cli("init", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    found = load_settings(tmp_path)
    assert Path(found.location).name == "rlhealth.toml"
    assert (found.fail_on, found.select, found.ignore, found.parameters, found.aliases) == (None, (), {}, {}, {})


def test_every_setting_in_it_is_valid_once_its_comment_sign_is_removed(cli: Cli, tmp_path: Path) -> None:
    cli("init", cwd=tmp_path)
    file = tmp_path / "rlhealth.toml"
    text = re.sub(r"^#(?=[\w\[\"])", "", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    file.write_text(text, encoding="utf-8")
    found = load_settings(tmp_path)
    assert (found.fail_on, found.min_steps, dict(found.ignore)) == (
        "critical",
        50,
        {"entropy": "this task has one right answer"},
    )
    apply(found, load_rules())  # every rule, limit and family that it names exists


def test_no_setting_of_the_schema_is_missing_from_it(cli: Cli, tmp_path: Path) -> None:
    cli("init", cwd=tmp_path)
    text = (tmp_path / "rlhealth.toml").read_text(encoding="utf-8")
    models: tuple[type[BaseModel], ...] = (
        SettingsFile,
        GateSettings,
        WatchSettings,
        Ignore,
        CriticalLimits,
        Parameters,
    )
    for model in models:
        for name, field in model.model_fields.items():
            key = field.alias or name
            if (model, key) not in {(Parameters, "above"), (Parameters, "below"), (CriticalLimits, "below")}:
                assert re.search(rf"(^#|[\[{{., ]){key}( =|[.\]])", text, re.MULTILINE), key


def test_a_file_that_is_there_is_kept_unless_force_is_given(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "rlhealth.toml"
    file.write_text('fail-on = "warning"\n', encoding="utf-8")
    refused = cli("init", cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--force" in refused.stderr
    assert file.read_text(encoding="utf-8") == 'fail-on = "warning"\n'
    assert cli("init", "--force", cwd=tmp_path).returncode == 0
    assert 'fail-on = "critical"' in file.read_text(encoding="utf-8")


def test_a_folder_that_is_missing_is_one_plain_error(cli: Cli, tmp_path: Path) -> None:
    done = cli("init", tmp_path / "none")
    assert done.returncode == 2
    assert "No such file" in done.stderr and "Traceback" not in done.stderr


def test_report_states_its_real_default(cli: Cli, tmp_path: Path) -> None:
    shown = " ".join(cli("report", "--help").stdout.split())
    option = re.search(r"--fail-on [<\[]critical.*?(?= --)", shown)
    assert option and "[default: never]" in option[0]
    assert cli("report", SICK, cwd=tmp_path).returncode == 0
    assert cli("report", SICK, "--fail-on", "critical", cwd=tmp_path).returncode == 1


def test_the_shell_completes_commands_and_its_script_can_be_installed(cli: Cli, tmp_path: Path) -> None:
    done = cli(_RLHEALTH_COMPLETE="complete_bash", COMP_WORDS="rlhealth com", COMP_CWORD="1")
    assert done.stdout.split() == ["compare"]
    script = cli(_RLHEALTH_COMPLETE="source_bash").stdout
    assert "complete -o default -F" in script and "_RLHEALTH_COMPLETE=complete_bash" in script
    (tmp_path / ".bashrc").touch()
    installed = cli(
        "--install-completion", "bash", HOME=str(tmp_path), _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1"
    )
    assert installed.returncode == 0, installed.stderr
    assert "_RLHEALTH_COMPLETE" in "".join(
        one.read_text(encoding="utf-8") for one in tmp_path.rglob("*") if one.is_file()
    )
