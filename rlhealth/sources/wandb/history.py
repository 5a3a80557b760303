"""The history of one online run: which rows to request, in pages of which size; each row is taken once, in any order of
arrival.
"""

from __future__ import annotations

import heapq
import itertools
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rlhealth.run import Run
from rlhealth.sources.base.columns import columns_of
from rlhealth.sources.base.history import AXES, Rows
from rlhealth.sources.base.values import is_metric
from rlhealth.sources.wandb.first_look import look_at
from rlhealth.sources.wandb.history_info import ROWS_A_PAGE, history_info, keys_of, page_size
from rlhealth.sources.wandb.pages import Row, asked, merged, scanned, step_of, steps_of
from rlhealth.sources.wandb.session import Session

#: With more keys than this, the first look requests only the needed keys, if the result is provably complete.
MANY_KEYS = 1000
#: More scans than this cost more than reading whole rows.
MOST_GROUPS = 12
#: Values of one run, about 24 bytes each; more than this are not read.
MOST_VALUES = 50_000_000
#: How many values wait as Python numbers before they are put into arrays.
MOST_HELD = 500_000
#: `wandb.watch` logs a histogram for each layer; no metric is made of them.
WATCHED = ("gradients/", "parameters/", "graph_")
TRAINER = "profiling/Time taken"


def is_needed(tag: str) -> bool:
    """Whether a tag can be a metric of training: not wandb's own, no timing, no layer's weights."""
    return is_metric(tag) and not tag.startswith(WATCHED)


class History:
    """Fills a run with its history rows.

    A row is identified by its `_step`, wandb's own count. A row that comes twice (exported and live, or after a retry)
    is taken once. A late row is inserted at its step. Of the newest row, if it has grown, only the new values are
    taken. `null` counts as absent: wandb's exported files have one for every key that a row lacks.

    Attributes:
        last_step: the highest `_step` read; -1 before the first row.
        exported: whether some of its rows are in files that the server exported.
        doubtful: the server counts more rows than were received, or fewer than before; the next read checks this.
    """

    def __init__(self, run: Run, place: str, wanted: Callable[[str], bool] = is_needed) -> None:
        self.run = run
        self._place = place
        self._wanted = wanted
        self.exported = False
        self._early: Iterator[list[Row]] | None = None
        self._begin()

    def _begin(self) -> None:
        self._rows = Rows(self.run)
        self.last_step = -1
        self.doubtful = False
        self._complete = False
        self._taken: set[int] = set()
        self._newest: Row = {}
        self._kept: dict[str, bool] = {}
        self._held = 0
        self._values = 0
        self._ordered = 0
        self._shortage = 0
        self._summary: Mapping[str, Any] = {}

    def read(self, session: Session, hosted: Any) -> bool:
        """Reads the rows that are new; True if there were any.

        Raises:
            Unavailable: if the server failed; what came before is kept, and the next call continues after it.
        """
        if self._values > MOST_VALUES:
            return False
        info = history_info(hosted)
        keys, last, counted = info
        gone_back = self._complete and 0 <= last < self.last_step
        if gone_back and self.doubtful:  # seen twice, so not a late response
            self._forget(f"wandb took the run back to row {last}; it was read again from its beginning")
            gone_back = False
        size, since = info.page_size, max(self.last_step, 0)
        new = self._read_needed(session, hosted, keys, last, counted) if self.last_step < 0 else None
        if new is None:
            new = self._read_whole(session, hosted, size, first=since, fresh=not self._complete)
        if self._values > MOST_VALUES:
            self.run.problems.append(
                f"more than {MOST_VALUES:,} values: rows after step {self.last_step} were not read"
            )
            self.doubtful = False
            return True
        if counted - len(self._taken) > self._shortage and not self.exported and not session.asks_pages:
            self.exported = look_at(session, hosted, [hosted.id], self._place)[0].exported
            new = (self.exported and self._read_whole(session, hosted, size, first=since, fresh=False)) or new
        new = self._make_sure(session, hosted, counted, size, gone_back) or new
        self._complete = True
        return new

    def begin(self, session: Session, hosted: Any) -> None:
        """Requests the first pages early, before it is known whether rows of the run were exported."""
        info = history_info(hosted)
        if self.last_step < 0 <= info.last and not self._groups(info.keys):
            self._early = self._asked(session, hosted, 0, info.page_size)

    def end(self, summary: Mapping[str, Any]) -> bool:
        """Takes the values that only the summary of an ended run holds; True if they are new."""
        if summary == self._summary:
            return False
        self._summary = summary
        return self._rows.end(summary)

    def _make_sure(self, session: Session, hosted: Any, counted: int, size: int, gone_back: bool) -> bool:
        """Reads everything again if the server twice counted more rows than were received; True if that found any."""
        new = False
        short = counted - len(self._taken)
        suspicious = self._complete and short > self._shortage
        if suspicious and self.doubtful:
            new = self._read_whole(session, hosted, min(size, ROWS_A_PAGE), first=0, fresh=True)
            suspicious = False
        self.doubtful = suspicious or gone_back
        if not suspicious:
            self._shortage = max(0, counted - len(self._taken))
            self._report_missing_rows(counted)
        return new

    def _report_missing_rows(self, counted: int) -> None:
        missing = "rows in this run's history, "
        self.run.problems = [one for one in self.run.problems if missing not in one]
        if self._shortage > 0.05 * counted:
            self.run.problems.append(f"wandb counts {counted:,} {missing}of which {len(self._taken):,} could be read")

    def _read_whole(self, session: Session, hosted: Any, size: int, *, first: int, fresh: bool) -> bool:
        new = False
        if self.exported:
            pages = scanned(session, hosted, self._place, first=first, size=size, keys=None, fresh=fresh)
        else:
            pages = self._early if self._early is not None and first == 0 else self._asked(session, hosted, first, size)
        self._early = None
        try:
            for page in pages:
                new = self._take_page(page) or new
                if self._values > MOST_VALUES:
                    break
        finally:
            self._flush()
        return new

    def _asked(self, session: Session, hosted: Any, first: int, size: int) -> Iterator[list[Row]]:
        last = keys_of(hosted)[1]
        last = session.once(lambda _: int(hosted.lastHistoryStep), self._place) if last < 0 else last
        return asked(session, hosted, self._place, first=first, last=last, size=size)

    def _take_page(self, page: list[Row]) -> bool:
        """Takes the rows of a page; if all of them are new, column by column, with the same result."""
        steps = steps_of(page)
        if any(map(operator.ge, steps, steps[1:])):
            page = list(merged(sorted(page, key=step_of)))
            steps = steps_of(page)
        columns = columns_of(page, self._keeps) if steps and steps[0] > self.last_step else None
        if columns is None:
            new = False
            for row in merged(page):
                new = self._take(row) or new
            return new
        self._rows.take_columns(columns)
        self._taken.update(steps)
        self._values += sum(map(len, page))
        self.last_step, self._newest = steps[-1], next(merged(page[-1:]))
        return True

    def _read_needed(
        self, session: Session, hosted: Any, keys: Mapping[str, int], last: int, counted: int
    ) -> bool | None:
        """Reads only the needed keys of a run that has thousands; None if that would not save time, or was incomplete.

        A scan by keys leaves out every row that lacks one of them, so keys that were logged equally often are requested
        together, and the number of rows must match that count.
        """
        groups = self._groups(keys)
        if not groups:
            return None
        size = page_size(sum(map(len, groups)), last, counted)
        came = [0] * len(groups)

        def rows(index: int) -> Iterator[Row]:
            for page in scanned(session, hosted, self._place, first=0, size=size, keys=groups[index], fresh=False):
                page.sort(key=step_of)
                for row in merged(page):
                    came[index] += 1
                    yield row

        new = False
        for row in merged(heapq.merge(*(rows(index) for index in range(len(groups))), key=step_of)):
            new = self._take(row) or new
            if self._values > MOST_VALUES:
                return new
        self._flush()
        if all(count >= keys[group[0]] for count, group in zip(came, groups, strict=True)):
            return new
        self._forget("")
        return None

    def _groups(self, keys: Mapping[str, int]) -> list[list[str]]:
        needed = [key for key in keys if self._wanted(key) or key in AXES or key == "_timestamp"]
        needed += [key for key in keys if key.startswith(TRAINER)][:1]
        if len(keys) <= MANY_KEYS or 2 * len(needed) > len(keys) or not all(keys[key] for key in needed):
            return []
        ordered = sorted(needed, key=lambda key: -keys[key])
        groups = [list(group) for _, group in itertools.groupby(ordered, key=lambda key: keys[key])]
        return groups if len(groups) <= MOST_GROUPS else []

    def _take(self, row: Row) -> bool:
        step = step_of(row)
        if step in self._taken:
            return step == self.last_step and self._take_more(row)
        self._rows.take({key: value for key, value in row.items() if self._keeps(key)}, late=step < self.last_step)
        self._taken.add(step)
        self._held += len(row)
        self._values += len(row)
        if self._held > MOST_HELD:
            self._flush()
        if step > self.last_step:
            self.last_step, self._newest = step, row
        return True

    def _take_more(self, row: Row) -> bool:
        """Takes the values that were added to the newest row since it was read."""
        gained = {
            key for key, value in row.items() if key not in self._newest or repr(self._newest[key]) != repr(value)
        }
        if not any(self._wanted(key) for key in gained):
            return False
        self._newest = {**self._newest, **row}
        self._rows.take(
            {
                key: value
                for key, value in row.items()
                if key in AXES or key.startswith("_") or (key in gained and self._keeps(key))
            }
        )
        return True

    def _flush(self) -> None:
        self._rows.flush()
        self._held = 0
        if len(self.run.series) != self._ordered:  # the SDK gives a row's keys in any order
            ordered = sorted(self.run.series.items())
            self.run.series.clear()
            self.run.series.update(ordered)
            self._ordered = len(ordered)

    def _keeps(self, key: str) -> bool:
        kept = self._kept.get(key)
        if kept is None:
            kept = self._kept[key] = key.startswith(("_", TRAINER)) or key in AXES or self._wanted(key)
        return kept

    def _forget(self, why: str) -> None:
        self.run.clear()
        self._begin()
        if why:
            self.run.notes.append(why)
