"""What reward functions pay for: words of rewards.yaml, each of which stands for the names of such metrics."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from rlhealth.parsing.own_texts import read_texts

#: The canonical names of what each reward function pays.
PART = r"rewards/[^/]+/mean"
FILE = Path(__file__).with_name("rewards.yaml")


@lru_cache(maxsize=1)
def kinds() -> dict[str, list[str]]:
    """What a reward is paid for, with the patterns of canonical names that say so."""
    found: dict[str, list[str]] = read_texts(FILE)
    return found


def written_out(names: str) -> str:
    """`one|another` with the names that a word of rewards.yaml stands for in its place."""
    return "|".join("|".join(kinds().get(one, [one])) for one in names.split("|"))


def is_paid_for(kind: str, name: str) -> bool:
    """Whether the metric of that canonical name is one that a word of rewards.yaml stands for."""
    return any(fnmatchcase(name, pattern) for pattern in kinds()[kind])
