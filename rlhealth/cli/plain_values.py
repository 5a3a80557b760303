"""Values of the command line that need no conversion: most are texts, or were not given at all.

Typer builds a pydantic adapter for each parameter of a command, given or not, and importing pydantic takes longer than
reading and judging a small run. Here an adapter is built only for a value that must be converted or checked.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Any

from typer.core import TyperCommand, TyperGroup


class PlainValues(TyperCommand):
    """A command that converts only values that need it."""

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
    """The value of a parameter: unchanged if it already has its type, otherwise converted by typer."""
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
