"""Plain values checked against a model: errors name file, line and column, and what may have been meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Protocol, Self, TypeVar

from rlhealth.errors import RlhealthError


class Checkable(Protocol):
    """What pydantic can check values against: its own models, and the data classes of rules."""

    @classmethod
    def model_validate(cls, obj: Any) -> Self:
        """The values as an instance. Raises pydantic.ValidationError."""

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        """The JSON Schema of the values."""


Model = TypeVar("Model", bound=Checkable)
Marks = Mapping[tuple[Any, ...], tuple[int, int]]

_UNKNOWN_KEY = ("extra_forbidden", "unexpected_keyword_argument")  # of a model, and of a data class
_PLAINER = {"missing": "is missing", **dict.fromkeys(_UNKNOWN_KEY, "unknown key")}


def checked(model: type[Model], raw: Any, marks: Marks, location: str, hint: str) -> Model:
    """The values as that model.

    Args:
        raw: plain values, as read from a file.
        marks: line and column of key paths in that file.

    Raises:
        RlhealthError: naming `location:line:column`, the key, what is wrong with it and, for an unknown key, what may
            have been meant.
    """
    from pydantic import ValidationError  # late: what rlhealth ships is not checked at each start

    try:
        return model.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        raise RlhealthError(
            f"{place(location, marks, first['loc'])}: {_said(model, first)}", hint=hint, location=location
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


def _said(model: type[Checkable], error: Any) -> str:
    name = ".".join(str(part) for part in error["loc"])
    message = _PLAINER.get(error["type"], error["msg"].removeprefix("Value error, "))
    if error["type"] in _UNKNOWN_KEY:
        message += _where(model, error["loc"])
    return f"{name}: {message}" if name else message


def _where(model: type[Checkable], loc: tuple[Any, ...]) -> str:
    """What may have been meant by an unknown key: never the key itself, and at the top only what may stand there."""
    key, top = str(loc[-1]), frozenset(model.model_json_schema().get("properties", {}))
    if len(loc) > 1:
        return meant(key, _keys(model) - {key})
    return meant(key, top) or ("; it belongs into a section, not here" if key in _keys(model) else "")


@lru_cache(maxsize=16)
def _keys(model: type[Checkable]) -> frozenset[str]:
    schema = model.model_json_schema()
    return frozenset(key for one in (schema, *schema.get("$defs", {}).values()) for key in one.get("properties", {}))
