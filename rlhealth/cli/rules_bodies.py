"""Bodies of `rlhealth rules …` and `rlhealth explain`: each takes rules and returns text."""

from __future__ import annotations

import json
import re
import shutil
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlhealth.authoring.case_runs import Outcome, find_cases, fires, run_case
from rlhealth.authoring.cases import Case, TestFile
from rlhealth.authoring.lint import guidance, lint
from rlhealth.comparison import known_good
from rlhealth.errors import RlhealthError
from rlhealth.parsing.checked import Checkable
from rlhealth.reports.words import plural
from rlhealth.rules.conditions import Condition
from rlhealth.rules.loading import misspelt_family, rule_files, rules_named, text_of
from rlhealth.rules.model import FAMILIES, Rule
from rlhealth.rules.words import advice, in_words, scope, severities, why


def list_text(rules: Sequence[Rule], piped: bool) -> str:
    """A table of the rules: id, family, severity, title; tab-separated when piped."""
    rows = [
        ("rule", "family", "severity", "title"),
        *((rule.id, rule.family, severities(rule), rule.title) for rule in rules),
    ]
    if piped:
        return "".join("\t".join(row) + "\n" for row in rows)
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    columns = max(shutil.get_terminal_size().columns, 40)
    lines = [
        "  ".join((*(cell.ljust(width) for cell, width in zip(row[:3], widths, strict=True)), row[3])) for row in rows
    ]
    lines = [line if len(line) <= columns else line[: columns - 1] + "…" for line in lines]
    return (
        "\n".join([lines[0], "─" * min(columns, max(map(len, lines))), *lines[1:]])
        + f"\n{len(rules)} rules; `rlhealth explain ID` explains one\n"
    )


def explain_text(names: Sequence[str], rules: Sequence[Rule], folders: Sequence[Path]) -> str:
    """The explanation of the rules of those ids and families.

    Raises:
        RlhealthError: for a name that is neither, with what may have been meant.
    """
    chosen = rules_named(names, rules, [known_good.RULE])
    tests: dict[str, tuple[str, TestFile]] = {
        file.rule: (location, file) for location, file in find_cases(folders, rules, {rule.id for rule in chosen})
    }
    envelope = [_explained_envelope()] if {known_good.RULE, known_good.FAMILY} & set(names) else []
    return "\n".join([*(_explained(rule, tests.get(rule.id)) for rule in chosen), *envelope])


def _explained_envelope() -> str:
    """The explanation of the one finding that has no rule file."""
    lines = [
        known_good.RULE,
        known_good.TITLE,
        "",
        f"family {known_good.FAMILY} · warning",
        "",
        *_section("fires where", known_good.FIRES),
    ]
    lines += [
        *_section("why", [known_good.WHY]),
        *_section("try", known_good.TRY),
        *_section("limits from", known_good.LIMITS),
    ]
    return "\n".join(lines)


def _explained(rule: Rule, test: tuple[str, TestFile] | None) -> str:
    lines = [
        rule.id,
        rule.title,
        "",
        f"family {rule.family} · {severities(rule)}" + "".join(f" · {one}" for one in scope(rule)),
        "",
    ]
    lines += [
        *_section("fires where", in_words(rule)),
        *_section("why", [why(rule)]),
        *_section("try", advice(rule)),
    ]
    lines += _section("limits from", [f"{one.text} ({one.url})" if one.url else one.text for one in rule.source])
    if rule.guidance:
        lines += _section(
            "encodes of TRL's guidance",
            [
                f"{row}: {guidance()['sentences'][row]['says']}"
                for row in rule.guidance
                if row in guidance()["sentences"]
            ],
        )
    if test is not None:
        lines += _section(f"cases in {test[0]}", [f"{_wanted(case)}: {case.name}" for case in test[1].cases])
    return "\n".join(lines)


def _section(title: str, items: Sequence[str]) -> list[str]:
    width = min(max(shutil.get_terminal_size().columns, 40), 100)
    mark = "· " if len(items) > 1 else ""
    wrapped = [
        textwrap.wrap(
            one, width, initial_indent=f"  {mark}", subsequent_indent="  " + " " * len(mark), break_on_hyphens=False
        )
        for one in items
    ]
    return [title, *(line for one in wrapped for line in one), ""]


def _wanted(case: Case) -> str:
    if isinstance(case.expect, str):
        return case.expect
    return case.expect.severity or "fires"


def test_text(folders: Sequence[Path], rules: Sequence[Rule]) -> tuple[str, bool]:
    """Lints the rule files of those places and runs their cases: the expected and the found results, and whether all
    passed.

    Raises:
        RlhealthError: for a file that cannot be used.
    """
    problems: list[str] = []
    linted = [
        file
        for folder in folders
        for file in ([folder] if folder.is_file() else rule_files(folder))
        if ".test." not in file.name
    ]
    for file in linted:
        problems += lint(text_of(file), str(file), rules)
    by_id = {rule.id: rule for rule in rules}
    found = find_cases(folders, rules)
    outcomes = [run_case(case, by_id[file.rule], rules, location) for location, file in found for case in file.cases]
    problems += _untested([file.name.rpartition(".")[0] for file in linted], [file for _, file in found])
    failed = [one for one in outcomes if not one.passed]
    lines = [*problems, *(line for one in failed for line in _failure(one))]
    looked_at = {file.name.rpartition(".")[0] for file in linted} | {file.rule for _, file in found}
    last = f"{plural(len(looked_at), 'rule')}, {plural(len(outcomes), 'case')}: " + (
        f"{len(failed)} failed, {plural(len(problems), 'problem')}" if lines else "all as expected"
    )
    return "\n".join([*lines, last]) + "\n", not lines


test_text.__test__ = False  # type: ignore[attr-defined]  # not a pytest test, despite its name


def _failure(one: Outcome) -> list[str]:
    return [
        f"{one.location}: {one.rule}: {one.case}",
        *(f"    exp: {line}" for line in one.exp),
        *(f"    got: {line}" for line in one.got),
    ]


def _untested(names: Sequence[str], files: Sequence[TestFile]) -> list[str]:
    cases = {name: [case for file in files if file.rule == name for case in file.cases] for name in names}
    lines = [
        f"{name}: no case in which it fires" for name, its in cases.items() if not any(fires(case) for case in its)
    ]
    return lines + [
        f"{name}: no case in which it is quiet"
        for name, its in cases.items()
        if not any(case.expect == "quiet" for case in its)
    ]


def schema_text(kind: str = "rule") -> str:
    """The JSON Schema of a rule, a `test` file or the `settings`, for editors to complete and check."""
    return json.dumps(schema_of(kind), indent=2) + "\n"


def schema_of(kind: str) -> dict[str, Any]:
    """The JSON Schema of a `rule`, a `test` file or the `settings`."""
    from rlhealth.settings.schema import SettingsFile

    models: dict[str, type[Checkable]] = {"rule": Rule, "test": TestFile, "settings": SettingsFile}
    schema = models[kind].model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    if kind == "rule":
        schema["properties"]["family"]["examples"] = list(FAMILIES)
        whole = schema["$defs"]["When"]
        single = Condition.model_json_schema()
        one = {"type": "object", "additionalProperties": False, "required": ["metric"], "title": "a single condition"}
        one["properties"] = single["properties"] | {"held_for": whole["properties"]["held_for"]}
        schema["properties"]["when"] = {"anyOf": [{"$ref": "#/$defs/When"}, one, {"type": "null"}], "default": None}
    return schema


RULE = """\
# {id}.yaml: one rule. Put it into a folder of its family, the test beside it, and run `rlhealth rules test FOLDER`.
id: {id}                 # the name of this file; it names the symptom, not the fix
family: {family}                 # what `--select` and reports group it by: a shipped family or one of your own
title: KL to the reference is high   # one line, no numbers
severity: warning                # a careful researcher would look at it; critical: would stop the run
scope:                           # the runs that the rule is about; elsewhere it is skipped
  min_points: 3                  # with fewer points it is skipped
  # frameworks: [trl-grpo, verl] # trainers; all of them where left out. * matches anything
  # unless: {{beta: 0}}            # a setting that switches the rule off
when:
  metric: kl                     # a canonical name; `a|b`: the first that is logged; `rlhealth metrics RUN` lists them
  last: 5                        # the last 5 points: what was known at that step, never later ones
  at_least: 3                    # start once 3 of them are there
  measure: median                # or value, mean, max, drop_from_best, …: CONTRIBUTING.md lists them
  above: 1.5                     # or below, or equals; in the unit of the metric
  held_for: 2                    # points in a row: one stray point is no finding
critical: {{above: 2.5}}           # the same symptom, worse
message: "KL is {{value:.3g}} nats per token around step {{worst_step}} (limit {{limit:.3g}})"
because: |
  Why it matters, in two or three sentences.
try:
  - Raise {{option.kl_coef}}[[ (now {{config.kl_coef}})]].   # the trainer's own name; [[...]] is left out if unknown
source:
  - {{text: "where the limit comes from: published guidance, or so many healthy runs"}}
guidance: []
"""

TEST = """\
# {id}.test.yaml: at least one case that fires and one that is quiet.
rule: {id}
cases:
  - name: two nats a token
    # 0.1 twenty times, then 2. Also: 0..1x50 (ramp), 1~0.1x50 (noise), _x5 (no point), nan, (1 _)x9
    series: {{kl: "0.1x20 2x20"}}
    expect: {{severity: warning, first_step: 21, raised_step: 24}}
  - name: one stray point
    series: {{kl: "0.1x20 2 0.1x20"}}
    expect: quiet
  - name: not logged
    series: {{reward: "0..1x40"}}
    expect: skipped
"""


_FAMILIES_HINT = f"shipped families: {', '.join(one for one in FAMILIES if one != 'diagnosis')}; or one of your own"


def new_texts(name: str, family: str) -> dict[str, str]:
    """A rule to start from and its test, by file name.

    Raises:
        RlhealthError: for a name that no rule can have, or a family that there is not.
    """
    if not name.replace("-", "").isalnum() or name != name.lower() or not name.isascii():
        raise RlhealthError(f"a rule cannot be called {name!r}", hint="small letters, digits and hyphens: kl-too-high")
    if alike := misspelt_family(family):
        raise RlhealthError(f"there is no family `{family}`{alike}", hint=_FAMILIES_HINT)
    if family == "diagnosis" or not re.fullmatch(r"[a-z][a-z0-9-]*", family):
        raise RlhealthError(f"a rule with a limit cannot be of a family `{family}`", hint=_FAMILIES_HINT)
    return {f"{name}.yaml": RULE.format(id=name, family=family), f"{name}.test.yaml": TEST.format(id=name)}
