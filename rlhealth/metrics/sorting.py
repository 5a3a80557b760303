"""Sorts the tags of a run: which canonical metric each tag is, if any. Runs with the same names are sorted once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rlhealth.metrics.catalogue import Alias, Names, names
from rlhealth.metrics.free_names import evaluation, forms, in_another_order, is_below_a_task, is_component
from rlhealth.metrics.recognise import UNKNOWN, Recognised, bare, marks_of, recognise, spaced
from rlhealth.metrics.rewards import PART
from rlhealth.run import Run
from rlhealth.series import first_points, plain_median

PLAIN_RANK = 1_000_000  # of a name with its plain meaning: a name of the trainer takes precedence
SUMMARY_RANK = 1_000_000  # of a tag that summarises others under a new name
_REWARD = re.compile(rf"reward|{PART}|objective/rlhf_reward")
#: Metrics whose unit is the same in every trainer.
_ONE_MEANING = re.compile(
    rf"reward|reward_std|{PART}|eval/reward|eval/win_rate|frac_reward_zero_std|groups/\w+|episodes/mean_length"
    r"|loss/policy_avg|loss/value_avg|grad_norm|val/explained_variance|advantages/(?:mean|std)"
)
#: Metrics that are logged for each of several tasks under the task's name.
_SHARE = re.compile(r"rewards/(?:success|win)_rate/mean")
_A_SUM = "is taken as the KL to the reference, summed over a completion: it is above one nat from the first points on"
_TAKEN_BACK, _SURELY = 0.25, 2.5  # half-way between both correlations of changes; standard errors
_AS_A_SUM = 60.0  # n-ths: the most that changes of a sum vary by, as a share of what the sum varies by
_COMPONENT, _MEAN_OF_ONE = "rewards/{f}/mean", "}/mean"
_PLAIN_FILE: str = UNKNOWN["names"]
#: Words of a sum, over an episode or over the run.
_CUMULATIVE = re.compile(r"[Cc]umul|CUMUL|[Aa]ccumul|(?<![A-Za-z])[Cc]um(?![a-z])")
_MEAN_REWARD = re.compile(
    r"(?:mean|average|avg).{0,20}(?:reward|return|score)|(?:reward|return|score).{0,3}(?:mean|average|avg)", re.I
)
_LOOKED_AT = 1000  # values of a series, spread over all
_A_SERIES = 10  # points, of a tag or for each point of another one: that one is rare
_YOUNG, _FEWEST_YOUNG = 20, 3  # points of a KL
_FAR = 1.0  # nats: no run of a trainer that logs a KL per token had that at most of its first points, and learned
MOST_KEPT = 64  # sortings; a sweep has few


@dataclass
class SortedTags:
    """The tags of one run; the best alias for each canonical name.

    Attributes:
        known: the trainer that logged them.
        chosen: by canonical name: the rank of the alias, the alias, and the tag.
        dropped: tags that are known but not used, each with the reason.
        unrecognised: tags that match no alias.
        assumed: one sentence for each assumption.
        sums: tags of which an alias is the sum.
        named: tags that the user named.
        shares: by canonical name: tags below another word that may be a share of successes.
        wholes: by canonical name: the best alias that is said to be of a whole episode, as in `chosen`.
    """

    known: Recognised
    chosen: dict[str, tuple[tuple[int, ...], Alias, str]] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)
    unrecognised: list[str] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    sums: dict[Alias, list[str]] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)
    shares: dict[str, list[str]] = field(default_factory=dict)
    wholes: dict[str, tuple[tuple[int, ...], Alias, str]] = field(default_factory=dict)

    def offer(self, name: str, tag: str, alias: Alias, worth: tuple[int, ...]) -> None:
        """Takes the tag for that canonical name, unless a better one was offered; a lower `worth` is better."""
        for best in (self.chosen, self.wholes) if alias.of == "episode" else (self.chosen,):
            if name not in best or worth < best[name][0]:
                best[name] = (worth, alias, tag)

    def prefer_wholes(self) -> None:
        """Uses what an episode earned in place of a `reward` of which nothing is said: beside it, that is of the
        episode's last step."""
        for name, best in self.wholes.items():
            if name in self.chosen and self.chosen[name][1].of == "unsaid" and best[0][0] < SUMMARY_RANK:
                self.chosen[name] = best


class OddTags(NamedTuple):
    """What the values of a run, rather than its names, show about its tags.

    Attributes:
        sums: cumulative rewards that may be sums over the run; those of episodes go up and down.
        summaries: the tags with few points, in a run that has others with ten times as many: lines on the way; and mean
            rewards that are the same in every row: those of a whole run, whose rows were written at its end.
        far: KLs too large in a young run to be those of tokens.
    """

    sums: tuple[str, ...]
    summaries: tuple[str, ...]
    far: tuple[str, ...]


_kept: dict[tuple[Any, ...], SortedTags] = {}


def sorted_tags(run: Run, wanted: Mapping[str, str], odd: OddTags) -> SortedTags:
    """The tags of a run that have points, sorted.

    Only names and `odd` matter, so the result for one run is valid for every run with the same names and `odd`.

    Args:
        wanted: the names that the user gave to tags.
        odd: the result of `odd_tags` for the run.
    """
    key = marks_of(run), tuple(wanted.items()), odd
    kept = _kept.get(key)
    if kept is None:
        kept = SortedTags(recognise(run))
        for tag, series in run.series.items():
            if len(series):
                _sort(kept, tag, wanted, odd)
        _drop_shares_of_several(kept)
        _drop_lost_games(kept, run.series)
        kept.prefer_wholes()
        if not any(_REWARD.fullmatch(name) for name in kept.chosen):
            kept.unrecognised[:] = [tag for tag in kept.unrecognised if not _take_plain(kept, tag)]
        if len(_kept) >= MOST_KEPT:
            _kept.clear()
        _kept[key] = kept
    return replace(kept, dropped=dict(kept.dropped))  # the caller adds what this run's settings leave out


def odd_tags(run: Run) -> OddTags:
    """What the values of a run show about its tags."""
    cumulative = [(tag, one) for tag, one in run.series.items() if _CUMULATIVE.search(tag) is not None and len(one)]
    sums = tuple(tag for tag, one in cumulative if _may_be_a_sum(one.values))
    far = tuple(tag for tag, one in run.series.items() if "kl" in tag.lower() and _is_far_at_once(one.values))
    most = min(max(map(len, run.series.values()), default=0) // _A_SERIES, _A_SERIES - 1)
    few = (tag for tag, one in run.series.items() if 0 < len(one) <= most)
    of_all = (tag for tag, one in run.series.items() if _is_of_all(tag, one.values))
    return OddTags(sums, (*few, *of_all), far)


def _is_of_all(tag: str, values: npt.NDArray[np.float64]) -> bool:
    """Whether a mean reward, of shape (n,), has one value in all of many rows."""
    if len(values) < _A_SERIES or values[0] != values[-1] or _MEAN_REWARD.search(tag) is None:
        return False
    return bool((values[:: max(len(values) // _LOOKED_AT, 1)] == values[0]).all())


def _is_far_at_once(values: npt.NDArray[np.float64]) -> bool:
    """Whether a KL, of shape (n,), begins below one nat, and is above that at most of its first points. One that begins
    above is an offset: policy and reference differed from the start."""
    first = first_points(values, _YOUNG)
    return len(first) >= _FEWEST_YOUNG and bool(first[0] < _FAR) and plain_median(first) > _FAR


def _may_be_a_sum(values: npt.NDArray[np.float64]) -> bool:
    """Whether values, of shape (n,), are monotonic, or follow each other as closely as those of a sum.

    Off their straight line, the variance of the changes of a sum is 5 to 55 n-ths of that of the values (98 of 100),
    and that of values without order twice theirs (von Neumann 1941). A curve of learning that is no straight line may
    look so, too; but where each value has noise of its own, a change is taken back by the next one: neighbouring
    changes correlate with -1/2, and those of a sum not at all.
    """
    known = values[np.isfinite(values)]
    with np.errstate(over="ignore", invalid="ignore"):
        changes = np.diff(known)
        if (changes >= 0).all() or (changes <= 0).all():
            return True
        around = changes - np.mean(changes)
        if float(around[1:] @ around[:-1]) < -max(_TAKEN_BACK, _SURELY / np.sqrt(len(known))) * float(around @ around):
            return False
        places = np.arange(len(known)) - (len(known) - 1) / 2
        off = known - np.mean(known) - places * (np.mean(places * known) / np.mean(places**2))
        return bool(np.var(changes) * len(known) < _AS_A_SUM * np.var(off))


def _drop_shares_of_several(sorting: SortedTags) -> None:
    """Leaves a success rate unrecognised if it is that of one of several tasks: `reach/success_rate` beside
    `push/success_rate`."""
    for name, tags in sorting.shares.items():
        if len(tags) > 1 and name in sorting.chosen and sorting.chosen[name][2] in tags:
            del sorting.chosen[name]
            sorting.unrecognised += tags


def _drop_lost_games(sorting: SortedTags, tags: Iterable[str]) -> None:
    """Leaves a loss unrecognised if it counts games that were lost: `Losses` beside `Wins`, `Loss` beside `Win` and
    `Draw`."""
    best = sorting.chosen.get("loss")
    if best is None or best[2] in sorting.named:
        return
    lost = best[2].lower()
    others = {tag.lower() for tag in tags} - {lost}
    if lost.replace("losses", "wins") in others or {lost.replace("loss", one) for one in ("win", "draw")} <= others:
        del sorting.chosen["loss"]
        sorting.unrecognised.append(best[2])


def _sort(sorting: SortedTags, tag: str, wanted: Mapping[str, str], odd: OddTags) -> None:
    """Determines which canonical metric a tag is, and offers it."""
    known = sorting.known
    literal = spaced(tag)
    literal = known.own.get(literal, literal)
    name = bare(literal, known.prefixes, int(known.entry.get("strip", 1)))
    own = next((one for one in (tag, literal, name) if one in wanted), None)
    if own is not None:
        sorting.named.add(own)
        sorting.offer(wanted[own], tag, Alias(tag, wanted[own], note="named by --alias"), (-1, 0, 0))
        return
    split, whole = "", name
    if known.is_hugging_face and name.startswith(("eval/", "eval_")):
        split, name, whole = "eval/", name[5:], name
        if known.is_free and whole in known.names.exact:
            split, name = "", whole
    found, parts = _sure(known.names.find(name)) if known.is_free else known.names.find(name)
    if not found and split and known.names.find(whole)[0]:
        split, (found, parts) = "", known.names.find(whole)
    distance = 0
    if not found and known.is_free and not known.names.ignores(name):
        evaluated = evaluation(name)
        split = split or ("eval/" if evaluated else "")
        distance, name, (found, parts) = _free(known.names, known.entry["names"], evaluated or name)
    if not found:
        _leave(sorting, tag, name)
        return
    fitting = [one for one in found if one.fits(known.low, known.high)]
    alias = fitting[0] if fitting else found[-1]
    if alias.drop:
        sorting.dropped[tag] = alias.drop
        return
    if alias.unsure and alias.name == "kl" and tag in odd.far and not split:
        alias = replace(alias, name="objective/kl", unsure=f"{name} {_A_SUM}")
    if alias.unsure and (len(fitting) > 1 or len(found) == 1) and known.version is None and not split:
        sorting.assumed.append(alias.unsure)
    canonical = alias.name
    for key, value in parts.items():
        canonical = canonical.replace(f"{{{key}}}", value)
    if split and not canonical.startswith("eval/"):
        canonical = split + canonical
    if tag in odd.sums and known.is_free and canonical == "reward":
        sorting.dropped[tag] = "it may be a sum over the whole run"
        return
    if distance > 1 and _SHARE.fullmatch(canonical) and is_below_a_task(literal):
        sorting.shares.setdefault(canonical, []).append(tag)
    rank = alias.rank + (SUMMARY_RANK if tag in odd.summaries and known.is_free else 0)
    sorting.offer(canonical, tag, alias, (rank, distance, int(name == literal)))


def _take_plain(sorting: SortedTags, tag: str) -> bool:
    """Takes a name that this trainer does not have and that has the same meaning everywhere, if the trainer itself logs
    no reward: user code computes it.
    """
    known = sorting.known
    if known.is_free or known.entry.get("is_rl") == "no":
        return False
    literal = spaced(tag)
    evaluated = evaluation(literal)
    distance, _, (found, parts) = _free(names(_PLAIN_FILE), _PLAIN_FILE, evaluated or literal)
    if not found or found[0].drop:
        return False
    canonical = found[0].name
    for key, value in parts.items():
        canonical = canonical.replace(f"{{{key}}}", value)
    if not _ONE_MEANING.fullmatch(canonical):
        return False
    sorting.offer(
        f"eval/{canonical}" if evaluated else canonical, tag, found[0], (PLAIN_RANK + found[0].rank, distance, 0)
    )
    return True


def _free(vocabulary: Names, file: str, name: str) -> tuple[int, str, tuple[list[Alias], dict[str, str]]]:
    """Which of the plain forms of a name is known, that form, and its aliases; the first form if none is known."""
    spellings = forms(name)
    for distance, form in enumerate(spellings, 1):
        found = _sure(vocabulary.find(form))
        if found[0] or vocabulary.ignores(form):
            return distance, form, found
    for distance, form in enumerate(spellings, 1 + len(spellings)):
        same = in_another_order(file, form)
        if same:
            return distance, same, vocabulary.find(same)
    return 0, spellings[0], ([], {})


def _sure(found: tuple[list[Alias], dict[str, str]]) -> tuple[list[Alias], dict[str, str]]:
    """The match, unless it treats a name as a reward function that no reward function has."""
    aliases, parts = found
    is_one = not aliases or "f" not in parts or aliases[0].name != _COMPONENT or aliases[0].raw.endswith(_MEAN_OF_ONE)
    return found if is_one or is_component(parts["f"], aliases[0].raw.startswith("{f}")) else ([], {})


def _leave(sorting: SortedTags, tag: str, name: str) -> None:
    for pattern, alias in sorting.known.names.sums:
        if pattern.fullmatch(name):
            sorting.sums.setdefault(alias, []).append(tag)
            return
    if not sorting.known.names.ignores(name):
        sorting.unrecognised.append(tag)
