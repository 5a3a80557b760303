"""Reads the YAML files of names: the meaning of each metric, and its name in every framework."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase, translate
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any

from rlhealth.parsing.own_texts import read_texts

FOLDER = Path(__file__).parent
#: The prefix of metrics that are measured from the completions themselves, in every framework.
TEXT = "text/"
#: For an alias whose name gives the number of averaged episodes in place of `{n}`: `smoothed: n`.
OVER_N = 0
EPISODES_A_POINT = 4  # episodes that end between two logged points, about, as Stable-Baselines3 logs them
Version = tuple[int, ...]


@dataclass(frozen=True)
class Meaning:
    """One canonical metric.

    Attributes:
        name: its name in rules.
        title: its name in reports.
        unit: the unit in which frameworks log it, unless a framework's file gives another.
        low, high: the possible values; None if there is no bound.
        better: "up", "down" or "none": the direction in which a healthy run moves it.
        log: whether its sparkline is drawn on a logarithmic scale.
    """

    name: str
    title: str
    unit: str
    group: str
    better: str = "none"
    low: float | None = None
    high: float | None = None
    log: bool = False


@dataclass(frozen=True)
class Alias:
    """One line of a framework's file: the meaning of a raw name of a metric or a setting.

    Attributes:
        raw: the name as the framework writes it, without a tracker's prefix; may contain `{f}` and `*`.
        name: the canonical name; empty if the alias excludes the name.
        rank: its place in the file; if two aliases give one metric, the lower rank is used.
        since, until: versions of the framework, both inclusive; None is open.
        unsure: the sentence for the user, if this alias was chosen by a guess of the version.
        smoothed: the largest number of logged points over which each value is averaged; `OVER_N` if the name gives it.
        over: the number of episodes (or steps) in the mean, if the name gives it; otherwise 0.
        of: "episode" if it is of a whole one: it is used in place of an alias whose `of` is "unsaid".
    """

    raw: str
    name: str
    rank: int = 0
    drop: str = ""
    since: Version | None = None
    until: Version | None = None
    transform: str = ""
    estimator: str = ""
    unit: str = ""
    note: str = ""
    unsure: str = ""
    keep_unscaled: bool = False
    excepted: frozenset[str] = frozenset()
    steps_of: str = ""
    smoothed: int = 1
    over: int = 0
    of: str = ""

    def is_exception(self, part: str) -> bool:
        """Whether its placeholder does not match that part of a name; an exception may contain `*`."""
        return part in self.excepted or any("*" in one and fnmatchcase(part, one) for one in self.excepted)

    def fits(self, low: Version | None, high: Version | None) -> bool:
        """Whether it is valid for any version from `low` to `high`, both inclusive."""
        return (self.since is None or high is None or self.since <= high) and (
            self.until is None or low is None or self.until >= low
        )


@dataclass
class Names:
    """The content of one framework's file and of those that it builds on."""

    library: str = ""
    exact: dict[str, list[Alias]] = field(default_factory=dict)
    patterns: list[tuple[re.Pattern[str], list[Alias]]] = field(default_factory=list)
    histograms: dict[str, list[Alias]] = field(default_factory=dict)
    sums: list[tuple[re.Pattern[str], Alias]] = field(default_factory=list)
    settings: list[Alias] = field(default_factory=list)
    settings_under: list[str] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)
    lacks: frozenset[str] = frozenset()
    switches: dict[str, str] = field(default_factory=dict)
    derived: dict[str, Any] = field(default_factory=dict)
    eras: list[dict[str, str]] = field(default_factory=list)
    ignore: list[str] = field(default_factory=list)
    planned: dict[str, Any] | None = None
    environment_steps: dict[str, Any] = field(default_factory=dict)

    def find(self, name: str) -> tuple[list[Alias], dict[str, str]]:
        """The aliases for a raw name without prefix, and the values of its placeholders."""
        found = self.exact.get(name)
        if found:
            return found, {}
        for pattern, aliases in self.patterns:
            match = pattern.fullmatch(name)
            if match and not any(aliases[0].is_exception(part) for part in match.groupdict().values()):
                return [_over(one, match.groupdict()) for one in aliases], match.groupdict()
        return [], {}

    def ignores(self, name: str) -> bool:
        """Whether the name is known and measures nothing that rules use."""
        return self._ignored.fullmatch(name) is not None

    @cached_property
    def _ignored(self) -> re.Pattern[str]:
        """One expression for all ignored names, because in a log with many names, most are looked up three times."""
        whole = "|".join(expression_of(template) for template in self.ignore)
        return re.compile(re.sub(r"\(\?P<\w+>", "(?:", whole))


@lru_cache(maxsize=1)
def meanings() -> dict[str, Meaning]:
    """Every canonical metric by name; those of reward functions are under a name with `{f}`."""
    return {name: _meaning(name, entry) for name, entry in read_texts(FOLDER / "canonical.yaml").items()}


@lru_cache(maxsize=512)
def meaning(name: str) -> Meaning | None:
    """The meaning of a canonical name, which may have `{f}` filled in or start with `eval/`; None if it is unknown."""
    known = meanings()
    if name in known:
        return known[name]
    for template, one in known.items():
        if "{f}" in template:
            match = pattern_of(template).fullmatch(name)
            if match:
                return replace(one, name=name, title=one.title.replace("{f}", match["f"]))
    if name.startswith("eval/"):
        inner = meaning(name.removeprefix("eval/"))
        return inner and replace(inner, name=name, title=f"{inner.title} in evaluation")
    return None


@lru_cache(maxsize=1)
def frameworks() -> list[dict[str, Any]]:
    """The entries of frameworks.yaml, in the order in which they are tested."""
    entries: list[dict[str, Any]] = read_texts(FOLDER / "frameworks.yaml")
    return entries


@cache
def names(file: str) -> Names:
    """The names in that file of this folder, followed by the files that it builds on and the names of trackers."""
    found = Names(ignore=list(read_texts(FOLDER / "trackers.yaml")["ignore"]))
    for rank, (part, is_own) in enumerate(_parts(file)):
        _add(found, part, rank * 1000, is_own)
    _add(found, {"metrics": {name: name for name in meanings() if name.startswith(TEXT)}}, 0, False)
    return found


def version_of(text: str | None) -> Version | None:
    """A version as numbers: "0.16.1.dev0" gives (0, 16, 1); None for None and for a text that is no version."""
    numbers = re.match(r"v?(\d+(?:\.\d+)*)", text or "")
    if not numbers:
        return None
    parts = [int(part) for part in numbers[1].split(".")]
    return tuple(parts + [0] * (3 - len(parts)))


@lru_cache(maxsize=1024)
def pattern_of(template: str) -> re.Pattern[str]:
    """The pattern of a name with `{f}` (one part of it), `{n}` (an integer) and `*` (anything); `_` also matches
    characters that tensorboardX rewrites."""
    return re.compile(expression_of(template))


@cache
def pattern_of_any(names: str) -> re.Pattern[str]:
    """The pattern of `one|pattern/*`, for whole names."""
    return re.compile("|".join(map(translate, names.split("|"))))


def expression_of(template: str) -> str:
    """Such a pattern as a regular expression."""
    pieces = []
    for piece in re.split(r"(\{\w+\}|\*)", template):
        if piece == "*":
            pieces.append(".*")
        elif piece.startswith("{"):
            pieces.append(r"(?P<n>\d+)" if piece == "{n}" else f"(?P<{piece[1:-1]}>[^/]+)")
        else:
            pieces.append(
                re.sub(r"[^-/\w]", lambda found: r"\." if found[0] == "." else f"[{re.escape(found[0])}_]", piece)
            )
    return "".join(pieces)


def rewritten(name: str) -> str:
    """The name as tensorboardX writes it: an underscore for every other character."""
    return re.sub(r"[^-/\w.]", "_", name)


def _meaning(name: str, entry: Mapping[str, str]) -> Meaning:
    low, high = (float(entry[key]) if key in entry else None for key in ("min", "max"))
    return Meaning(
        name=name,
        title=entry["title"],
        unit=entry["unit"],
        group=entry["group"],
        better=entry.get("better", "none"),
        low=low,
        high=high,
        log=entry.get("scale") == "log",
    )


def _parts(file: str) -> Iterator[tuple[dict[str, Any], bool]]:
    own = read_texts(FOLDER / file)
    yield own, True
    for base in own.get("base", []):
        for part, _ in _parts(base):
            yield part, False


def _add(found: Names, part: Mapping[str, Any], rank: int, is_own: bool) -> None:
    for raw, entry in part.get("metrics", {}).items():
        rank += 1
        aliases = _aliases(raw, entry, rank)
        if "{" in raw or "*" in raw:
            found.patterns.append((pattern_of(raw), aliases))
        else:
            for spelling in (raw, rewritten(raw)):
                found.exact.setdefault(spelling, aliases)
    for raw, entry in part.get("histograms", {}).items():
        found.histograms.setdefault(raw, _aliases(raw, entry, rank))
    found.sums += [(pattern_of(raw), _aliases(raw, entry, rank)[0]) for raw, entry in part.get("sums", {}).items()]
    for raw, entry in part.get("settings", {}).items():
        rank += 1
        found.settings += _aliases(raw, entry, rank)
    found.ignore += part.get("ignore", [])
    found.derived.update(part.get("derived", {}))
    found.eras += part.get("eras", [])
    found.settings_under += part.get("settings_under", [])
    if is_own:
        found.library = part.get("library", "")
        found.options = dict(part.get("options", {}))
        found.lacks = frozenset(part.get("lacks", ()))
        found.switches = dict(part.get("switches", {}))
    found.planned = found.planned or part.get("planned")
    found.environment_steps = found.environment_steps or part.get("environment_steps", {})


def _aliases(raw: str, entry: Any, rank: int) -> list[Alias]:
    made = []
    for one in entry if isinstance(entry, list) else [entry]:
        said = {"as": one} if isinstance(one, str) else one
        target = said.get("as", "")
        made += [_alias(raw, name, said, rank) for name in (target if isinstance(target, list) else [target])]
    return made


def _alias(raw: str, name: str, entry: Mapping[str, Any], rank: int) -> Alias:
    return Alias(
        raw,
        name,
        rank,
        drop=entry.get("drop", ""),
        since=version_of(entry.get("since")),
        until=_to_the_end(version_of(entry.get("until"))),
        transform=entry.get("transform", ""),
        estimator=entry.get("estimator", ""),
        unit=entry.get("unit", ""),
        note=entry.get("note", ""),
        unsure=entry.get("unsure", ""),
        keep_unscaled=entry.get("if_unknown") == "keep",
        of=entry.get("of", ""),
        excepted=frozenset(entry.get("except", ())),
        steps_of=entry.get("steps_of", ""),
        smoothed=OVER_N if entry.get("smoothed") == "n" else int(entry.get("smoothed", 1)),
    )


def _over(alias: Alias, parts: Mapping[str, str]) -> Alias:
    """The alias with the number of logged points that its name implies it is averaged over."""
    if alias.smoothed != OVER_N:
        return alias
    over = int(parts["n"])
    points = max(1, over // EPISODES_A_POINT)
    return replace(alias, smoothed=points, over=over, note=alias.note.replace("{n}", parts["n"]))


def _to_the_end(version: Version | None) -> Version | None:
    return version and (*version, 10**6)  # 0.16.1 includes 0.16.1.post1
