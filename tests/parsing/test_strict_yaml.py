"""Strict YAML: values as a person reads them, the place of each, and an error with file, line and column for what is
not used here.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from rlhealth.errors import RlhealthError
from rlhealth.parsing import strict_yaml
from rlhealth.parsing.own_texts import read_texts
from rlhealth.parsing.strict_yaml import read_yaml
from rlhealth.rules.loading import rule_files, shipped_rules

OWN = sorted(Path(strict_yaml.__file__).parent.rglob("*.yaml"))


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1e-3", 0.001),
        (".5", 0.5),
        ("+7", 7),
        ("1_000", 1000),
        ("-inf", float("-inf")),
        ("12:30", "12:30"),
        ("0x1f", "0x1f"),
        ("no", "no"),
        ("on", "on"),
        ("True", True),
        ("false", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("'1'", "1"),
        ('"true"', "true"),
        ("|\n  5\n", "5\n"),
        ("[1, b]", [1, "b"]),
        ("{}", {}),
        ("2026-01-01", "2026-01-01"),
    ],
)
def test_a_value_is_what_it_looks_like(written: str, value: object) -> None:
    found = read_yaml(f"key: {written}", "a.yaml")[0]["key"]
    assert (found, type(found)) == (value, type(value))


def test_every_key_has_its_place() -> None:
    text = "# first\nwhen:\n  all:\n    - metric: kl\n      above: 1\n    - 2\n"
    values, marks = read_yaml(text, "a.yaml")
    assert values == {"when": {"all": [{"metric": "kl", "above": 1}, 2]}}
    assert marks == {
        (): (2, 1),
        ("when",): (2, 1),
        ("when", "all"): (3, 3),
        ("when", "all", 0): (4, 7),
        ("when", "all", 0, "metric"): (4, 7),
        ("when", "all", 0, "above"): (5, 7),
        ("when", "all", 1): (6, 7),
    }


def test_a_file_without_a_document_holds_nothing() -> None:
    for text in ("", "# only a comment\n"):
        assert read_yaml(text, "a.yaml") == (None, {})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: &x 1\nb: *x", "1:4: anchors and aliases are not used here"),
        ("&k a: 1", "1:1: anchors and aliases are not used here"),
        ("a: 1\n*k : 1", "2:1: anchors and aliases are not used here"),
        ("a: !!str 5", "1:4: tags are not used here"),
        ("a: !!python/object/apply:os.system [ls]", "1:4: tags are not used here"),
        ("!!str a: 5", "1:1: tags are not used here"),
        ("a: 1\nb: 2\na: 3", "3:1: `a` stands here twice"),
        ("[a]: 1", "1:1: a key is a word, not a list or a mapping"),
        ("a: 1\n---\na: 2", "2:1: another document begins here"),
        ("a: " + "[" * 61 + "]" * 61, "1:63: nested more than 60 levels deep"),
        ("[" * 500, "1:61: nested more than 60 levels deep"),
        ("[" * 100_000, "nested more than 60 levels deep"),  # where PyYAML gives up, or where we do
        ("a: [1", "did not find expected ',' or ']'"),
        ("a: 'x", "found unexpected end of stream"),
        ("a: 1\nb", "could not find expected ':'"),
        ("a: \x07", "1:1: not YAML: unacceptable character"),
    ],
)
def test_what_is_not_used_here_is_reported_with_its_place(text: str, said: str) -> None:
    with pytest.raises(RlhealthError) as caught:
        read_yaml(text, "mine/a.yaml")
    assert caught.value.message.startswith("mine/a.yaml:") and said in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("file", [*OWN, *rule_files(shipped_rules())], ids=lambda file: file.name)
def test_texts_of_our_own_files_are_what_yaml_itself_reads(file: Path) -> None:
    assert read_texts(file) == yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)


def test_texts_keep_a_version_as_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("since: 0.10\nuntil: [1_0, no, ~, '']\n")
    assert read_texts(tmp_path / "a.yaml") == {"since": "0.10", "until": ["1_0", "no", "~", ""]}


def test_without_the_c_library_the_same_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    files = [file.read_text(encoding="utf-8") for file in rule_files(shipped_rules())][:10]
    before = [read_yaml(text, "a.yaml") for text in files]
    monkeypatch.setattr(strict_yaml, "_LOADER", yaml.BaseLoader)
    assert [read_yaml(text, "a.yaml") for text in files] == before
