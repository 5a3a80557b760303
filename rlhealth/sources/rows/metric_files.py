"""CSV files of a folder that hold one metric each, with the columns step and value, and are named after it: one run."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from rlhealth.run import Place, Run

FEWEST = 2  # metrics that are recognised, so that the files are those of one run, and not one metric of several runs
_HEADER = re.compile(r"\s*+\"?(?:wall[ _]?time\"?,\"?)?(?:global_)?steps?\"?,\"?value\"?\s*", re.IGNORECASE)
_SHARED = re.compile(r".*[^A-Za-z0-9]")


def has_one_metric(header: str) -> bool:
    """Whether a table with that first line has the columns step and value, and no other but a time."""
    return _HEADER.fullmatch(header) is not None


def tags_of(files: Iterable[Path]) -> dict[Path, str]:
    """The tag of each of these files (all of which hold one metric), where those of its folder are of one run."""
    folders: dict[Path, list[Path]] = {}
    for path in files:
        folders.setdefault(path.parent, []).append(path)
    found: dict[Path, str] = {}
    for paths in folders.values():
        tags = _tags([path.stem for path in paths])
        found |= {path: tag for path, tag in zip(paths, tags, strict=True) if tag}
    return found


def tag_alone(stem: str) -> str:
    """The tag of a file that holds one metric, where its name or the end of it is one that is known:
    `run7__Train__mean_reward` gives `Train/mean_reward`; otherwise empty."""
    parts = stem.split("__")
    named = (stem, "/".join(parts[-2:]), parts[-1])
    return next((one for one in named if _metrics([one])), "")


def _tags(stems: Sequence[str]) -> Sequence[str]:
    """The stems as tags, without their common beginning unless it is a part of their names; empty strings if they give
    too few metrics."""
    shared = _SHARED.match(os.path.commonprefix(stems))  # noqa: RUF071 (letter by letter)
    shorter = [stem[shared.end() if shared else 0 :] for stem in stems]
    best = max(([stem.replace("__", "/") for stem in one] for one in (shorter, stems)), key=_metrics)
    return best if _metrics(best) >= FEWEST else [""] * len(stems)


def _metrics(tags: Sequence[str]) -> int:
    """How many metrics a run with these tags has, apart from components of its reward."""
    from rlhealth.metrics import translate  # late: the names are read from YAML

    run = Run("", Place("csv", ""))
    for tag in tags:
        run.add(tag, np.array([1]), np.array([0.0]), np.array([np.nan]))
    metrics: Mapping[str, object] = translate(run).metrics
    return sum(not name.startswith("rewards/") for name in metrics)
