"""Translates a run: which framework wrote it, and which canonical metric each of its tags is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rlhealth.metrics.aliases import check_aliases
from rlhealth.metrics.catalogue import Alias, meaning
from rlhealth.metrics.metric import (
    Clock,
    ConvertedSeries,
    EndedEpisodes,
    HistogramSeries,
    Metric,
    Points,
    RunningSum,
    SummedSeries,
)
from rlhealth.metrics.recognise import Recognised, bare, spaced
from rlhealth.metrics.rewards import PART, is_paid_for
from rlhealth.metrics.settings import chosen_options, option_versions_of, options_of, planned_steps_of, settings_of
from rlhealth.metrics.sorting import OddTags, SortedTags, odd_tags, sorted_tags
from rlhealth.metrics.transforms import change_of, reduction_of
from rlhealth.metrics.usual import usual_settings
from rlhealth.run import Run

EVALUATED = "eval/reward"
_SAID_MEAN = re.compile(r"rewards?/(?:mean|avg)/[^/]+|rewards?/[^/]+/(?:mean|avg)", re.IGNORECASE)
#: Prefixes of metrics that only policies that write texts have.
_OF_TEXTS = (
    "completions/",
    "text/",
    "kl",
    "objective/",
    "sampling/",
    "rewards/format",
    "rewards/accuracy",
    "rewards/correct",
    "groups/",
    "reward_group_std",
    "frac_reward_zero_std",
)
_MANY = 10  # evaluations, beside which one point of the reward says nothing
_DEFAULT_CLIP_RANGE = 0.2  # of every PPO and GRPO trainer in the catalogue


@dataclass(frozen=True)
class Translation:
    """One run in canonical names.

    Attributes:
        framework: its id, such as "trl-grpo"; "generic" for a trainer not in the catalogue, "unknown" if no name is
            known.
        title: the framework's usual name.
        version: as a file gives it; None if none does.
        is_rl: False for supervised fine-tuning, reward models and offline preference training.
        assumed: one sentence for each assumption.
        metrics: by canonical name; live views that grow with the run. A metric may have no points yet.
        config: canonical settings, as far as configured.
        options: this trainer's name of each setting.
        unrecognised: tags that match no alias.
        dropped: tags that are known but not used, each with the reason.
        planned_steps: how many steps were planned; None if that is unknown.
        lacks: canonical settings that this trainer does not have at all: no advice names them.
        inert: canonical settings without effect in this run, because the option that enables them is off.
        option_versions: for options that only some of the possible versions have: which versions.
        usual: usual values of settings, for this trainer and a model of this size, as far as published.
    """

    framework: str
    title: str
    version: str | None
    is_rl: bool
    assumed: tuple[str, ...]
    metrics: dict[str, Metric]
    config: dict[str, Any]
    options: dict[str, str]
    unrecognised: tuple[str, ...]
    dropped: dict[str, str] = field(default_factory=dict)
    planned_steps: int | None = None
    lacks: frozenset[str] = frozenset()
    inert: frozenset[str] = frozenset()
    option_versions: dict[str, str] = field(default_factory=dict)
    usual: dict[str, float] = field(default_factory=dict)
    _origin: tuple[Any, ...] = field(default=(), repr=False, compare=False)

    @property
    def writes_texts(self) -> bool | None:
        """Whether the policy produces completions, and not episodes of a control task: by the trainer, or by a metric
        that only texts have. None if neither of them shows it."""
        if "max_completion_length" in self.lacks:
            return False
        shown = self.framework != "generic" or any(name.startswith(_OF_TEXTS) for name in self.metrics)
        return True if shown else None


def translate(run: Run, aliases: Mapping[str, str] | None = None, previous: Translation | None = None) -> Translation:
    """Translates a run into canonical names.

    Args:
        aliases: raw tag to canonical name, from the user; they take precedence over the catalogue.
        previous: the translation of the same run before it grew: it is returned unchanged if there is no new name,
            setting or version.

    Raises:
        RlhealthError: if an alias names an unknown metric.
    """
    wanted = dict(aliases or {})
    odd = odd_tags(run)
    origin = _origin(run, wanted, odd)
    if previous is not None and previous._origin[1:] == origin[1:] and previous._origin[0] is run:
        return previous
    check_aliases(wanted)
    sorting = sorted_tags(run, wanted, odd)
    known = sorting.known
    settings = settings_of(run, known)
    metrics = _plain(run, sorting, settings) | _summed(run, sorting, settings)
    metrics = _distributed(run, known, settings) | metrics
    metrics |= _total(metrics)
    metrics |= _ended(metrics)
    metrics |= _environment_steps(run, known, metrics)
    chosen = chosen_options(run, known)
    absent = tuple(not_logged(tag) for tag in wanted if tag not in sorting.named)
    return Translation(
        framework=_framework(known, metrics),
        title=known.entry["title"],
        version=known.version,
        is_rl=known.entry.get("is_rl") != "no",
        assumed=known.assumed + tuple(dict.fromkeys(sorting.assumed)) + absent,
        metrics=metrics,
        config=settings,
        options=options_of(chosen, known),
        unrecognised=tuple(sorting.unrecognised),
        dropped=sorting.dropped,
        planned_steps=planned_steps_of(run, known, settings),
        lacks=known.names.lacks,
        inert=frozenset(name for name, switch in known.names.switches.items() if settings.get(switch) is False),
        option_versions=option_versions_of(chosen, known),
        usual=usual_settings(known.entry["id"], run.config),
        _origin=origin,
    )


def not_logged(tag: str) -> str:
    """The sentence for a user's alias whose tag the run does not log."""
    return f"--alias {tag}: this run has no such tag"


def _framework(known: Recognised, metrics: Mapping[str, Metric]) -> str:
    """The id of the trainer; a trainer that logs a reward does reinforcement learning, and is not entirely unknown."""
    said: str = known.entry["id"]
    if said in ("generic", "unknown"):
        return "generic" if "reward" in metrics or (metrics and said == "generic") else "unknown"
    return said


def _origin(run: Run, aliases: Mapping[str, str], odd: OddTags) -> tuple[Any, ...]:
    """What a translation depends on; tags and settings are only added to a run, so counting them is enough."""
    held = sum(1 for one in run.series.values() if len(one)), sum(1 for one in run.histograms.values() if len(one))
    return (
        run,
        held,
        len(run.config),
        tuple(run.versions.items()),
        run.trainer,
        run.planned_steps,
        tuple(aliases.items()),
        odd,
    )


def _plain(run: Run, sorting: SortedTags, settings: Mapping[str, Any]) -> dict[str, Metric]:
    metrics = {}
    for name, (_, alias, tag) in sorting.chosen.items():
        change = change_of(alias.transform, settings, alias.keep_unscaled)
        if isinstance(change, str):
            sorting.dropped[tag] = change
        else:
            metrics[name] = _metric(
                name, tag, alias, ConvertedSeries(run.series[tag], change) if change else run.series[tag]
            )
    return metrics


def _summed(run: Run, sorting: SortedTags, settings: Mapping[str, Any]) -> dict[str, Metric]:
    metrics = {}
    for alias, tags in sorting.sums.items():
        change = change_of(alias.transform, settings)
        axis = run.series.get(alias.steps_of)
        if isinstance(change, str) or axis is None:
            sorting.dropped |= dict.fromkeys(tags, change if isinstance(change, str) else f"needs {alias.steps_of}")
        else:
            metrics[alias.name] = _metric(
                alias.name, alias.raw, alias, SummedSeries(alias.raw, [run.series[tag] for tag in tags], axis, change)
            )
    return metrics


def _total(metrics: Mapping[str, Metric]) -> dict[str, Metric]:
    """The reward of a run that logs no total: its only reward function, or the only one that is the mean reward of a
    task, unless it rewards only the format or its name says that it is a share of another reward. Otherwise that of its
    evaluations, because a log may contain only evaluations, or one point of the reward beside them: of the only
    episode that ended."""
    total, evaluated = metrics.get("reward"), metrics.get(EVALUATED)
    if total is not None:
        if evaluated is None or len(total) > 1 or len(evaluated) < _MANY:
            return {}
        return {"reward": replace(evaluated, name="reward")}
    parts = [name for name in metrics if re.fullmatch(PART, name)]
    said = [name for name in parts if _SAID_MEAN.fullmatch(metrics[name].tag)]
    parts = said if len(parts) > 1 and len(said) == 1 else parts
    sole = metrics.get(parts[0] if len(parts) == 1 else EVALUATED) if len(parts) < 2 else None
    if sole is None or any(is_paid_for(kind, sole.name) for kind in ("form_reward", "share_of_reward")):
        return {}
    return {"reward": replace(sole, name="reward")}


def _ended(metrics: Mapping[str, Metric]) -> dict[str, Metric]:
    """The reward of the episodes that ended, where their length is logged beside it."""
    reward, length = metrics.get("reward"), metrics.get("episodes/mean_length")
    if reward is None or length is None:
        return {}
    return {"reward": replace(reward, source=EndedEpisodes(reward.tag, reward.source, length.source))}


def _environment_steps(run: Run, known: Recognised, metrics: Mapping[str, Metric]) -> dict[str, Metric]:
    """How many steps the policy has taken in its environment, where the trainer's names say how that is known."""
    name, said = "environment_steps", known.names.environment_steps
    of = metrics.get("reward" if run.step_axis in said.get("axes", ()) else said.get("sum_of", ""))
    if of is None:
        return {}
    points = RunningSum(of.tag, of.source) if "sum_of" in said else Clock(of.tag, of.source)
    return {name: _metric(name, of.tag, Alias(of.tag, name), points)}


def is_evaluated_only(translation: Translation) -> bool:
    """Whether the reward of a run is that of its evaluations, because there is no other."""
    return translation.metrics["reward"].tag == translation.metrics[EVALUATED].tag


def _distributed(run: Run, known: Recognised, settings: Mapping[str, Any]) -> dict[str, Metric]:
    said = settings.get("clip_range")
    clip_range = float(said) if isinstance(said, int | float) and said > 0 else _DEFAULT_CLIP_RANGE
    metrics: dict[str, Metric] = {}
    for tag, histogram in run.histograms.items():
        if len(histogram):
            for alias in known.names.histograms.get(bare(spaced(tag), known.prefixes), []):
                metrics.setdefault(
                    alias.name,
                    _metric(
                        alias.name, tag, alias, HistogramSeries(histogram, reduction_of(alias.transform), clip_range)
                    ),
                )
    return metrics


def _metric(name: str, tag: str, alias: Alias, points: Points) -> Metric:
    known = meaning(name)
    unit = alias.unit or (known.unit if known else "")
    return Metric(
        name=name,
        tag=tag,
        unit=unit,
        estimator=alias.estimator,
        transform=alias.transform,
        note=alias.note,
        source=points,
        smoothed=1 if alias.over and _is_every(points, alias.over) else alias.smoothed,
    )


def _is_every(points: Points, over: int) -> bool:
    """Whether points are so far apart, relative to the averaging that the name states, that none share a sample."""
    return len(points) > 1 and int(points.steps[1]) - int(points.steps[0]) == over
