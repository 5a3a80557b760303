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
        vars(made).update(self.__getstate__(), **update)
        return made

    def __getstate__(self) -> dict[str, Any]:
        """The fields; not what was derived from them and is kept beside them."""
        own = vars(self)
        return {name: own[name] for name in self.__dataclass_fields__}


_adapters: dict[type, TypeAdapter[Any]] = {}


def _adapter(kind: type) -> TypeAdapter[Any]:
    if kind not in _adapters:
        from pydantic import TypeAdapter

        _adapters[kind] = TypeAdapter(kind)
    return _adapters[kind]


def as_values(one: Any) -> Any:
    """Data classes as plain values: each is a list of its name, its plain fields and those that hold others."""
    if isinstance(one, StrictData):
        given = {name: as_values(getattr(one, name)) for name in one.__dataclass_fields__}
        deep = {name: value for name, value in given.items() if isinstance(value, list | tuple | dict)}
        plain = {name: value for name, value in given.items() if name not in deep or not _holds_others(value)}
        return [type(one).__name__, plain, {name: value for name, value in deep.items() if name not in plain}]
    if isinstance(one, tuple):
        return tuple(map(as_values, one))
    return {name: as_values(value) for name, value in one.items()} if isinstance(one, dict) else one


def _holds_others(value: Any) -> bool:
    """Whether a data class is somewhere in it."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else ()
    return isinstance(value, list) or any(map(_holds_others, parts))


def from_values(value: Any, kinds: Mapping[str, Any]) -> Any:
    """What `as_values` was given, of these data classes by their names; unchecked, for it was checked before."""
    if isinstance(value, list):
        name, plain, deep = value
        made = object.__new__(kinds[name])
        fields = vars(made)
        fields.update(plain)
        for key, one in deep.items():
            fields[key] = from_values(one, kinds)
        return made
    if isinstance(value, tuple):
        return tuple([from_values(one, kinds) for one in value])
    return {key: from_values(one, kinds) for key, one in value.items()} if isinstance(value, dict) else value
