"""Keys: one key at a time from a terminal, whose state is always restored."""

from __future__ import annotations

import contextlib
import os
import re
import select
import sys
from collections.abc import Iterator

try:
    import termios
    import tty
except ImportError:  # Windows: there is no cbreak mode; Ctrl-C still works
    termios = tty = None  # type: ignore[assignment]

_REST_OF_SEQUENCE = 0.05  # seconds: a terminal sends a sequence at once, over a slow line in two parts
_LONGEST = 4096  # bytes of input that are looked at together
# ECMA-48: CSI (with the X10 mouse report's three bytes), SS3, Alt with a key, Esc alone
_SEQUENCE = re.compile(r"\x1b(?:\[M.{3}|\[[0-?]*[ -/]*[@-~]|O.|[^\[O\x1b]|\[[0-?]*|O)?", re.DOTALL)
_CUT = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*|\[M.{0,2}|O)?$", re.DOTALL)
_WHEEL = re.compile(r"\x1b\[<(64|65);")
_ENDS = {"A": "up", "B": "down", "C": "right", "D": "left", "H": "home", "F": "end"}
_NUMBERED = {"1": "home", "4": "end", "5": "pageup", "6": "pagedown", "7": "home", "8": "end"}
_CONTROLS = {"\r": "enter", "\n": "enter", "\x7f": "backspace", "\x08": "backspace"}


class Keyboard:
    """Reads keys if there is a terminal; else only waits."""

    def __init__(self) -> None:
        self._file: int | None = None
        self._typed: list[str] = []  # keys that were read and not yet asked for

    @contextlib.contextmanager
    def listening(self) -> Iterator[Keyboard]:
        """Reads keys one by one, without echo, until the end of the block; then restores the terminal."""
        if termios is None or not sys.stdin or not sys.stdin.isatty():
            yield self
            return
        file = sys.stdin.fileno()
        before = termios.tcgetattr(file)
        try:
            tty.setcbreak(file)
            self._file = file
            yield self
        finally:
            self._file = None
            termios.tcsetattr(file, termios.TCSADRAIN, before)

    @property
    def has_terminal(self) -> bool:
        """Whether there is a terminal that keys come from."""
        return self._file is not None

    def pressed(self, seconds: float) -> str:
        """The key pressed within that time, or nothing: a letter or sign, or the name of another key (`up`, `esc`)."""
        if self._file is None:
            return ""
        if not self._typed:
            self._typed = keys_in(self._read(max(0.0, seconds)))
        return self._typed.pop(0) if self._typed else ""

    def _read(self, seconds: float) -> str:
        """What the terminal sent within that time; waits a moment for the rest of an incomplete escape sequence."""
        read, patience = b"", seconds
        while self._file is not None and select.select([self._file], [], [], patience)[0]:
            new = os.read(self._file, 64)
            if not new:
                self._file = None  # the terminal is gone
            read, patience = read + new, _REST_OF_SEQUENCE
            if not _CUT.search(read) or len(read) > _LONGEST:
                break
        return read.decode("utf-8", "ignore")


def keys_in(sent: str) -> list[str]:
    """The keys in a terminal's input, in order. An unknown escape sequence is ignored: none of its letters counts as a
    key.
    """
    found: list[str] = []
    place = 0
    while place < len(sent):
        match = _SEQUENCE.match(sent, place)
        if match is None:
            found.append(_CONTROLS.get(sent[place], sent[place] if sent[place].isprintable() else ""))
            place += 1
        else:
            found.append(_named(match.group()))
            place = match.end()
    return [one for one in found if one]


def _named(sequence: str) -> str:
    """The key that sends an escape sequence; empty for one that is not used."""
    if sequence == "\x1b":
        return "esc"
    if wheel := _WHEEL.match(sequence):
        return "up" if wheel[1] == "64" else "down"
    if sequence[1] == "O" or re.fullmatch(r"\x1b\[[A-H]", sequence):
        return _ENDS.get(sequence[-1], "")
    numbered = re.fullmatch(r"\x1b\[(\d)~", sequence)
    return _NUMBERED.get(numbered[1], "") if numbered else ""
