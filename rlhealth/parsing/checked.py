"""Plain values checked against a model: errors name file, line and column, and what may have been meant."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from rlhealth.errors import RlhealthError
from rlhealth.parsing.own_texts import read_texts

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


class Checkable(Protocol):
    """What pydantic can check values against: its own models, and the data classes of rules."""

    @classmethod
    def model_validate(cls, obj: Any) -> Self:
        """The values as an instance. Raises pydantic.ValidationError."""

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        """The JSON Schema of the values."""


Model = TypeVar("Model", bound=Checkable)
KeyPath = tuple[Any, ...]
Marks = Mapping[KeyPath, tuple[int, int]]

_UNKNOWN_KEY = ("extra_forbidden", "unexpected_keyword_argument")  # of a model, and of a data class
_WIDER = {"int_type": "float_type"}  # where the second may stand, the first goes without saying


def checked(model: type[Model], raw: Any, marks: Marks, location: str, hint: str | Callable[[KeyPath], str]) -> Model:
    """The values as that model.

    Args:
        raw: plain values, as read from a file.
        marks: line and column of key paths in that file.
        location: the file, as messages name it.
        hint: the next thing to try, or what gives it for the key path that is wrong.

    Raises:
        RlhealthError: naming `location:line:column`, the key, what is wrong with it and, for an unknown key, what may
            have been meant.
    """
    from pydantic import ValidationError  # late: what rlhealth ships is not checked at each start

    try:
        return model.model_validate(raw)
    except ValidationError as error:
        path, alike = _first(raw, error.errors())
        raise RlhealthError(
            f"{place(location, marks, path)}: {_said(model, path, alike)}",
            hint=hint if isinstance(hint, str) else hint(path),
            location=location,
        ) from None


def place(location: str, marks: Marks, path: Iterable[Any]) -> str:
    """`location:line:column` of a key path; of the nearest key around it where that one has no place of its own."""
    keys = tuple(path)
    line, column = next((marks[keys[:end]] for end in range(len(keys), -1, -1) if keys[:end] in marks), (1, 1))
    return f"{location}:{line}:{column}"


def meant(word: str, known: Iterable[str]) -> str:
    """The words "; did you mean `x`?" where a known word is near, else nothing."""
    near = difflib.get_close_matches(word, sorted(set(known)), 1)
    return f"; did you mean `{near[0]}`?" if near else ""


def _first(raw: Any, errors: Sequence[ErrorDetails]) -> tuple[KeyPath, list[ErrorDetails]]:
    """The key path of the first thing that is wrong, and the errors that say what may stand there.

    Of a value that may be one of several kinds, pydantic reports each. An error further inside means that the value is
    of that kind, and so does one of its size: only that is reported.
    """
    loc, path = errors[0]["loc"], _path(raw, errors[0])
    if len(path) == len(loc):
        return path, [errors[0]]
    shared = next(end for end, part in enumerate(loc) if path[end : end + 1] != (part,))
    of_value = [one for one in errors if one["loc"][:shared] == loc[:shared]]
    deepest = max((_path(raw, one) for one in of_value), key=len)
    alike = [one for one in of_value if _path(raw, one) == deepest]
    return deepest, [one for one in alike if one["type"] not in _words()["kind"]] or alike


def _path(raw: Any, error: ErrorDetails) -> KeyPath:
    """The keys of an error's place, without the names that pydantic gives to the kinds that a value may be of."""
    path: list[Any] = []
    for part in error["loc"]:
        if (part in raw) if isinstance(raw, Mapping) else (isinstance(raw, list | tuple) and isinstance(part, int)):
            raw = raw[part]
            path.append(part)
    return (*path, error["loc"][-1]) if error["type"] == "missing" else tuple(path)


def _said(model: type[Checkable], path: KeyPath, alike: Sequence[ErrorDetails]) -> str:
    """What is wrong with the value there, in plain words."""
    name, first = ".".join(map(str, path)), alike[0]
    if first["type"] in _words()["said"]:
        message = _words()["said"][first["type"]]
        message += _where(model, path) if first["type"] in _UNKNOWN_KEY else ""
    else:
        types = {one["type"] for one in alike}
        expected = [_expected(one) for one in alike if _WIDER.get(one["type"]) not in types]
        message = _listed(expected) or first["msg"].removeprefix("Value error, ")
    return f"{name}: {message}" if name else message


def _expected(error: ErrorDetails) -> str:
    """What may stand there; "" of an error that says so in its own words."""
    words = _words()["kind"] | _words()["size"]
    return words.get(error["type"], "").format_map(error.get("ctx", {}))


def _listed(expected: Iterable[str]) -> str:
    *others, last = dict.fromkeys(filter(None, expected)) or [""]
    return f"expected {', '.join(others)}{' or ' if others else ''}{last}" if last else ""


@lru_cache(maxsize=1)
def _words() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = read_texts(Path(__file__).with_name("plain_words.yaml"))
    return found


def _where(model: type[Checkable], path: KeyPath) -> str:
    """What may have been meant by an unknown key: never the key itself, and at the top only what may stand there."""
    key, top = str(path[-1]), frozenset(model.model_json_schema().get("properties", {}))
    if len(path) > 1:
        return meant(key, _keys(model) - {key})
    return meant(key, top) or ("; it belongs into a section, not here" if key in _keys(model) else "")


@lru_cache(maxsize=16)
def _keys(model: type[Checkable]) -> frozenset[str]:
    schema = model.model_json_schema()
    return frozenset(key for one in (schema, *schema.get("$defs", {}).values()) for key in one.get("properties", {}))
