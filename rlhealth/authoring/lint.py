"""Mistakes in a rule file that its schema cannot detect: names that do not exist, an unexpected order of keys, a
missing test."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from rlhealth.authoring.cases import framework_ids, setting_names
from rlhealth.metrics import meaning, meanings
from rlhealth.metrics.groups import groups, members
from rlhealth.parsing.checked import meant, place
from rlhealth.parsing.own_texts import read_texts
from rlhealth.parsing.strict_yaml import read_yaml
from rlhealth.rules.conditions import ALWAYS, Condition, Limit
from rlhealth.rules.filling import always_said, fields_of, option_phrases, task
from rlhealth.rules.loading import known_names, misspelt_family, read_rule
from rlhealth.rules.model import Rule

ORDER = Rule.keys()
_OF_A_METRIC = frozenset(
    {
        "value",
        "limit",
        "worst_step",
        "points",
        "before",
        "step",
        "first_step",
        "raised_step",
        "metric",
        "tag",
        "unit",
        "items",
        "back",
        "start",
    }
)
_OF_AN_ENDING = frozenset({"said", "step", "planned", "idle"})
_OF_A_CAUSE = frozenset({"count", "first_step", "metric", "first", "families", "others", "other_families", "back"})
_OF_A_TASK = frozenset(task(True)) | frozenset(task(False))


@lru_cache(maxsize=1)
def guidance() -> dict[str, Any]:
    """TRL's own guidance, sentence by sentence: `pages` by letter, `sentences` by id."""
    found: dict[str, Any] = read_texts(Path(__file__).with_name("guidance.yaml"))
    return found


def lint(text: str, location: str, rules: Sequence[Rule]) -> list[str]:
    """What is wrong with one rule file, each with `location:line:column`; `rules` are all that it may name.

    Raises:
        RlhealthError: if it is no rule at all.
    """
    rule = read_rule(text, location)
    raw, marks = read_yaml(text, location)
    if ("when", "metric") in marks:  # a single condition stands for a list of one
        marks |= {("when", "all", 0, *path[1:]): mark for path, mark in list(marks.items()) if path[:1] == ("when",)}
    found = [*_layout(rule, raw, location), *_names(rule, rules), *_messages(rule), *_limits(rule)]
    return [f"{place(location, marks, path)}: {said}" for path, said in found]


Problem = tuple[tuple[Any, ...], str]


def _layout(rule: Rule, raw: Mapping[str, Any], location: str) -> Iterator[Problem]:
    name = Path(location).name
    if name.partition(".")[0] != rule.id:
        yield ("id",), f"the rule is called {rule.id}, and its file {name}"
    keys = list(raw)
    expected = [key for key in ORDER if key in raw]
    if keys != expected:
        first = next(key for key, wanted in zip(keys, expected, strict=True) if key != wanted)
        yield (first,), f"the keys stand in another order than {', '.join(expected)}"


def _names(rule: Rule, rules: Sequence[Rule]) -> Iterator[Problem]:
    if alike := misspelt_family(rule.family):
        yield ("family",), f"no shipped family is called `{rule.family}`{alike}"
    for index, pattern in enumerate(rule.scope.frameworks):
        if not any(fnmatch.filter(framework_ids(), one) for one in members([pattern])):
            near = meant(pattern, [*framework_ids(), *groups()])
            yield ("scope", "frameworks", index), f"there is no framework `{pattern}`{near}"
    for part in ("unless", "only_if"):
        yield from (
            (("scope", part, name), _no_setting(name))
            for name in getattr(rule.scope, part)
            if name not in setting_names()
        )
    for path, condition in conditions_of(rule):
        yield from (((*path, key), said) for key, said in _in_condition(condition))
    if rule.when is not None and rule.when.vanished is not None:
        yield from ((("when", "vanished"), said) for said in _no_metrics(rule.when.vanished))
    for index, row in enumerate(rule.guidance):
        if row not in guidance()["sentences"]:
            yield (
                ("guidance", index),
                f"there is no sentence {row} in TRL's guidance{meant(row, guidance()['sentences'])}",
            )
    if rule.cause is not None:
        known = known_names([*rules, rule])
        for part in ("begins_with", "followed_by", "unless"):
            for index, name in enumerate(getattr(rule.cause, part)):
                if name not in known:
                    yield ("cause", part, index), f"there is no rule or family `{name}`{meant(name, known)}"
        for part in ("requires", "requires_any", "supported_by", "ruled_out_by"):
            for index, fact in enumerate(getattr(rule.cause, part)):
                for name in fact.finding:
                    if name not in known:
                        yield ("cause", part, index), f"there is no rule or family `{name}`{meant(name, known)}"


def conditions_of(rule: Rule) -> Iterator[tuple[tuple[Any, ...], Condition]]:
    """Every condition of a rule, with its key path in the file."""
    if rule.when is not None:
        for part in ("all", "any"):
            yield from ((("when", part, index), one) for index, one in enumerate(getattr(rule.when, part)))
    if rule.critical is not None:
        yield from ((("critical", "and", index), one) for index, one in enumerate(rule.critical.and_))
    for place_, other in enumerate(rule.aspects):
        yield from ((("aspects", place_, "when", "all", index), one) for index, one in enumerate(other.when.conditions))


def _in_condition(condition: Condition) -> Iterator[tuple[str, str]]:
    yield from (("metric", said) for said in _no_metrics(condition.metric))
    if condition.with_:
        yield from (("with", said) for said in _no_metrics(condition.with_))
    settings = [
        (sign, one.setting)
        for sign, one in (("above", condition.above), ("below", condition.below))
        if isinstance(one, Limit)
    ]
    divisor = condition.divided_by
    if divisor is not None:
        if divisor.metric is not None:
            yield from (("divided_by", said) for said in _no_metrics(divisor.metric))
        settings += [("divided_by", divisor.setting)] if divisor.setting is not None else []
    yield from ((key, _no_setting(name)) for key, name in settings if name not in setting_names())


def _no_metrics(names: str) -> Iterator[str]:
    for name in names.split("|"):
        if name not in ALWAYS and meaning(name.replace("*", "x")) is None:
            yield f"there is no metric `{name}`{meant(name, meanings())}"


def _no_setting(name: str) -> str:
    return f"there is no setting `{name}`{meant(name, setting_names())}"


def _messages(rule: Rule) -> Iterator[Problem]:
    known = _OF_A_CAUSE if rule.cause else _OF_AN_ENDING if rule.when and rule.when.ending else _OF_A_METRIC
    known |= (
        _OF_A_TASK
        | {f"config.{name}" for name in setting_names()}
        | {f"{kind}.{name}" for name in setting_names() & option_phrases().keys() for kind in ("option", "fewer")}
    )
    texts = [(("message",), rule.message), *((("try", index), one) for index, one in enumerate(rule.try_))]
    for place_, other in enumerate(rule.aspects):
        texts.append((("aspects", place_, "message"), other.message))
        texts += [(("aspects", place_, "try", index), one) for index, one in enumerate(other.try_ or ())]
    for path, text in texts:
        if text.count("[[") != text.count("]]"):
            yield path, "a part in [[ ]] is not closed"
        try:
            yield from (
                (path, f"there is no field {{{name}}}{meant(name, known)}")
                for name in fields_of(text)
                if name not in known
            )
        except ValueError as error:
            yield path, f"a field is not closed: {error}"
    if not any(always_said(one) for one in rule.try_):
        yield ("try",), "each line may be left out: one has to stand outside of [[ ]]"
    if "{" in rule.title:
        yield ("title",), "is the same for every run, and has no fields"
    if "{" in rule.because and not set(fields_of(rule.because)) <= _OF_A_TASK:
        yield ("because",), "is the same for every run of a kind: it has no fields but `{task.…}` and `{in.…}`"


def _limits(rule: Rule) -> Iterator[Problem]:
    """A critical limit lies at or beyond the limit of the warning."""
    if rule.critical is None or rule.when is None:
        return
    first = rule.when.conditions[0]
    for sign, direction in (("above", 1), ("below", -1)):
        base, worse = getattr(first, sign), getattr(rule.critical, sign)
        if worse is not None and base is None:
            yield ("critical", sign), f"the rule has no limit `{sign}`"
        elif isinstance(base, int | float) and isinstance(worse, int | float) and (worse - base) * direction < 0:
            yield ("critical", sign), f"the critical limit {worse:g} comes before the limit {base:g}"
