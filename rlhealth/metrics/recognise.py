"""Recognises the framework that wrote a run, and its possible versions, by names, settings and the versions in the
files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from rlhealth.metrics.catalogue import Names, Version, frameworks, names, pattern_of, version_of
from rlhealth.metrics.free_names import forms
from rlhealth.run import Floats, Run

View = tuple[tuple[str, ...], int, bool]  # prefixes that are no part of a name, how often, and any spelling
UNKNOWN: dict[str, Any] = {
    "id": "unknown",
    "title": "an unknown trainer",
    "names": "generic.yaml",
    "library": "",
    "prefix": ["train/"],
    "spelling": "free",
}
#: A class whose name is the end of every trainer's name: it counts only if it is the whole name.
PLAIN = frozenset({"Trainer"})
#: How many names below a word, or with underscores in place of slashes, identify a trainer.
FEWEST_OWN = 3
#: Trainers that are recognised by a common name.
_TOO_PLAIN = frozenset({"transformers", "trl-sft", "trl-reward", "trl-ddpo", "torchtune", "art", "mlx-grpo", "monitor"})
_NONE: Floats = np.empty(0)
_BELOW_ZERO = -5e-5  # nats: k3 was seen at -9e-6, in half precision
_FEWEST_SHARES, _SHARES_TESTED = 6, 200  # different ones
_COUNTED = np.arange(2, 513)  # sequences that a row may be about
_ROUNDED = frozenset((50, 100, 250, 500))  # by these a few shares look counted that were rounded to two or three digits
_EXACT = 1e-4  # of a sequence
_OTHERS = re.compile(r"[^a-z0-9]+")
_PROFILED = re.compile(r"(?:train/)?profiling/Time.taken[^A-Za-z]{1,4}(\w++)\.")


@dataclass(frozen=True)
class Recognised:
    """The framework of one run.

    Attributes:
        entry: its entry in frameworks.yaml.
        names: the content of its names file.
        version: as a file gives it; None if none does.
        low, high: the possible versions, both inclusive; None is open.
        assumed: one sentence for each assumption.
        own: tags that the user's code spells differently, each with the trainer's name for it.
    """

    entry: dict[str, Any]
    names: Names
    version: str | None
    low: Version | None
    high: Version | None
    assumed: tuple[str, ...] = ()
    own: Mapping[str, str] = field(default_factory=dict)

    @property
    def prefixes(self) -> list[str]:
        """The prefixes that trackers add to its names."""
        return list(self.entry.get("prefix", []))

    @property
    def is_free(self) -> bool:
        """Whether names match in any case and with spaces for underscores, because the trainer's spelling is not
        documented.
        """
        return self.entry.get("spelling") == "free"

    @property
    def is_hugging_face(self) -> bool:
        """Whether its logs go through the Hugging Face Trainer, which marks evaluation by `eval_` and `eval/`."""
        return "train/" in self.prefixes


def spaced(tag: str) -> str:
    """The tag without the spaces that notebooks put around its slashes."""
    return "/".join(part.strip() for part in tag.split("/")) if "/" in tag else tag.strip()


def bare(tag: str, prefixes: Iterable[str], times: int = 1) -> str:
    """The tag without a tracker's prefix, removed at most `times` times."""
    for _ in range(times):
        for prefix in prefixes:
            if tag.startswith(prefix) and len(tag) > len(prefix):
                tag = tag[len(prefix) :]
                break
        else:
            break
    return tag


def marks_of(run: Run) -> tuple[Any, ...]:
    """Everything that a trainer is recognised by: two runs with the same marks have the same trainer."""
    return (
        run.trainer,
        tuple([tag for tag, one in run.series.items() if len(one)]),
        tuple([tag for tag, one in run.histograms.items() if len(one)]),
        tuple(run.config),
        tuple(run.versions.items()),
        tuple([_starts_at_zero(run, name) for name in _zero_names()]),
        shown_by_values(run),
        run.step_axis,
    )


def shown_by_values(run: Run) -> tuple[bool, ...]:
    """What the values of a run show of its trainer so far, for each entry of frameworks.yaml that asks for them."""
    return tuple([_shows(entry, run) for entry in _asking_values()])


@cache
def _asking_values() -> tuple[dict[str, Any], ...]:
    return tuple(filter(asks_values, frameworks()))


def asks_values(entry: Mapping[str, Any]) -> bool:
    """Whether an entry of frameworks.yaml is known by what a run logged, so that settings never show it."""
    return "signed" in entry or "counts_few" in entry


def _shows(entry: dict[str, Any], run: Run) -> bool:
    """Whether the values of a run are as an entry asks; the cheaper question first, for a watch asks at every tick."""
    return all(_is_signed(_values(run, name)) for name in entry.get("signed", [])) and all(
        _counts_few(_values(run, name)) for name in entry.get("counts_few", [])
    )


@cache
def _zero_names() -> tuple[str, ...]:
    """The names whose first value identifies a trainer."""
    return tuple(dict.fromkeys(name for entry in frameworks() for name in entry.get("zero", [])))


def recognise(run: Run) -> Recognised:
    """The framework that wrote the run; `unknown` if no entry fits."""
    tags = [spaced(tag) for tag, one in run.series.items() if len(one)] + [
        spaced(tag) for tag, one in run.histograms.items() if len(one)
    ]
    known = _class_of(run.trainer or next((match[1] for match in map(_PROFILED.match, tags) if match), ""))
    views: dict[View, set[str]] = {}
    named = next((entry for entry in frameworks() if run.trainer and known and entry.get("class") == known), None)
    for asked in _asked():
        entry, seen = asked.entry, _seen(asked.view, tags, views)
        if _fits(asked, seen, run, known) and not (named is not None and entry["id"] == "generic"):
            if entry["id"] == "generic" and (found := _rewritten(run, tags)) is not None:
                return found
            found = _recognised(entry, seen, run, sure=bool(known) and entry.get("class") == known)
            return found if entry.get("spelling") == "free" else replace(found, own=_unfolded(entry, _lowered(tags)))
    if named is not None:  # too little was logged to recognise the trainer, but the code names it
        return _recognised(named, _seen(_view(named), tags, views), run, sure=True)
    return _rewritten(run, tags) or _recognised(UNKNOWN, _seen(_view(UNKNOWN), tags, views), run, sure=True)


class Asked(NamedTuple):
    """An entry of frameworks.yaml, and the names that it asks for: plain ones apart from those with `*`, so that most
    entries are passed over at once.

    Attributes:
        view: how it reads tags.
        every, every_like: the names of `all`.
        some, some_like: those of `any`.
    """

    entry: dict[str, Any]
    view: View
    every: frozenset[str]
    every_like: tuple[str, ...]
    some: frozenset[str]
    some_like: tuple[str, ...]


@cache
def _asked() -> tuple[Asked, ...]:
    return tuple(
        Asked(entry, _view(entry), *_apart(entry.get("all", [])), *_apart(entry.get("any", [])))
        for entry in frameworks()
    )


def _apart(asked: Iterable[str]) -> tuple[frozenset[str], tuple[str, ...]]:
    """The plain names, and those with `*`."""
    like = tuple(name for name in asked if "*" in name)
    return frozenset(asked).difference(like), like


def _view(entry: dict[str, Any]) -> View:
    return tuple(entry.get("prefix", [])), int(entry.get("strip", 1)), entry.get("spelling") == "free"


def _rewritten(run: Run, tags: list[str]) -> Recognised | None:
    """The trainer whose names the user's code spells differently: below another word, `ppo_stats/objective/kl`, or with
    underscores in place of slashes, `critic_score_mean`, as in the columns of a table.
    """
    below: dict[str, list[str]] = {}
    for tag in tags:
        below.setdefault(tag.partition("/")[0], []).append(tag)
    own = [
        {tag: tag.partition("/")[2] for tag in held}
        for word, held in below.items()
        if len(held) >= FEWEST_OWN and "/" in held[0]
    ]
    lowered = _lowered(tags)
    folded = {file for tag in lowered for file in _files_by_fold().get(tag, ())}
    for asked in _asked():
        entry = asked.entry
        if entry.get("spelling") == "free" or entry["id"] in _TOO_PLAIN or not (own or entry["names"] in folded):
            continue
        for names_of in (*own, _unfolded(entry, lowered)):
            if len(names_of) < FEWEST_OWN:
                continue
            seen = _seen(asked.view, list(names_of.values()), {})
            known = names(entry["names"]).exact
            if sum(name in known for name in seen) >= FEWEST_OWN and _fits(asked, seen, run, ""):
                return replace(_recognised(entry, seen, run, sure=False), own=names_of)
    return None


def _lowered(tags: Iterable[str]) -> dict[str, list[str]]:
    """The tags by their lower-case form."""
    found: dict[str, list[str]] = {}
    for tag in tags:
        found.setdefault(tag.lower(), []).append(tag)
    return found


def _unfolded(entry: dict[str, Any], lowered: Mapping[str, list[str]]) -> dict[str, str]:
    """The tags that are names of that trainer with underscores in place of slashes, each with that name."""
    known, plain = _folds(entry["names"]), names(entry["names"]).exact
    found = {tag: known[fold] for fold in known.keys() & lowered.keys() for tag in lowered[fold] if tag not in plain}
    if found:
        others = [tag for alike in lowered.values() for tag in alike if tag not in found and tag not in plain]
        for pattern, name in _folded_patterns(entry["names"]):
            matches = filter(None, map(pattern.fullmatch, others))
            found = {match[0]: name.replace("{f}", match["f"]) for match in matches} | found
    return found


@cache
def _folds(file: str) -> dict[str, str]:
    """The names in a file that have slashes, by their form with underscores for everything other than letters."""
    return {_OTHERS.sub("_", name.lower()): name for name in names(file).exact if "/" in name}


@cache
def _files_by_fold() -> dict[str, frozenset[str]]:
    """The files of names that have a name of that form (`_folds`)."""
    found: dict[str, set[str]] = {}
    for file in {entry["names"] for entry in frameworks()}:
        for fold in _folds(file):
            found.setdefault(fold, set()).add(file)
    return {fold: frozenset(files) for fold, files in found.items()}


@cache
def _folded_patterns(file: str) -> list[tuple[re.Pattern[str], str]]:
    """What matches `rewards_{f}_mean`, and the name with slashes: of the names in a file that have a `{f}` between two
    of them, for at the end it would match anything."""
    raw = [aliases[0].raw for _, aliases in names(file).patterns]
    return [(pattern_of(name.replace("/", "_")), name) for name in raw if "/{f}/" in name and "*" not in name]


def _class_of(trainer: str) -> str:
    """The class in frameworks.yaml of a trainer, or of its base class by name; "" if there is none."""
    classes = [entry["class"] for entry in frameworks() if entry.get("class")]
    return next((one for one in classes if trainer == one), "") or next(
        (one for one in classes if one not in PLAIN and trainer.endswith(one)), ""
    )


def _seen(view: View, tags: list[str], views: dict[View, set[str]]) -> set[str]:
    """The tags as they are, and as an entry reads them; kept in `views`."""
    if view not in views:
        prefixes, times, is_free = view
        found = {*tags, *(bare(tag, prefixes, times) for tag in tags if tag.startswith(prefixes))}
        views[view] = found | {form for tag in found for form in forms(tag)} if is_free else found
    return views[view]


def _fits(asked: Asked, seen: set[str], run: Run, trainer: str) -> bool:
    entry = asked.entry
    has_some = "any" not in entry or not asked.some.isdisjoint(seen)
    if not asked.every <= seen or not (has_some or asked.some_like):
        return False
    if trainer and entry.get("class") and entry["class"] != trainer:
        return False
    is_named = bool(trainer) and entry.get("class") == trainer
    if not is_named and "needs_setting" in entry and not any(_has_setting(run, key) for key in entry["needs_setting"]):
        return False
    if "axis" in entry and run.step_axis not in entry["axis"]:
        return False
    if not all(_logged(name, seen) for name in asked.every_like) or any(
        _logged(name, seen) for name in entry.get("none", [])
    ):
        return False
    if not has_some and not any(_logged(name, seen) for name in asked.some_like):
        return False
    return all(_starts_at_zero(run, name) for name in entry.get("zero", [])) and _shows(entry, run)


def _logged(name: str, seen: set[str]) -> bool:
    if "*" not in name:
        return name in seen
    return any(map(pattern_of(name).fullmatch, seen))


def _has_setting(run: Run, key: str) -> bool:
    return key in run.config or any(one.endswith(f".{key}") for one in run.config)


def _starts_at_zero(run: Run, name: str) -> bool:
    """Only the first value decides, so that a prefix of a run is recognised like the whole run."""
    values = _values(run, name)
    return len(values) > 0 and bool(values[0] == 0)


def _values(run: Run, name: str) -> Floats:
    """The values of a series, under its name or below `train/`; none if there is no such series."""
    series = run.series.get(f"train/{name}") or run.series.get(name)
    return _NONE if series is None else series.values


def _is_signed(values: Floats) -> bool:
    """Whether some value lies further below 0 than an estimator that is never negative does by rounding."""
    return bool(np.any(values < _BELOW_ZERO))


def _counts_few(values: Floats) -> bool:
    """Whether shares are those of a few hundred items at most, as shares of sequences are and those of tokens are not:
    multiples of one over their number.
    """
    shares = np.sort(values[(values > 0) & (values < 1)])
    shares = shares[np.append(True, shares[1:] > shares[:-1])] if len(shares) else shares
    if len(shares) < _FEWEST_SHARES:
        return False
    counts = np.outer(_COUNTED, shares[:_SHARES_TESTED])
    fits = (np.abs(counts - np.round(counts)) < _EXACT).all(axis=1)
    return bool(fits.any()) and int(_COUNTED[fits.argmax()]) not in _ROUNDED


def _recognised(entry: dict[str, Any], seen: set[str], run: Run, sure: bool) -> Recognised:
    vocabulary = names(entry["names"])
    version = run.versions.get(entry.get("library", ""))
    exact = version_of(version)
    low, high = (exact, exact) if exact else _bounds(vocabulary, seen, run)
    assumed: tuple[str, ...] = ()
    named = any(_logged(name, seen) for name in entry.get("sure_names", [])) or any(
        _has_setting(run, key) for key in entry.get("sure_settings", [])
    )
    is_open = high is None or high >= (version_of(entry.get("assume_since")) or (0,))
    if entry.get("assume") and not sure and not named and is_open:
        assumed = (entry["assume"],)
    return Recognised(entry, vocabulary, version if exact else None, low, high, assumed)


def _bounds(vocabulary: Names, seen: set[str], run: Run) -> tuple[Version | None, Version | None]:
    """The versions that the file's `eras` allow; an absent name counts less than a present one."""
    low: Version | None = None
    high: Version | None = None
    for era in sorted(vocabulary.eras, key=lambda one: "without" in one):
        if not _in_era(era, seen, run):
            continue
        since, until = version_of(era.get("since")), version_of(era.get("until"))
        if since and (low is None or since > low):
            low = since
        if until and (high is None or until < high) and ("without" not in era or low is None or until >= low):
            high = until
    return low, high


def _in_era(era: dict[str, str], seen: set[str], run: Run) -> bool:
    """Whether all conditions of one line of `eras` hold."""
    checks = {
        "name": lambda value: _logged(value, seen),
        "given": lambda value: _logged(value, seen),
        "unless": lambda value: not _logged(value, seen),
        "without": lambda value: not _logged(value, seen),
        "setting": lambda value: _has_setting(run, value),
        "given_setting": lambda value: _has_setting(run, value),
        "without_setting": lambda value: not _has_setting(run, value),
    }
    return all(checks[key](value) for key, value in era.items() if key in checks)
