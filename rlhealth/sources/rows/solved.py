"""What a script says once its task is solved, by a mark of its own."""

from __future__ import annotations

import re

from rlhealth.sources.base.values import said_by_exception
from rlhealth.sources.rows.printed_line import bare

#: What a script prints once the mark of its task is reached: `Environment solved in 747 episodes!`, `Solved at episode
#: 120`, and `Solved! Running reward is now 201.2` of PyTorch's example. A line that counts the steps of one episode is
#: none.
_COUNTED = r"(?:episode|epoch|iteration|generation|trial)s?\b"
_SOLVED = re.compile(
    rf"(?<!not )(?<![a-z])solved\b(?:!? (?:in|within|after|at|on)\W{{1,3}}(?:(?:only|about) )?"
    rf"(?:{_COUNTED}\W{{1,3}}\d[\d.,]{{0,12}}|\d[\d.,]{{0,12}} (?:training )?{_COUNTED})|! Running reward is now \d)",
    re.IGNORECASE,
)
_LONGEST = 200  # characters of such a line
TAIL = 16 << 10  # characters at the end of a text in which it is looked for


def says_solved(line: str) -> bool:
    """Whether a line says so."""
    return "olved" in line and len(line) <= _LONGEST and _SOLVED.search(line) is not None


def solved_in(text: str) -> str:
    """The last line at the end of a text that says so, without keys; empty if there is none."""
    if "olved" not in text[-TAIL:]:
        return ""
    lines = (bare(line)[1] for line in reversed(text[-TAIL:].splitlines()))
    return said_by_exception(" ".join(next(filter(says_solved, lines), "").split()))
