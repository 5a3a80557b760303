"""The live screen: the terminal is filled with how the runs stand, redrawn every second, and left as it was found."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rlhealth.reports import ReportOptions, words
from rlhealth.reports.page import Page
from rlhealth.watch import board, board_detail, board_run
from rlhealth.watch.keys import Keyboard
from rlhealth.watch.lines import sentence
from rlhealth.watch.view import View

if TYPE_CHECKING:
    from rich.live import Live

    from rlhealth.watch.follower import Event, Follower
    from rlhealth.watch.loop import Watch

REDRAWN = 1.0  # seconds between two drawings
KEPT = 200  # events


class Screen:
    """Draws what is followed as the view asks for it, and keeps the last events to show them.

    Args:
        bell: whether the terminal rings, and notifies (OSC 9), when an incident opens or worsens.
    """

    def __init__(self, look: ReportOptions, *, bell: bool = False) -> None:
        self.look = look
        self.bell = bell
        self.view = View()
        self.events: deque[tuple[float, Event]] = deque(maxlen=KEPT)
        self.keys = Keyboard()
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
        self.events.append((watch.clock.wall(), event))
        if self.bell and self._live is not None and event.kind in ("raised", "worsened"):
            self._ring(event)
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
            if self.keys.has_terminal:
                if (key := self.keys.pressed(part)) and not self.view.press(key, _shown(watch)):
                    return False
            else:
                watch.clock.wait(part)

    def draw(self, watch: Watch) -> None:
        """Draws once."""
        if self._live is None:
            return
        from rich.text import Text

        size = self._live.console.size
        lines = drawn(watch, list(self.events), self.look, size.width, size.height, self.view)
        self._live.update(Text.from_ansi("\n".join(lines), no_wrap=True, overflow="crop"), refresh=True)

    def _ring(self, event: Event) -> None:
        """The bell, and a notification by the terminal (OSC 9; others ignore it)."""
        assert self._live is not None
        said = words.clean(f"{event.run}: {sentence(event)}", ascii=True)[:200].replace(";", ",")
        self._live.console.file.write(f"\x07\x1b]9;rlhealth: {said}\x1b\\")
        self._live.console.file.flush()


def _shown(watch: Watch) -> list[Follower]:
    return [one for one in watch.followers if one.verdict is not None or one.blind_for is not None]


def drawn(
    watch: Watch,
    events: list[tuple[float, Event]],
    look: ReportOptions,
    width: int,
    height: int,
    view: View | None = None,
) -> list[str]:
    """The screen as lines of at most `width` columns, at most `height` of them: what the view asks for."""
    page = Page(ReportOptions(max(20, width), look.color, look.ascii))
    followers, view = _shown(watch), view or View()
    asked, run = view.page(followers), view.run(followers)
    if asked == "help" or (asked in ("story", "metric") and run is not None and run.judge is not None):
        {"help": board_detail.help_, "story": board_detail.story, "metric": board_detail.metric}[asked](
            page, watch, run, view, height
        )
        return _lines(page)[:height]
    below = Page(ReportOptions(max(20, width), look.color, look.ascii))
    board.foot(below, watch)
    if asked == "overview" and len(followers) == 1:
        board_run.write(page, watch, followers[0], room=height - 4)
    else:
        board.write(page, watch, followers, room=height - 8, view=view)
    top, bottom = _lines(page), _lines(below)
    log = Page(ReportOptions(max(20, width), look.color, look.ascii))
    room = height - min(len(top), height - len(bottom)) - len(bottom)
    if room >= 2 and events:
        board.log(log, events[-(room - 1) :], several=len(followers) > 1)
    return [*top[: height - len(bottom)], *_lines(log)[:room], *bottom][:height]


def _lines(page: Page) -> list[str]:
    return page.text().rstrip("\n").split("\n") if page.text() else []
