"""Whether a run without findings can be called healthy: a reward and a witness of learning were judged."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from rlhealth.engine.aftermath import level_of
from rlhealth.metrics import Metric, Translation
from rlhealth.metrics.catalogue import pattern_of_any
from rlhealth.metrics.rewards import is_paid_for
from rlhealth.parsing.own_texts import read_texts
from rlhealth.run import Floats, Run
from rlhealth.verdict.rises import Rising, rose_beyond_errors, surely_rose


def is_solved(run: Run, translation: Translation) -> bool:
    """Whether the script of a run said that its task is solved, and a reward does not say otherwise: its newest point
    is above its first, and above all others or it rose on the whole. That shows in a few points, too."""
    if not run.solved or translation.is_rl is False:
        return False
    rewards = (_finite(one) for one in _matching(translation, _said()["reward"]))
    return any(
        len(one) > 1 and one[-1] > one[0] and (one[-1] == one.max() or Rising(one).somewhat()) for one in rewards
    )


def why_not_healthy(translation: Translation, axis: str = "") -> str:
    """Why a run without findings is not healthy but unknown; empty if it is healthy.

    A healthy run needs a reward, or a metric in its place, with enough points, that rose beyond its noise. It also
    needs one witness that something was learned: KL, entropy, gradients, spread of the rewards, or a reward that surely
    rose. Where it was evaluated as often, the evaluations must have risen, too, and where right answers have a reward
    of their own, one of them must have earned it. earned.yaml lists the metrics that count.

    Args:
        axis: what the steps count, in a word, as a run has it.
    """
    return (
        _why_reward_shows_nothing(translation, axis)
        or _why_evaluations_show_nothing(translation)
        or _why_answers_show_nothing(translation)
    )


def _why_reward_shows_nothing(translation: Translation, axis: str) -> str:
    """Why no reward and no witness shows that something was learned; empty if they do."""
    if translation.is_rl is False:
        return f"this is {translation.title}; rlhealth judges reinforcement learning"
    said = _said()
    least = {kind: int(count) for kind, count in said["points"].items()}
    rewards = _counting(_matching(translation, said["reward"]), said["total"], least["reward"])
    longest = max((_count(one) for one in rewards), default=0)
    if not longest:
        empty = next((f"{one.tag} is a finite number at none of its {len(one):,} points" for one in rewards), "")
        return _with_names(empty or "no reward was recognised", translation)
    if longest < least["reward"] and not (
        any(Rising(_finite(one)).early(one.smoothed) for one in rewards) or _rose_beyond_errors(translation)
    ):
        return _with_names(f"the reward has {longest} of the {least['reward']} points it takes", translation)
    rising = [Rising(_finite(one)) for one in rewards]
    if any(_sank(one.values) for one in rising):
        newest = said["sank"]["points"]
        return f"nothing else is wrong, but the newest {newest} points of the reward lie below all before them"
    rated = _some_surely_rose(_matching(translation, said["rating"]))
    done = _is_done(translation, said["success"], least["reward"])
    if not (rated or done) and (lost := next((found for one in rising if (found := _lost(one.values))), None)):
        share, part = lost
        return f"nothing else is wrong, but the newest {part} of the run has lost {share:.0%} of what reward had gained"
    somewhat = any(series.somewhat(one.smoothed) for series, one in zip(rising, rewards, strict=True))
    rose = "rose too little to be sure of it" if somewhat else "did not rise"
    if missing := _no_witness(translation, least["witness"], rose):
        surely = any(series.surely(one.smoothed) for series, one in zip(rising, rewards, strict=True))
        surely = surely or rated or _rose_beyond_errors(translation) or _evaluation_rose(translation)
        if not surely and somewhat:  # the reward is higher: did more episodes also end as they should?
            surely = _some_surely_rose(_matching(translation, said["success"]))
        if surely and _may_be_in_any_order(translation, axis):
            return _with_names("only a reward is known of rows that count no steps: any order is possible", translation)
        return "" if surely else _with_names(missing, translation)
    if somewhat or rated or done or _evaluation_rose(translation):
        return ""
    return f"nothing is wrong, but the reward has not risen beyond its noise in {longest:,} points"


def _why_evaluations_show_nothing(translation: Translation) -> str:
    """What many evaluations say against a reward that rose: what a policy earns while it explores also rises where it
    only explores less. Empty if there are too few, if one kind of them rose, or if nearly all end as they should."""
    least = int(_said()["points"]["reward"])
    often = [one for one in _evaluations(translation) if _count(one) >= least]
    if (
        not often
        or _is_done(translation, _said()["evaluated"]["shares"])
        or any(Rising(_finite(one)).somewhat(one.smoothed) for one in often)
    ):
        return ""
    count = max(map(_count, often))
    return f"nothing is wrong, but the reward of {count:,} evaluations has not risen, as that of training has"


def _why_answers_show_nothing(translation: Translation) -> str:
    """What a reward for right answers that none has earned says against a reward that rose: it is paid for something
    else. Empty if an answer was right, or if nothing says; episodes that succeed are no answers, and are often counted
    in evaluations alone."""
    said = _said()
    least, episodes = int(said["points"]["reward"]), said["success"]
    answers = [
        one for key, one in translation.metrics.items() if is_paid_for("answer_reward", key) and key not in episodes
    ]
    counting = [one for one in answers if _count(one) >= least]
    if not counting or any(_finite(one).any() for one in answers):
        return ""
    zeros = f"{counting[0].tag} is 0 in each of {_count(counting[0]):,} points"
    return f"nothing is wrong, but no answer has earned anything ({zeros}): the reward rose by something else"


def _counting(rewards: list[Metric], total: str, least: int) -> list[Metric]:
    """The total alone, if it is logged often enough or about as often as its components, because one component can rise
    at the cost of another."""
    longest = max((_count(one) for one in rewards), default=0)
    return [one for one in rewards if one.name == total and _count(one) >= min(least, longest / 2)] or rewards


def _may_be_in_any_order(translation: Translation, axis: str) -> bool:
    """Whether rows may be tasks, or settings that were tried, rather than a course of training."""
    said = _said()["uncounted"]
    is_alone = len({one.tag for one in translation.metrics.values()}) == 1
    return axis == said["axis"] and is_alone and len(translation.unrecognised) >= int(said["unknown"])


def _evaluation_rose(translation: Translation) -> bool:
    """Whether the reward of evaluations surely rose."""
    return _some_surely_rose(_evaluations(translation))


def _evaluations(translation: Translation) -> list[Metric]:
    """The rewards of evaluations."""
    said = _said()["evaluated"]
    evaluated = _matching(translation, said["metrics"])
    return [one for one in evaluated if any(word in one.tag.lower() for word in said["named"])]


def _is_done(translation: Translation, shares: list[str], least: int = 1) -> bool:
    """Whether nearly all episodes of the newest third did what was asked, by one of these shares of them that has at
    least so many points."""
    done = float(_said()["done"])
    known = [_finite(one) for one in _matching(translation, shares) if _count(one) >= least]
    return any(float(np.mean(one[len(one) * 2 // 3 :])) >= done for one in known)


def _some_surely_rose(metrics: Iterable[Metric]) -> bool:
    """Whether one of them rose by so much that the rise alone is proof."""
    return any(surely_rose(_finite(one), one.smoothed) for one in metrics)


def _rose_beyond_errors(translation: Translation) -> bool:
    """Whether the reward surely rose by the errors that the log gives its points."""
    reward, error = translation.metrics.get("reward"), translation.metrics.get("reward/error")
    if reward is None or error is None or not np.array_equal(reward.steps, error.steps):
        return False
    known = np.isfinite(reward.values) & np.isfinite(error.values)
    return rose_beyond_errors(reward.values[known], error.values[known])


def _no_witness(translation: Translation, least: int, rose: str) -> str:
    """Why no witness shows that something was learned; empty if one does. `rose`: what the reward did, in words."""
    found: list[str] = []
    for kind, entry in _witnesses(translation.framework):
        for one in _matching(translation, entry["metrics"]):
            if _count(one) >= least and (entry.get("constant") == "yes" or _moves(one)):
                return ""
            found.append(kind)
    if found:
        kinds = " and ".join(dict.fromkeys(found))
        return f"{kinds} never moved or came too seldom, and the reward {rose}"
    kinds = ", ".join(dict.fromkeys(kind for kind, _ in _witnesses(translation.framework)))
    return f"nothing but the reward says whether it learns, and it {rose} (looked for {kinds})"


def not_recognised(translation: Translation) -> str:
    """How many logged names are unknown, with the likeliest of them and what to do; empty if all are known."""
    names = translation.unrecognised
    if not names:
        return ""
    likely = _said()["likely"]
    first = [one for one in names if any(part in one.lower() for part in likely)] or list(names)
    count = "1 name" if len(names) == 1 else f"{len(names):,} names"
    named = f": {first[0]}" if len(names) == 1 else f", among them {', '.join(first[:3])}"
    return f"{count} not recognised{named}"


HOW_TO_NAME = "--alias NAME=METRIC, or see `rlhealth metrics`"


def _with_names(reason: str, translation: Translation) -> str:
    names = not_recognised(translation)
    return f"{reason}; {names}: {HOW_TO_NAME}" if names else reason


@cache
def _said() -> dict[str, Any]:
    said: dict[str, Any] = read_texts(Path(__file__).with_name("earned.yaml"))
    return said


@cache
def _witnesses(framework: str) -> tuple[tuple[str, dict[str, Any]], ...]:
    """Kinds of witnesses with the metrics that count for that framework."""
    more = [
        pair
        for pattern, own in _said()["frameworks"].items()
        if fnmatch.fnmatchcase(framework, pattern)
        for pair in own.items()
    ]
    return (*_said()["witnesses"].items(), *more)


def _matching(translation: Translation, names: list[str]) -> list[Metric]:
    pattern = pattern_of_any("|".join(names))
    return [one for key, one in translation.metrics.items() if pattern.match(key) and len(one)]


def _finite(metric: Metric) -> Floats:
    values = metric.values
    return values[np.isfinite(values)]


def _count(metric: Metric) -> int:
    return int(np.count_nonzero(np.isfinite(metric.values)))


def _moves(metric: Metric) -> bool:
    """Whether a witness changes: one that stays the same to three digits, as the entropy of a policy that is random
    from first to last, shows no learning."""
    values = _finite(metric)
    return bool(np.ptp(values) > float(_said()["moves"]) * float(np.abs(values).max()))


def _sank(values: Floats) -> bool:
    """Whether the newest points lie below all others of the run: it ended before a fall could be called lasting."""
    newest, before = int(_said()["sank"]["points"]), int(_said()["sank"]["before"])
    return len(values) >= newest + before and bool(values[-newest:].max() < values[:-newest].min())


def _lost(values: Floats) -> tuple[float, str] | None:
    """How far the newest part of a run lies below the best part before it, as a share of the gain, and which part that
    is; None if it lies little below, or no more than chance explains."""
    said = _said()["lost"]
    if len(values) < int(said["points"]):
        return None
    for name, count in said["newest"].items():
        split = len(values) - len(values) // int(count)
        if (share := _share_lost(values[:split], values[split:])) > float(said["of_gain"]):
            return min(share, 1.0), name
    return None


def _share_lost(before: Floats, newest: Floats) -> float:
    """The share of the gain of the best part `before` that the newest points have lost; 0 if chance explains it."""
    said = _said()["lost"]
    first, *later = np.array_split(before, int(said["parts"]))
    best = max(later, key=lambda part: float(np.mean(part)))
    lost, gain = (float(np.mean(best) - np.mean(part)) for part in (newest, first))
    if gain <= 0 or lost <= float(said["of_gain"]) * gain:
        return 0.0  # most runs: their errors are not needed
    top, now = level_of(best), level_of(newest)
    is_sure = (
        top is not None and now is not None and lost > float(said["errors"]) * float(np.hypot(top.error, now.error))
    )
    return lost / gain if is_sure else 0.0
