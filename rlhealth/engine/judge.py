"""The engine: rules over one run, in one causal pass that can continue where it stopped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from rlhealth.engine.advice import changes_of
from rlhealth.engine.aftermath import Aftermath, is_fall
from rlhealth.engine.causes import explain
from rlhealth.engine.earlier import EarlierFindings, with_earlier
from rlhealth.engine.earned import why_not_healthy
from rlhealth.engine.ending import Ending, ending_of
from rlhealth.engine.episodes import Episodes
from rlhealth.engine.estimate import Bound, Flags
from rlhealth.engine.facts import Facts
from rlhealth.engine.onset import dated_back
from rlhealth.engine.operands import (
    CannotRun,
    ForwardFill,
    Operand,
    OperandCursor,
    SharedOperand,
    SharedParts,
    bound_of,
    level_of,
    pick,
    pick_all,
    unit_of,
    worse_of,
)
from rlhealth.engine.parts import Parts
from rlhealth.engine.precision import is_rounded
from rlhealth.engine.scope import applicable, check_scope
from rlhealth.engine.vanished import VanishedMetrics
from rlhealth.engine.wording import describe, ending_finding, words
from rlhealth.metrics import Metric, Translation, translate
from rlhealth.rules.model import Condition, Rule
from rlhealth.run import Ints, Run
from rlhealth.verdict.findings import Episode, Finding, Ignored, RunVerdict, Severity, Skipped, State, worst_state

NEVER = int(np.iinfo(np.int64).max)
LONG = 15  # points; a rule that takes more speaks of long runs, and says nothing about whether a run is too short
LEFT_OUT = 512  # points that a condition may lag behind: at once they cost what one would, and little is kept for it
Shape = tuple[Any, ...]
no_float_warnings = np.errstate(
    all="ignore"
)  # runs hold NaN, infinities and the largest numbers there are: what becomes of them is judged, not warned of


class RuleState:
    """One rule on one run: its operands, its bounds and the episodes in which it held."""

    def __init__(
        self,
        rule: Rule,
        metric: Metric,
        translation: Translation,
        measured: dict[Shape, SharedOperand] | None = None,
        parts: SharedParts | None = None,
    ) -> None:
        assert rule.when is not None and rule.when.all
        self.rule = rule
        self.metric = metric
        self.translation = translation
        self.measured = {} if measured is None else measured  # by other rules, from the first step on
        self.parts = {} if parts is None else parts
        conditions = applicable(rule.when.conditions, translation)
        extra = applicable(rule.critical.and_ if rule.critical else (), translation)
        made = [
            self._operand(one, metric if index == 0 else None, translation)
            for index, one in enumerate((*conditions, *extra))
        ]
        self.sides = made
        self.anchor = made[0]
        self.others = [ForwardFill(one) for one in made[1:]]
        settings = {**translation.config, "planned_steps": translation.planned_steps}
        self.bounds = [bound_of(one, settings) for one in (*conditions, *extra)]
        self.base = len(conditions)
        self.held: list[bool | None] = [False] * len(self.bounds)  # at the newest point; None if that was left out
        self.left_out = 0  # points at which some condition was
        self.newest: Ints = np.empty(0, np.int64)
        self.dated: dict[Severity, list[Episode]] = {}
        # a window that still holds an unhealthy row says nothing of what came after it
        clear = max(rule.when.held_for, conditions[0].last)
        self.levels = {Severity.of(rule.severity): Episodes(rule.when.held_for, clear, self.bounds[0].sign)}
        self.worse: Bound | None = None
        if rule.critical is not None:
            self.worse = worse_of(rule.critical, self.bounds[0], translation.config)
            hold = rule.critical.held_for or rule.when.held_for
            self.levels[Severity.CRITICAL] = Episodes(hold, max(clear, hold), self.bounds[0].sign)
        self.points = 0
        self.latest = float("nan")

    def _operand(self, condition: Condition, metric: Metric | None, translation: Translation) -> OperandCursor:
        metric = metric or pick(condition.metric, translation, self.metric)
        per, scale = None, 1.0
        divisor = condition.divided_by
        if divisor is not None:
            scale = float(divisor.times)
            if divisor.metric is not None:
                per = pick(divisor.metric, translation)
            if divisor.setting is not None:
                said = translation.config.get(divisor.setting, divisor.default)
                if not isinstance(said, int | float) or not said:
                    raise CannotRun(f"the setting {divisor.setting} is unknown")
                scale *= float(said)
        clock = (
            self.metric.tag if metric.name == "step" else ""
        )  # the step is read at the points of the rule's own metric
        other = pick(condition.with_, translation) if condition.with_ else None
        key = (_looks(condition), metric.name, metric.tag, clock, per and per.name, scale)
        shared = self.measured.get(key)
        if shared is None:
            series = metric.name, metric.tag, clock, condition.absolute, condition.divided_by, scale
            parts = self.parts.setdefault(series, Parts())
            shared = self.measured[key] = SharedOperand(Operand(condition, metric, per, scale, parts, other))
        return OperandCursor(shared, condition)

    @property
    def late(self) -> bool:
        """Whether one of its metrics got a point at a step that was judged without it."""
        return self.anchor.late or any(one.late for one in self.others)

    def advance(self, until: int) -> None:
        """Judges the points up to and including step `until`."""
        steps, found = self.anchor.advance(until)
        if not len(steps):
            return
        self.points += len(steps)
        self.latest = float(found.value[-1])
        first = self.bounds[0].holds(found)
        worse = first if self.worse is None else self.worse.holds(found)
        held = self._held_at(steps, first, worse)
        known = len(held) == len(self.bounds)
        for severity, level in self.levels.items():
            if not known:
                level.extend(steps, found.value, np.zeros(len(steps), np.bool_))
                continue
            parts = held[: self.base] if severity == min(self.levels) else [worse, *held[1:]]
            whole = np.logical_and.reduce(parts)
            level.extend(steps, found.value, whole, self._begun(held, whole))
        self.newest = steps[-1:].copy()
        self.held = [bool(one[-1]) for one in held] + [None] * (len(self.bounds) - len(held))
        self.left_out = 0 if known else self.left_out + len(steps)

    def _held_at(self, steps: Ints, first: Flags, worse: Flags) -> list[Flags]:
        """Where each condition holds, the first of them as given; without the last ones, where the others together
        never hold.

        Most rules' first conditions never hold. What must hold with them is then not looked at before it is asked for,
        which changes nothing: measures say the same in whatever pieces points come.
        """
        held, possible = [first], first | worse
        for place, (bound, other) in enumerate(zip(self.bounds[1:], self.others, strict=True), 1):
            if not possible.any():
                break
            self._look_back(place)
            held.append(bound.holds(other.at(steps)))
            if place < self.base:
                possible = possible & held[-1]
        return held

    def _look_back(self, place: int) -> None:
        """Looks at one condition up to the newest point that was judged, if it was left out there."""
        if self.held[place] is None:
            self.held[place] = bool(self.bounds[place].holds(self.others[place - 1].at(self.newest))[0])

    def catch_up(self) -> None:
        """Looks at all conditions that were left out, so that nothing has to be kept for them."""
        for place in range(1, len(self.bounds)):
            self._look_back(place)
        self.left_out = 0

    def release(self) -> None:
        """Ends what it looks at, as no more points will come, so that nothing is kept for it."""
        self._count_items()
        for one in self.sides:
            one.release()

    def _count_items(self) -> None:
        """Looks at the conditions that are to say of how many items they have too few."""
        for place, one in enumerate(self.sides):
            if place and one.waits and len(self.newest):
                self._look_back(place)

    def _begun(self, held: list[Flags], whole: Flags) -> Ints:
        """Where a level begins to hold: bit by bit, which conditions hold there and did not at the point before;
        elsewhere 0. Shape (n,).
        """
        starts = np.flatnonzero(whole & ~np.append(False, whole[:-1]))
        marks = np.zeros(len(whole), np.int64)
        for place, one in enumerate(held):
            before = np.where(starts > 0, one[starts - 1], bool(self.held[place]))
            marks[starts] |= (one[starts] & ~before).astype(np.int64) << place
        return marks

    def _episodes(self, severity: Severity, most: int | None = None) -> list[Episode]:
        """The episodes of one level, `most` of them at most, each dated back to the first row that agrees: once, for
        what came before it stays.
        """
        level, known = self.levels[severity], self.dated.setdefault(severity, [])
        if known and known[-1].active:
            last, ended = int(level.spans[2, len(known) - 1]), not level.open or len(known) < level.count
            known[-1] = replace(known[-1], last_step=last, state=State.OVER if ended else State.STANDING)
        if len(known) < min(level.count, most or level.count):
            spans = level.spans[:, len(known) : most]
            first, from_start = self._dated(spans[0], spans[3], severity)
            rows = zip(first.tolist(), *spans[1:3].tolist(), from_start.tolist(), strict=True)
            known += [Episode(first, raised, last, State.OVER, start) for first, raised, last, start in rows]
            if level.open and len(known) == level.count:
                known[-1] = replace(known[-1], state=State.STANDING)
        return known

    def _dated(self, steps: Ints, marks: Ints, severity: Severity) -> tuple[Ints, Flags]:
        """Where episodes begin that were told to begin at those steps: where the last of the conditions that made each
        of them hold began; and whether that is the start of the run. Shape (k,) each.
        """
        bounds = [self.worse if self.worse and severity > min(self.levels) else self.bounds[0], *self.bounds[1:]]
        first, from_start = np.full(len(steps), np.iinfo(np.int64).min), np.zeros(len(steps), np.bool_)
        for place, (side, bound) in enumerate(zip(self.sides, bounds, strict=True)):
            mine = np.flatnonzero(marks >> place & 1 | ((marks == 0) & (place == 0)))
            if not len(mine):
                continue
            operand = side.shared.operand
            per = None if operand.per is None else operand.per.source
            assert per is None or isinstance(per, Metric)
            found, is_start = dated_back(operand.condition, bound, operand.metric, per, operand.scale, steps[mine])
            later, same = found > first[mine], found == first[mine]
            from_start[mine] = np.where(later, is_start, from_start[mine] | (same & is_start))
            first[mine] = np.maximum(first[mine], found)
        return first, from_start

    @property
    def too_few(self) -> str:
        """Of what there was too little to judge; empty if there was enough."""
        if self.points < self.rule.points:
            return f"{self.metric.name} has {self.points} of the {self.rule.points} points it takes to judge"
        self._count_items()
        return next((f"{one.metric.name} has {one.lacking} to judge" for one in self.sides if one.lacking), "")

    def finding(self, ending: Ending, aftermath: Aftermath) -> Finding | None:
        """What the rule found so far, or None."""
        raised = [severity for severity, level in self.levels.items() if level.count]
        if not raised:
            return None
        severity, base = max(raised), min(raised)
        episodes = tuple(self._episodes(base))
        state = aftermath.state_of(self.metric, self.anchor.condition, self._limit(base), episodes)
        worst_step, worst_value = self.levels[severity].worst
        first = min((self._episodes(one, 1)[0] for one in raised), key=lambda one: one.raised_step)
        limit = self._limit(severity)
        said = words(self.translation, self.metric, first) | {
            "value": worst_value,
            "limit": limit,
            "worst_step": worst_step,
            "points": self.anchor.condition.last,
            "step": ending.step,
        }
        harmless = aftermath.regained(episodes, is_fall(self.metric, self.anchor.condition))
        if self.rule.harmless_once == "reward-rose" and aftermath.learned_since(episodes):
            harmless = True
        told = describe(
            rule=self.rule,
            severity=severity,
            metric=self.metric,
            first=first,
            episodes=episodes,
            worst=(worst_step, worst_value),
            limit=limit,
            said=said,
        )
        condition = self.anchor.condition
        parts = (*episodes[:-1], replace(episodes[-1], state=state))
        return replace(
            told,
            severity=self._after(severity, harmless) if state is State.OVER else severity,
            peak=severity,
            state=state,
            episodes=parts,
            side=self.bounds[0].sign,
            measured=unit_of(condition),
            level=level_of(condition, limit, self.metric),
            changes=changes_of(self.rule, self.translation),
        )

    def _limit(self, severity: Severity) -> float:
        """The limit of one of its levels."""
        worse = self.worse is not None and severity > min(self.levels)
        return (self.worse or self.bounds[0]).limit if worse else self.bounds[0].limit

    def _after(self, severity: Severity, harmless: bool | None) -> Severity:
        """How severe a level is once it is over: a warning at most, or less where its rule says so.

        It is less than a warning only where the reward came back; what had been critical, only where it shows that.
        """
        if harmless or (harmless is None and severity < Severity.CRITICAL):
            return min(severity, Severity.of(self.rule.severity_when_over))
        return min(severity, Severity.WARNING)


class Judge:
    """All rules on one run. `check` advances it once to the end; `watch` again and again: the findings are the same."""

    def __init__(
        self,
        run: Run,
        rules: Sequence[Rule],
        aliases: Mapping[str, str] | None = None,
        translation: Translation | None = None,
    ) -> None:
        self.run = run
        self.fixed = translation  # of a run that is written in canonical names already
        self.rules = [rule for rule in rules if rule.cause is None]
        self.diagnoses = [rule for rule in rules if rule.cause is not None]
        self.families = {rule.id: rule.family for rule in rules}
        self.aliases = aliases or {}
        endings = [rule.id for rule in rules if rule.when is not None and rule.when.ending]
        self.earlier = EarlierFindings(lambda before: _whole(Judge(before, rules, aliases)), endings)
        self.restart()

    @no_float_warnings
    def restart(self) -> None:
        """Begins again from the first step: the names changed, or the run was rewound."""
        self.translation = self.fixed or translate(self.run, self.aliases)
        self.watched: list[RuleState] = []
        self.measured: dict[Shape, SharedOperand] = {}
        self.parts: SharedParts = {}
        self.skipped: list[Skipped] = []
        self.others: list[Rule] = []
        self.vanishing: list[VanishedMetrics] = []
        self.facts = Facts(self.translation)
        self.judged_to = -1
        self.shape = self._shape()
        for rule in self.rules:
            try:
                self._enlist(rule)
            except CannotRun as reason:
                self.skipped.append(Skipped(rule.id, rule.family, str(reason)))
        # rules on one metric after each other: what they share need not be kept for long
        self.order = sorted(range(len(self.watched)), key=lambda place: self.watched[place].metric.name)

    def _enlist(self, rule: Rule) -> None:
        check_scope(rule, self.translation)
        if rule.scope.full_precision and is_rounded(self.run):
            raise CannotRun("the numbers of this log are rounded: one written as 0 may only be small")
        if rule.when is None or not rule.when.conditions:
            self.others.append(rule)
            if rule.when is not None and rule.when.vanished:
                self.vanishing.append(VanishedMetrics(rule, self.translation))
            return
        watched: list[RuleState] = []
        unable: list[CannotRun] = []
        for aspect in rule.clauses:
            assert aspect.when is not None
            try:
                name = aspect.when.all[0].metric
                metrics = pick_all(name, self.translation) if rule.scope.each_metric else [pick(name, self.translation)]
                watched += [
                    RuleState(aspect, metric, self.translation, self.measured, self.parts) for metric in metrics
                ]
            except CannotRun as reason:
                unable.append(reason)
        if not watched:
            raise unable[0]
        self.watched += watched

    @no_float_warnings
    def advance(self, until: int = NEVER, last: bool = False) -> None:
        """Judges every point up to and including step `until` that was not judged yet; `last` where no more will come:
        nothing is prepared for them.
        """
        if self.shape != self._shape():
            self.restart()
        for index in self.order:
            one = self.watched[index]
            if one.late:
                self.watched[index] = one = RuleState(one.rule, one.metric, self.translation)
            one.advance(until)
            if last:
                one.release()
            elif one.left_out > LEFT_OUT:
                one.catch_up()
        for gone in self.vanishing:
            gone.advance(until)
        self.judged_to = until

    def _shape(self) -> Shape:
        logged = tuple((len(one) > 0, one.revision) for one in self.translation.metrics.values())
        return shape_of(self.run), logged

    @no_float_warnings
    def verdict(
        self, now: float | None = None, ignore: Mapping[str, str] | None = None, ended: bool = False
    ) -> RunVerdict:
        """What is known of the run so far, at `now` (seconds since 1970); `ended` where the user says that it is over.

        Findings of the rules and families that `ignore` names, each with a reason, are set aside before causes are
        sought.
        """
        ending = ending_of(self.run, self.translation, now, ended)
        aftermath = Aftermath(self.translation, self.judged_to)
        found: list[Finding] = []
        skipped = list(self.skipped)
        quiet: set[str] = set()
        short: dict[str, Skipped] = {}
        aspects: dict[tuple[str, str], list[Finding]] = {}
        for one in self.watched:
            finding = one.finding(ending, aftermath)
            if finding is not None:
                aspects.setdefault(finding.key, []).append(finding)
            elif reason := one.too_few:
                short[one.rule.id] = Skipped(one.rule.id, one.rule.family, reason)
            else:
                quiet.add(one.rule.id)
        found += [joined_finding(parts) for parts in aspects.values()]
        looked = set(quiet)  # at a metric: what the end of a run says is no look at its health
        for rule in self.others:
            assert rule.when is not None
            if rule.when.ending:
                told = ending_finding(rule, ending, self.translation)
                found += [told] if told else []
            quiet.add(rule.id)
        for gone in self.vanishing:
            found += gone.findings()
        fired = {one.rule for one in found}
        waiting = [one for one in short.values() if one.rule not in fired | quiet]
        skipped += waiting
        unwanted = ignore or {}
        ignored = [
            Ignored(one, given) for one in found if (given := unwanted.get(one.rule) or unwanted.get(one.family))
        ]
        found = [one for one in found if not (one.rule in unwanted or one.family in unwanted)]
        diagnoses = []
        for rule in self.diagnoses:
            try:
                check_scope(rule, self.translation)
                diagnoses.append(rule)
            except CannotRun as reason:
                skipped.append(Skipped(rule.id, rule.family, str(reason)))
        found, diagnosed, told_not = explain(found, diagnoses, self.translation, self.facts, self.judged_to)
        quiet |= told_not
        blind = not self.watched and len(self.others) < len(self.rules)  # no rule that reads metrics found one to read
        if self.translation.is_rl is False or blind:
            quiet, found, diagnosed = set(), [], []
        else:
            known = with_earlier(diagnosed + found, self.earlier.findings(self.run))
            accepted = [one for one in known if not (one.rule in unwanted or one.family in unwanted)]
            diagnosed, found = [], accepted
        everything = sorted(diagnosed + found, key=lambda one: (-one.severity, one.first_step, one.rule))
        skipped.sort(key=lambda one: one.rule)
        answer = RunVerdict(
            run=self.run,
            translation=self.translation,
            state=ending.state,
            findings=everything,
            skipped=skipped,
            quiet=sorted(quiet - fired - {one.rule for one in everything}),
            ignored=ignored,
            families=self.families,
            reward_is_best=aftermath.at_its_best(),
        )
        answer.why_not_healthy = why_not_healthy(self.translation)
        early = {one.rule.id for one in self.watched if one.rule.points <= LONG}
        too_few = [one for one in waiting if one.rule in early]
        if len(too_few) > len(looked - fired) and not everything:
            answer.too_short = (
                f"its few points are too few for {len(too_few)} of the {len(too_few) + len(looked)} rules that apply"
            )
        return answer


def _whole(judge: Judge) -> RunVerdict:
    judge.advance()
    return judge.verdict()


@cache
def _looks(condition: Condition) -> Condition:
    """What a condition looks at, whatever limit it is compared with, and whatever it calls the metric."""
    limit = {"above": None, "below": None, "equals": None, "standard_errors": 0}
    return condition.model_copy(update={"metric": "", "if_logged": False, "unless_logged": "", **limit})


def joined_finding(parts: Sequence[Finding]) -> Finding:
    """One finding of the aspects of one symptom: in the words of its worst, dated by the one that was raised first."""
    if len(parts) == 1:
        return parts[0]
    order = list(State)
    worst = max(parts, key=lambda one: (one.severity, -order.index(one.state), one.worst_severity))
    first = min(parts, key=lambda one: (one.raised_step, one.first_step))
    state = worst_state(parts)
    return replace(
        worst,
        first_step=first.first_step,
        raised_step=first.raised_step,
        last_step=max(one.last_step for one in parts),
        state=state,
        peak=max(one.worst_severity for one in parts),
        episodes=united([one.episodes for one in parts], state),
    )


def united(parts: Sequence[tuple[Episode, ...]], state: State) -> tuple[Episode, ...]:
    """The episodes of several aspects as one row: those that overlap are one, the last is in that state."""
    found = [one for part in parts for one in part]
    first, raised, last = np.array([(one.first_step, one.raised_step, one.last_step) for one in found]).T
    order = np.lexsort((first, raised))
    ordered = [found[place] for place in order.tolist()]
    ends = np.maximum.accumulate(last[order])
    begins = np.flatnonzero(np.append(True, first[order][1:] > ends[:-1])).tolist()
    lasts = ends[[*(begin - 1 for begin in begins[1:]), -1]].tolist()
    joined = [
        one if one.last_step == last and one.state is State.OVER else replace(one, last_step=last, state=State.OVER)
        for one, last in zip([ordered[begin] for begin in begins], lasts, strict=True)
    ]
    return (*joined[:-1], replace(joined[-1], state=state))


def shape_of(run: Run) -> Shape:
    """What must not change under a judge: which tags have points, the revisions of those that were not only grown, and
    the settings."""
    series = tuple((tag, len(one) > 0, one.revision) for tag, one in run.series.items())
    histograms = tuple((tag, len(one) > 0, one.revision) for tag, one in run.histograms.items())
    return series, histograms, dict(run.config), dict(run.versions), run.planned_steps
