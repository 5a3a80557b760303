"""The live screen: the terminal is filled with how the runs stand, redrawn every second, and left as it was found."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rlhealth.reports import Look
from rlhealth.reports.page import Page
from rlhealth.watch import board, board_run
from rlhealth.watch.keys import Keys

if TYPE_CHECKING:
    from rich.live import Live

    from rlhealth.watch.follower import Event
    from rlhealth.watch.loop import Watch

REDRAWN = 1.0  # seconds between two drawings
KEPT = 200  # events


class Screen:
    """Draws what is followed, and keeps the last events to show them."""

    def __init__(self, look: Look) -> None:
        self.look = look
        self.told: deque[tuple[float, Event]] = deque(maxlen=KEPT)
        self.keys = Keys()
        self._live: Live | None = None

    @contextlib.contextmanager
    def shown(self) -> Iterator[Screen]:
        """Shows the screen until the end of the block."""
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        console = Console(no_color=not self.look.color, highlight=False, legacy_windows=False)
        with (
            self.keys.listening(),
            Live(
                Text(), console=console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
            ) as self._live,
        ):
            try:
                yield self
            finally:
                self._live = None

    def show(self, watch: Watch, event: Event) -> None:
        """Keeps an event to be shown."""
        self.told.append((watch.clock.wall(), event))
        if event.kind == "stopping":
            self.draw(watch)  # what follows may take as long as the run is given to end

    def wait(self, watch: Watch, seconds: float) -> bool:
        """Shows the time pass until the next look; False when q was pressed."""
        end = time.monotonic() + seconds
        while True:
            self.draw(watch)
            left = end - time.monotonic()
            if left <= 0:
                return True
            part = min(REDRAWN, left)
            if self.keys.can_hear:
                if self.keys.pressed(part) in ("q", "Q"):
                    return False
            else:
                watch.clock.wait(part)

    def draw(self, watch: Watch) -> None:
        """Draws once."""
        if self._live is None:
            return
        from rich.text import Text

        size = self._live.console.size
        lines = drawn(watch, list(self.told), self.look, size.width, size.height)
        self._live.update(Text.from_ansi("\n".join(lines), no_wrap=True, overflow="crop"), refresh=True)


def drawn(watch: Watch, told: list[tuple[float, Event]], look: Look, width: int, height: int) -> list[str]:
    """The screen as lines of at most `width` columns, at most `height` of them: one run in detail, or one line a
    run.
    """
    page = Page(Look(max(20, width), look.color, look.ascii))
    followers = [one for one in watch.followers if one.verdict is not None or one.blind_for is not None]
    below = Page(Look(max(20, width), look.color, look.ascii))
    board.foot(below, watch)
    if len(followers) == 1:
        board_run.write(page, watch, followers[0], room=height - 4)
    else:
        board.write(page, watch, followers, room=height - 8)
    top, bottom = _lines(page), _lines(below)
    log = Page(Look(max(20, width), look.color, look.ascii))
    room = height - min(len(top), height - len(bottom)) - len(bottom)
    if room >= 2 and told:
        board.log(log, told[-(room - 1) :], several=len(followers) > 1)
    return [*top[: height - len(bottom)], *_lines(log)[:room], *bottom][:height]


def _lines(page: Page) -> list[str]:
    return page.text().rstrip("\n").split("\n") if page.text() else []
