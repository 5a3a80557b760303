"""Markup that cannot forget to escape: text becomes HTML only through `el`, and whatever came from a log is made
harmless there.
"""

from __future__ import annotations

import re
from html import escape

from rlhealth.reports.words import clean, shortened

#: The sign of each verdict and severity.
SIGNS = {"healthy": "✓", "warning": "▲", "critical": "✗", "unknown": "?", "info": "i"}
_LONGEST = 600  # characters of one name on the page; the JSON report has names whole
_LONGEST_PROSE = 4000  # characters of a rule's own text, which may have names from the log in it
_VOID = frozenset({"meta", "input"})
_DRAWN = frozenset({"path", "rect"})  # SVG has no void elements: these close themselves


class Html(str):
    """Text that is already HTML. Only this module and files of this package make one."""

    __slots__ = ()


def el(name: str, /, *children: str | Html | None, **attributes: str | float | bool | None) -> Html:
    """One element. Strings are escaped, `Html` is not; `class_` and `for_` lose their underscore, others turn it into a
    hyphen.

    An attribute that is None or False is left out, one that is True has no value.
    """
    parts = [name]
    for key, value in attributes.items():
        spelled = key.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        parts.append(spelled if value is True else f'{spelled}="{_attribute(value)}"')
    if name in _DRAWN:
        return Html(f"<{' '.join(parts)}/>")
    start = f"<{' '.join(parts)}>"
    return Html(start) if name in _VOID and not children else Html(f"{start}{join(*children)}</{name}>")


def join(*children: str | Html | None) -> Html:
    """Several pieces one after another."""
    return Html("".join(one if isinstance(one, Html) else text(one) for one in children if one is not None))


def text(said: str, most: int = _LONGEST) -> Html:
    """Text of the page, of at most so many characters."""
    return Html(escape(shortened(clean(said), most), quote=False))


def named(said: str) -> Html:
    """The name of a metric or a rule, which may break after its slashes, underscores and hyphens."""
    broken = re.sub("([/_-])", r"\1<wbr>", text(said))
    return Html(f"<code>{broken}</code>")


def prose(said: str) -> Html:
    """A rule's own text, whose line breaks are only those of its file."""
    return text(" ".join(said.split()), _LONGEST_PROSE)


def badge(verdict: str, said: str = "") -> Html:
    """A verdict as a sign and a word; the colour only repeats them."""
    return el("span", el("span", SIGNS[verdict], aria_hidden="true"), f" {said or verdict}", class_=f"badge {verdict}")


def _attribute(value: str | float) -> str:
    return value if isinstance(value, Html) else escape(shortened(clean(value), _LONGEST * 4))
