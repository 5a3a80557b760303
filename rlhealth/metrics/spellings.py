"""The reverse lookup: the name under which a run's trainer logs a canonical metric, with notes for its
reader."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rlhealth.metrics.catalogue import TEXT, Alias
from rlhealth.metrics.recognise import recognise
from rlhealth.run import Run

#: The start of the note on a name that only a derivative of the trainer logs.
OF_OTHERS = "of derived trainers"


@dataclass(frozen=True)
class Spelling:
    """One name under which a trainer logs a metric, with what its entry notes (when it is logged, what it counts)."""

    tag: str
    note: str


def spellings(run: Run, metric: str) -> tuple[Spelling, ...]:
    """The names of that metric in the run's trainer, in its possible versions; empty if it has no such metric.

    Args:
        metric: canonical; `*` stands for any part of a name, as in rules.
    """
    known = recognise(run)
    prefix = next((one for one in known.prefixes if any(tag.startswith(one) for tag in run.series)), "")
    names = known.names
    aliases = [
        one
        for group in [*names.exact.values(), *(group for _, group in names.patterns), *names.histograms.values()]
        for one in group
    ]
    aliases += [one for _, one in names.sums]
    fitting = sorted(
        (one for one in aliases if _feeds(one, metric) and one.fits(known.low, known.high)), key=lambda one: one.rank
    )
    return tuple(_unique(Spelling(prefix + one.raw, one.note) for one in fitting))


def _feeds(alias: Alias, metric: str) -> bool:
    return (
        not alias.drop
        and not alias.note.startswith(OF_OTHERS)
        and not alias.name.startswith(TEXT)  # a measure of rlhealth, which no trainer logs
        and metric in (alias.name, alias.name.replace("{f}", "*"))
    )


def _unique(found: Iterator[Spelling]) -> list[Spelling]:
    return list({one.tag: one for one in reversed(list(found))}.values())[::-1]
