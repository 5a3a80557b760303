"""Keys: one key at a time from a terminal, which is put back as it was whatever happens."""

from __future__ import annotations

import contextlib
import os
import select
import sys
from collections.abc import Iterator

try:
    import termios
    import tty
except ImportError:  # Windows: there is no cbreak mode; Ctrl-C still works
    termios = tty = None  # type: ignore[assignment]


class Keys:
    """Reads keys where there is a terminal to read them from; else only lets time pass."""

    def __init__(self) -> None:
        self._file: int | None = None

    @contextlib.contextmanager
    def listening(self) -> Iterator[Keys]:
        """Takes keys one by one, unseen, until the end of the block; the terminal is as before afterwards."""
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
    def can_hear(self) -> bool:
        """Whether there is a terminal that keys come from."""
        return self._file is not None

    def pressed(self, seconds: float) -> str:
        """The key pressed within that time, or nothing."""
        if self._file is None:
            return ""
        ready, _, _ = select.select([self._file], [], [], max(0.0, seconds))
        if not ready:
            return ""
        pressed = os.read(self._file, 64)
        if not pressed:
            self._file = None  # the terminal is gone
        return pressed.decode("utf-8", "ignore")[:1]
