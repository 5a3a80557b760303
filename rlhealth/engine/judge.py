"""The engine: judges one run by rules, in one causal pass that can continue where it stopped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rlhealth.engine.aftermath import Aftermath
from rlhealth.engine.causes import explain
from rlhealth.engine.clause import Clause
from rlhealth.engine.earlier import EarlierFindings, with_earlier
from rlhealth.engine.earned import is_solved, why_not_healthy
from rlhealth.engine.ending import Ending, ending_of
from rlhealth.engine.episodes import united
from rlhealth.engine.facts import Facts
from rlhealth.engine.metric_choice import named_metric
from rlhealth.engine.operands import SharedOperand, SharedParts
from rlhealth.engine.plan import rule_book
from rlhealth.engine.precision import is_rounded
from rlhealth.engine.reach import Reach
from rlhealth.engine.rule_state import RuleState, UnmetRule
from rlhealth.engine.unwanted import Unwanted
from rlhealth.engine.vanished import VanishedMetrics
from rlhealth.engine.wording import ending_finding
from rlhealth.metrics import Translation, translate
from rlhealth.metrics.recognise import shown_by_values
from rlhealth.metrics.sorting import odd_tags
from rlhealth.rules.model import Rule
from rlhealth.run import Run
from rlhealth.verdict.findings import Finding, Severity, Skipped, State, worst_state
from rlhealth.verdict.verdicts import RunVerdict

Shape = tuple[Any, ...]
NEVER = int(np.iinfo(np.int64).max)
NO_LOOK = "no rule that judges a metric could run"
LONG = 15  # points; a rule that needs more is about long runs, and does not count in whether a run is too short
SHORT = 4096  # points: the data kept for a shorter series is too small to drop before the end of the run
LEFT_OUT = 512  # points that a condition may lag behind: a batch costs as much as one point, and little is kept
no_float_warnings = np.errstate(all="ignore")  # runs contain NaN and infinities, and their results are judged


class Symptoms(NamedTuple):
    """The results of each rule by itself, among which causes are searched.

    Attributes:
        looked: ids of the rules that measured a metric and found nothing.
        waiting: rules that have too few points.
        has_looked: whether any metric was measured: how a run ended is no evidence that it is healthy.
    """

    found: list[Finding]
    looked: set[str]
    waiting: list[Skipped]
    has_looked: bool

    @property
    def fired(self) -> set[str]:
        """Ids of the rules that found something."""
        return {one.rule for one in self.found}


class Judge:
    """All rules on one run. `check` advances it once to the end; `watch` does so repeatedly, with the same findings."""

    def __init__(
        self,
        run: Run,
        rules: Sequence[Rule],
        aliases: Mapping[str, str] | None = None,
        translation: Translation | None = None,
    ) -> None:
        self.run = run
        self.fixed = translation  # of a run that already uses canonical names
        self.book = rule_book(rules)
        self.aliases = aliases or {}
        self.follows_all = False
        self.earlier = EarlierFindings(lambda before: _whole(Judge(before, rules, aliases)), self.book.endings)
        self.restart()

    @no_float_warnings
    def restart(self) -> None:
        """Starts again from the first step: the names changed, or the run was rewound."""
        self.translation = self.fixed or translate(self.run, self.aliases)
        self.plan = self.book.plan(self.run, self.translation)
        self.vanishing = VanishedMetrics(self.plan.others, self.translation)
        self.facts = Facts(self.translation)
        self.reach = Reach(self.translation.metrics.__getitem__)
        self.states: list[RuleState | UnmetRule] = [
            UnmetRule(one, named_metric(one.metric, None, self.translation)) for one in self.plan.clauses
        ]
        self.judged_to = -1
        self.shape = self._shape()

    def _choose(self, until: int) -> None:
        """Follows the rules that can raise a finding at the points up to and including step `until`, each from the
        first point on, and no others.
        """
        measured: dict[int, SharedOperand] = {}
        parts: SharedParts = {}
        self.reach.grow(until)
        for index, (plan, state) in enumerate(zip(self.plan.clauses, self.states, strict=True)):
            if isinstance(state, RuleState) and not plan.counts_items:
                continue  # with more points a range only widens
            wanted = self.follows_all or self.reach.can_raise(plan)
            if wanted and isinstance(state, UnmetRule):
                clause = Clause(plan, state.metric, self.translation, measured, parts)
                self.states[index] = RuleState(clause)
            elif not wanted and isinstance(state, RuleState):  # it was only waiting for enough points
                state.clause.end()
                self.states[index] = UnmetRule(plan, state.metric)

    @property
    def watched(self) -> list[RuleState]:
        """The rules that are followed."""
        return [one for one in self.states if isinstance(one, RuleState)]

    def follow_all(self) -> list[RuleState]:
        """Follows every rule from now on, so that its distance to the limit is known."""
        if not self.follows_all:
            self.follows_all = True
            self.advance(self.judged_to)
        return self.watched

    @no_float_warnings
    def advance(self, until: int = NEVER, last: bool = False) -> None:
        """Judges all new points up to and including step `until`. With `last` no more points will come: nothing is kept
        for later points, and the judge cannot continue.
        """
        if self.shape != self._shape():
            self.restart()
        self._choose(until)
        for index in self.plan.order:
            one = self.states[index]
            if isinstance(one, RuleState) and self.judged_to >= 0 and one.clause.late:
                one.clause.end()
                self.states[index] = one = RuleState(Clause(one.plan, one.metric, self.translation))
            one.advance(until)
            if isinstance(one, UnmetRule):
                continue
            if last:
                if len(one.metric) > SHORT:
                    one.release()
            elif one.clause.left_out > LEFT_OUT:
                one.clause.catch_up()
        self.vanishing.advance(until)
        self.judged_to = until

    def _shape(self) -> Shape:
        logged = tuple((len(one) > 0, one.revision) for one in self.translation.metrics.values())
        return shape_of(self.run), logged, self.book.minds_rounding and is_rounded(self.run)

    @no_float_warnings
    def verdict(
        self,
        now: float | None = None,
        ignore: Mapping[str, str] | None = None,
        ended: bool = False,
        followed: bool = False,
    ) -> RunVerdict:
        """The verdict on the run so far, at `now` (seconds since 1970); `ended` if the user says that it is over,
        `followed` while its log is watched.

        Findings of the rules and families in `ignore`, each with a reason, are set aside before causes are searched. An
        ignored cause explains nothing, and is counted as ignored if it would have been named.
        """
        ending = ending_of(self.run, self.translation, now, ended, followed)
        aftermath = Aftermath(self.translation, self.judged_to)
        symptoms = self._symptoms(ending, aftermath)
        unwanted = Unwanted(ignore)
        found, aside, quiet = self._explained(symptoms, unwanted)
        answer = RunVerdict(
            run=self.run,
            translation=self.translation,
            state=ending.state,
            findings=sorted(found, key=lambda one: (-one.severity, one.first_step, one.explained_by or "", one.rule)),
            skipped=sorted([*self.plan.skipped, *self.plan.undiagnosed, *symptoms.waiting], key=lambda one: one.rule),
            quiet=sorted(quiet - symptoms.fired - {one.rule for one in (*found, *aside)}),
            ignored=unwanted.ignored(aside),
            families=self.book.families,
            beside_metrics=frozenset(quiet - symptoms.looked),
            reward_is_best=aftermath.at_its_best,
        )
        if is_solved(self.run, self.translation):
            return answer
        answer.why_not_healthy = why_not_healthy(self.translation, self.run.step_axis)
        if not symptoms.has_looked:
            answer.why_not_healthy = self.book.asks_for_no_look or answer.why_not_healthy or NO_LOOK
        if not found:
            answer.too_short = self._too_short(symptoms)
        return answer

    def _symptoms(self, ending: Ending, aftermath: Aftermath) -> Symptoms:
        """The result of each rule by itself."""
        looked: set[str] = set()
        short: dict[str, Skipped] = {}
        aspects: dict[tuple[str, str], list[Finding]] = {}
        for one in self.states:
            finding = one.finding(ending, aftermath) if isinstance(one, RuleState) else None
            if finding is not None:
                aspects.setdefault(finding.key, []).append(finding)
            elif reason := one.too_few:
                short[one.rule.id] = Skipped(one.rule.id, one.rule.family, reason)
            else:
                looked.add(one.rule.id)
        endings = [rule for rule in self.plan.others if rule.when is not None and rule.when.ending]
        found = [
            *(joined_finding(parts) for parts in aspects.values()),
            *filter(None, (ending_finding(rule, ending, self.translation) for rule in endings)),
            *self.vanishing.findings(self.run.excerpted),
        ]
        if not self.translation.is_rl:  # mixed precision skips a step whose gradient overflows, and continues
            found = [one.in_state(one.state, most=Severity.INFO) for one in found]
        if aftermath.at_its_best and is_one_symptom(found):
            found = [one.at_most(self.book.alone[one.rule]) for one in found]
        heard = {one.rule for one in found} | looked | {rule.id for rule in self.plan.others}
        return Symptoms(
            found=found,
            looked=looked,
            waiting=[one for one in short.values() if one.rule not in heard],
            has_looked=bool(looked or aspects or self.vanishing.has_looked),
        )

    def _explained(self, symptoms: Symptoms, unwanted: Unwanted) -> tuple[list[Finding], list[Finding], set[str]]:
        """The findings with their causes, those that are set aside, and the ids of the rules that found nothing."""
        found, aside = unwanted.split(symptoms.found)
        is_blind = not self.plan.clauses and len(self.plan.others) < len(self.book.rules)  # no rule found its metric
        if is_blind:
            has_failed = bool(self.run.exit_code) or self.run.died_at_start  # whatever it had logged
            found = [one for one in found if has_failed and one.rule in self.book.endings]
        seek = partial(explain, translation=self.translation, facts=self.facts, now=self.judged_to)
        found, causes, ignored_causes, without = unwanted.explained(found, self.plan.diagnoses, seek)
        if is_blind:
            return causes + found, ignored_causes + aside, set()
        earlier, aside_earlier = unwanted.split(self.earlier.findings(self.run))
        quiet = symptoms.looked | {rule.id for rule in self.plan.others} | (without if symptoms.has_looked else set())
        return with_earlier(causes + found, earlier), with_earlier(ignored_causes + aside, aside_earlier), quiet

    def _too_short(self, symptoms: Symptoms) -> str:
        """A sentence that most rules lack points; empty if they do not."""
        early = {one.rule.id for one in self.states if one.rule.points <= LONG}
        too_few = sum(one.rule in early for one in symptoms.waiting)
        if too_few <= len(symptoms.looked - symptoms.fired):
            return ""
        return (
            f"it has too few points for {too_few} of the {too_few + len(symptoms.looked)} rules on its metrics "
            f"that take {LONG} points at most"
        )


def _whole(judge: Judge) -> RunVerdict:
    judge.advance(last=True)
    return judge.verdict()


def is_one_symptom(found: Sequence[Finding]) -> bool:
    """Whether all findings worse than a note are of one family."""
    return len({one.family for one in found if one.severity > Severity.INFO}) == 1


def joined_finding(parts: Sequence[Finding]) -> Finding:
    """Joins findings of one symptom into one: with the words of the worst, and the date of the first raised."""
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


def shape_of(run: Run) -> Shape:
    """What must stay the same while a judge is used: the tags with points, the revisions of tags that changed other
    than by growing, what their values show about them, and the settings."""
    series = tuple((tag, len(one) > 0, one.revision) for tag, one in run.series.items())
    histograms = tuple((tag, len(one) > 0, one.revision) for tag, one in run.histograms.items())
    shown = odd_tags(run), shown_by_values(run)
    return series, histograms, shown, dict(run.config), dict(run.versions), run.planned_steps
