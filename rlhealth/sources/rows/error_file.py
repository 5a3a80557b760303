"""The file in which a launcher keeps what a process wrote to its standard error, beside its console: `slurm-7.err`
beside `slurm-7.out`."""

from __future__ import annotations

import re
from pathlib import Path

from rlhealth.errors import RlhealthError
from rlhealth.sources.rows.last_words import raised_in, tail_of

#: What the name of a console has in it -> what the name of its error file has there. The second form is that of PBS.
_NAMES = (
    (re.compile(r"\.(?:out|log)$"), (".err",)),
    (re.compile(r"\.o(?=\d{1,12}$)"), (".e",)),
    (re.compile(r"(?<![a-z])stdout(?![a-z])"), ("stderr",)),
    (re.compile(r"(?<![a-z])out(?:put)?(?=\.(?:log|txt)$)"), ("err", "error", "errors")),
)


def raised_beside(console: Path) -> str:
    """The exception that the error file of a console ends with, without keys; empty if there is none, or if training
    went on after it. The dates of the files say nothing: a copy has others."""
    for name in _beside(console.name):
        try:
            raised = raised_in(tail_of(console.with_name(name)))
        except (RlhealthError, OSError):
            continue  # most consoles have none
        if raised:
            return raised
    return ""


def _beside(name: str) -> list[str]:
    return [pattern.sub(other, name, count=1) for pattern, others in _NAMES if pattern.search(name) for other in others]
