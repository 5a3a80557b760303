"""How many examples a property is tried on: two fifths of them in the suite, all with `--hypothesis-profile
thorough`.
"""

from __future__ import annotations

from hypothesis import settings

#: Of the profile of the suite: a test that asks for no number of its own.
IN_THE_SUITE = 40
FEWEST = 5


def is_thorough() -> bool:
    """Whether the thorough profile was asked for. (It is chosen before tests are imported.)"""
    return settings().max_examples > IN_THE_SUITE


def examples(many: int) -> int:
    """So many in the thorough profile, fewer in the suite."""
    return many if is_thorough() else max(FEWEST, many * 2 // 5)
