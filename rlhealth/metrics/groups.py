"""Which trainers a scope names: by id, by a pattern of ids, or by a group of groups.yaml."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import lru_cache

from rlhealth.metrics.catalogue import FOLDER
from rlhealth.parsing.own_texts import read_texts


@lru_cache(maxsize=1)
def groups() -> dict[str, list[str]]:
    """Each group's name, with the ids and patterns of its trainers."""
    found: dict[str, list[str]] = read_texts(FOLDER / "groups.yaml")
    return found


def members(named: Sequence[str]) -> list[str]:
    """The ids and patterns that a scope names, with the members of a group in its place."""
    return [pattern for one in named for pattern in groups().get(one, [one])]


def is_named(framework: str, named: Sequence[str]) -> bool:
    """Whether a scope is about this trainer; one that names none is about all."""
    return not named or any(fnmatchcase(framework, pattern) for pattern in members(named))
