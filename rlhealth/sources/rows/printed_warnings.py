"""Printed warnings of a trainer that contain a metric, such as `…/ppo_trainer.py:1088: UserWarning: KL divergence is
starting to become negative: -9.82 - …`; metrics/warned.yaml lists them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from rlhealth.metrics.catalogue import FOLDER
from rlhealth.parsing.own_texts import read_texts
from rlhealth.sources.rows.row_names import is_setting, words

MOST_LINES = 6  # lines over which one warning may be wrapped
_NUMBER = r"(?P<value>[-+]?(?:\d{1,30}(?:\.\d{1,30})?(?:[eE][-+]?\d{1,4})?|inf|nan))"
_PART_OF_NUMBER = re.compile(r"[-+]?[\d.a-zA-Z]{0,30}")
_CATEGORY = "Warning:"
#: As Python's `warnings` prints them, with or after the place in the code; prose only quotes them.
_OPENS = re.compile(rf"(?:\A|\.py(?::\d{{1,7}})?:\s)[A-Z]\w{{0,40}}{_CATEGORY}\s")


@dataclass(frozen=True)
class Warned:
    """One warning that contains a metric.

    Attributes:
        tag: what the trainer calls the metric.
        head, tail: its text before and after the number, without white space, because lines are wrapped anywhere.
        is_fault: whether each printed value is a fault by itself, whatever the unprinted values are.
        told_by: words of the names under which a row has the same metric.
    """

    tag: str
    head: str
    tail: str
    is_fault: bool
    told_by: frozenset[str]

    def value(self, said: str) -> str | None:
        """The number in a warning's text without white space; None if it is another warning."""
        found = re.match(_NUMBER + re.escape(self.tail), said[len(self.head) :]) if said.startswith(self.head) else None
        return found["value"] if found else None

    def goes_on(self, said: str) -> bool:
        """Whether that is the beginning of this warning, so that its end must be on the next line."""
        if not said.startswith(self.head):
            return self.head.startswith(said)
        rest = said[len(self.head) :]
        part = _PART_OF_NUMBER.match(rest)
        return self.tail.startswith(rest[part.end() :] if part else rest)


class Warnings:
    """Takes warnings out of printed lines, and joins those that are wrapped."""

    def __init__(self) -> None:
        self._begun = ""
        self._lines = 0

    @property
    def is_open(self) -> bool:
        """Whether a warning has begun that the next line may continue."""
        return bool(self._begun)

    def taken(self, text: str, line: str) -> tuple[str, dict[str, str]]:
        """The rest of a line without its warning, and the warning's number by the metric's name. `text` is the line
        without a logger's prefix; the continuation of a warning may look like such a prefix."""
        opened = _OPENS.search(text) if _CATEGORY in text else None
        if opened is None and not self._begun:
            return text, {}
        before = _before_path(text[: opened.start()]) if opened else ""
        begun = _squeezed(text[opened.end() :] if opened else self._begun + line)
        self._lines = 1 if opened else self._lines + 1
        values = {one.tag: value for one in warned() if (value := one.value(begun)) is not None}
        goes_on = not values and self._lines < MOST_LINES and any(one.goes_on(begun) for one in warned())
        self._begun = begun if goes_on else ""
        return (before, values) if values or goes_on else (text, {})


def warns(text: str) -> bool:
    """Whether a text may contain a warning with a metric."""
    if _CATEGORY not in text:
        return False
    lower = text.lower().encode()
    return any(sign in lower for sign in signs())


@lru_cache(maxsize=1)
def warned() -> tuple[Warned, ...]:
    """The warnings of warned.yaml."""
    found = []
    for one in read_texts(FOLDER / "warned.yaml"):
        head, _, tail = one["says"].partition("{value}")
        is_fault, told_by = one.get("beside_lines") == "yes", frozenset(one.get("told_by", ()))
        found.append(Warned(one["logs"], _squeezed(head), _squeezed(tail), is_fault, told_by))
    return tuple(found)


@lru_cache(maxsize=1)
def signs() -> tuple[bytes, ...]:
    """The words that warnings begin with, in lower case, for a fast search."""
    says = [one["says"].lower().split() for one in read_texts(FOLDER / "warned.yaml")]
    return tuple(f"warning: {' '.join(first[:2])}".encode() for first in says)


def of_warnings(tags: Iterable[str], is_all: bool) -> list[str]:
    """Notes for the user on metrics that were read from warnings; `is_all`: nothing else was read."""
    names = ", ".join(sorted(tags))
    if not names:
        return []
    alone = "only warnings of the trainer were printed, no rows: " if is_all else ""
    return [f"{alone}{names} is read from warnings, which tell the bad values alone"]


def faults() -> frozenset[str]:
    """The metrics of warnings that are also read beside printed lines."""
    return frozenset(one.tag for one in warned() if one.is_fault)


def also_in_rows(names: Iterable[str]) -> frozenset[str]:
    """The metrics of warnings that a row of those names also has, under any name."""
    return _in_rows(tuple(names))


@lru_cache(maxsize=64)
def _in_rows(names: tuple[str, ...]) -> frozenset[str]:
    held = {word for name in names if not is_setting(name) for word in re.split("[^a-z]+", words(name))}
    return frozenset(one.tag for one in warned() if one.told_by & held)


def _before_path(text: str) -> str:
    """The text before the path at its end: a progress bar, which does not end its line."""
    return text[: max(text.rfind(end) for end in (" ", "\t", "]")) + 1]


def _squeezed(text: str) -> str:
    return "".join(text.split())
