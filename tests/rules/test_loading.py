"""The shipped rules come from what was kept of them exactly as from their files, and from the files as these change."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rlhealth.errors import RlhealthError
from rlhealth.parsing.strict_data import as_values, from_values
from rlhealth.rules import loading
from rlhealth.rules.loading import load_rules, read_rule, rule_files, shipped_rules, text_of
from tests.conftest import ROOT, SICK


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the shipped rules that stands for them, and a cache folder of its own."""
    folder = tmp_path / "rules"
    shutil.copytree(shipped_rules(), folder)
    monkeypatch.setattr(loading, "shipped_rules", lambda: folder)
    monkeypatch.setenv("RLHEALTH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(loading, "_latest", None)
    return folder


def test_kept_rules_equal_those_that_pydantic_checked(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checked = {rule.id: rule for rule in (read_rule(text_of(file), str(file)) for file in rule_files(copied))}
    for _ in range(2):  # written, then read, by what another process would know
        monkeypatch.setattr(loading, "_latest", None)
        assert {rule.id: rule for rule in load_rules()} == checked
    for rule in checked.values():
        again = from_values(as_values(rule), loading.parts_of_rules())
        assert again == rule
        assert repr(again) == repr(rule)  # 1 equals 1.0, and a message would say another number


def test_rules_whose_files_stay_are_the_same_ones_for_the_next_check(copied: Path) -> None:
    first = load_rules()
    assert all(one is other for one, other in zip(first, load_rules(), strict=True))
    file = next(rule_files(copied))
    file.write_text(text_of(file) + "\n# a remark\n", encoding="utf-8")
    again = load_rules()
    assert again == first and not any(one is other for one, other in zip(first, again, strict=True))


def test_a_changed_rule_is_seen_at_once_though_its_size_and_date_are_the_same(copied: Path) -> None:
    file = next(rule_files(copied))
    before, at = text_of(file), file.stat()
    rule = read_rule(before, str(file))
    load_rules()
    file.write_text(before.replace(rule.title, rule.title.upper()), encoding="utf-8")
    os.utime(file, ns=(at.st_atime_ns, at.st_mtime_ns))
    assert next(one for one in load_rules() if one.id == rule.id).title == rule.title.upper()
    file.write_text(before, encoding="utf-8")
    assert next(one for one in load_rules() if one.id == rule.id).title == rule.title


def test_a_rule_file_that_comes_or_goes_is_seen(copied: Path) -> None:
    count = len(load_rules())
    file = next(rule_files(copied))
    text = text_of(file)
    file.unlink()
    assert len(load_rules()) == count - 1
    file.write_text(text, encoding="utf-8")
    assert len(load_rules()) == count


def test_a_shipped_rule_that_is_broken_is_an_error_and_is_not_kept(copied: Path) -> None:
    file = next(rule_files(copied))
    text = text_of(file)
    load_rules()
    file.write_text(text.replace("severity:", "severty:"), encoding="utf-8")
    for _ in range(2):
        with pytest.raises(RlhealthError, match="severity: is missing"):
            load_rules()
    file.write_bytes(b"id: \xff")
    with pytest.raises(RlhealthError, match="not a text in UTF-8"):
        load_rules()
    file.write_text(text, encoding="utf-8")
    assert load_rules()


def test_a_users_own_rules_are_read_from_their_files_each_time(copied: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    file = next(rule_files(copied))
    rule = read_rule(text_of(file), str(file))
    for title in ("First", "Second"):
        (own / file.name).write_text(text_of(file).replace(rule.title, title), encoding="utf-8")
        assert next(one for one in load_rules(own) if one.id == rule.id).title == title


@pytest.mark.parametrize("said", ["message", "because", "says"])
def test_a_brace_that_does_not_close_is_refused_in_every_text_that_names_fields(said: str) -> None:
    texts = [(text_of(file), str(file)) for file in rule_files(shipped_rules())]
    text, file = next(one for one in texts if "\ncause:" in one[0] and 'says: "' in one[0] and '\nmessage: "' in one[0])
    broken = re.sub(rf'\b{said}: (?:"|\|\n  )', lambda found: f"{found[0]}{{value", text, count=1)
    assert broken != text
    with pytest.raises(RlhealthError, match="for braces that are meant as such"):
        read_rule(broken, file)


CHECK = """
import sys; sys.argv = ["rlhealth", "check", sys.argv[1]]
from rlhealth.cli.app import main
try: main()
except SystemExit: pass
heavy = {"pydantic", "yaml", "rich", "pandas", "wandb"} & set(sys.modules)
print(*sorted(heavy), file=sys.stderr)
"""


def test_from_the_second_check_on_neither_pydantic_nor_yaml_is_imported(tmp_path: Path) -> None:
    environment = os.environ | {"RLHEALTH_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    found = [
        subprocess.run(
            [sys.executable, "-c", CHECK, str(SICK)], capture_output=True, text=True, env=environment, cwd=ROOT
        )
        for _ in range(2)
    ]
    first, second = found
    assert first.stdout == second.stdout != ""
    assert "pydantic" in first.stderr
    assert second.stderr == "\n"
