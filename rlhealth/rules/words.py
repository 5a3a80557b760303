"""A rule in words: what it looks at and when it fires, as `explain` and the documentation say it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rlhealth.metrics import meaning
from rlhealth.rules.filling import FIRST_POINTS, advise, back_to
from rlhealth.rules.measures import KINDS
from rlhealth.rules.model import Against, Aspect, Cause, Condition, Fact, Limit, Per, Rule, Test, Worse

_ENDINGS = {
    "died": "the process left with a non-zero exit code, or the log breaks off inside a record",
    "early": "training ended in good order before its planned steps",
    "silent": "nothing was written for long, before the planned steps, and no end was recorded",
}


def in_words(rule: Rule) -> list[str]:
    """When the rule fires, one line a thought; then when it is critical."""
    if rule.cause is not None:
        return _hypothesis(rule.cause)
    when = rule.when
    assert when is not None
    if when.ending:
        return [_ENDINGS.get(one, one) for one in when.ending]
    if when.vanished is not None:
        return [
            f"{_metrics(when.vanished, 'or')} is missing for five of its own usual intervals while other metrics continue"
        ]
    joint = "or " if when.any else "and "
    lines = [("" if index == 0 else joint) + condition_in_words(one) for index, one in enumerate(when.conditions)]
    if when.for_ > 1:
        lines[-1] += f", for {when.for_} points in a row"
    lines += [_worse(rule.critical, when.conditions[0], when.for_)] if rule.critical is not None else []
    return lines + [line for other in rule.also for line in _aspect(rule, other)]


def _aspect(rule: Rule, other: Aspect) -> list[str]:
    """Another aspect of the same symptom, which is told in its own words where it is the worst."""
    alone = rule.model_copy(update={"also": (), "when": other.when, "critical": other.critical})
    first, *more = in_words(alone)
    return [f"or as {other.severity} “{other.title}”: {first}", *more]


def condition_in_words(one: Condition) -> str:
    """One condition as a sentence's part: `the median of the last 5 points of kl is above 1.5 nats/token`."""
    metric = (
        ("the size of " if one.absolute else "")
        + _metrics(one.metric, "else")
        + (_per(one.per) if one.per is not None else "")
    )
    if one.over == 1 and one.measure in ("value", "mean", "median", "min", "max"):
        said = metric
    elif one.over == 1 and one.measure == "nonfinite":
        return f"{metric} is NaN or infinite" if one.above == 0 else f"{metric} is finite"
    else:
        window = (
            f"the last {one.over} points"
            if one.least is None or one.least >= one.over
            else f"the last {one.least} to {one.over} points"
        )
        said = KINDS[one.measure].words.format(
            window=window, metric=metric, over=one.over, where=_where(one), items=one.items
        )
    if one.ratio_to is not None:
        said += f", as a multiple of {_against(one.ratio_to)},"
    if one.minus is not None:
        said += f", less {_against(one.minus)},"
    sign = next(sign for sign in ("above", "below", "equals") if getattr(one, sign) is not None)
    sure = f" by more than {one.sure:g} standard errors" if one.sure else ""
    asked = " (where it is logged)" if one.if_logged else ""
    asked += f" (where {_metrics(one.unless_logged, 'or')} is not logged)" if one.unless_logged else ""
    return f"{said} {'is exactly' if sign == 'equals' else 'is ' + sign} {_limit(getattr(one, sign))}{_unit(one)}{sure}{asked}"


def scope(rule: Rule) -> list[str]:
    """For which runs the rule is meant, one line a thought; nothing where for all."""
    lines = [f"about {_listed(rule.applies_to, 'and')}"] if rule.applies_to else []
    lines += [f"not where {_setting(name, test)}" for name, test in rule.unless.items()]
    lines += [f"only where {_setting(name, test)}" for name, test in rule.only_if.items()]
    lines += [f"only where {name} is not logged" for name in rule.unless_logged]
    lines += [f"from {rule.needs} points on"] if rule.needs > 1 else []
    lines += ["not in a log whose numbers are rounded, where 0 may be a small number"] if rule.exact else []
    return lines + (["each metric by itself"] if rule.each else [])


def advice(rule: Rule) -> list[str]:
    """What to try, where no run tells the names of its settings."""
    return list(advise(rule.try_, {"first_step": "N", "back": back_to(FIRST_POINTS, "N")}))


def severities(rule: Rule) -> str:
    """`warning`, or `warning, critical` where the same sickness can be worse."""
    return f"{rule.severity}, critical" if rule.critical is not None and rule.severity != "critical" else rule.severity


def _worse(worse: Worse, first: Condition, hold: int) -> str:
    parts = [f"{sign} {_limit(limit)}" for sign in ("above", "below") if (limit := getattr(worse, sign)) is not None]
    said = "critical where it is " + " or ".join(parts) if parts else "critical where"
    joint = "and " if parts else ""
    said += "".join(
        f"{' ' if index == 0 and not parts else ', '}{joint if index == 0 else 'and '}{condition_in_words(one)}"
        for index, one in enumerate(worse.and_)
    )
    if not parts and not worse.and_:
        said = "critical where it holds"
    if worse.for_ is None or worse.for_ == hold:
        return said
    return said + (f", for {worse.for_} points in a row" if worse.for_ > 1 else ", at the first point")


def _metrics(names: str, last: str) -> str:
    parts = [
        f"`{name}`" if name not in ("same", "step") else {"same": "the same metric", "step": "the step"}[name]
        for name in names.split("|")
    ]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {'or' if last == 'or' else 'or else'} {parts[-1]}"


def _per(per: Per) -> str:
    parts = [f"`{per.metric}`"] if per.metric is not None else []
    if per.peak and parts:
        parts = [f"the largest {parts[0]} so far"]
    if per.power != 1 and parts:
        parts = [f"{parts[0]} to the power of {per.power:g}"]
    parts += [f"the setting {per.config}"] if per.config is not None else []
    parts += [f"{per.times:g}"] if per.times != 1 else []
    return f" over {' times '.join(parts)}"


def _where(one: Condition) -> str:
    if one.where is None:
        return ""
    return "that are " + " and ".join(
        f"{sign} {_limit(limit)}"
        for sign in ("above", "below", "equals")
        if (limit := getattr(one.where, sign)) is not None
    )


def _against(one: Against) -> str:
    if one.first is not None:
        return "the run's first point" if one.first == 1 else f"the median of the run's first {one.first} points"
    return f"the median of the {one.before} points before"


def _limit(limit: float | Limit) -> str:
    if not isinstance(limit, Limit):
        return f"{limit:,g}"
    parts = [f"{limit.plus:g}"] if limit.plus else []
    sign = " − " if limit.times < 0 and parts else " + " if parts else "−" if limit.times < 0 else ""
    scaled = f"{abs(limit.times):g} times " if abs(limit.times) != 1 else ""
    told = f" ({limit.default:g} if unknown)" if limit.default is not None else ""
    most = f", at most {limit.most:g}," if limit.most is not None else ""
    return "".join(parts) + sign + scaled + f"the setting {limit.config}" + most + told


def _unit(one: Condition) -> str:
    unit = KINDS[one.measure].unit
    if unit == "noise":
        return " times its own noise"
    if unit != "value" or one.per is not None or one.ratio_to is not None:
        return ""
    known = meaning(one.metric.split("|")[0])
    return (
        f" {known.unit}"
        if known is not None and known.unit not in ("1", "fraction", "loss", "reward", "count", "")
        else ""
    )


def _setting(name: str, test: object) -> str:
    if not isinstance(test, Test):
        return f"{name} is {test}"
    parts = [f"above {test.above:g}"] if test.above is not None else []
    parts += [f"below {test.below:g}"] if test.below is not None else []
    parts += [f"one of {', '.join(map(str, test.among))}"] if test.among is not None else []
    parts += [str(test.is_)] if "is_" in test.model_fields_set else []
    return f"{name} is {' and '.join(parts)}"


def _within(points: int | None) -> str:
    return f" and within {points} points" if points is not None else ""


def _hypothesis(cause: Cause) -> list[str]:
    """A cause in words: what it begins with, what follows, what must be so and what speaks against it."""
    start = {None: "", True: ", so from the start", False: ", not so from the start"}[cause.from_start]
    lines = [f"first: a finding of {_listed(cause.first, 'or')}{start}"]
    if cause.then:
        lines.append(f"then, no earlier{_within(cause.within)}: a finding of {_listed(cause.then, 'or')}")
    if cause.none:
        lines.append(f"and none of {_listed(cause.none, 'or')}")
    lines += [f"it must be so: {_said(one)}" for one in cause.needs]
    if cause.any:
        lines.append("one of these must be so: " + "; ".join(_said(one) for one in cause.any))
    lines += [f"it is likelier where: {_said(one)}" for one in cause.support]
    lines += [f"it is ruled out unless: {one.says}" for one in cause.against]
    return lines


def _said(fact: Fact) -> str:
    """A fact as its conditions, or, of findings and settings, as its text with its numbers left open."""
    if fact.when:
        return " and ".join(condition_in_words(one) for one in fact.when)
    return re.sub(r"\{[^{}]*\}", "…", fact.says)


def _listed(names: Sequence[str], joint: str) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {joint} {names[-1]}"
