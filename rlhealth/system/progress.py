"""How far a long piece of work has come: one line on stderr, on a terminal only, and only where it takes more than a
second.
"""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

QUICK = 1.0  # seconds


class Progress:
    """Shows, while it is open, how many of the runs are read and judged."""

    def __init__(self, doing: str) -> None:
        self.doing = doing
        self.done, self.total = 0, 0
        self._bar: Bar | None = None
        self._task: TaskID | None = None
        self._lock = threading.Lock()
        self._timer = threading.Timer(QUICK, self._show) if sys.stderr.isatty() else None

    def __enter__(self) -> Progress:
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._timer = None
            if self._bar is not None:
                self._bar.stop()

    def tick(self, done: int, total: int) -> None:
        """Notes that so many of so many are done."""
        self.done, self.total = done, total
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, total=total)

    def _show(self) -> None:
        from rich.console import Console  # late: most checks are over before
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        with self._lock:
            if self._timer is None:
                return
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self._bar = Bar(
                *columns, console=Console(stderr=True), transient=True, redirect_stdout=False, redirect_stderr=False
            )
            self._task = self._bar.add_task(self.doing, total=self.total or None, completed=self.done)
            self._bar.start()
