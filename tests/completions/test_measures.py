"""The measures of a step, on texts of real runs and on hostile ones."""

from __future__ import annotations

import numpy as np
import pytest

from rlhealth.completions import measures
from rlhealth.completions.batch import LONGEST_TEXT, batches
from rlhealth.completions.measures import compression, measured, sampled, template
from rlhealth.metrics import meaning


def batch(completions, prompts=None, **columns):
    prompts = prompts or [f"prompt {number // 4}" for number in range(len(completions))]
    return batches({"step": [1] * len(completions), "prompt": prompts, "completion": completions, **columns})[0]


def test_every_measure_has_a_meaning_and_lies_within_its_bounds():
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(["a", "b", "c", "longer"], rng.integers(0, 30))) for _ in range(64)]
    found, looked = measured(batch(texts, acc=rng.random(64), format=rng.integers(0, 2, 64).astype(float)))
    assert looked == 64 and len(found) > 15
    for name, value in found.items():
        known = meaning(name)
        assert known is not None and known.group == "text", name
        assert (known.low is None or value >= known.low) and (known.high is None or value <= known.high), name


def test_one_template_with_different_content_is_seen():
    filled = [
        f"thank you for asking about {number} it is a great question indeed and the answer is {number * 7}"
        for number in range(16)
    ]
    free = [
        " ".join(np.random.default_rng(number).choice(["red", "blue", "tall", "old", "new", "sad", "odd", "wet"], 16))
        for number in range(16)
    ]
    prompts = [f"about {number}" for number in range(16)]
    assert template(batch(filled, prompts)) > 0.6 > 0.1 > template(batch(free, prompts))
    assert np.isnan(template(batch(filled[:3], prompts[:3])))


def test_texts_that_say_the_same_compress_better():
    rng = np.random.default_rng(1)
    assert compression(["the same again"] * 50) > 5 * compression([rng.bytes(20).hex() for _ in range(50)])


@pytest.mark.parametrize(
    "text", ["", " \n", "\x00" * 100, "\x1b[31m" * 50, "\ud800 broken", "<script>" * 30, "好" * 50, "\u202e" * 20]
)
def test_a_hostile_text_is_measured_like_any_other(text):
    found, _ = measured(batch([text] * 8, reward=[0.0, 1.0] * 4))
    assert all(np.isfinite(value) for value in found.values())
    assert found["text/empty"] == float(not text.strip())


def test_a_text_of_fifty_megabytes_is_kept_in_part_and_its_length_is_reported():
    found = batch(["x " * (25 << 20), "short"])
    assert len(found.completions[0]) == LONGEST_TEXT and found.lengths[0] == 50 << 20 and found.shortened == 1


def test_more_texts_than_are_measured_are_sampled_by_whole_groups(monkeypatch):
    monkeypatch.setattr(measures, "MOST_TEXTS", 100)
    found = sampled(batch(["text"] * 1000))
    assert len(found) == 100 and found.left_out == 900
    assert set(np.bincount(found.group_of).tolist()) == {4}
