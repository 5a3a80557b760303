"""The file in which a launcher keeps what a process wrote to its standard error, beside its console: `slurm-7.err`
beside `slurm-7.out`, or `train-1119663.err` beside `job-1119663.out`."""

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
#: The number of a job, in which both names end whatever stands before it: no two jobs have the same.
_JOB = re.compile(r"(?<![0-9])([0-9]{4,12}(?:_[0-9]{1,6})?)\.(?:out|log)$")


def raised_beside(console: Path) -> str:
    """The exception that the error file of a console ends with, without keys; empty if there is none, or if training
    went on after it. The dates of the files say nothing: a copy has others."""
    for path in _beside(console):
        try:
            raised = raised_in(tail_of(path))
        except (RlhealthError, OSError):
            continue  # most consoles have none
        if raised:
            return raised
    return ""


def _beside(console: Path) -> list[Path]:
    name, job = console.name, _JOB.search(console.name)
    names = [
        pattern.sub(other, name, count=1) for pattern, others in _NAMES if pattern.search(name) for other in others
    ]
    if job is not None and not any(console.with_name(one).exists() for one in names):
        ending = re.compile(rf"(?:.*[^0-9])?{job[1]}\.err")
        names += sorted(path.name for path in console.parent.glob(f"*{job[1]}.err") if ending.fullmatch(path.name))
    return [console.with_name(one) for one in names]
