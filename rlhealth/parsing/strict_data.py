"""Frozen data classes whose values pydantic checks where they come from a file, and that are made without it
elsewhere: what rlhealth ships is checked by its tests, and pydantic takes longer to import than a run to judge.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

if TYPE_CHECKING:
    from pydantic import TypeAdapter


class Schema:
    """What pydantic is to check of a field, said without importing pydantic: keys of its core schema."""

    def __init__(self, **keys: Any) -> None:
        self.keys = keys

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Pydantic's protocol for annotations: the schema of the type itself, with these keys."""
        return {**handler(source), **self.keys}


Flag = Annotated[bool, Schema(strict=True)]
Word = Annotated[str, Schema(strict=True)]
Number = Annotated[int, Schema(strict=True)] | Annotated[float, Schema(strict=True)]
Count = Annotated[int, Schema(strict=True, ge=1)]
AtLeastZero = Annotated[int, Schema(strict=True, ge=0)] | Annotated[float, Schema(strict=True, ge=0)]
Text = Annotated[str, Schema(max_length=4000)]
Title = Annotated[str, Schema(max_length=200)]
Setting = Flag | Number | Word | None


def _key(name: str) -> str:
    """The key of a field in a file: `with` for `with_`, which Python could not call so."""
    return name.removesuffix("_")


class StrictData:
    """Base of frozen data classes that, read from a file, refuse unknown keys and numbers written as text."""

    __dataclass_fields__: ClassVar[dict[str, Any]]  # of the subclasses, each of which is a data class
    __pydantic_config__ = {"extra": "forbid", "alias_generator": _key}  # noqa: RUF012 (pydantic's name and form)

    @classmethod
    def model_validate(cls, obj: Any) -> Self:
        """An instance of plain values, as read from a file. Raises pydantic.ValidationError."""
        made: Self = _adapter(cls).validate_python(obj)
        return made

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        """Its JSON Schema."""
        return _adapter(cls).json_schema()

    @classmethod
    def keys(cls) -> tuple[str, ...]:
        """The keys that its file may have, in the order of the fields."""
        return tuple(map(_key, cls.__dataclass_fields__))

    def model_copy(self, update: Mapping[str, Any]) -> Self:
        """A copy with these fields changed, unchecked."""
        made = object.__new__(type(self))
        own = vars(self)
        kept = {name: own[name] for name in self.__dataclass_fields__}  # not what was cached beside the fields
        vars(made).update(kept, **update)
        return made


_adapters: dict[type, TypeAdapter[Any]] = {}


def _adapter(kind: type) -> TypeAdapter[Any]:
    if kind not in _adapters:
        from pydantic import TypeAdapter

        _adapters[kind] = TypeAdapter(kind)
    return _adapters[kind]
