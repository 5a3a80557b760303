"""Files of completions that look like logs but are no runs: trainers such as verl write one file of JSON lines per
step, with one completion per row."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

from rlhealth.errors import RlhealthError
from rlhealth.sources.base.growing import open_regular

_NUMBERED = re.compile(r"(?:\w+_)?\d{1,12}\.jsonl")
_TEXTS = (("input", "output"), ("prompt", "completion"), ("prompt", "response"), ("input_prompt", "output_response"))
_FIRST_LINE = 1 << 20


def without_texts(files: Iterable[Path]) -> list[Path]:
    """The files without files of completions, which are named by their step and have a prompt and a text in the first
    row."""
    holds: dict[Path, bool] = {}
    kept = []
    for file in files:
        if _NUMBERED.fullmatch(file.name):
            if file.parent not in holds:
                holds[file.parent] = _holds_texts(file)
            if holds[file.parent]:
                continue
        kept.append(file)
    return kept


def _holds_texts(file: Path) -> bool:
    try:
        with open_regular(file) as opened:
            row = json.loads(opened.readline(_FIRST_LINE).decode("utf-8", "replace"))
    except (RlhealthError, OSError, ValueError, RecursionError):
        return False
    return isinstance(row, dict) and any(
        isinstance(row.get(one), str) and isinstance(row.get(other), str) for one, other in _TEXTS
    )
