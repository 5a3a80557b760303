"""YAML as plain values, read strictly: no anchors, no tags, no key twice, and the place of everything for those who
tell what is wrong.

PyYAML's own loaders read `1e-3` as text and `no` as False, take a key twice and follow aliases; here the stream of its
parser is read, once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import yaml

from rlhealth.errors import RlhealthError

DEEPEST = 60  # levels; a rule has five
TOO_DEEP, FEWER = f"nested more than {DEEPEST} levels deep", "a rule needs five"

KeyPath = tuple[Any, ...]
Marks = dict[KeyPath, tuple[int, int]]

_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}


def read_yaml(text: str, location: str) -> tuple[Any, Marks]:
    """YAML as plain values, with YAML 1.2's numbers and booleans, and the line and column (from 1) of every key path.

    Raises:
        RlhealthError: naming `location:line:column`.
    """
    return _read(text, location, _scalar)


def texts_in(text: str, location: str) -> tuple[Any, Marks]:
    """The same with every scalar as text, so that the version 0.10 is not the number 0.1.

    Raises:
        RlhealthError: naming `location:line:column`.
    """
    return _read(text, location, _text)


def _read(text: str, location: str, scalar: Callable[[yaml.ScalarEvent], Any]) -> tuple[Any, Marks]:
    reading = _Reading(yaml.parse(text, Loader=_LOADER), location, scalar)
    try:
        return reading.document(), reading.marks
    except yaml.MarkedYAMLError as error:
        place = _place(error.problem_mark or error.context_mark)
        if "nesting depth" in (error.problem or ""):  # PyYAML looks ahead, and has a limit of its own since 6.0.4
            raise RlhealthError(f"{location}:{place}: {TOO_DEEP}", hint=FEWER, location=location) from None
        raise RlhealthError(
            f"{location}:{place}: {error.problem or 'not YAML'}", hint="the file must be YAML"
        ) from None
    except yaml.YAMLError as error:
        raise RlhealthError(
            f"{location}:1:1: not YAML: {str(error).splitlines()[0]}", hint="the file must be YAML"
        ) from None


class _Reading:
    """Walks once through the events of one document."""

    def __init__(self, events: Iterator[Any], location: str, scalar: Callable[[yaml.ScalarEvent], Any]) -> None:
        self.events = events
        self.location = location
        self.scalar = scalar
        self.marks: Marks = {}

    def document(self) -> Any:
        """The document's value; None if there is none."""
        found, documents = None, 0
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise self._wrong(event, "another document begins here", "keep one of them")
                found = self._value(next(self.events), ())
        return found

    def _value(self, event: Any, path: KeyPath) -> Any:
        self.marks[path] = (event.start_mark.line + 1, event.start_mark.column + 1)
        self._check(event)
        if isinstance(event, yaml.ScalarEvent):
            return self.scalar(event)
        if len(path) >= DEEPEST:
            raise self._wrong(event, TOO_DEEP, FEWER)
        return self._mapping(path) if isinstance(event, yaml.MappingStartEvent) else self._list(path)

    def _mapping(self, path: KeyPath) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for event in self.events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            place = (*path, self._key(event, found))
            found[place[-1]] = self._value(next(self.events), place)
            self.marks[place] = (event.start_mark.line + 1, event.start_mark.column + 1)
        return found

    def _check(self, event: Any) -> None:
        if event.anchor:  # of an alias too
            raise self._wrong(event, "anchors and aliases are not used here", "write the value out")
        if event.tag:
            raise self._wrong(
                event, "tags are not used here", "write the value as it is, or in quotes where it is text"
            )

    def _key(self, event: Any, found: dict[str, Any]) -> str:
        self._check(event)
        if not isinstance(event, yaml.ScalarEvent):
            raise self._wrong(event, "a key is a word, not a list or a mapping", "write `key: value`")
        if event.value in found:
            raise self._wrong(event, f"`{event.value}` stands here twice", "keep one of them")
        return str(event.value)

    def _list(self, path: KeyPath) -> list[Any]:
        found: list[Any] = []
        for event in self.events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            found.append(self._value(event, (*path, len(found))))
        return found

    def _wrong(self, event: Any, said: str, hint: str) -> RlhealthError:
        return RlhealthError(f"{self.location}:{_place(event.start_mark)}: {said}", hint=hint, location=self.location)


def _place(mark: Any) -> str:
    return f"{mark.line + 1}:{mark.column + 1}" if mark else "1:1"


def _text(event: yaml.ScalarEvent) -> str:
    return str(event.value)


def _scalar(event: yaml.ScalarEvent) -> Any:
    text = str(event.value)
    if event.style:  # quoted, or a block: text, whatever it looks like
        return text
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text.replace("_", "")) if text[:1] in "+-.0123456789" else text
        except ValueError:
            continue
    return text
