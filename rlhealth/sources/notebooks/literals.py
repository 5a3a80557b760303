"""The values of plain expressions in code: literals, and names and sums of them; nothing is run."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

LARGEST = 1e30
LONGEST_TEXT = 200
MOST_ITEMS = 64
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}


class NotPlain(Exception):
    """The expression is more than a literal."""


def value_of(node: ast.expr, known: Mapping[str, Any]) -> Any:
    """The value of an expression.

    Args:
        known: the values of names.

    Raises:
        NotPlain: where it calls something, or names something unknown.
    """
    match node:
        case ast.Constant(value=bool() | int() | float() | None as value):
            return value
        case ast.Constant(value=str() as text) if len(text) <= LONGEST_TEXT:
            return text
        case ast.Name(id=name) if name in known:
            return known[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_number(value_of(operand, known))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            return _computed(type(op), _number(value_of(left, known)), _number(value_of(right, known)))
        case ast.List(elts=items) | ast.Tuple(elts=items) if len(items) <= MOST_ITEMS:
            return [value_of(item, known) for item in items]
        case ast.Dict(keys=keys, values=values) if len(keys) <= MOST_ITEMS:
            return _items(keys, values, known)
        case ast.Call(func=ast.Name(id="dict"), args=[], keywords=keywords):
            return settings_in(keywords, known)
    raise NotPlain


def settings_in(keywords: list[ast.keyword], known: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments of a call whose values are plain; the others are left out."""
    found: dict[str, Any] = {}
    for keyword in keywords:
        try:
            value = value_of(keyword.value, known)
        except NotPlain:
            if keyword.arg is not None:
                found.pop(keyword.arg, None)
            continue
        if keyword.arg is not None:
            found[keyword.arg] = value
        elif isinstance(value, dict):
            found.update(value)
    return found


def _items(keys: list[ast.expr | None], values: list[ast.expr], known: Mapping[str, Any]) -> dict[str, Any]:
    """The items of a dict whose values are plain."""
    keywords = [
        ast.keyword(arg=key.value, value=value)
        for key, value in zip(keys, values, strict=True)
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    ]
    return settings_in(keywords, known)


def _number(value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise NotPlain
    return value


def _computed(op: type[ast.operator], one: int | float, other: int | float) -> int | float:
    if abs(one) > LARGEST or abs(other) > LARGEST:
        raise NotPlain
    try:
        found: int | float = _ARITHMETIC[op](one, other)
    except ArithmeticError:
        raise NotPlain from None
    if not math.isfinite(found):
        raise NotPlain
    return found
