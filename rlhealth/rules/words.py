"""A rule in words: what it measures and when it fires, for `explain` and the documentation."""

from __future__ import annotations

from collections.abc import Sequence

from rlhealth.metrics import meaning
from rlhealth.rules.causes import Cause, Fact
from rlhealth.rules.conditions import Condition, Divisor, Limit, Versus
from rlhealth.rules.filling import FIRST_POINTS, advise, back_to, fewer, fields_of, fill, task
from rlhealth.rules.measures import KINDS
from rlhealth.rules.model import Aspect, CriticalLevel, Rule
from rlhealth.rules.scope import Bounds

BELOW_ALL = -1.0e300  # a limit above which every finite number lies
_ENDINGS = {
    "at_start": "the console, or the cell of a notebook, ends with an exception, before a second row was logged",
    "died": "the process left with a non-zero exit code, or the log breaks off inside a record",
    "raised": "a console ends with an exception, and how many steps were planned is not known",
    "not_finite": "the exception that ended the run says that numbers were not finite",
    "early": "training ended in good order before its planned steps",
    "silent": "nothing was written for long, before the planned steps, and no end was recorded",
}


def in_words(rule: Rule) -> list[str]:
    """When the rule fires, one line per thought; then when it is critical."""
    if rule.cause is not None:
        return _hypothesis(rule.cause)
    when = rule.when
    assert when is not None
    if when.ending:
        return [_ENDINGS.get(one, one) for one in when.ending]
    if when.vanished is not None:
        gone = _metrics(when.vanished, "or")
        return [f"{gone} is missing for five of its own usual intervals while other metrics continue"]
    joint = "or " if when.any else "and "
    lines = [("" if index == 0 else joint) + condition_in_words(one) for index, one in enumerate(when.conditions)]
    if when.held_for > 1:
        lines[-1] += f", for {when.held_for} points in a row"
    if when.at_end:
        lines[-1] += ", when nothing more is logged"
    lines += [_worse(rule.critical, when.conditions[0], when.held_for)] if rule.critical is not None else []
    return lines + [line for other in rule.aspects for line in _aspect(rule, other)]


def _aspect(rule: Rule, other: Aspect) -> list[str]:
    """Another aspect of the same symptom, with its own words, which are used if it is the worst."""
    alone = rule.model_copy(update={"aspects": (), "when": other.when, "critical": other.critical})
    first, *more = in_words(alone)
    return [f"or as {other.severity} “{other.title}”: {first}", *more]


def condition_in_words(one: Condition) -> str:
    """One condition as part of a sentence: `the median of the last 5 points of kl is above 1.5 nats/token`."""
    said = measure_in_words(one)
    if _is_any_nonfinite(one):
        return f"{_looked_at(one)} is NaN or infinite" if one.above == 0 else f"{_looked_at(one)} is finite"
    if one.measure == "max_so_far" and one.above == BELOW_ALL:
        return f"a point of {_looked_at(one)} was finite"
    if one.versus is not None and one.measure != "count":
        said += ","
    sign = next(sign for sign in ("above", "below", "equals") if getattr(one, sign) is not None)
    sure = f" by more than {one.standard_errors:g} standard errors" if one.standard_errors > 0 else ""
    asked = " (where it is logged)" if one.if_logged else ""
    asked += f" (where {_metrics(one.unless_logged, 'or')} is not logged)" if one.unless_logged else ""
    compared = "is exactly" if sign == "equals" else f"is {sign}"
    if one.standard_errors < 0:
        compared, sure = f"is, within {-one.standard_errors:g} standard errors, {sign}", ""
    return f"{said} {compared} {_limit(getattr(one, sign))}{_unit(one)}{sure}{asked}"


def measure_in_words(one: Condition) -> str:
    """What a condition measures: `the median of the last 5 points of kl, as a multiple of the run's first point`."""
    metric = _looked_at(one)
    if one.last == 1 and one.measure in ("value", "mean", "median", "min", "max"):
        said = metric
    elif _is_any_nonfinite(one):
        said = f"the share of points of {metric} that are NaN or infinite"
    else:
        window = (
            f"the last {one.last} points"
            if one.at_least is None or one.at_least >= one.last
            else f"the last {one.at_least} to {one.last} points"
        )
        said = KINDS[one.measure].words.format(
            window=window,
            metric=metric,
            last=one.last,
            where=_where(one),
            items=one.items,
            other=_metrics(one.with_, "else"),
        )
    if one.versus is None:
        return said
    compared = f"{'as a multiple of' if one.versus.is_ratio else 'less'} {_compared_with(one.versus)}"
    return said + (f" {compared}" if one.measure == "count" else f", {compared}")


def _looked_at(one: Condition) -> str:
    divided = _divided(one.divided_by) if one.divided_by is not None else ""
    return ("the size of " if one.absolute else "") + _metrics(one.metric, "else") + divided


def _is_any_nonfinite(one: Condition) -> bool:
    """Whether it tests each point by itself for NaN or infinity."""
    return one.last == 1 and one.measure == "share_nonfinite"


def scope(rule: Rule) -> list[str]:
    """The runs that the rule applies to, one line per thought; empty if it applies to all."""
    scope = rule.scope
    lines = [f"about {_listed(scope.frameworks, 'and')}"] if scope.frameworks else []
    lines += [f"only where metrics {'show' if scope.texts == 'shown' else 'do not show'} texts"] if scope.texts else []
    lines += ["supervised and preference training too"] if scope.any_training else []
    lines += [f"not where {_setting(name, test)}" for name, test in scope.unless.items()]
    lines += [f"only where {_setting(name, test)}" for name, test in scope.only_if.items()]
    lines += [f"only where {name} is not logged" for name in scope.unless_logged]
    lines += [f"from {scope.min_points} points on"] if scope.min_points > 1 else []
    lines += ["not in a log whose numbers are rounded, where 0 may be a small number"] if scope.full_precision else []
    return lines + (["each metric by itself"] if scope.each_metric else [])


def advice(rule: Rule) -> list[str]:
    """What to try, if the names of its settings are unknown."""
    return list(advise(rule.try_, {"first_step": "N", "back": back_to(FIRST_POINTS, "N"), **fewer({}), **task()}))


def why(rule: Rule) -> str:
    """Why the rule matters, in one line, if the trainer is unknown."""
    return " ".join(fill(rule.because, task()).split())


def severities(rule: Rule) -> str:
    """`warning`, or `warning, critical` if the same problem can be worse. A cause is as severe as the worst finding
    that it explains."""
    can_be_worse = rule.critical is not None or rule.cause is not None
    return f"{rule.severity}, critical" if can_be_worse and rule.severity != "critical" else rule.severity


def _worse(worse: CriticalLevel, first: Condition, hold: int) -> str:
    parts = [f"{sign} {_limit(limit)}" for sign in ("above", "below") if (limit := getattr(worse, sign)) is not None]
    said = "critical where it is " + " or ".join(parts) if parts else "critical where"
    joint = "and " if parts else ""
    said += "".join(
        f"{' ' if index == 0 and not parts else ', '}{joint if index == 0 else 'and '}{condition_in_words(one)}"
        for index, one in enumerate(worse.and_)
    )
    if not parts and not worse.and_:
        said = "critical where it holds"
    if worse.held_for is None or worse.held_for == hold:
        return said
    return said + (f", for {worse.held_for} points in a row" if worse.held_for > 1 else ", at the first point")


def _metrics(names: str, last: str) -> str:
    parts = [
        f"`{name}`" if name not in ("same", "step") else {"same": "the same metric", "step": "the step"}[name]
        for name in names.split("|")
    ]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {'or' if last == 'or' else 'or else'} {parts[-1]}"


def _divided(per: Divisor) -> str:
    parts = [f"`{per.metric}`"] if per.metric is not None else []
    if per.max_so_far and parts:
        parts = ["its largest value so far" if per.metric == "same" else f"the largest {parts[0]} so far"]
    if per.power != 1 and parts:
        parts = [f"{parts[0]} to the power of {per.power:g}"]
    parts += [f"the setting {per.setting}"] if per.setting is not None else []
    parts += [f"{per.times:g}"] if per.times != 1 else []
    return f" over {' times '.join(parts)}"


def _where(one: Condition) -> str:
    if one.where is None:
        return ""
    return "that are " + " and ".join(
        f"{sign} {_limit(limit)}" for sign in ("above", "below") if (limit := getattr(one.where, sign)) is not None
    )


def _compared_with(one: Versus) -> str:
    if one.start is not None:
        return "the run's first point" if one.start == 1 else f"the {one.by} of the run's first {one.start} points"
    if one.before is not None:
        return f"the median of the {one.before} points before"
    return f"the {'largest' if one.largest is not None else 'smallest'} of the {one.past} points before"


def _limit(limit: float | Limit) -> str:
    if not isinstance(limit, Limit):
        return f"{limit:,g}"
    parts = [f"{limit.plus:g}"] if limit.plus else []
    sign = " − " if limit.times < 0 and parts else " + " if parts else "−" if limit.times < 0 else ""
    scaled = f"{abs(limit.times):g} times " if abs(limit.times) != 1 else ""
    otherwise = f" ({limit.default:g} if unknown)" if limit.default is not None else ""
    most = f", at most {limit.at_most:g}," if limit.at_most is not None else ""
    return "".join(parts) + sign + scaled + f"the setting {limit.setting}" + most + otherwise


def _unit(one: Condition) -> str:
    unit = KINDS[one.measure].unit
    if unit == "noise":
        return " times its own noise"
    if unit != "value" or one.divided_by is not None or (one.versus is not None and one.versus.is_ratio):
        return ""
    known = meaning(one.metric.split("|")[0])
    return (
        f" {known.unit}"
        if known is not None and known.unit not in ("1", "fraction", "loss", "reward", "count", "")
        else ""
    )


def _setting(name: str, test: object) -> str:
    if not isinstance(test, Bounds):
        return f"{name} is {test}"
    parts = [f"above {test.above:g}"] if test.above is not None else []
    parts += [f"below {test.below:g}"] if test.below is not None else []
    return f"{name} is {' and '.join(parts)}"


def _within(points: int | None) -> str:
    return f" and within {points} points" if points is not None else ""


def _hypothesis(cause: Cause) -> list[str]:
    """A cause in words: what it begins with, what follows, what must hold, and what rules it out."""
    start = {None: "", True: ", so from the start", False: ", not so from the start"}[cause.from_start]
    lines = [f"first: a finding of {_listed(cause.begins_with, 'or')}{start}"]
    if cause.followed_by:
        lines.append(f"then, no earlier{_within(cause.within)}: a finding of {_listed(cause.followed_by, 'or')}")
    if cause.unless:
        lines.append(f"and none of {_listed(cause.unless, 'or')}")
    lines += [f"it must be so: {_said(one)}" for one in cause.requires]
    if cause.requires_any:
        lines.append("one of these must be so: " + "; ".join(_said(one) for one in cause.requires_any))
    lines += [f"it is likelier where: {_said(one)}" for one in cause.supported_by]
    lines += [f"it is ruled out unless: {_open(one.says)}" for one in cause.ruled_out_by]
    lines.append("as severe as the worst finding that it explains")
    return lines


def _said(fact: Fact) -> str:
    """A fact as its conditions; for findings and settings, as its text with open fields."""
    if fact.when:
        return " and ".join(condition_in_words(one) for one in fact.when)
    return _open(fact.says)


def _open(text: str) -> str:
    """A text with open fields in place of a run's numbers and settings."""
    return fill(text, {name: "…" for name in fields_of(text) if not name.startswith("in.")} | task())


def _listed(names: Sequence[str], joint: str) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {joint} {names[-1]}"
