"""Options in a shell script that starts a trainer: `--option value`, `option=value`, and the script's own plain
variables."""

from __future__ import annotations

import re
import shlex
from typing import Any

_ASSIGNED = re.compile(
    r"^\s*(?:export\s+)?(?P<name>[A-Za-z_]\w*)=(?P<value>\"[^\"\n]*\"|'[^'\n]*'|[^\s;#]*)\s*(?:#.*)?$"
)
_VARIABLE = re.compile(r"\$(?:\{(?P<braced>\w+)(?::?[-=](?P<default>[^}$]*))?\}|(?P<plain>[A-Za-z_]\w*))")
_OVERRIDE = re.compile(r"^\+{0,2}(?P<name>[A-Za-z_][\w./@]*)=(?P<value>.*)$", re.DOTALL)
_FLAG = re.compile(r"^--?(?P<name>[A-Za-z][\w.\-]*)(?:=(?P<value>.*))?$", re.DOTALL)


def options_in(script: str) -> tuple[dict[str, Any], dict[str, int]]:
    """The options that the commands of a script name, and the line on which each stands; nothing is run.

    A flag without a value is True. A value that only the shell would know (a command's output, an argument of the
    script) is left out. Where an option stands twice, the later one counts, as it does for trainers.
    """
    known: dict[str, str] = {}
    found: dict[str, Any] = {}
    lines: dict[str, int] = {}
    for number, text in _commands(script):
        assigned = _ASSIGNED.match(text)
        if assigned:
            value = _filled(assigned["value"].strip("\"'"), known)
            known.pop(assigned["name"], None)
            if value is not None:
                known[assigned["name"]] = value
            continue
        for offset, name, value in _options(text, known):
            found.pop(name, None)
            if value is not None:
                found[name], lines[name] = value, number + offset
    return found, lines


def _commands(script: str) -> list[tuple[int, str]]:
    """Each command with the number of its first line; a backslash or an open quote carries it on, comments are blank
    lines."""
    commands: list[tuple[int, str]] = []
    begun, parts = 0, [""]
    for number, line in enumerate(script.replace("\r\n", "\n").split("\n"), 1):
        if not line.lstrip().startswith("#"):
            parts.append(line.rstrip().removesuffix("\\"))
        else:
            parts.append("")
        begun = begun or number
        if line.rstrip().endswith("\\") or (line.lstrip().startswith("#") and len(parts) > 2):
            continue
        commands.append((begun, "\n".join(parts[1:])))
        begun, parts = 0, [""]
    if len(parts) > 1:
        commands.append((begun, "\n".join(parts[1:])))
    return commands


def _options(text: str, known: dict[str, str]) -> list[tuple[int, str, Any]]:
    """The options of one command: the line below its first, the name, and the value; None if only the shell knows
    it."""
    found: list[tuple[int, str, Any]] = []
    waiting: tuple[int, str] | None = None
    for offset, line in enumerate(text.split("\n")):
        try:
            words = shlex.split(line, comments=True)
        except ValueError:  # a quote that another line closes
            words = line.split()
        for word in words:
            flag = _FLAG.match(word)
            if waiting is not None and (flag is None or _is_number(word)):
                found.append((*waiting, _filled(word, known)))
                waiting = None
                continue
            if waiting is not None:
                found.append((*waiting, True))
                waiting = None
            override = _OVERRIDE.match(word)
            if flag is not None and flag["value"] is None:
                waiting = offset, flag["name"].replace("-", "_")
            elif flag is not None:
                found.append((offset, flag["name"].replace("-", "_"), _filled(flag["value"], known)))
            elif override is not None:
                found.append((offset, override["name"], _filled(override["value"], known)))
    if waiting is not None:
        found.append((*waiting, True))
    return found


def _filled(value: str, known: dict[str, str]) -> str | None:
    """The value with the script's variables put in; None if one of them is not known."""
    for match in _VARIABLE.finditer(value):
        name = match["braced"] or match["plain"]
        if name not in known and match["default"] is None:
            return None
    filled = _VARIABLE.sub(lambda one: known.get(one["braced"] or one["plain"], one["default"] or ""), value)
    return None if "$" in filled or "`" in filled else filled


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
