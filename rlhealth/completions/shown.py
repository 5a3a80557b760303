"""Which texts to show at a finding: some from before it began and some from its worst step, of one prompt where there
is one."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from rlhealth.completions.batch import Batch
from rlhealth.completions.places import find, named
from rlhealth.completions.stores import CompletionFolder, Store
from rlhealth.completions.texts import is_measured
from rlhealth.verdict.findings import Finding
from rlhealth.verdict.verdicts import RunVerdict

#: Texts of one step that are shown at a finding, and findings of a run at which they are.
TEXTS = 2
FINDINGS = 5
#: Characters of a text that are shown; `rlhealth read` shows all.
SHOWN = 600
_N = 4  # words that make up a repeated sequence
_MARKED = 20_000  # characters that are looked at for what repeats
_WORD = re.compile(r"\S+")
Key = tuple[str, str, str]


class Excerpt(NamedTuple):
    """One text to show.

    Attributes:
        step: at which it was written.
        rewards: what each reward function gave it, and in which order the trainer names them.
        repeats: the parts of `completion`, from and to, that stood in it before.
        length: characters of the whole completion.
    """

    step: int
    prompt: str
    completion: str
    rewards: tuple[tuple[str, float], ...]
    repeats: tuple[tuple[int, int], ...]
    length: int


Shown = Mapping[Key, Sequence[Excerpt]]


def shown_at(runs: Sequence[RunVerdict], place: str | None = None) -> dict[Key, list[Excerpt]]:
    """The texts to show at the causes of each run, by run, rule and metric; `place` where the user named one."""
    found: dict[Key, list[Excerpt]] = {}
    for run in runs:
        stores = [named(place)] if place else find(run.run, asked=True)[0]
        if not stores or not run.causes:
            continue
        store = stores[0]
        _meet(store)
        for cause in run.causes[:FINDINGS]:
            if texts := at_finding(store, cause):
                found[run.name, cause.rule, cause.metric] = texts
    return found


def at_finding(store: Store, finding: Finding) -> list[Excerpt]:
    """The texts of the last step before the finding began, then those of its worst step (or the next that has any)."""
    steps = store.steps()
    before = bisect_left(steps, finding.first_step) - 1
    worst = min(bisect_left(steps, finding.worst_step), len(steps) - 1)
    earlier = store.at(steps[before]) if before >= 0 else None
    later = store.at(steps[worst]) if worst > before else None
    prompt = common_prompt(earlier, later)
    return [one for batch in (earlier, later) if batch is not None for one in chosen(batch, prompt)]


def common_prompt(one: Batch | None, other: Batch | None) -> str | None:
    """A prompt that both batches answer; None if there is none."""
    if one is None or other is None:
        return None
    both = set(other.prompts)
    return next((prompt for prompt in one.prompts if prompt in both), None)


def chosen(batch: Batch, prompt: str | None = None) -> list[Excerpt]:
    """The highest and the lowest paid text of a prompt, or of the batch's first prompt."""
    if not len(batch):
        return []
    wanted = batch.prompts[0] if prompt is None else prompt
    rows = [row for row, one in enumerate(batch.prompts) if one == wanted]
    order = sorted(rows, key=lambda row: _rank(batch, row))
    picked = list(dict.fromkeys([order[0], order[-1]]))[:TEXTS]
    return [excerpt(batch, row) for row in picked]


def excerpt(batch: Batch, row: int) -> Excerpt:
    """One row of a batch as it is shown."""
    text = batch.completions[row]
    return Excerpt(
        -1 if batch.step is None else batch.step,
        batch.prompts[row],
        text,
        rewards_of(batch, row),
        tuple(repeated(text)),
        int(batch.lengths[row]),
    )


def rewards_of(batch: Batch, row: int) -> tuple[tuple[str, float], ...]:
    """The rewards of one row by the names of their functions; the total first where it is none of them."""
    rewards = [(name, float(values[row])) for name, values in batch.functions.items()]
    if not any(np.array_equal(values, batch.total, equal_nan=True) for values in batch.functions.values()):
        rewards.insert(0, ("total", float(batch.total[row])))
    return tuple(rewards)


def repeated(text: str) -> list[tuple[int, int]]:
    """The parts of a text, from and to, whose every sequence of four words stood in it before."""
    found = [match.span() for match in _WORD.finditer(text[:_MARKED])]
    said = [text[start:end] for start, end in found]
    seen: set[tuple[str, ...]] = set()
    parts: list[tuple[int, int]] = []
    for place in range(len(said) - _N + 1):
        gram = tuple(said[place : place + _N])
        if gram in seen:
            start, end = found[place][0], found[place + _N - 1][1]
            if parts and start <= parts[-1][1] + 1:
                parts[-1] = parts[-1][0], end
            else:
                parts.append((start, end))
        seen.add(gram)
    return parts


def _rank(batch: Batch, row: int) -> float:
    value = float(batch.total[row])
    return -value if np.isfinite(value) else np.inf


def _meet(store: Store) -> None:
    """Lets a store see what it holds; only wandb's tables must be read for their steps."""
    light = isinstance(store, CompletionFolder) and store.is_step
    for _ in store.poll((lambda _: False) if light else is_measured):
        pass
