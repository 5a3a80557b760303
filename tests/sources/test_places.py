"""Several places at once: the parts of one run are joined, whatever else was said of how to read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlhealth.sources.discovery.places import RunSelection, find_all

RESUMED = Path(__file__).parents[2] / "fixtures" / "tensorboard" / "grpo-resumed"


@pytest.mark.parametrize("choice", [None, RunSelection(at_once=1), RunSelection(at_once=20)])
def test_the_parts_of_a_resumed_run_that_are_named_are_one_run(choice: RunSelection | None) -> None:
    parts = sorted(RESUMED.rglob("events.out.tfevents.*"))
    assert len(parts) == 2
    assert len(find_all(parts, choice)) == 1
