"""Monitor: the same rules inside your own training loop, fed step by step.

monitor = rlhealth.Monitor("my-run", config={"learning_rate": 1e-6})
for step in range(1, steps + 1):
    ...
    for change in monitor.log(step, {"reward": reward, "kl": kl}):
        print(change)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlhealth.engine.judge import Judge
from rlhealth.errors import RlhealthError
from rlhealth.rules.loading import load_rules
from rlhealth.rules.model import Rule
from rlhealth.run import Place, Run, flat
from rlhealth.sources.base.spelling import number
from rlhealth.system.files import write_whole
from rlhealth.verdict.findings import Finding, Severity
from rlhealth.verdict.gate import Gate
from rlhealth.verdict.verdicts import RunVerdict, Verdict
from rlhealth.watch.changes import Change, ReportedFindings

if TYPE_CHECKING:
    from rlhealth.completions.texts import CompletionReader

PER_LOG = 0.4e-3  # seconds of judging that each call of `log` may cost, on average …
PER_SECOND = 1e-3  # … with this share of the time that passes between the calls …
AT_FIRST = 0.12  # … and so many seconds at the start, when names are learned and each step is looked at


class Monitor:
    """One run that is judged while it is logged.

    A call of `log` costs well under a millisecond on average, and never more than about a thousandth of the time that
    the loop takes: where steps are fast, several are judged at once. Nothing is lost by that, findings name their own
        steps.

    Args:
        name: what reports call the run.
        config: the trainer's settings; limits that follow a setting (a clip range, a length) need them.
        versions: library versions, such as {"trl": "1.16.0"}: names changed their meaning between some.
        planned_steps: the number of steps planned, where `config` does not give it.
        rules: what to judge by; the shipped rules if not given.
        aliases: your own metric names, raw tag to canonical name.
        ignore: rule ids or families to leave out, each with the reason.
    """

    def __init__(
        self,
        name: str = "run",
        *,
        config: Mapping[str, Any] | None = None,
        versions: Mapping[str, str] | None = None,
        planned_steps: int | None = None,
        rules: Sequence[Rule] | None = None,
        aliases: Mapping[str, str] | None = None,
        ignore: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.run = Run(
            name,
            Place("monitor", name),
            config=flat(config or {}),
            versions=dict(versions or {}),
            planned_steps=planned_steps,
        )
        self.ignore = dict(ignore or {})
        self._judge = Judge(self.run, load_rules() if rules is None else rules, aliases)
        self._verdict: RunVerdict | None = None
        self._waiting: dict[str, tuple[list[int], list[float], list[float]]] = {}
        self._unreported: list[Change] = []
        self._ledger = ReportedFindings()
        self._texts: CompletionReader | None = None
        self._clock = clock
        self._spared = AT_FIRST
        self._last = clock()

    def log(self, step: int, metrics: Mapping[str, Any]) -> list[Change]:
        """Takes the metrics of one step, by the names that the trainer logs them under; what is no number is left out.

        Returns:
            what is new: incidents raised, explained, worsened or cleared. One may come a few calls after the step at
                which it was due.
        """
        now = time.time()
        for tag, value in metrics.items():
            found = number(value) if isinstance(value, float | int | str) else _item(value)
            if found is not None:
                steps, values, times = self._waiting.setdefault(str(tag), ([], [], []))
                steps.append(int(step))
                values.append(found)
                times.append(now)
        passed, self._last = self._clock() - self._last, self._clock()
        self._spared = min(AT_FIRST, self._spared + PER_LOG + PER_SECOND * max(0.0, passed))
        if self._spared >= 0:
            self._look()
        new, self._unreported = self._unreported, []
        return new

    def worst(self, severity: Severity, after: int = -1) -> Finding | None:
        """The finding of at least that severity that has not ended and is the worst; of equals the one raised first.

        As of the newest look, which may be a few calls back. What was raised at step `after` or earlier is left out.
        """
        found = [] if self._verdict is None else self._verdict.findings
        standing = [
            one
            for one in found
            if one.severity >= severity and not one.ended and one.replaced_at is None and _last_raised(one) > after
        ]
        return min(standing, key=lambda one: (-one.severity, one.raised_step), default=None)

    def log_completions(self, step: int, rows: Iterable[Mapping[str, Any]]) -> None:
        """Measures the completions of one step: repetition, copies, empties, what length earns. Only numbers are kept.

        What they show is judged with the next `log` of that step. It takes about 0.2 ms a text of 4,000 characters.

        Args:
            rows: one for each completion: `prompt`, `completion`, `reward` or one number for each reward function.
        """
        from rlhealth.completions.batch import batches, holds_texts, in_columns  # late: most loops log numbers alone
        from rlhealth.completions.texts import CompletionReader

        columns = in_columns({**row, "step": int(step)} for row in rows)
        if not holds_texts(columns):
            raise RlhealthError(
                "Monitor.log_completions: the rows hold no texts",
                hint='each is a mapping such as {"prompt": …, "completion": …, "reward": …}',
            )
        self._texts = self._texts or CompletionReader(self.run)
        for batch in batches(columns):
            self._texts.add(batch)

    def verdict(self) -> RunVerdict:
        """What is known of the run now, everything logged so far judged. What is new is reported by the next `log`
        too."""
        self._look()
        assert self._verdict is not None
        return self._verdict

    def finish(self, exit_code: int = 0) -> RunVerdict:
        """Notes that training has ended, in good order or not, and returns the verdict."""
        self.run.exit_code = exit_code
        self._look(last=True)
        assert self._verdict is not None
        return self._verdict

    def report(self, folder: str | Path, formats: Mapping[str, str] | None = None) -> list[Path]:
        """Writes the report into a folder: rlhealth.json and rlhealth.md, or the formats given, by file name.

        Raises:
            RlhealthError: if the folder cannot be written to.
        """
        from rlhealth.reports import write  # late: reports are only written now and then

        verdict = Verdict([self.verdict()], gate=Gate())
        written = []
        for name, format in (formats or {"rlhealth.json": "json", "rlhealth.md": "markdown"}).items():
            path = Path(folder) / name
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_whole(path, write(verdict, format))
            except OSError as error:
                raise RlhealthError(
                    f"{path}: {error.strerror}", hint="name a folder that can be written to", location=str(path)
                ) from None
            written.append(path)
        return written

    def _look(self, *, last: bool = False) -> None:
        begun = self._clock()
        for tag, (steps, values, times) in self._waiting.items():
            self.run.add(tag, steps, values, times)
        self._waiting.clear()
        if self._texts is not None:
            self._texts.move()
        self._judge.advance()
        found = self._judge.verdict(ignore=self.ignore)
        self._unreported += self._ledger.changes(found, last=last)
        self._verdict = found
        self._spared -= self._clock() - begun


def _last_raised(one: Finding) -> int:
    """The step at which a finding was raised, for the last time."""
    return one.episodes[-1].raised_step if one.episodes else one.raised_step


def _item(value: Any) -> float | None:
    """The number in an array or tensor of one element; None for anything else."""
    try:
        return number(value.item())
    except (AttributeError, TypeError, ValueError, RuntimeError):
        return None
