"""Finds rules, reads them from YAML and selects them; errors name file, line and column."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rlhealth.errors import RlhealthError
from rlhealth.metrics import rewards
from rlhealth.parsing import strict_data
from rlhealth.parsing.checked import checked, meant
from rlhealth.parsing.own_texts import parser
from rlhealth.parsing.strict_data import as_values, from_values
from rlhealth.rules import causes, conditions, model, scope
from rlhealth.rules.model import FAMILIES, Rule
from rlhealth.system.cache import cached, read_bytes

LARGEST_FILE = 1 << 20  # bytes; a rule has one thousand
#: Code that a cached rule depends on beside its file: the rule is checked again if any of it changed.
SCHEMA = (conditions.__file__, scope.__file__, causes.__file__, model.__file__, rewards.__file__, str(rewards.FILE))


def shipped_rules() -> Path:
    """The rules that come with rlhealth: a copy inside the wheel, the folder itself in a checkout."""
    packaged = Path(__file__).parents[1] / "_rules"
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "rules"


def rule_files(folder: Path) -> Iterator[Path]:
    """Every rule file of a folder and its families, in order of name; tests (`*.test.yaml`) are left out."""
    for one in sorted(folder.iterdir(), key=lambda one: one.name):
        if one.is_dir():
            yield from rule_files(one)
        elif _is_rule(one.name):
            yield one


def load_rules(*folders: Path) -> list[Rule]:
    """The shipped rules and those of `folders`; a rule replaces an earlier one with the same id.

    Raises:
        RlhealthError: at the first rule that cannot be used, with file, line and column.
    """
    found = {rule.id: rule for rule in _shipped()}
    for folder in folders:
        if not folder.is_dir() and not folder.is_file():
            raise RlhealthError(f"no rules at {folder}", hint="--rules takes a folder of rule files, or one rule file")
        for file in [folder] if folder.is_file() else rule_files(folder):
            rule = read_rule(text_of(file), str(file))
            found[rule.id] = rule
    return sorted(found.values(), key=lambda rule: (rule.cause is not None, rule.family, rule.id))


#: The shipped rules that this process read last, with the content of their files, so that their plans are reused by the
#: next check.
_latest: tuple[dict[str, bytes], tuple[Rule, ...]] | None = None


def _shipped() -> tuple[Rule, ...]:
    """The rules that come with rlhealth; they are checked again if one of their files, or the code that reads it,
    changed."""
    global _latest
    folder = shipped_rules()
    if not folder.is_dir():
        raise RlhealthError(f"no rules at {folder}", hint="install rlhealth again")
    found: dict[str, bytes] = {}
    _collect(str(folder), found)
    if _latest is not None and _latest[0] == found:
        return _latest[1]

    def make() -> Any:
        return tuple(as_values(read_rule(_decoded(raw, file), file)) for file, raw in found.items())

    code = {module: read_bytes(module) for module in (strict_data.__file__, *SCHEMA, __file__)}
    made: tuple[Rule, ...] = from_values(cached("rules", found | code | {"parser": parser()}, make), parts_of_rules())
    _latest = found, made
    return made


def parts_of_rules() -> dict[str, Any]:
    """The classes of a rule's parts, by name."""
    return vars(conditions) | vars(scope) | vars(causes) | vars(model)


def _collect(folder: str, found: dict[str, bytes]) -> None:
    """Adds the content of every rule file of a folder, with one system call per folder rather than per file."""
    with os.scandir(folder) as entries:
        for one in sorted(entries, key=lambda one: one.name):
            if one.is_dir():
                _collect(one.path, found)
            elif _is_rule(one.name):
                found[one.path] = _content(one.path)


def _is_rule(name: str) -> bool:
    return name.endswith((".yaml", ".yml")) and not name.endswith((".test.yaml", ".test.yml"))


def text_of(file: Path) -> str:
    """The text of a file of rules or of their tests.

    Raises:
        RlhealthError: if it cannot be read, is larger than any such file, or is no text in UTF-8.
    """
    return _decoded(_content(str(file)), str(file))


def _content(file: str) -> bytes:
    try:
        with open(file, "rb") as stream:  # noqa: PTH123 (a hundred files at every start)
            raw = stream.read(LARGEST_FILE + 1)
    except OSError as error:
        raise RlhealthError(
            f"{file}: cannot be read: {error.strerror}", hint="check the permissions", location=file
        ) from None
    if len(raw) > LARGEST_FILE:
        raise RlhealthError(
            f"{file}: larger than {LARGEST_FILE >> 20} MiB", hint="a rule file holds one rule", location=file
        )
    return raw


def _decoded(raw: bytes, file: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RlhealthError(
            f"{file}: not a text in UTF-8, from byte {error.start} on", hint="save it as UTF-8", location=file
        ) from None


def choose(rules: list[Rule], select: Iterable[str]) -> list[Rule]:
    """The rules of those ids and families; all rules if none is named.

    Raises:
        RlhealthError: for a name that is neither, with what may have been meant.
    """
    wanted = list(select)
    check_names(rules, wanted, "--select")
    return [rule for rule in rules if rule.id in wanted or rule.family in wanted] if wanted else rules


def rules_named(names: Sequence[str], rules: Iterable[Rule], others: Iterable[str] = ()) -> list[Rule]:
    """The rules of those ids and families; `others` are further valid names without a rule.

    Raises:
        RlhealthError: for a name that is neither, with what may have been meant.
    """
    rules = list(rules)
    known = {*known_names(rules), *others}
    for name in names:
        if name not in known:
            raise RlhealthError(
                f"there is no rule or family `{name}`{meant(name, known)}", hint="`rlhealth rules list` shows them"
            )
    return [rule for rule in rules if rule.id in names or rule.family in names]


def known_names(rules: Iterable[Rule]) -> set[str]:
    """The ids and families that rules can be chosen by: those of these rules, and every shipped family."""
    return {name for rule in rules for name in (rule.id, rule.family)} | set(FAMILIES)


def misspelt_family(name: str) -> str:
    """The words "; did you mean `x`?" for a family that is not shipped and reads like one that is; else nothing."""
    near = [] if name in FAMILIES else difflib.get_close_matches(name, FAMILIES, 1, cutoff=0.85)
    return f"; did you mean `{near[0]}`?" if near else ""


def check_names(rules: Iterable[Rule], names: Iterable[str], said_in: str) -> None:
    """Raises RlhealthError for a name that is neither a rule's id nor a family."""
    known = known_names(rules)
    for name in names:
        if name not in known:
            raise RlhealthError(
                f"{said_in} {name}: no such rule or family{meant(name, known)}", hint="`rlhealth rules list` shows them"
            )


def read_rule(text: str, location: str) -> Rule:
    """One rule from its YAML text.

    Raises:
        RlhealthError: naming `location:line:column`, what is wrong and, for a misspelt key, what may have been meant.
    """
    from rlhealth.parsing.strict_yaml import read_yaml  # late: most checks use no rules but the shipped ones

    raw, marks = read_yaml(text, location)
    if not isinstance(raw, dict):
        raise RlhealthError(f"{location}:1:1: a rule file holds one mapping", hint="see `rlhealth rules new`")
    if isinstance(raw.get("when"), dict) and "metric" in raw["when"]:
        of_all = ("held_for", "at_end")
        single = {key: value for key, value in raw["when"].items() if key not in of_all}
        marks |= {("when", "all", 0, *path[1:]): mark for path, mark in list(marks.items()) if path[:1] == ("when",)}
        asked = {key: value for key, value in raw["when"].items() if key in of_all}
        raw = raw | {"when": {"all": [single]} | asked}
    return checked(Rule, raw, marks, location, "`rlhealth rules schema` prints the rule schema")
