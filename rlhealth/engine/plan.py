"""Plans: which rules measure which metrics of a run, and against which limits. Runs with the same metric names and
settings share one plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from rlhealth.engine.cannot_run import CannotRun
from rlhealth.engine.estimate import Bound
from rlhealth.engine.limits import bound_of, worse_of
from rlhealth.engine.metric_choice import pick, pick_all
from rlhealth.engine.precision import is_rounded
from rlhealth.engine.scope import applicable, check_scope
from rlhealth.metrics import Translation
from rlhealth.metrics.translation import EVALUATED, is_evaluated_only
from rlhealth.parsing.strict_data import StrictData
from rlhealth.rules.conditions import Condition
from rlhealth.rules.model import Rule
from rlhealth.run import Run
from rlhealth.verdict.findings import Severity, Skipped

MOST_BOOKS, MOST_PLANS = 8, 256  # the largest numbers that are cached


class OperandPlan(NamedTuple):
    """What one condition measures.

    Attributes:
        condition: the rule's own, with its limit.
        metric: its canonical name; `step` is the step at the points of the rule's metric.
        per, other: names of the metrics that it is divided by, or correlated with.
        scale: a number that it is divided by too.
        key: operands with the same number share their measured values, whatever limits they are compared with.
        series: operands with the same number measure the same values.
    """

    condition: Condition
    metric: str
    per: str | None
    scale: float
    other: str | None
    key: int
    series: int


class RulePlan(NamedTuple):
    """One clause of a rule on one metric of a run.

    Attributes:
        operands: of the conditions, followed by those of the critical level.
        bounds: their limits.
        base: how many of them are conditions of the rule itself.
        worse: the critical limit of the first condition.
        least_points: how many points of its metric it takes until the first condition has held for long enough.
        counts_items: whether a share of it must be counted over enough items.
    """

    rule: Rule
    metric: str
    operands: tuple[OperandPlan, ...]
    bounds: tuple[Bound, ...]
    base: int
    worse: Bound | None
    least_points: int
    counts_items: bool


class Plan(NamedTuple):
    """All rules on runs that log the same names.

    Attributes:
        clauses: the clauses to measure, in the order of the rules.
        order: the indices of the clauses, grouped by metric, so that shared results are not kept for long.
        skipped: rules that cannot run, each with its reason.
        others: rules that are not about the values of a metric.
        diagnoses: causes that apply to such runs.
    """

    clauses: tuple[RulePlan, ...]
    order: tuple[int, ...]
    skipped: tuple[Skipped, ...]
    others: tuple[Rule, ...]
    diagnoses: tuple[Rule, ...]
    undiagnosed: tuple[Skipped, ...]


class RuleBook:
    """The rules of a check, with the plans made from them.

    Attributes:
        rules: those that raise findings.
        diagnoses: those that name causes.
        families: the family of each rule, by its id, except for diagnoses: these judge findings, not metrics.
        endings: ids of the rules that judge how a run ended.
        minds_rounding: whether a rule requires numbers that are not rounded.
        alone: the highest severity of a finding of each rule, while reward is at its best and no other family has one.
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.given = tuple(rules)
        self.rules = [rule for rule in rules if rule.cause is None]
        self.diagnoses = [rule for rule in rules if rule.cause is not None]
        self.families = {rule.id: rule.family for rule in rules if rule.cause is None}
        self.endings = [rule.id for rule in rules if rule.when is not None and rule.when.ending]
        self.alone = {rule.id: Severity.of(rule.severity_while_alone) for rule in self.rules}
        self._settings = sorted(_settings_of(rules))
        self.minds_rounding = any(rule.scope.full_precision for rule in rules)
        self._plans: dict[tuple[Any, ...], Plan] = {}

    @property
    def asks_for_no_look(self) -> str:
        """Why these rules cannot call a run healthy, if none of them judges a metric; otherwise empty."""
        if any(rule.when is not None and not rule.when.ending for rule in self.rules):
            return ""
        if self.rules:
            return "the chosen rules judge how a run ended, and no metric"
        return "the chosen rules name causes of what other rules find, and no other rule was chosen"

    def plan(self, run: Run, translation: Translation) -> Plan:
        """What to measure in a run."""
        rounded = self.minds_rounding and is_rounded(run)
        known = translation.config
        key = (
            translation.framework,
            translation.title,  # trainers with the same id can have different titles
            translation.is_rl,
            rounded,
            translation.planned_steps,
            tuple([repr(known[name]) if name in known else None for name in self._settings]),
            tuple([(name, len(one) > 0) for name, one in translation.metrics.items()]),
        )
        plan = self._plans.get(key)
        if plan is None:
            if len(self._plans) >= MOST_PLANS:
                self._plans.clear()
            plan = self._plans[key] = self._made(translation, rounded)
        return plan

    def _made(self, translation: Translation, rounded: bool) -> Plan:
        clauses: list[RulePlan] = []
        others: list[Rule] = []
        skipped: list[Skipped] = []
        numbers: dict[tuple[Any, ...], int] = {}
        for rule in self.rules:
            try:
                check_scope(rule, translation)
                if rule.scope.full_precision and rounded:
                    raise CannotRun("the numbers of this log are rounded: one written as 0 may only be small")
                if rule.when is None or not rule.when.conditions:
                    others.append(rule)
                else:
                    clauses += _clauses(rule, translation, numbers)
            except CannotRun as reason:
                skipped.append(Skipped(rule.id, rule.family, str(reason)))
        diagnoses: list[Rule] = []
        undiagnosed: list[Skipped] = []
        for rule in self.diagnoses:
            try:
                check_scope(rule, translation)
                diagnoses.append(rule)
            except CannotRun as reason:
                undiagnosed.append(Skipped(rule.id, rule.family, str(reason)))
        return Plan(
            clauses=tuple(clauses),
            order=tuple(sorted(range(len(clauses)), key=lambda place: clauses[place].metric)),
            skipped=tuple(skipped),
            others=tuple(others),
            diagnoses=tuple(diagnoses),
            undiagnosed=tuple(undiagnosed),
        )


_books: dict[tuple[int, ...], RuleBook] = {}


def rule_book(rules: Sequence[Rule]) -> RuleBook:
    """The book of exactly these rules: the same one for each run of a check."""
    key = tuple(map(id, rules))  # a book keeps its rules alive, so that no other rule can get their ids
    book = _books.get(key)
    if book is None:
        if len(_books) >= MOST_BOOKS:
            _books.clear()
        book = _books[key] = RuleBook(rules)
    return book


def _settings_of(rules: Sequence[Rule]) -> set[str]:
    """The settings that decide whether rules apply to a run, and with which limits: those under `setting`, or as the
    key of a test, in their scopes and conditions.
    """
    found: set[str] = set()
    for rule in rules:
        for part in (rule.scope, rule.when, rule.critical, *rule.aspects):
            if part is not None:
                _add_settings(part, found)
    return found


def _add_settings(said: StrictData, found: set[str]) -> None:
    for name, value in vars(said).items():
        if isinstance(value, StrictData):
            _add_settings(value, found)
        elif isinstance(value, dict):
            found.update(value)
        elif isinstance(value, tuple):
            for one in value:
                if isinstance(one, StrictData):
                    _add_settings(one, found)
        elif name == "setting" and value is not None:
            found.add(value)


def _clauses(rule: Rule, translation: Translation, numbers: dict[tuple[Any, ...], int]) -> list[RulePlan]:
    """The clauses of a rule that can be measured; raises CannotRun if there is none."""
    found: list[RulePlan] = []
    unable: list[CannotRun] = []
    for clause in rule.clauses:
        assert clause.when is not None
        try:
            name = clause.when.all[0].metric
            metrics = pick_all(name, translation) if rule.scope.each_metric else [pick(name, translation)]
            found += [_clause(clause, metric.name, translation, numbers) for metric in metrics]
        except CannotRun as reason:
            unable.append(reason)
    if not found:
        raise unable[0]
    return found


def _clause(rule: Rule, name: str, translation: Translation, numbers: dict[tuple[Any, ...], int]) -> RulePlan:
    assert rule.when is not None and rule.when.all
    conditions = applicable(rule.when.conditions, translation)
    extra = applicable(rule.critical.and_ if rule.critical else (), translation)
    every = (*conditions, *extra)
    operands = [_operand(one, name, place == 0, translation, numbers) for place, one in enumerate(every)]
    if len({"reward", EVALUATED}.intersection(one.metric for one in operands)) > 1 and is_evaluated_only(translation):
        raise CannotRun("the only reward is that of the evaluations")
    settings = {**translation.config, "planned_steps": translation.planned_steps}
    bounds = tuple(bound_of(one, settings) for one in every)
    worse = None if rule.critical is None else worse_of(rule.critical, bounds[0], translation.config)
    held_for = rule.when.held_for
    if rule.critical is not None:
        held_for = min(held_for, rule.critical.held_for or held_for)
    least_points = conditions[0].known_from + held_for - 1
    counts_items = any(one.condition.measure == "mean_fraction" for one in operands)
    return RulePlan(rule, name, tuple(operands), bounds, len(conditions), worse, least_points, counts_items)


def _operand(
    condition: Condition, own: str, first: bool, translation: Translation, numbers: dict[tuple[Any, ...], int]
) -> OperandPlan:
    """The operand of a condition, for a rule on the metric `own`."""
    name = condition.metric
    metric = own if first or name == "same" else pick(name, translation, translation.metrics.get(own)).name
    per, scale = None, 1.0
    divisor = condition.divided_by
    if divisor is not None:
        scale = float(divisor.times)
        if divisor.metric is not None:
            per = own if divisor.metric == "same" else pick(divisor.metric, translation).name
        if divisor.setting is not None:
            said = translation.config.get(divisor.setting, divisor.default)
            if not isinstance(said, int | float) or not said:
                raise CannotRun(f"the setting {divisor.setting} is unknown")
            scale *= float(said)
    clock = own if metric == "step" else ""  # the step is read at the points of the rule's own metric
    other = pick(condition.with_, translation).name if condition.with_ else None
    series = "series", metric, clock, condition.absolute, divisor, scale
    key = "operand", _looks(condition), metric, clock, per, scale
    return OperandPlan(
        condition=condition,
        metric=metric,
        per=per,
        scale=scale,
        other=other,
        key=numbers.setdefault(key, len(numbers)),
        series=numbers.setdefault(series, len(numbers)),
    )


@cache
def _looks(condition: Condition) -> Condition:
    """A condition reduced to what it measures: without its limit and its name of the metric."""
    limit = {"above": None, "below": None, "equals": None, "standard_errors": 0}
    return condition.model_copy(update={"metric": "", "if_logged": False, "unless_logged": "", **limit})
