"""Curves that are saved again and again under another number: the longest is the run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from rlhealth.run import UnreadFile
from rlhealth.sources.discovery.find import find_readers

REWARDS = [float(n % 7 + n) for n in range(60)]


def test_older_copies_of_a_curve_are_no_runs(tmp_path: Path) -> None:
    for count in (20, 40, 60):
        np.save(tmp_path / f"rewards_{count}.npy", REWARDS[:count])
    left: list[UnreadFile] = []
    (reader,) = find_readers(tmp_path, left=left)
    assert reader.run.series["rewards"].values.tolist() == REWARDS
    assert sorted(one.reason for one in left) == [
        "rewards_40.npy begins with the same numbers",
        "rewards_60.npy begins with the same numbers",
    ]


def test_older_copies_of_a_document_are_no_runs(tmp_path: Path) -> None:
    for count in (20, 40, 60):
        document = {"steps": list(range(count)), "rewards": REWARDS[:count]}
        (tmp_path / f"rewards_step_{count}.json").write_text(json.dumps(document))
    (reader,) = find_readers(tmp_path)
    assert len(reader.run.series["rewards"]) == 60


def test_seeds_are_runs(tmp_path: Path) -> None:
    for seed in range(3):
        np.save(tmp_path / f"rewards_{seed}.npy", [one + seed for one in REWARDS[: 40 + seed]])
    assert len(find_readers(tmp_path)) == 3
