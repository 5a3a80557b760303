"""Follower: one run that is read and judged again and again, from where the last look ended."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rlhealth.completions.texts import texts_of
from rlhealth.engine.ending import CLOSING, Ending, ending_of, last_sign
from rlhealth.engine.judge import NEVER, Judge
from rlhealth.errors import RlhealthError, Unavailable
from rlhealth.rules.model import Rule
from rlhealth.sources.base.reader import Reader
from rlhealth.verdict.baseline import Baseline
from rlhealth.verdict.verdicts import RunVerdict
from rlhealth.watch.changes import Change, ReportedFindings
from rlhealth.watch.clock import AwakeTime, Clock
from rlhealth.watch.trace import Traces

PATIENCE = 10.0  # seconds for which a failing request is repeated within one look
LONGEST_PAUSE = 300.0  # seconds between two attempts to look at a run that cannot be seen
SETTLED = 60.0  # seconds without news after which a run at its planned end is over, though nothing recorded the end
LONG_OVER = 600.0  # an end that old needs no second look


@dataclass(frozen=True)
class Event:
    """One thing to report about a run.

    Attributes:
        kind: found, raised, explained, worsened, cleared, resumed, blind, sees, silent, awake, over, waiting, stopping,
            trouble.
        run: its name.
        said: the event in a sentence, for the kinds that carry no change.
        change: for raised, explained, worsened and cleared.
    """

    kind: str
    run: str
    said: str = ""
    change: Change | None = None


def with_short_patience(reader: Reader) -> Reader:
    """The same reader with a short patience for a failing server: the watch tries again, and a person is looking at the
    screen."""
    patience: float | None = getattr(reader, "patience", None)
    if patience is not None and patience > PATIENCE:
        reader.patience = PATIENCE  # type: ignore[attr-defined]
    return reader


def why_of(error: RlhealthError) -> str:
    """What went wrong, without the place, which is known."""
    return error.reason if isinstance(error, Unavailable) else error.message.removeprefix(f"{error.location}: ")


def _unexpected(error: Exception, place: str) -> RlhealthError:
    """Wraps an error that a source should have reported as an RlhealthError."""
    if isinstance(error, OSError | MemoryError):
        return RlhealthError(
            f"{place}: {error or type(error).__name__}",
            hint="check that it still exists and is readable",
            location=place,
        )
    return RlhealthError(
        f"{place}: internal error: {type(error).__name__}: {error}",
        hint="this is a bug; please report it",
        location=place,
    )


class Follower:
    """Reads one run, judges it up to its newest complete step, and says what changed.

    Attributes:
        verdict: of the newest look; None while nothing was read.
        ending: how the run stands.
        over: whether the run ended, and nothing more is expected.
        live: whether it was seen to grow.
    """

    def __init__(
        self,
        reader: Reader,
        rules: Sequence[Rule],
        aliases: Mapping[str, str] | None = None,
        ignore: Mapping[str, str] | None = None,
        clock: Clock | None = None,
        place: str = "",
        baseline: Baseline | None = None,
        completions: str | None = None,
    ) -> None:
        self.reader = with_short_patience(reader)
        self.texts = texts_of(reader, completions)
        self.completions = completions
        self.place = place  # where it was found
        self.rules = rules
        self.aliases = aliases
        self.ignore = ignore or {}
        self.baseline = baseline or Baseline()
        self.clock = clock or Clock()
        self.judge: Judge | None = None
        self.traces = Traces()
        self.ledger = ReportedFindings()
        self.verdict: RunVerdict | None = None
        self.ending: Ending | None = None
        self.error: RlhealthError | None = None
        self.over = False
        self.live = False
        self.looks = 0
        self.news_at = self.clock.monotonic()
        self._vigil = AwakeTime(self.clock)
        self._seen_at = self.clock.passed()
        self._failures = 0
        self._next_attempt = -math.inf
        self._resumed = 0
        self._silent = False

    @property
    def name(self) -> str:
        """What the run is called."""
        return self.reader.run.name

    @property
    def blind_for(self) -> float | None:
        """Seconds since it was last seen, while it cannot be seen; else None."""
        return self.clock.passed() - self._seen_at if self._failures else None

    def adopt(self, reader: Reader) -> None:
        """Continues with another reader of the same run that covers more of it; nothing is reported a second time."""
        self.reader = with_short_patience(reader)
        self.texts = texts_of(reader, self.completions)
        self.judge = None
        self.traces = Traces()

    @property
    def is_due(self) -> bool:
        """Whether it is time to look again: a run that cannot be seen is looked at less often."""
        return self.clock.monotonic() >= self._next_attempt

    def read(self) -> bool:
        """Reads what is new; True if anything was. Raises as the reader does."""
        new = self.reader.poll()
        return self.texts.poll() or new

    def look(self, pause: float, read: Callable[[], bool] | None = None) -> list[Event]:
        """Reads and judges what is new.

        Args:
            pause: the usual time between two looks, seconds.
            read: gives what `read` gave, where that was asked for ahead of this look.

        Returns:
            the events to report. A look that fails raises nothing: it is reported once, and again when the run is
            seen again.
        """
        if not self.is_due:
            return []
        try:
            new = self.read() if read is None else read()
        except RlhealthError as error:
            return self._blinded(error, pause)
        except Exception as error:  # our own bug: reported, and the next look tries again
            return self._blinded(_unexpected(error, self.reader.run.place.location), pause)
        now = self._vigil.look(new=new, sees=True, newest=last_sign(self.reader.run))
        events = self._sighted()
        first = self.looks == 0
        self.looks += 1
        if new:
            self.news_at = self.clock.monotonic()
            self.live = self.live or not first
        if first:
            events.append(self._found())
        events += self._went_back()
        if self.over and not new and not first:
            return events  # nothing can have changed, and a folder may hold hundreds of runs that are over
        events += self._judge(now, whole=not new or self._settled(now), first=first)
        return events + self._stands(new=new)

    def finish(self) -> list[Event]:
        """Judges the rows that were held back because their step might be incomplete; then the verdict is what `check`
        gives."""
        if not self.looks:
            return []
        return self._judge(
            self._vigil.look(new=False, sees=not self._failures, newest=last_sign(self.reader.run)),
            whole=True,
            last=True,
        )

    def _judge(self, now: float, *, whole: bool, first: bool = False, last: bool = False) -> list[Event]:
        run = self.reader.run
        if self.judge is None:
            self.judge = Judge(run, self.rules, self.aliases)
        newest = run.last_step
        self.judge.advance(NEVER if whole or newest is None else newest - 1)
        self.verdict = self.judge.verdict(now, self.ignore, followed=not last)
        self.baseline.apply(self.verdict)
        self.ending = ending_of(run, self.judge.translation, now)
        events = self.ledger.changes(self.verdict, first=first, last=last)
        return [Event(one.kind, self.name, change=one) for one in events]

    def _settled(self, now: float) -> bool:
        """Whether the newest step is old enough to be complete."""
        return now - last_sign(self.reader.run) > SETTLED

    def _found(self) -> Event:
        run = self.reader.run
        last = run.last_step
        return Event(
            "found",
            run.name,
            f"{run.place.location}, at step {last:,}"
            if last is not None
            else f"{run.place.location}, nothing logged yet",
        )

    def _went_back(self) -> list[Event]:
        steps = self.reader.run.resumed_at[self._resumed :]
        self._resumed = len(self.reader.run.resumed_at)
        return [Event("resumed", self.name, f"resumed at step {step:,}") for step in steps] if self.looks > 1 else []

    def _stands(self, *, new: bool) -> list[Event]:
        """Notes whether the run is over or silent."""
        assert self.ending is not None
        run, ending = self.reader.run, self.ending
        recorded = run.exit_code is not None or any(tag.rpartition("/")[2] in CLOSING for tag in run.series)
        quiet = self.clock.monotonic() - self.news_at
        recorded |= bool(run.raised) and quiet >= SETTLED  # a launcher may start it again
        long_over = ending.idle > LONG_OVER
        settled = ending.state == "finished" and quiet >= max(
            SETTLED, 5 * ending.usual if math.isfinite(ending.usual) else 0.0
        )
        if (recorded and (not new or long_over)) or (ending.state == "finished" and (settled or long_over)):
            if self.over:
                return []
            self.over = True
            return [Event("over", self.name, ending.said)]
        was, self.over = self.over, False
        silent = ending.state == "unknown" and self.live  # if the plan is known, run-silent reports it
        begun = silent and not self._silent
        self._silent = silent
        if begun:
            return [
                Event(
                    "silent",
                    self.name,
                    f"nothing new for {ending.idle / 60:.0f} min, and no end was recorded; its plan is not known",
                )
            ]
        return [Event("resumed", self.name, "continues")] if was else []

    def _blinded(self, error: RlhealthError, pause: float) -> list[Event]:
        self._vigil.look(new=False, sees=False)
        self.error = error
        self._failures += 1
        wait = min(pause * 2 ** min(self._failures - 1, 16), max(LONGEST_PAUSE, pause))
        self._next_attempt = self.clock.monotonic() + wait
        if self._failures > 1:
            return []
        stands = "what was read so far stands" if self.looks else "nothing was read yet"
        return [Event("blind", self.name, f"{why_of(error)}; {stands}, trying again")]

    def _sighted(self) -> list[Event]:
        blind_for = self.blind_for
        self._failures, self._next_attempt, self.error = 0, -math.inf, None
        self._seen_at = self.clock.passed()
        again = "seen again" if self.looks else "seen"
        return [] if blind_for is None else [Event("sees", self.name, f"{again} after {blind_for / 60:.1f} min")]
