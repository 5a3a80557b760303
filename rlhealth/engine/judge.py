"""The engine: rules over one run, in one causal pass that can continue where it stopped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from rlhealth.engine.aftermath import Aftermath
from rlhealth.engine.causes import explain
from rlhealth.engine.earlier import EarlierFindings, with_earlier
from rlhealth.engine.earned import why_not_healthy
from rlhealth.engine.ending import ending_of
from rlhealth.engine.facts import Facts
from rlhealth.engine.operands import (
    CannotRun,
    SharedOperand,
    SharedParts,
    pick,
    pick_all,
)
from rlhealth.engine.precision import is_rounded
from rlhealth.engine.rule_state import RuleState, Shape
from rlhealth.engine.scope import check_scope
from rlhealth.engine.vanished import VanishedMetrics
from rlhealth.engine.wording import ending_finding
from rlhealth.metrics import Translation, translate
from rlhealth.rules.model import Rule
from rlhealth.run import Run
from rlhealth.verdict.findings import Episode, Finding, Ignored, RunVerdict, Skipped, State, worst_state

NEVER = int(np.iinfo(np.int64).max)
LONG = 15  # points; a rule that takes more speaks of long runs, and says nothing about whether a run is too short
LEFT_OUT = 512  # points that a condition may lag behind: at once they cost what one would, and little is kept for it
no_float_warnings = np.errstate(
    all="ignore"
)  # runs hold NaN, infinities and the largest numbers there are: what becomes of them is judged, not warned of


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
        nothing is kept for them, and it cannot go on.
        """
        if self.shape != self._shape():
            self.restart()
        for index in self.order:
            one = self.watched[index]
            if one.late:
                for side in one.sides:
                    side.release()
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
    judge.advance(last=True)
    return judge.verdict()


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
