"""Blocks of lines with one name and one number per line: rsl_rl's summary, torchforge's and NeMo-RL's results, RLlib's
pretty_print; and below a heading, `mean reward (100 episodes) -20.3`, without a separator.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rlhealth.sources.base.spelling import number
from rlhealth.sources.rows.printed_line import name_before
from rlhealth.sources.rows.printed_steps import WORD
from rlhealth.sources.rows.row_names import is_log_name

MOST_NAMES = 1000
DEEPEST = 8  # titles within titles
_PAIR = re.compile(
    r"(?P<before>\s*+[^\w\s\"'{}\[\]|(]{0,3}\s*+)(?P<name>[A-Za-z_][^:=\n\"'{}]{0,120}?)\s{0,20}[:=]\s{0,80}"
    r"(?P<value>[^\s\"'{}]{1,60}|[A-Za-z_][\w.]{0,40}\([^()\n]{1,120}\))(?:\s?(?:%|s|ms|it/s|steps/s|[kMGT]i?B))?"
    r"(?:\s?(?:±|\+/?-)\s?[\d.]{1,30})?(?:\s*\((?P<aside>[^()\n]{0,40})\))?\s*+"
)
_SPACED = re.compile(
    r"\s{0,8}(?P<name>[A-Za-z][A-Za-z_/-]{0,40}(?: [A-Za-z_/-]{1,40}| \([\w ]{1,40}\)){0,5})\s{1,40}"
    r"(?P<value>[-+]?(?:\d[\d,]*+(?:\.\d*+)?(?:[eE][-+]?\d{1,3})?|nan|inf))\s*"
)
_TITLE = re.compile(r"(?P<indent>\s*+)[^\w\s\"'{}\[\]|(]{0,3}[^\w\s]{0,3}\s*+(?P<name>[\w][\w ./-]{0,60}):\s*+")
_NAMES_SHARE = re.compile(r"accuracy|rate|ratio|share|fraction|percent|pct|%|\)\Z", re.IGNORECASE)
_OF_ALL = re.compile(r"\d{1,15}/\d{1,15}")
_PERCENT = re.compile(r"\d{1,3}(?:\.\d{1,20})?\s?%")
_COUNTS = re.compile(rf"(?:{WORD}|progress)\s*\Z", re.IGNORECASE)
_NOTHING = re.compile(r"[\W_]*+")
#: A line of YAML within a block that is no number: `  custom_metrics: {}`, `  hostname: instance-3`, `  - -0.03`.
_OF_YAML = re.compile(r"\s{2,40}(?:[A-Za-z_][\w/.-]{0,60}:\s(?:\{\}|\[\]|'[^'\n]{0,60}'|[\w:.-]{1,80})|-\s\S{1,40})\s*")


class Blocks:
    """Finds blocks of `name: number` lines, which are passed in order; a block ends at any other line, or when a name
    repeats.
    """

    def __init__(self) -> None:
        self._block: dict[str, Any] = {}
        self._titles: list[tuple[int, str]] = []
        self._is_spaced = False

    @property
    def is_open(self) -> bool:
        """Whether a block has begun."""
        return bool(self._block)

    def rows(self, line: str) -> Iterator[dict[str, Any]]:
        """The rows that end with this line."""
        pair = _PAIR.fullmatch(line) if ":" in line or "=" in line else None
        if pair is not None:
            value, share = _value(pair["value"]), _share(pair)
            value = share or value
            name = name_before(pair["name"], 0, len(pair["name"])) if value is not None else ""
            name = f"{name} rate" if share and name and not _NAMES_SHARE.search(name) else name
            if name and value is not None:
                name = self._titled(len(pair["before"]), name)
                if name in self._block or len(self._block) >= MOST_NAMES:
                    yield from self.end()
                self._block[name] = value
                return
        title = _TITLE.fullmatch(line)
        if title is not None and " " not in title["name"]:
            self._title(len(title["indent"]), title["name"])
        elif title is not None:
            self._titles = []  # words above a part of the block
        elif not _NOTHING.fullmatch(line) and not (self._block and _OF_YAML.fullmatch(line)):
            yield from self.end()
            self._titles = []

    def takes(self, line: str) -> bool:
        """Whether the line is one pair, and part of the current block."""
        return bool(self._block) and _PAIR.fullmatch(line) is not None

    def spaced(self, line: str) -> dict[str, Any]:
        """The name and the number on a line below a heading, with spaces between them, if it is part of a block of such
        lines, or begins one by a name that logs have; empty for any other line."""
        pair = _SPACED.fullmatch(line) if not self._block or self._is_spaced else None
        is_part = pair is not None and (self._is_spaced or is_log_name(pair["name"]))
        return {pair["name"]: pair["value"]} if pair is not None and is_part else {}

    def add(self, several: Mapping[str, Any], *, is_spaced: bool = False) -> Iterator[dict[str, Any]]:
        """Takes the pairs of a line that continues the block, statistics of one name, or begins one without separators;
        the row that ends where a name repeats."""
        if not self._block.keys().isdisjoint(several):
            yield from self.end()
        self._block.update(several)
        self._is_spaced = self._is_spaced or is_spaced

    def end(self) -> Iterator[dict[str, Any]]:
        """The row of a block that ends here."""
        if self._block:
            yield self._block
        self._block, self._is_spaced = {}, False

    def _title(self, indent: int, name: str) -> None:
        self._titles = [one for one in self._titles if one[0] < indent]
        if len(self._titles) < DEEPEST:
            self._titles.append((indent, name))

    def _titled(self, indent: int, name: str) -> str:
        self._titles = [one for one in self._titles if one[0] < indent]
        return "/".join([*(title for _, title in self._titles), name]) if " " not in name else name


def _share(pair: re.Match[str]) -> str | None:
    """The share after a count of all, `Correct: 35/512 (6.8%)`, unless it is the progress of the run."""
    aside = pair["aside"] or ""
    is_share = _OF_ALL.fullmatch(pair["value"]) and _PERCENT.fullmatch(aside) and not _COUNTS.search(pair["name"])
    return aside.replace(" ", "") if is_share else None


def _value(text: str) -> str | None:
    """The number in a value, without the unit attached to it."""
    if number(text) is not None:
        return text
    bare = text.rstrip("smhMGkKB")
    return bare if bare and number(bare) is not None else None
