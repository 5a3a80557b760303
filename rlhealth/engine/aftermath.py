"""Aftermath: whether a run recovered from a finding: its reward, and the band in which the metric used to lie."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from rlhealth.engine.windows import count_until, level_of_start
from rlhealth.metrics import Metric, Translation
from rlhealth.rules.conditions import Condition
from rlhealth.rules.measures import KINDS
from rlhealth.run import Floats
from rlhealth.series import first_points, plain_median, worth_of
from rlhealth.verdict.findings import Episode, State

WINDOW = 20  # rows of reward on either side whose levels are compared
PARTS = 50  # of a long run, the first and last fiftieth are compared too: single episodes differ more than they gain
FEWEST = 5  # the fewest rows of reward on either side
BAND = 50  # rows before an onset that give the metric's usual band
RECENT = 5  # rows that give its present level
LONG = 10  # rows of a window whose newer half shows by itself whether a finding is over
SURE = 3.0  # standard errors
REAL = 0.25  # of the gain so far
AGAIN = 0.5  # of the gain so far: what makes a fall of its own of one that follows a fall that was made good
SMALL = 0.1  # of the gain so far: less is no loss
SCALED = ("loss", "grad_norm", "critic/grad_norm")  # and every value loss: their scale grows with the reward
FROM_ZERO = ("kl", "objective/kl")  # training begins at 0: policy and reference are one model


class MeanLevel(NamedTuple):
    """A mean with its standard error, which takes autocorrelation into account.

    Attributes:
        spread: the standard deviation of single rows.
    """

    value: float
    error: float
    spread: float


class Levels(NamedTuple):
    """Levels of the reward around a finding; None where there are too few rows.

    Attributes:
        before: before its first episode.
        now: of the newest rows since its last.
        back: the level to which reward came back since then: of a fall of the reward itself the best, for it is made
            good if reward was back once; of any other finding that of now.
        start: at the start of the run.
        luck: the allowance for luck in `before`, see `Aftermath._levels`.
    """

    before: MeanLevel | None
    now: MeanLevel | None
    back: MeanLevel | None
    start: MeanLevel | None
    luck: float


NO_LEVELS = Levels(None, None, None, None, 0.0)


class Aftermath:
    """What happened to a run after its findings, by its points up to and including step `until`."""

    def __init__(self, translation: Translation, until: int) -> None:
        self.until = until
        self.reward = translation.metrics.get("reward")
        self._compared: dict[tuple[int, int, bool], Levels] = {}

    def state_of(
        self, metric: Metric, condition: Condition, limit: float, episodes: tuple[Episode, ...], elsewhere: bool = False
    ) -> State:
        """The state of a finding with these episodes: standing, lasting or over.

        `elsewhere`: the finding ended because the metric left the range that the rule is about, so its old band says
        nothing. Example: an entropy that turns negative is not the entropy of tokens.
        """
        is_over = not episodes[-1].active or self._has_left(metric, condition, limit)
        if not is_over or oscillates(metric, episodes, self.until):
            return State.STANDING
        moved = self._moved(episodes, is_fall(metric, condition))
        if moved < 0:
            return State.LASTING
        if moved > 0 and (metric.name in SCALED or metric.name.startswith("loss/")):
            return State.OVER  # reward is above its earlier level, and so is the scale of the metric
        is_outside = not elsewhere and self._outside(metric, condition, limit, episodes)
        return State.LASTING if is_outside else State.OVER

    def regained(self, episodes: tuple[Episode, ...], fell: bool = False) -> bool | None:
        """Whether reward is back at its level before the first episode, within one standard error. A fall of the reward
        itself (`fell`) was made good if reward was back once, for 20 rows: what falls later is another fall.

        None if too few rows show it: there is no reward, the finding began with the run, or it has only just ended.
        """
        old, _, new, _, luck = self._levels(episodes, fell)
        if old is None or new is None:
            return None
        return new.value >= old.value - float(np.sqrt(1 + luck) * np.hypot(old.error, new.error))

    def learned_since(self, episodes: tuple[Episode, ...]) -> bool:
        """Whether reward has risen by 3 standard errors above its level when the first episode began. If the episode
        began with the run, or all rewards were equal, there is nothing else to regain.
        """
        if self.reward is None:
            return False
        first, last = episodes[0].first_step, episodes[-1].last_step
        begin = int(np.searchsorted(self.reward.steps, first))
        end = max(int(np.searchsorted(self.reward.steps, last, side="right")), begin + FEWEST)
        held = level_of(first_points(self.reward.values[begin:end], WINDOW))
        new = level_of(after(self.reward, last, self.until, WINDOW))
        if held is None or new is None:
            return False
        return new.value - held.value > SURE * float(np.hypot(held.error, new.error))

    @cached_property
    def at_its_best(self) -> bool:
        """Whether reward has risen by 3 standard errors and is now at its highest level, within one standard error or a
        tenth of the gain. In a long run of single episodes, a few of which show little, a fiftieth of the run is used.
        """
        if self.reward is None:
            return False
        values = after(self.reward, -1, self.until, len(self.reward))
        several = {WINDOW, max(WINDOW, len(values) // PARTS)}
        risen, high = zip(*(_risen_and_high(values, many) for many in several), strict=True)
        return any(risen) and any(high)

    def _levels(self, episodes: tuple[Episode, ...], fell: bool) -> Levels:
        """The levels of the reward around these episodes.

        A fall is dated where half of the gain is lost, so the rows before it are falling too: its level before is the
        best so far. The best of m levels is a lucky one, so sqrt(q^2 + 2 ln m) errors are needed in place of q; `luck`
        is 2 ln m (see `DropFromBest`).
        """
        if self.reward is None:
            return NO_LEVELS
        key = episodes[0].first_step, episodes[-1].last_step, fell
        if key not in self._compared:
            self._compared[key] = self._levels_around(self.reward, *key)
        return self._compared[key]

    def _levels_around(self, reward: Metric, first: int, last: int, fell: bool) -> Levels:
        past = before(reward, first, len(reward))
        start, now = level_of(past[:WINDOW]), level_of(after(reward, last, self.until, WINDOW))
        if not fell:
            return Levels(level_of(past[-WINDOW:]), now, now, start, 0.0)
        back = level_of(best(after(reward, last, self.until, len(reward))))
        return Levels(level_of(best(past)), now, back, start, 2 * float(np.log(max(len(past) / WINDOW, 1.0))))

    def _moved(self, episodes: tuple[Episode, ...], fell: bool) -> int:
        """-1 if reward has not regained its level from before the first episode, or has lost it again, 1 if it has
        passed it, else 0.
        """
        old, new, _, start, luck = self._levels(episodes, fell)
        if old is None or new is None or start is None:
            return 0
        change = new.value - old.value
        sure = float(np.sqrt(SURE**2 + luck) * np.hypot(old.error, new.error))
        share = AGAIN if fell and self.regained(episodes, fell) else REAL
        real = max(share * (old.value - start.value), old.spread, new.spread)
        return int(np.sign(change)) if abs(change) > max(sure, real) else 0

    def _has_left(self, metric: Metric, condition: Condition, limit: float) -> bool:
        """Whether all values of the newer half of a long window lie on the other side of the limit: the window still
        contains the finding, and the finding is over."""
        if condition.last < LONG or condition.divided_by is not None or condition.absolute:
            return False
        broken = _as_level(condition, limit, metric, float("nan"))
        now = after(metric, -1, self.until, condition.last // 2)
        if broken is None or len(now) < condition.last // 2:
            return False
        return bool(now.min() > broken if condition.below is not None else now.max() < broken)

    def _outside(self, metric: Metric, condition: Condition, limit: float, episodes: tuple[Episode, ...]) -> bool:
        """Whether the metric stays beyond the middle between its earlier band and the limit that it broke."""
        past = before(metric, episodes[0].first_step, BAND)
        now = after(metric, episodes[-1].last_step, self.until, RECENT)
        if len(past) < 3 and metric.name in FROM_ZERO:
            past = np.zeros(3)
        if len(past) < 3 or not len(now) or condition.divided_by is not None:
            return False
        if condition.absolute:
            past, now = np.abs(past), np.abs(now)
        usual, lies = plain_median(past), plain_median(now)
        broken = _as_level(condition, limit, metric, usual)
        if broken is None or not np.isfinite(broken):
            return False
        if condition.below is not None:
            return bool(usual - lies > 0.5 * (usual - broken) and lies < np.quantile(past, 0.05))
        return bool(lies - usual > 0.5 * (broken - usual) and lies > np.quantile(past, 0.95))


def oscillates(metric: Metric, episodes: tuple[Episode, ...], until: int) -> bool:
    """Whether a limit is crossed back and forth: the finding returned after pauses as long as this one, and held most
    of the time.
    """
    steps = np.asarray([(one.first_step, one.last_step) for one in episodes[-50:]], np.int64)
    ends = count_until(metric.steps, until)
    begin = np.searchsorted(metric.steps, steps[:, 0])
    end = np.searchsorted(metric.steps, steps[:, 1], side="right")
    rests = begin[1:] - end[:-1]
    for index in range(len(rests)):
        held = int((end[index:] - begin[index:]).sum())
        if ends - end[-1] <= rests[index:].max() and held * 2 >= ends - begin[index]:
            return True
    return False


def before(metric: Metric, step: int, count: int) -> Floats:
    """The last `count` finite values before a step, of the last 3 x `count` rows; shape (n,)."""
    end = int(np.searchsorted(metric.steps, step))
    values = metric.values[max(0, end - 3 * count) : end]
    return values[np.isfinite(values)][-count:]


def after(metric: Metric, step: int, until: int, count: int) -> Floats:
    """The last `count` finite values after a step and up to another, of the last 3 x `count` rows; shape (n,)."""
    start, end = count_until(metric.steps, step), count_until(metric.steps, until)
    values = metric.values[max(start, end - 3 * count) : end]
    return values[np.isfinite(values)][-count:]


def is_fall(metric: Metric, condition: Condition) -> bool:
    """Whether a condition is about a fall of the reward itself."""
    return metric.name == "reward" and KINDS[condition.measure].falls


def _risen_and_high(values: Floats, many: int) -> tuple[bool, bool]:
    """Whether the last `many` values lie above the first by 3 standard errors, and whether they are at the highest
    level. The best of m levels is a lucky one, see `Aftermath._levels`."""
    start, now, top = level_of(values[:many]), level_of(values[-many:]), level_of(best(values, many))
    if start is None or now is None or top is None or len(values) < 2 * many:
        return False, False
    luck = 2 * float(np.log(len(values) / many))
    noise = float(np.sqrt(1 + luck) * np.hypot(top.error, now.error))
    risen = now.value - start.value > SURE * float(np.hypot(start.error, now.error))
    return risen, now.value >= top.value - max(noise, SMALL * (top.value - start.value))


def best(values: Floats, many: int = WINDOW) -> Floats:
    """The `many` consecutive values with the highest mean, or all values if there are fewer; shape (n,)."""
    if len(values) <= many:
        return values
    sums = np.cumsum(np.append(0.0, values))
    start = int(np.argmax(sums[many:] - sums[:-many]))
    return values[start : start + many]


def level_of(values: Floats) -> MeanLevel | None:
    """The mean of a few rows in order, and its error, for which rows that repeat each other count once; None if there
    are too few."""
    if len(values) < FEWEST:
        return None
    mean, spread = float(np.mean(values)), float(np.std(values, ddof=1))
    if not spread:
        return MeanLevel(mean, 0.0, 0.0)
    worth = max(worth_of(values - mean, hidden=1.0, most=0.95), 1.0)
    return MeanLevel(mean, spread / float(np.sqrt(worth)), spread)


def _as_level(condition: Condition, limit: float, metric: Metric, usual: float) -> float | None:
    """The limit as a level of the metric's own values; None if the condition measures something else."""
    if not KINDS[condition.measure].level or condition.equals is not None:
        return None
    versus = condition.versus
    if versus is None:
        return limit
    start = usual
    if versus.start is not None:
        first = first_points(metric.values, versus.start)
        start = level_of_start(first, versus.by) if len(first) else usual
    return start * limit if versus.is_ratio else start + limit
