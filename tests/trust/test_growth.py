"""Time is bounded: what hostile shapes cost grows with their size, not with its square."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.growth import MOST, SHAPES, growth


@pytest.mark.parametrize("name", SHAPES)
def test_reading_is_linear(name: str, tmp_path: Path) -> None:
    took, exponent = growth(name, tmp_path, scale=0.5, rounds=1)
    if exponent > MOST:  # a busy machine: once more, and with more care
        took, exponent = growth(name, tmp_path, scale=0.5)
    assert exponent <= MOST, took
