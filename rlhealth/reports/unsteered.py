"""Breaks up what a CI system would take for a command of ours: `::` at the start of a line, `##[`, `##vso[` and
`##teamcity[` anywhere.

GitHub's runner trims a line and compares with `::`, and looks for `##[` anywhere in it (ActionCommand.cs, TryParseV2
and TryParse); both compare as people read, so that characters without width between the signs change nothing. Azure
Pipelines and TeamCity look for their own words behind `##`.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, TextIO

#: Printable characters without width, which a comparison by culture leaves out.
_UNSEEN = (
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u2064"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff"
)
#: Compiled when a text needs them: most are plain, and a compilation takes a hundredth of a first answer.
_HASHES = rf"#(?=[{_UNSEEN}]*#[{_UNSEEN}\w.-]{{0,60}}\[)"
_COLONS = rf"((?:^|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])[\s{_UNSEEN}]*:)(?=[{_UNSEEN}]*:)"
_WRITTEN_AS = {"json": "\\u0023", "sarif": "\\u0023", "gitlab": "\\u0023", "junit": "&#35;", "html": "&#35;"}
_TAIL = 64  # characters of a line by which one that is written in pieces is known


def without_commands(text: str) -> str:
    """The text with a blank inside each sign of a command."""
    if text.isascii() and "##" not in text and "::" not in text:
        return text
    return _compiled(_COLONS).sub(r"\1 ", _compiled(_HASHES).sub("# ", text))


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def in_format(text: str, format: str) -> str:
    """A report that says the same and holds no command: by the escapes of its format where it has some. Annotations
    for GitHub stay.
    """
    if format == "github":
        return _compiled(_HASHES).sub("# ", text)
    written = _WRITTEN_AS.get(format)
    return without_commands(text) if written is None else _compiled(_HASHES).sub(lambda _: written, text)


class CommandFreeStream:
    """A stream that breaks up commands in whatever is written to it, in whatever pieces; everything else is the
    stream's own.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._line = ""  # the end of the line that is being written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Writes the text, broken up where it needs to be."""
        before = self._line
        whole = without_commands(before + text)
        crossing = not whole.startswith(before)  # a sign lies across the two pieces
        said = " " + without_commands(text) if crossing else whole[len(before) :]
        self._line = (before + said).rpartition("\n")[2][-_TAIL:]
        self._stream.write(said)
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Writes each of the lines."""
        for line in lines:
            self.write(line)

    def raw(self, text: str) -> None:
        """Writes text with commands of our own in it."""
        self._line = ""
        self._stream.write(text)
