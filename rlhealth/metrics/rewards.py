"""What reward functions reward: words of rewards.yaml, each of which stands for the names of such metrics."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from rlhealth.parsing.own_texts import read_texts

#: The canonical names of the values of each reward function.
PART = r"rewards/[^/]+/mean"
FILE = Path(__file__).with_name("rewards.yaml")


@lru_cache(maxsize=1)
def kinds() -> dict[str, list[str]]:
    """The kinds of rewards, each with the patterns of its canonical names."""
    found: dict[str, list[str]] = read_texts(FILE)
    return found


def written_out(names: str) -> str:
    """`one|another`, with each word of rewards.yaml replaced by its names."""
    return "|".join("|".join(kinds().get(one, [one])) for one in names.split("|"))


def is_paid_for(kind: str, name: str) -> bool:
    """Whether a word of rewards.yaml stands for the metric of that canonical name."""
    return any(fnmatchcase(name, pattern) for pattern in kinds()[kind])
