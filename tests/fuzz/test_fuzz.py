"""The short pass: every target with inputs that are the same every time, and every input that ever broke one."""

from __future__ import annotations

import warnings
import zlib
from pathlib import Path
from random import Random

import pytest

from tests.examples import examples
from tests.fuzz.mutate import mutated
from tests.fuzz.targets import TARGETS, Target, scratch

FOUND = sorted(path for path in Path(__file__).with_name("found").rglob("*") if path.is_file())


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_whatever_it_is_given_it_answers_or_says_why_not(target: Target, tmp_path: Path) -> None:
    if target.needs:
        pytest.importorskip(target.needs)
    random = Random(zlib.crc32(target.name.encode()))
    path, seeds = scratch(str(tmp_path), target), target.seeds()
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        read = [target.attempt(raw, path) for raw in seeds]
        read += [target.attempt(mutated(random, seeds, target.words), path) for _ in range(examples(target.quick))]
    assert any(read)


@pytest.mark.parametrize("found", FOUND, ids=[f"{path.parent.name}/{path.name}" for path in FOUND])
def test_what_once_broke_it_is_answered(found: Path, tmp_path: Path) -> None:
    target = TARGETS[found.parent.name]
    if target.needs:
        pytest.importorskip(target.needs)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        target.attempt(found.read_bytes(), scratch(str(tmp_path), target))
