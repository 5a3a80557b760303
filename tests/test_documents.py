"""Pages for users: what they say to type works as it stands."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import rlhealth
from rlhealth.rules.loading import load_rules
from rlhealth.settings.project import apply, load_settings
from tests.conftest import ROOT, SICK, Cli

FAQ = (ROOT / "docs" / "faq.md").read_text(encoding="utf-8")
AGENTS = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")


def test_the_settings_in_the_questions_are_valid_and_do_what_they_say(tmp_path: Path, cli: Cli) -> None:
    blocks = re.findall(r"```toml\n(.*?)```", FAQ, re.DOTALL)
    text = "\n".join(re.sub(r"^ +", "", block, flags=re.MULTILINE) for block in blocks)
    assert len(tomllib.loads(text)) == 2
    (tmp_path / "rlhealth.toml").write_text(text, encoding="utf-8")
    rules = {rule.id: rule for rule in apply(load_settings(tmp_path), load_rules())}
    assert "rlhealth.toml" in rules["kl-high-per-token"].source[0].text
    assert "1 ignored" in cli("check", SICK, "--ignore", "length-collapse", "--exit-zero", cwd=tmp_path).stdout


def test_known_findings_are_accepted_as_the_questions_say(tmp_path: Path, cli: Cli) -> None:
    assert "--write-baseline known.json" in FAQ
    assert cli("check", SICK, "--write-baseline", "known.json", cwd=tmp_path).returncode == 0
    assert cli("check", SICK, "--baseline", "known.json", cwd=tmp_path).returncode == 0
    assert cli("check", SICK, cwd=tmp_path).returncode == 1


def test_the_schema_is_where_the_page_for_scripts_says() -> None:
    example = next(block for block in re.findall(r"```python\n(.*?)```", AGENTS, re.DOTALL))
    names: dict[str, str] = {}
    exec(example, names)
    assert "rlhealth.report/1" in names["schema"]


def test_every_flag_that_the_pages_name_exists(cli: Cli) -> None:
    shown = cli("check", "--help").stdout
    for page in (FAQ, AGENTS):
        for line in re.findall(r"`?rlhealth check [^`\n]*", page):
            for word in shlex.split(line.strip("`")):
                assert not word.startswith("--") or word in shown, word


def test_the_page_of_the_python_interface_is_that_of_the_docstrings() -> None:
    done = subprocess.run(
        [sys.executable, "docs/api.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert all(f"## rlhealth.{name}\n" in page for name in rlhealth.__all__ if not name.startswith("__"))
