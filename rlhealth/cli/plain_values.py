"""Values of the command line that are what they should be already: most are texts, or were not given at all.

For each parameter of a command typer builds a pydantic adapter, given or not; importing pydantic takes longer than a
small run takes to read and judge. Here an adapter is built only for a value that has to be converted or checked.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Any

from typer.core import TyperCommand, TyperGroup


class PlainValues(TyperCommand):
    """A command that converts only what has to be converted."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parses its part of the command line."""
        _spare(self.get_params(ctx))
        return super().parse_args(ctx, args)


class PlainGroup(TyperGroup):
    """The same for the options before a command, and those of typer's own: `--help`, `--install-completion`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parses the command line as far as the command's name."""
        _spare(self.get_params(ctx))
        return super().parse_args(ctx, args)


def _spare(params: list[Any]) -> None:
    for one in params:
        if not one.required and not isinstance(one.process_value, partial):
            one.process_value = partial(_processed, one, one.process_value)


def _processed(param: Any, convert: Callable[[Any, Any], Any], context: Any, value: Any) -> Any:
    """The value of a parameter: as it stands where it is of its type already, else as typer converts it."""
    if not hasattr(param, "type_descriptor"):  # an older typer, which has no pydantic
        return convert(context, value)
    kind, many = param.type_descriptor.annotation, param.nargs == -1 or getattr(param, "multiple", False)
    if value is None:
        value = () if many else None
    elif kind == list[str] and many and isinstance(value, list | tuple) and all(type(one) is str for one in value):
        value = list(value)
    elif not (kind is str or (isinstance(kind, type) and issubclass(kind, Enum))) or type(value) is not kind:
        return convert(context, value)
    return value if param.callback is None else param.callback(context, param, value)
