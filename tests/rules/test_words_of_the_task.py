"""Words of the task: to a trainer whose policy plays episodes, no rule speaks of completions, prompts or sampling."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

import pytest

from rlhealth.authoring.cases import Case, run_of, translation_of
from rlhealth.metrics import Translation
from rlhealth.metrics.catalogue import Names, frameworks, names
from rlhealth.metrics.groups import is_named
from rlhealth.rules.conditions import ALWAYS, Condition, Limit
from rlhealth.rules.filling import advise, fill, settings, task
from rlhealth.rules.loading import load_rules
from rlhealth.rules.model import Rule
from rlhealth.rules.words import advice, in_words, severities, why

RULES = load_rules()
OF_TEXTS = re.compile(
    r"completion|temperature|prompt|token|chat template|language model|top.k|KL coefficient|group of samples|\banswers?\b"
    r"|end-of-text|logging_nan_inf_filter|\(\)|\[\[|\]\]|  ",
    re.IGNORECASE,
)


def logged_by(known: Names) -> set[str]:
    """The canonical metrics that a trainer logs, those of reward functions with a star."""
    aliases = [*known.exact.values(), *(found for _, found in known.patterns), *known.histograms.values()]
    found = {re.sub(r"\{\w+\}", "*", alias.name) for several in aliases for alias in several}
    return {name for name in found if not name.startswith("*")} | set(ALWAYS)


def in_control() -> Iterator[dict[str, str]]:
    """The trainers of control tasks that are known by names of their own, and not by those that any trainer may use."""
    for entry in frameworks():
        known = names(entry["names"])
        if is_named(entry["id"], ["control"]) and "temperature" in known.lacks and not logged_by(known) & {"kl"}:
            yield entry


def can_run(condition: Condition, logged: set[str], translation: Translation) -> bool:
    limits = [
        one.setting for one in (condition.above, condition.below) if isinstance(one, Limit) and one.default is None
    ]
    divisor = condition.divided_by
    limits += (
        [divisor.setting] if divisor is not None and divisor.setting is not None and divisor.default is None else []
    )
    if any(one in translation.lacks for one in limits):
        return False
    asked = [condition.metric] + ([divisor.metric] if divisor is not None and divisor.metric is not None else [])
    return condition.if_logged or all(
        any(fnmatchcase(one, name) for name in part.split("|") for one in logged) for part in asked
    )


def that_can_run(known: Names, translation: Translation) -> Iterator[Rule]:
    """The rules that such a run may be judged by: those of what it logs, and the causes that begin with these."""
    logged = logged_by(known)
    found: list[Rule] = []
    for rule in RULES:
        if not is_named(translation.framework, rule.scope.frameworks) or "beta" in rule.scope.only_if:
            continue
        if rule.family == "text":  # of completions that were written down
            continue
        if rule.cause is not None:
            named = [one.id in rule.cause.begins_with or one.family in rule.cause.begins_with for one in found]
            needed = [name for fact in rule.cause.requires for name in fact.finding]
            if any(named) and not any(name.startswith("text-") for name in needed):
                yield rule
            continue
        clauses = [
            one
            for one in rule.clauses
            if one.when is not None and all(can_run(part, logged, translation) for part in one.when.conditions)
        ]
        found += [rule] if clauses else []
        yield from clauses


def texts_of(rule: Rule, translation: Translation) -> Iterator[str]:
    said = settings(translation)
    yield from (rule.title, fill(rule.message, said), fill(rule.because, said), *advise(rule.try_, said))
    if rule.cause is not None:
        facts = (*rule.cause.requires, *rule.cause.requires_any, *rule.cause.supported_by, *rule.cause.ruled_out_by)
        yield from (fill(one.says, said) for one in facts if not (one.finding and not one.at))
        yield fill(rule.cause.distinguished_by, said)


@pytest.mark.parametrize("entry", list(in_control()), ids=lambda entry: f"{entry['id']}-{entry['names']}")
def test_reports_on_episodes_name_no_completions(entry: dict[str, str]) -> None:
    case = Case(name="a", framework=entry["id"], steps=3, expect="quiet")
    translation = translation_of(case, run_of(case), RULES[0])
    told = [
        (rule.id, text)
        for rule in that_can_run(names(entry["names"]), translation)
        for text in texts_of(rule, translation)
        if OF_TEXTS.search(text)
    ]
    assert not told


def test_reports_on_texts_name_completions_and_those_on_trainers_that_may_do_either_name_samples() -> None:
    text = "Look at {task.completions}[[{in.text} of one prompt]][[{in.control} of one seed]]."
    assert fill(text, task()) == "Look at completions of one prompt."
    assert fill(text, task(writes_texts=False)) == "Look at episodes of one seed."
    assert fill(text, task(writes_texts=None)) == "Look at samples."


def test_what_explains_a_rule_has_no_fields_left_open() -> None:
    for rule in RULES:
        for text in (why(rule), *advice(rule), *in_words(rule)):
            assert not any(mark in text for mark in ("[[", "]]", "{task", "{in.")), text


def test_critics_with_the_policys_own_learning_rate_are_not_said_to_have_one_of_theirs() -> None:
    for framework in ("sb3", "cleanrl", "trl-ppo", "rsl-rl"):
        case = Case(name="a", framework=framework, steps=3, expect="quiet")
        said = settings(translation_of(case, run_of(case), RULES[0]))
        for rule in RULES:
            assert "the critic's learning rate" not in " ".join(advise(rule.try_, said)), rule.id


def test_a_cause_says_that_it_can_be_critical() -> None:
    for rule in RULES:
        if rule.cause is not None:
            assert severities(rule).endswith("critical")
            assert in_words(rule)[-1] == "as severe as the worst finding that it explains"
