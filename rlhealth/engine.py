"""The engine: rules over one run, in one causal pass that can go on where it stopped."""

from __future__ import annotations

import fnmatch
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rlhealth import measures
from rlhealth.ending import Ending, ending_of
from rlhealth.episodes import Episodes
from rlhealth.findings import Episode, Finding, RunVerdict, Severity, Skipped
from rlhealth.metrics import Metric, Translation, translate
from rlhealth.rules import Condition, Limit, Rule, Test, Worse
from rlhealth.run import Floats, Ints, Run

NEVER = np.iinfo(np.int64).max


class Operand:
    """One side of a rule: a metric, measured as its condition says, as far as the run has been read."""

    def __init__(self, condition: Condition, metric: Metric, per: Metric | None, scale: float) -> None:
        self.condition = condition
        self.metric = metric
        self.per = Held(per) if per is not None else None
        self.scale = scale
        self.measure = build(condition)
        self.seen = 0
        self.peak = float("nan")

    def advance(self, until: int) -> tuple[Ints, Floats]:
        """Steps and measured values of the points after the last ones asked for, up to and including step `until`."""
        steps = self.metric.steps
        end = int(np.searchsorted(steps, until, side="right"))
        new_steps = steps[self.seen : end]
        values = self.metric.values_from(self.seen)[: len(new_steps)] if len(new_steps) else np.empty(0)
        self.seen = max(end, self.seen)
        if self.condition.absolute:
            values = np.abs(values)
        if self.per is not None:
            assert self.condition.per is not None
            below = self.per.at(new_steps)
            if self.condition.per.peak and len(below):
                below = np.fmax(np.fmax.accumulate(np.abs(below)), self.peak)
                self.peak = float(below[-1])
            with np.errstate(divide="ignore", invalid="ignore"):
                values = values / (self.scale * (below if self.condition.per.signed else np.abs(below) ** float(self.condition.per.power)))
        elif self.scale != 1:
            values = values / self.scale
        return new_steps, self.measure.extend(values)


class Held:
    """A metric looked up at other steps: its last finite point at or before each of them."""

    def __init__(self, source: Metric | Operand) -> None:
        self.source = source
        self.steps: Ints = np.empty(0, np.int64)
        self.values: Floats = np.empty(0)
        self.seen = 0

    def at(self, steps: Ints) -> Floats:
        """The values held at those steps (shape (n,), not falling); NaN before the first point."""
        if not len(steps):
            return np.empty(0)
        until = int(steps[-1])
        if isinstance(self.source, Operand):
            new_steps, new_values = self.source.advance(until)
        else:
            end = int(np.searchsorted(self.source.steps, until, side="right"))
            new_steps = self.source.steps[self.seen : end]
            new_values = self.source.values_from(self.seen)[: len(new_steps)] if len(new_steps) else np.empty(0)
            self.seen = max(end, self.seen)
        known = ~np.isnan(new_values)
        self.steps = np.concatenate([self.steps, new_steps[known]])
        self.values = np.concatenate([self.values, new_values[known]])
        if not len(self.steps):
            return np.full(len(steps), np.nan)
        place = np.searchsorted(self.steps, steps, side="right") - 1
        found = np.where(place >= 0, self.values[np.maximum(place, 0)], np.nan)
        keep = max(int(place[-1]), 0)  # one point is all that later steps can still look back to
        self.steps, self.values = self.steps[keep:], self.values[keep:]
        return found


def build(condition: Condition) -> measures.Measure:
    """The measure that a condition names, over its window."""
    window = condition.over
    least = condition.least or window
    inner: measures.Measure
    if condition.measure == "nonfinite":
        inner = measures.NonFinite(window)
    elif condition.measure == "share" and condition.where is not None:
        where = condition.where
        inner = measures.Share(window, least, where.above, where.below, where.equals)
    elif condition.measure == "from_best":
        inner = measures.FromBest(window, least)
    elif condition.measure == "gain":
        inner = measures.Gain(window)
    elif condition.measure == "peak":
        inner = measures.Peak()
    else:
        inner = measures.Rolling(measures.ROLLING[condition.measure], window, least)
    against = condition.ratio_to or condition.minus
    if against is None:
        return inner
    if against.first is not None:
        return measures.SinceStart(inner, against.first, condition.minus is not None)
    return measures.AgainstPast(inner, window, against.before or 1, condition.minus is not None)


@dataclass(frozen=True)
class Bound:
    """A limit in numbers, and which side of it is sick."""

    sign: str
    limit: float

    def holds(self, values: Floats) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Where the values are on the sick side; NaN never is."""
        with np.errstate(invalid="ignore"):
            if self.sign == "above":
                return np.asarray(values > self.limit)
            return np.asarray(values < self.limit) if self.sign == "below" else np.asarray(values == self.limit)


class Unable(Exception):
    """A rule cannot look at this run; the message says why."""


class Watched:
    """One rule on one run: its operands, its bounds and the episodes in which it held."""

    def __init__(self, rule: Rule, metric: Metric, translation: Translation) -> None:
        assert rule.when is not None
        self.rule = rule
        self.metric = metric
        self.config = translation.config
        conditions = rule.when.conditions
        extra = rule.critical.and_ if rule.critical else ()
        made = [self._operand(one, metric if index == 0 else None, translation) for index, one in enumerate((*conditions, *extra))]
        self.anchor = made[0]
        self.others = [Held(one) for one in made[1:]]
        self.bounds = [bound_of(one, self.config) for one in (*conditions, *extra)]
        self.base = len(conditions)
        self.levels = {Severity.of(rule.severity): Episodes(rule.when.for_, rule.when.clear, self.bounds[0].sign)}
        self.worse: Bound | None = None
        if rule.critical is not None:
            self.worse = worse_of(rule.critical, self.bounds[0], self.config)
            self.levels[Severity.CRITICAL] = Episodes(rule.critical.for_ or rule.when.for_, rule.when.clear, self.bounds[0].sign)
        self.points = 0

    def _operand(self, condition: Condition, metric: Metric | None, translation: Translation) -> Operand:
        metric = metric or pick(condition.metric, translation)
        per, scale = None, 1.0
        if condition.per is not None:
            scale = float(condition.per.times)
            if condition.per.metric is not None:
                per = pick(condition.per.metric, translation)
            if condition.per.config is not None:
                said = translation.config.get(str(condition.per.config), condition.per.default)
                if not isinstance(said, int | float) or not said:
                    raise Unable(f"the run does not tell {condition.per.config}")
                scale *= float(said)
        return Operand(condition, metric, per, scale)

    def advance(self, until: int) -> None:
        """Judges the points up to and including step `until`."""
        assert self.rule.when is not None
        steps, values = self.anchor.advance(until)
        if not len(steps):
            return
        self.points += len(steps)
        held = [self.bounds[0].holds(values)]
        held += [bound.holds(other.at(steps)) for bound, other in zip(self.bounds[1:], self.others, strict=True)]
        join = np.logical_or if self.rule.when.any else np.logical_and
        base = join.reduce(held[: self.base])
        self.levels[min(self.levels)].extend(steps, values, base)
        if self.rule.critical is not None:
            first = held[0] if self.worse is None else self.worse.holds(values)
            self.levels[Severity.CRITICAL].extend(steps, values, np.logical_and.reduce([first, *held[1:]]))

    def finding(self, ending: Ending) -> Finding | None:
        """What the rule found so far, or None."""
        raised = {severity: one for severity, one in self.levels.items() if one.told}
        if not raised:
            return None
        severity = max(raised)
        worst_step, worst_value = raised[severity].worst
        episodes = raised[min(raised)].told
        first = min((one.told[0] for one in raised.values()), key=lambda one: one.raised_step)
        limit = (self.worse or self.bounds[0]).limit if severity in raised and severity > min(self.levels) else self.bounds[0].limit
        return describe(
            self.rule, severity, self.metric, first, episodes, worst_step, worst_value, limit,
            words(self.config, worst_value, limit, worst_step, first, self.anchor.condition.over, self.metric, ending),
        )  # fmt: skip


def bound_of(condition: Condition, config: Mapping[str, Any]) -> Bound:
    """The limit of a condition in numbers; raises Unable where it follows a setting that the run does not tell."""
    sign = next(sign for sign in ("above", "below", "equals") if getattr(condition, sign) is not None)
    return Bound(sign, limit_of(getattr(condition, sign), config))


def worse_of(worse: Worse, base: Bound, config: Mapping[str, Any]) -> Bound:
    """The critical limit: the one given, or the base's own."""
    said = worse.above if worse.above is not None else worse.below
    return base if said is None else Bound("above" if worse.above is not None else "below", limit_of(said, config))


def limit_of(said: float | Limit, config: Mapping[str, Any]) -> float:
    """A limit in numbers; raises Unable where it follows a setting that the run does not tell."""
    if not isinstance(said, Limit):
        return float(said)
    setting = config.get(said.config)
    if isinstance(setting, bool) or not isinstance(setting, int | float):
        if said.default is None:
            raise Unable(f"the run does not tell {said.config}")
        return float(said.default)
    return float(setting) * float(said.times) + float(said.plus)


def pick(name: str, translation: Translation) -> Metric:
    """The metric of that canonical name, or the first logged of `one|another`; raises Unable where there is none."""
    for one in name.split("|"):
        metric = clock_of(translation) if one == "step" else translation.metrics.get(one)
        if metric is not None and len(metric):
            return metric
    raise Unable(f"{name.replace('|', ' or ')} was not logged")


def clock_of(translation: Translation) -> Metric | None:
    """The step itself as a metric, at the points of the metric logged most often."""
    longest = max(translation.metrics.values(), key=len, default=None)
    return None if longest is None else replace(longest, name="step", tag="", unit="steps", transform="", source=_Clock(longest))


class _Clock:
    """The steps of another metric, as values."""

    def __init__(self, of: Metric) -> None:
        self.of = of

    def __len__(self) -> int:
        return len(self.of)

    @property
    def revision(self) -> int:
        return self.of.revision

    @property
    def steps(self) -> Ints:
        return self.of.steps

    @property
    def times(self) -> Floats:
        return self.of.times

    @property
    def values(self) -> Floats:
        return self.of.steps.astype(np.float64)


def pick_all(names: str, translation: Translation) -> list[Metric]:
    """Every logged metric that `one|pattern/*` names; raises Unable where there is none."""
    patterns = names.split("|")
    found = [one for key, one in translation.metrics.items() if len(one) and any(fnmatch.fnmatchcase(key, pattern) for pattern in patterns)]
    if not found:
        raise Unable(f"{' or '.join(patterns)} was not logged")
    return found


class Judge:
    """All rules on one run. `check` advances it once to the end; `watch` again and again: the findings are the same."""

    def __init__(self, run: Run, rules: Sequence[Rule], aliases: Mapping[str, str] | None = None) -> None:
        self.run = run
        self.rules = [rule for rule in rules if rule.cause is None]
        self.diagnoses = [rule for rule in rules if rule.cause is not None]
        self.aliases = aliases or {}
        self.restart()

    def restart(self) -> None:
        """Begins again from the first step: the names changed, or the run was rewound."""
        self.translation = translate(self.run, self.aliases)
        self.watched: list[Watched] = []
        self.skipped: list[Skipped] = []
        self.others: list[Rule] = []
        self.judged_to = -1
        self.shape = shape_of(self.run)
        for rule in self.rules:
            try:
                self._enlist(rule)
            except Unable as reason:
                self.skipped.append(Skipped(rule.id, rule.family, str(reason)))

    def _enlist(self, rule: Rule) -> None:
        may_look(rule, self.translation)
        if rule.when is None or not rule.when.conditions:
            self.others.append(rule)
            return
        name = rule.when.conditions[0].metric
        metrics = pick_all(name, self.translation) if rule.each else [pick(name, self.translation)]
        self.watched += [Watched(rule, metric, self.translation) for metric in metrics]

    def advance(self, until: int = NEVER) -> None:
        """Judges every point up to and including step `until` that was not judged yet."""
        if self.shape != shape_of(self.run):
            self.restart()
        for one in self.watched:
            one.advance(until)
        self.judged_to = until

    def verdict(self, now: float | None = None) -> RunVerdict:
        """What is known of the run so far."""
        from rlhealth.causes import explain  # here: causes reads findings, it is no part of judging them
        from rlhealth.vanished import vanished_findings

        ending = ending_of(self.run, self.translation, now)
        found: list[Finding] = []
        skipped = list(self.skipped)
        quiet: set[str] = set()
        short: dict[str, Skipped] = {}
        for one in self.watched:
            finding = one.finding(ending)
            if finding is not None:
                found.append(finding)
            elif one.points < one.rule.needs:
                short[one.rule.id] = Skipped(one.rule.id, one.rule.family, f"{one.metric.name} has {one.points} of the {one.rule.needs} points it takes to judge")
            else:
                quiet.add(one.rule.id)
        for rule in self.others:
            assert rule.when is not None
            if rule.when.ending:
                told = ending_finding(rule, ending, self.translation)
                found += [told] if told else []
            else:
                found += vanished_findings(rule, self.translation, min(self.judged_to, self.run.last_step or 0))
            quiet.add(rule.id)
        fired = {one.rule for one in found}
        skipped += [one for one in short.values() if one.rule not in fired | quiet]
        found, diagnosed, told_not = explain(found, self.diagnoses, self.translation)
        quiet |= told_not
        if self.translation.is_rl is False or not self.watched:
            quiet, found, diagnosed = set(), [], []
        everything = sorted(diagnosed + found, key=lambda one: (-one.severity, one.first_step, one.rule))
        return RunVerdict(self.run, self.translation, ending.state, everything, sorted(skipped, key=lambda one: one.rule), sorted(quiet - fired))


def shape_of(run: Run) -> tuple[Any, ...]:
    """What must not change under a judge: the tags, and the revisions of those that were not only grown."""
    return (*((tag, one.revision) for tag, one in run.series.items()), *((tag, one.revision) for tag, one in run.histograms.items()), len(run.config))


def may_look(rule: Rule, translation: Translation) -> None:
    """Raises Unable where a rule is not meant for this run: another framework, or a setting that switches it off."""
    if rule.applies_to and not any(fnmatch.fnmatchcase(translation.framework, one) for one in rule.applies_to):
        raise Unable(f"it is about {', '.join(rule.applies_to)}, and this is {translation.framework}")
    for name, test in rule.unless.items():
        setting = translation.config.get(name)
        if setting is not None and passes(setting, test):
            raise Unable(f"{name} is {setting}")
    for name, test in rule.only_if.items():
        setting = translation.config.get(name)
        if setting is None or not passes(setting, test):
            raise Unable(f"{name} is {'not told' if setting is None else setting}")


def passes(setting: Any, test: Any) -> bool:
    """Whether a setting is what a rule's test asks for."""
    if not isinstance(test, Test):
        return bool(setting == test)
    if test.among is not None and setting not in test.among:
        return False
    number = isinstance(setting, int | float)
    if test.above is not None and not (number and setting > test.above):
        return False
    if test.below is not None and not (number and setting < test.below):
        return False
    return "is_" not in test.model_fields_set or setting == test.is_


def ending_finding(rule: Rule, ending: Ending, translation: Translation) -> Finding | None:
    """The finding of a rule that reads how the run ended."""
    assert rule.when is not None
    if not ending.kinds & set(rule.when.ending):
        return None
    episode = Episode(ending.step, ending.step, ending.step, True)
    limit = float(ending.planned) if ending.planned else None
    said = {"said": ending.said, "step": ending.step, "planned": ending.planned or "?", "idle": ending.idle, **settings(translation.config)}
    return Finding(
        rule.id, rule.family, Severity.of(rule.severity), rule.title, "step", "", ending.step, ending.step, ending.step, True, ending.step, float(ending.step),
        limit, fill(rule.message, said), rule.because.strip(), tuple(fill(one, said) for one in rule.try_), rule.cites, "steps", episodes=(episode,),
    )  # fmt: skip


def describe(
    rule: Rule, severity: Severity, metric: Metric, first: Episode, episodes: tuple[Episode, ...], worst_step: int, worst_value: float, limit: float | None, said: Mapping[str, Any]
) -> Finding:  # fmt: skip
    """A finding in words: the rule's texts, filled with the numbers."""
    return Finding(
        rule.id, rule.family, severity, rule.title, metric.name, metric.tag, first.first_step, first.raised_step, episodes[-1].last_step,
        any(one.active for one in episodes), worst_step, worst_value, limit, fill(rule.message, said), rule.because.strip(),
        tuple(fill(one, said) for one in rule.try_), rule.cites, metric.unit, episodes=episodes,
    )  # fmt: skip


def words(config: Mapping[str, Any], value: float, limit: float, worst_step: int, first: Episode, over: int, metric: Metric, ending: Ending) -> dict[str, Any]:
    """What a message may name."""
    return settings(config) | {
        "value": value, "limit": limit, "worst_step": worst_step, "first_step": first.first_step, "raised_step": first.raised_step, "over": over,
        "metric": metric.name, "tag": metric.tag, "unit": metric.unit, "step": ending.step, "planned": ending.planned or "?",
    }  # fmt: skip


def settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """The run's settings as a message names them: {config.beta}, {option.kl_coef}."""
    return {f"config.{key}": value for key, value in config.items()}


class _Fill(string.Formatter):
    """Fills {name} and {name:format} from a flat mapping; nothing in a message can reach an attribute or an index."""

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, str]:
        return kwargs.get(field_name, _Unknown(field_name)), field_name

    def format_field(self, value: Any, format_spec: str) -> str:
        try:
            return str(super().format_field(value, format_spec))
        except (ValueError, TypeError):
            return str(value)


class _Unknown:
    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return self.name.rpartition(".")[2]


def fill(text: str, said: Mapping[str, Any]) -> str:
    """A message with its fields filled; a setting that the run does not tell is named by its own name."""
    return _Fill().vformat(text, (), said).strip()


def follow(finding: Finding, cause: str) -> Finding:
    """The same finding, explained by another."""
    return replace(finding, explained_by=cause)
