"""Writes docs/api.md, the page of the public Python names, from docstrings by pdoc: `python docs/api.py [--check]`."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pdoc.doc

import rlhealth
from rlhealth.integrations.callback import Health
from rlhealth.integrations.testing import assert_healthy
from rlhealth.preflight.looking import preflight

PAGE = Path(__file__).parent / "api.md"
HEAD = """# The Python interface

Written from the docstrings by `python docs/api.py`. What is not listed here may change without notice.
"""
#: Public, and imported from a module of its own: `from rlhealth.callback import HealthCallback`.
ELSEWHERE = {
    "rlhealth.callback.HealthCallback": Health,
    "rlhealth.testing.assert_healthy": assert_healthy,
    "rlhealth.preflight.looking.preflight": preflight,
}
#: Hooks that only a trainer calls.
_HOOKS = re.compile(r"on_\w+")


def page() -> str:
    """The whole page, as Markdown."""
    public = {f"rlhealth.{name}": getattr(rlhealth, name) for name in rlhealth.__all__ if not name.startswith("__")}
    parts = [HEAD]
    for name, found in (public | ELSEWHERE).items():
        parts += _class(name, found) if inspect.isclass(found) else _function(name, found)
    return "\n".join(parts).rstrip() + "\n"


def _function(name: str, found: object) -> list[str]:
    one = pdoc.doc.Function(found.__module__, found.__qualname__, found, (found.__module__, found.__qualname__))
    return [f"## {name}\n", f"```python\n{name.rpartition('.')[2]}{_signature(one)}\n```\n", _text(one.docstring)]


def _class(name: str, found: type) -> list[str]:
    one = pdoc.doc.Class(found.__module__, found.__qualname__, found, (found.__module__, found.__qualname__))
    parts = [f"## {name}\n", _text(one.docstring)]
    for member in _members(one):
        kind = f"{member.name}{_signature(member)}" if isinstance(member, pdoc.doc.Function) else member.name
        said = _text(member.docstring).strip().split("\n\n")[0]
        parts.append(f"- `{kind}`: {' '.join(said.split())}")
    return [*parts, ""]


def _members(one: pdoc.doc.Class) -> Iterator[pdoc.doc.Doc[object]]:
    """Methods and properties with a docstring that are the class's own, in the order of its code."""
    for member in one.own_members:
        hidden = member.name.startswith("_") or _HOOKS.fullmatch(member.name)
        if (
            not hidden
            and member.docstring
            and (isinstance(member, pdoc.doc.Function) or member.name not in one.docstring)
        ):
            yield member


def _signature(one: pdoc.doc.Function) -> str:
    """The parameters with their types, by the names that do not depend on the version of Python, numpy or pandas."""
    said = re.sub(r"\s+", " ", str(one.signature)).replace("( ", "(").replace(", )", ")")
    said = re.sub(
        r"numpy\.ndarray\[(?:tuple\[typing\.Any, \.\.\.\]|typing\.Any), numpy\.dtype\[([\w.]+)\]\]",
        r"NDArray[\1]",
        said,
    )
    return said.replace("pandas.core.frame.", "pandas.").replace("pathlib._local.", "pathlib.")


def _text(docstring: str) -> str:
    """A docstring as Markdown: its sections as lists."""
    lines: list[str] = []
    for line in inspect.cleandoc(docstring).splitlines():
        if re.fullmatch(r"(Args|Returns|Raises|Attributes):", line):
            lines += ["", f"**{line[:-1]}**", ""]
        elif entry := re.match(r"    (\w[\w, ]*): (.*)", line):
            lines.append(f"- `{entry[1]}`: {entry[2]}")
        elif line.startswith("        ") and lines and lines[-1].startswith("- "):
            lines[-1] += f" {line.strip()}"
        else:
            lines.append(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"


def main() -> int:
    """Writes the page, or with --check says whether it is stale."""
    text = page()
    if "--check" in sys.argv:
        if PAGE.read_text(encoding="utf-8") == text:
            return 0
        sys.stderr.write("docs/api.md is stale: python docs/api.py\n")
        return 1
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
