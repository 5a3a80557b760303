"""Puts new values into a YAML or JSON text and leaves every other byte as it was: comments, order, quotes,
indentation."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from rlhealth.errors import RlhealthError

_DEEPEST = 200  # levels; PyYAML's composer needs one frame of Python for each


def patched(text: str, location: str, values: Mapping[str, Any], siblings: frozenset[str] = frozenset()) -> str:
    """The text with these values.

    Args:
        values: option to its new value; an option with dots is looked for as nested keys, and as it is.
        siblings: other options of the same trainer: an option that is nowhere is added beside most of them.

    Raises:
        RlhealthError: if the text is no mapping of YAML or JSON, or an option stands there more than once.
    """
    for option, value in values.items():
        text = _with(text, location, option, value, siblings)
    return text


def _with(text: str, location: str, option: str, value: Any, siblings: frozenset[str]) -> str:
    root = _root(text, location)
    is_json = _is_json(text)
    found = [pair for path, pair in _walked(root) if _names(path, option)]
    if len(found) > 1:
        lines = " and ".join(str(key.start_mark.line + 1) for key, _ in found)
        raise RlhealthError(
            f"{location}: {option} stands on lines {lines}", hint="change the right one by hand", location=location
        )
    if not found:
        return _added(text, root, option, written(value, is_json), siblings, is_json)
    key, node = found[0]
    if not isinstance(node, yaml.ScalarNode) or node.start_mark.index < key.end_mark.index:  # an alias lies before it
        place = f"{location}:{key.start_mark.line + 1}:{key.start_mark.column + 1}"
        raise RlhealthError(f"{place}: {option} is no single value", hint="change it by hand", location=location)
    begin, end = node.start_mark.index, node.end_mark.index
    gap = " " if begin and text[begin - 1] == ":" else ""  # `key:` with nothing after it
    return text[:begin] + gap + written(value, is_json) + text[end:]


def _is_json(text: str) -> bool:
    return text.lstrip("\ufeff \t\r\n").startswith("{")


def _root(text: str, location: str) -> yaml.MappingNode:
    hint = "--config takes the YAML or JSON file that the trainer reads"
    text = text.replace("\t", " ") if _is_json(text) else text  # JSON may be indented with tabs; places stay the same
    try:
        depth = 0
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST:
                raise RlhealthError(f"{location}: nested too deeply", hint=hint, location=location)
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{location}:{mark.line + 1}:{mark.column + 1}" if mark else location
        raise RlhealthError(f"{place}: {error.problem or 'not YAML'}", hint=hint, location=location) from None
    except yaml.YAMLError as error:
        raise RlhealthError(f"{location}: {str(error).splitlines()[0]}", hint=hint, location=location) from None
    if not isinstance(root, yaml.MappingNode) or not root.value:
        raise RlhealthError(f"{location}: holds no settings", hint=hint, location=location)
    return root


def _walked(
    node: yaml.MappingNode, above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], tuple[yaml.Node, yaml.Node]]]:
    """Every key with its path. What an alias repeats stands in the file once, and is walked once."""
    for key, value in node.value:
        if isinstance(key, yaml.ScalarNode):
            path = (*above, str(key.value))
            yield path, (key, value)
            if isinstance(value, yaml.MappingNode) and value.start_mark.index >= key.end_mark.index:
                yield from _walked(value, path)


def _names(path: tuple[str, ...], option: str) -> bool:
    parts = tuple(option.split("."))
    return path[-1] == option or path[-len(parts) :] == parts


def _added(text: str, root: yaml.MappingNode, option: str, value: str, siblings: frozenset[str], is_json: bool) -> str:
    """The text with the option after the last one of the mapping that holds most of its siblings; the root where none
    does."""
    mappings = [root, *(node for _, (_, node) in _walked(root) if isinstance(node, yaml.MappingNode) and node.value)]
    home = max(mappings, key=lambda one: sum(getattr(key, "value", None) in siblings for key, _ in one.value))
    end = _end(home.value[-1])
    if home.flow_style:
        begin = home.value[0][0].start_mark
        before = text[: begin.index].rpartition("\n")[2]
        gap = f",\n{before}" if not before.strip() and begin.line != home.start_mark.line else ", "
        name = json.dumps(option) if is_json else option
        return f"{text[:end]}{gap}{name}: {value}{text[end:]}"
    newline = "\r\n" if "\r\n" in text else "\n"
    line = f"{' ' * home.value[0][0].start_mark.column}{option}: {value}{newline}"
    cut = text.find("\n", max(end - 1, 0)) + 1
    return f"{text[:cut]}{line}{text[cut:]}" if cut else f"{text}{newline}{line}"


def _end(pair: tuple[yaml.Node, yaml.Node]) -> int:
    """Where a pair ends in the text: a block's own mark lies behind the comments that follow it."""
    key, value = pair
    while isinstance(value, yaml.CollectionNode) and value.value and not value.flow_style:
        last = value.value[-1]
        key, value = last if isinstance(value, yaml.MappingNode) else (value, last)
    return int(max(key.end_mark.index if isinstance(key, yaml.ScalarNode) else 0, value.end_mark.index))


def written(value: Any, is_json: bool = False) -> str:
    """A value as YAML 1.1, YAML 1.2 and JSON all read it: YAML 1.1 takes `3e-05` for text, so that it is `3.0e-05`."""
    if isinstance(value, float) and not math.isfinite(value):
        return "null" if is_json else {True: ".nan", False: "-.inf" if value < 0 else ".inf"}[value != value]
    if isinstance(value, float):
        text = f"{value:.6g}"
        mantissa, mark, exponent = text.partition("e")
        if 1e-5 <= abs(value) < 1e-3:
            return f"{value:.9f}".rstrip("0")
        return f"{mantissa if '.' in mantissa else mantissa + '.0'}{mark}{exponent}"
    return json.dumps(value)
