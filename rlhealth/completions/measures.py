"""Measures of the texts of one step, each a number that becomes a point of a series."""

from __future__ import annotations

import math
import zlib

import numpy as np

from rlhealth.completions.batch import Batch
from rlhealth.completions.likeness import copies, likeness
from rlhealth.completions.ngrams import words
from rlhealth.completions.rewards import of_rewards
from rlhealth.completions.scripts import outside

#: The most texts and characters of a step that are measured; larger steps are sampled, by whole groups.
MOST_TEXTS = 10_000
MOST_CHARACTERS = 48_000_000
#: What is measured on a part of the texts: their number, and the characters of each from its beginning.
PART, BEGINNING = 256, 4096
_TEMPLATE_WORDS = 3
_FEWEST_PROMPTS = 4


def measured(batch: Batch) -> tuple[dict[str, float], int]:
    """Every measure of a step by its canonical name, and how many texts were looked at; what is unknown is left
    out.

    Units and possible values are in canonical.yaml, in the group `text`.
    """
    batch = sampled(batch)
    if not len(batch):
        return {}, 0
    found = _of_lengths(batch)
    alike = likeness(batch.completions)
    found["repetition"] = float(np.mean(alike.repetition))
    found["distinct_2"] = alike.distinct_2
    found["words"] = float(np.mean(alike.words))
    found |= copies(alike, batch.group_of)
    part = _spread(len(batch), PART)
    beginnings = [batch.completions[one][:BEGINNING] for one in part]
    found["compression"] = compression(beginnings)
    found["other_script"] = outside([batch.prompts[one][:BEGINNING] for one in part], beginnings)
    found["template"] = template(batch)
    with np.errstate(all="ignore"):  # what overflows has no finite value, and is left out
        found |= of_rewards(batch)
    return {f"text/{name}": value for name, value in found.items() if math.isfinite(value)}, len(batch)


def sampled(batch: Batch) -> Batch:
    """The batch, or as many of its groups, spread over it, as may be measured at once."""
    characters = sum(map(len, batch.completions))
    share = min(1.0, MOST_TEXTS / max(len(batch), 1), MOST_CHARACTERS / max(characters, 1))
    if share == 1.0:
        return batch
    groups = batch.group_of
    count = int(groups.max()) + 1
    if count * share >= 1:
        kept = np.isin(groups, _spread(count, int(count * share)))
    else:
        kept = np.isin(np.arange(len(batch)), _spread(len(batch), max(1, int(len(batch) * share))))
    return batch.part(np.flatnonzero(kept))


def compression(texts: list[str]) -> float:
    """How many times smaller the texts become together (compression ratio, Shaib et al. 2024, arXiv 2403.00553); NaN
    where all are empty."""
    joined = "\n".join(texts).encode("utf-8", "replace")
    return len(joined) / len(zlib.compress(joined, 6)) if any(texts) else math.nan


def template(batch: Batch) -> float:
    """The part of a text that is the same whatever was asked: the share of its runs of three words that answers to at
    least half of the prompts hold.

    NaN for fewer than four prompts.
    """
    by_prompt: dict[str, list[str]] = {}
    for prompt, completion in zip(batch.prompts, batch.completions, strict=True):
        by_prompt.setdefault(prompt, []).append(completion)
    every = list(by_prompt.values())
    if len(every) < _FEWEST_PROMPTS:
        return math.nan
    chosen = [every[one][:8] for one in _spread(len(every), PART // 8)]
    prompt_of = np.repeat(np.arange(len(chosen)), [len(one) for one in chosen])
    runs, owners = [], []
    for part in words([one[:BEGINNING] for answers in chosen for one in answers]):
        run, text = part.ngrams(_TEMPLATE_WORDS)
        runs.append(run)
        owners.append(text + part.first)
    kinds, kind = np.unique(np.concatenate(runs), return_inverse=True)
    if not len(kinds):
        return math.nan
    text = np.concatenate(owners)
    pairs = np.unique(prompt_of[text] * len(kinds) + kind)
    common = np.bincount(pairs % len(kinds), minlength=len(kinds)) * 2 >= len(chosen)
    runs_of = np.bincount(text)
    return float(np.mean((np.bincount(text, common[kind]) / np.maximum(runs_of, 1))[runs_of > 0]))


def _of_lengths(batch: Batch) -> dict[str, float]:
    empty = np.asarray([not one.strip() for one in batch.completions])
    known = batch.cut[np.isfinite(batch.cut)]
    return {
        "samples": float(len(batch)),
        "empty": float(np.mean(empty)),
        "cut_off": float(np.mean(known)) if len(known) else math.nan,
        "length": float(np.mean(batch.lengths)),
        "length_std": float(np.std(batch.lengths)),
    }


def _spread(size: int, most: int) -> list[int]:
    """At most `most` numbers below `size`, evenly spread."""
    return list(range(size)) if size <= most else np.unique(np.linspace(0, size - 1, most).astype(int)).tolist()
