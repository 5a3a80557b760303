"""One rule on one run: what it measures, where its conditions hold, and the finding that it raises."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rlhealth.engine.advice import changes_of
from rlhealth.engine.aftermath import Aftermath, after, is_fall
from rlhealth.engine.clause import Clause
from rlhealth.engine.ending import Ending
from rlhealth.engine.episodes import Episodes, NewestRow
from rlhealth.engine.evidence import evidence_of
from rlhealth.engine.plan import RulePlan
from rlhealth.engine.window_counts import points_before_window, points_in_window
from rlhealth.engine.windows import count_until
from rlhealth.engine.wording import describe, words
from rlhealth.metrics import Metric
from rlhealth.rules.measures import KINDS
from rlhealth.rules.model import Rule
from rlhealth.verdict.findings import Episode, Finding, Severity, State
from rlhealth.verdict.rises import Rising


class RuleState:
    """One rule on one run: where its clause holds, and the episodes that follow from it."""

    def __init__(self, clause: Clause) -> None:
        rule = clause.plan.rule
        assert rule.when is not None
        self.plan = clause.plan
        self.rule = rule
        self.clause = clause
        self.metric = clause.metric
        self.translation = clause.translation
        self.dated: dict[Severity, list[Episode]] = {}
        self.asks_at_end = rule.when.at_end
        self.levels: dict[Severity, Episodes | NewestRow]
        if self.asks_at_end:
            self.levels = {Severity.of(rule.severity): NewestRow()}
            return
        # a window that still contains an unhealthy row says nothing about the rows after it
        clear = max(rule.when.held_for, self.clause.anchor.condition.last)
        sign = clause.bounds[0].sign
        self.levels = {Severity.of(rule.severity): Episodes(rule.when.held_for, clear, sign)}
        if rule.critical is not None:
            hold = rule.critical.held_for or rule.when.held_for
            self.levels[Severity.CRITICAL] = Episodes(hold, max(clear, hold), sign)

    def advance(self, until: int) -> None:
        """Judges the points up to and including step `until`."""
        points = self.clause.advance(until)
        if points is None:
            return
        for severity, level in self.levels.items():
            holds = points.level(self._is_worse(severity))
            level.extend(points.steps, points.found, holds, points.begun(holds) if holds.any() else None)

    def release(self) -> None:
        """Releases its operands, because no more points will come, so that nothing is kept for them."""
        if any(level.count for level in self.levels.values()):
            self.clause.settle()
        self.clause.release()

    def _episodes(self, severity: Severity, most: int | None = None) -> list[Episode]:
        """The episodes of one level, at most `most` of them, each dated back to the first row that meets the condition.
        Each is dated once, because earlier rows do not change.
        """
        level, known = self.levels[severity], self.dated.setdefault(severity, [])
        if isinstance(level, NewestRow):
            return [self._since_the_fall(one) for one in level.raised_episodes]
        if known and known[-1].active:
            last, ended = int(level.spans[2, len(known) - 1]), not level.open or len(known) < level.count
            known[-1] = replace(known[-1], last_step=last, state=State.OVER if ended else State.STANDING)
        if len(known) < min(level.count, most or level.count):
            spans = level.spans[:, len(known) : most]
            first, from_start = self.clause.dated_back(spans[0], spans[3], self._is_worse(severity))
            rows = zip(first.tolist(), *spans[1:3].tolist(), from_start.tolist(), strict=True)
            known += [Episode(first, raised, last, State.OVER, start) for first, raised, last, start in rows]
            if level.open and len(known) == level.count:
                known[-1] = replace(known[-1], state=State.STANDING)
        return known

    def _since_the_fall(self, episode: Episode) -> Episode:
        """An episode of a rule that judges the whole run. It began with the run, unless its measure is about the newest
        points: then with the first of these."""
        if not KINDS[self.clause.anchor.condition.measure].of_newest:
            return episode
        steps, marks = np.array([episode.raised_step]), np.zeros(1, np.int64)
        first, from_start = self.clause.dated_back(steps, marks, is_worse=False)
        return replace(episode, first_step=int(first[0]), from_start=bool(from_start[0]))

    def _is_shown_by(self, ending: Ending) -> bool:
        """Whether the log shows what a rule about the end judges: the newest points of a run that is over, and for a
        measure that a part of it does not show the whole run."""
        kind = KINDS[self.clause.anchor.condition.measure]
        return ending.is_over if kind.of_newest or kind.in_parts else ending.is_whole

    @property
    def too_few(self) -> str:
        """Of what there was too little to judge; empty if there was enough."""
        if reason := too_few_points(self.rule, self.metric, self.clause.points):
            return reason
        self.clause.count_items()
        return next((f"{one.metric.name} has {one.lacking} to judge" for one in self.clause.sides if one.lacking), "")

    def finding(self, ending: Ending, aftermath: Aftermath) -> Finding | None:
        """What the rule found so far, or None."""
        raised = [severity for severity, level in self.levels.items() if level.count]
        if not raised or (self.asks_at_end and not self._is_shown_by(ending)):
            return None
        severity, base = max(raised), min(raised)
        episodes = tuple(self._episodes(base))
        state = self._state(aftermath, episodes, self._limit(base))
        conditions = evidence_of(self.clause, self._is_worse(severity), self.levels[severity].worst)
        operand, condition = self.clause.anchor.shared.operand, self.clause.anchor.condition
        first = min((self._episodes(one, 1)[0] for one in raised), key=lambda one: one.raised_step)
        said = words(self.rule, self.translation, self.metric, first) | {
            "value": conditions[0].value,
            "limit": conditions[0].limit,
            "worst_step": conditions[0].step,
            "points": points_in_window(operand, condition, conditions[0].step),
            "before": points_before_window(operand, condition, conditions[0].step),
            "step": ending.step,
        }
        harmless = self._was_harmless(aftermath, episodes)
        held = self._held_back(severity, aftermath)
        described = describe(
            rule=self.rule,
            severity=held,
            first=first,
            episodes=episodes,
            conditions=conditions,
            said=said,
        )
        parts = (*episodes[:-1], replace(episodes[-1], state=state))
        return replace(
            described,
            severity=self._after(held, harmless, aftermath) if state is State.OVER else held,
            peak=held,
            state=state,
            episodes=parts,
            changes=changes_of(self.rule, self.translation),
            refuted=self.clause.is_refuted,
        )

    def _held_back(self, severity: Severity, aftermath: Aftermath) -> Severity:
        """The severity, or what the rule makes of it while reward is at its best."""
        critical = self.rule.critical
        if severity is Severity.CRITICAL and critical is not None and critical.even_while_best:
            return severity
        most = Severity.of(self.rule.severity_while_best)
        return most if severity > most and aftermath.at_its_best else severity

    def _was_harmless(self, aftermath: Aftermath, episodes: tuple[Episode, ...]) -> bool | None:
        """Whether it did no damage, if it is over; None if too few rows show it."""
        if self.rule.harmless_once == "its-end" or aftermath.at_its_best:
            return True
        harmless = aftermath.regained(episodes, is_fall(self.metric, self.clause.anchor.condition))
        if harmless is None or self.rule.harmless_once == "reward-rose":
            harmless = aftermath.learned_since(episodes) or harmless
        return harmless

    def _state(self, aftermath: Aftermath, episodes: tuple[Episode, ...], limit: float) -> State:
        """Its state; "reward did not rise" is not over just because chance moves the reward for a while."""
        if self.clause.is_refuted:
            return State.OVER
        state = aftermath.state_of(self.metric, self.clause.anchor.condition, limit, episodes, self.clause.is_elsewhere)
        if state is State.LASTING and self._is_reached(aftermath):
            state = State.OVER
        if state is State.OVER and self.rule.over_once == "reward-rose":
            so_far = Rising(after(self.metric, -1, aftermath.until, len(self.metric)))
            return state if so_far.somewhat(self.metric.smoothed) else State.LASTING
        return state

    def _is_reached(self, aftermath: Aftermath) -> bool:
        """Whether the task was learned and is still solved. In control tasks that is a reward that rose and is at its
        best; a reward for texts may be so because the policy exploits it.
        """
        return aftermath.at_its_best and not self.translation.writes_texts and not self.rule.warns_when_over

    def _is_worse(self, severity: Severity) -> bool:
        """Whether that is its critical level, above a lower one."""
        return severity > min(self.levels)

    def _limit(self, severity: Severity) -> float:
        """The limit of one of its levels."""
        return self.clause.first_bound(self._is_worse(severity)).limit

    def _after(self, severity: Severity, harmless: bool | None, aftermath: Aftermath) -> Severity:
        """How severe a level is once it is over: at most a warning, or less if the rule says so.

        It is less than a warning only if the reward recovered; for a critical level, only if the reward is known to
        have recovered.
        """
        if self.clause.is_refuted or self._is_reached(aftermath):
            return Severity.INFO
        if harmless or (harmless is None and severity < Severity.CRITICAL):
            return min(severity, Severity.of(self.rule.severity_when_over))
        return min(severity, Severity.WARNING)


class UnmetRule:
    """One rule on one run, with a condition that no value so far can meet: it is not measured."""

    def __init__(self, plan: RulePlan, metric: Metric) -> None:
        self.plan = plan
        self.rule = plan.rule
        self.metric = metric
        self.points = 0

    def advance(self, until: int) -> None:
        """Counts the points up to and including step `until`, as long as there are too few."""
        if self.points < self.rule.points:
            self.points = count_until(self.metric.steps, until)

    @property
    def too_few(self) -> str:
        """Of what there was too little to judge; empty if there was enough."""
        return too_few_points(self.rule, self.metric, self.points)


def too_few_points(rule: Rule, metric: Metric, points: int) -> str:
    """How many points a rule lacks, in words; empty if there are enough."""
    return "" if points >= rule.points else f"{metric.name} has {points} of the {rule.points} points it takes to judge"
