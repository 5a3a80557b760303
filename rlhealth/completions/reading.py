"""Reading for a person: the texts of one step by their reward, or those of all steps that a pattern matches."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from rlhealth.completions.batch import Batch
from rlhealth.completions.places import find, named
from rlhealth.completions.shown import Excerpt, excerpt
from rlhealth.completions.stores import Store
from rlhealth.errors import RlhealthError
from rlhealth.sources.discovery.find import find_readers

HOW_TO_LOG = "TRL writes them with log_completions=True, verl with trainer.rollout_data_dir"
_HINT = f"{HOW_TO_LOG}; --completions names the place"


def store_of(where: str, place: str | None = None, source: str | None = None) -> Store:
    """Where the completions of a run lie; `where` may also be the place itself.

    Raises:
        RlhealthError: if there is no run, more than one, or no completions with it.
    """
    if place is not None:
        return _met(named(place))
    problem: RlhealthError | None = None
    notes: list[str] = []
    try:
        readers = find_readers(where, source=source)
        if len(readers) > 1:
            names = ", ".join(one.run.name for one in readers[:5])
            raise RlhealthError(f"{where}: {len(readers)} runs", hint=f"name one of them: {names}", location=where)
        readers[0].poll()
        stores, notes = find(readers[0].run, asked=True)
        if stores:
            return _met(stores[0])
    except RlhealthError as error:
        problem = error
    if Path(where).expanduser().exists():
        try:
            return _met(named(where))
        except RlhealthError as error:
            if problem is None and notes:
                raise RlhealthError(notes[0].removeprefix("completions: "), location=where) from None
            problem = problem if problem is not None and problem.location != where else error
    if problem is not None and "--completions" not in problem.message:
        raise problem
    raise RlhealthError(f"{where}: no completions beside this run", hint=_HINT, location=where)


def found_in(
    store: Store, step: int | None, *, worst: bool = False, grep: str | None = None, limit: int = 100
) -> tuple[list[Excerpt], int]:
    """The texts to show, and how many there are.

    Args:
        step: of which step; the newest if not given, or every step where `grep` is.
        worst: the lowest reward first.
        grep: a regular expression that the completion, or its prompt, must match.

    Raises:
        RlhealthError: for a step without texts, and for what is no regular expression.
    """
    pattern = _pattern(grep) if grep is not None else None
    shown: list[Excerpt] = []
    total = 0
    for batch in _batches(store, step, every=pattern is not None):
        for row in _order(batch, worst):
            if pattern is None or pattern.search(batch.completions[row]) or pattern.search(batch.prompts[row]):
                total += 1
                if len(shown) < limit:
                    shown.append(excerpt(batch, row))
    return shown, total


def _batches(store: Store, step: int | None, *, every: bool) -> Iterator[Batch]:
    steps = store.steps()
    if step is not None and step not in steps:
        place = bisect_left(steps, step)
        near = " and ".join(f"{one:,}" for one in steps[max(0, place - 1) : place + 1])
        raise RlhealthError(f"{store.place}: no completions of step {step:,}", hint=f"the nearest: {near or 'none'}")
    wanted = [step] if step is not None else steps if every else steps[-1:]
    for one in wanted:
        if (batch := store.at(one)) is not None:
            yield batch


def _order(batch: Batch, worst: bool) -> list[int]:
    known = np.where(np.isfinite(batch.total), batch.total, -np.inf)
    order: list[int] = np.argsort(known if worst else -known, kind="stable").tolist()
    return order


def _pattern(grep: str) -> re.Pattern[str]:
    try:
        return re.compile(grep)
    except re.error as error:
        raise RlhealthError(f"--grep {grep}: {error}", hint="it takes a Python regular expression") from None


def _met(store: Store) -> Store:
    """The store when it has seen all that it holds."""
    for _ in store.poll(lambda _: True):
        pass
    return store
