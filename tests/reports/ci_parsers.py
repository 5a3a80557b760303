"""What CI systems take for a command in a line of output, ported from their own sources, as generously as their
comparisons read it.
"""

from __future__ import annotations

import re

#: Commands that GitHub's runner knows.
GITHUB = {
    "add-mask",
    "add-matcher",
    "add-path",
    "debug",
    "echo",
    "endgroup",
    "error",
    "group",
    "notice",
    "remove-matcher",
    "save-state",
    "set-env",
    "set-output",
    "stop-commands",
    "warning",
    "section",
    "command",
}
_WIDTHLESS = re.compile(
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u2064\u3164\ufe00-\ufe0f\ufeff\uffa0]"
)


def github(line: str) -> tuple[str, str] | None:
    """The command and data that actions/runner reads (ActionCommand.TryParseV2, then TryParse); comparisons there
    ignore what has no width.
    """
    text = _WIDTHLESS.sub("", line)
    message = text.lstrip()
    if message.startswith("::") and (end := message.find("::", 2)) >= 0:
        name = message[2:end].partition(" ")[0]
        if name in GITHUB:
            return name, message[end + 2 :]
    at = text.find("##[")
    if at >= 0 and (end := text.find("]", at)) >= 0:
        name = text[at + 3 : end].partition(" ")[0]
        if name in GITHUB:
            return name, text[end + 1 :]
    return None


def azure(line: str) -> str | None:
    """The command that Azure's agent reads (Command.TryParse): `##vso[area.event …]` anywhere; `##[…]` formats the
    line.
    """
    found = re.search(r"##vso\[[^\]]*\]|##\[(?:error|warning|section|command|debug|group|endgroup)\]", line)
    return found[0] if found else None


def teamcity(line: str) -> str | None:
    """The service message that TeamCity reads, anywhere in a line."""
    found = re.search(r"##teamcity\[[^\]]*\]", line)
    return found[0] if found else None


def commands(output: str) -> list[object]:
    """Everything in some output that one of the systems would act on."""
    lines = re.split(r"\r\n|\r|\n", output)
    return [command for line in lines for command in (github(line), azure(line), teamcity(line)) if command is not None]
