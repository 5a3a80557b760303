"""Letters of another script than the prompts' are seen; formulas, digits and punctuation are of no script."""

from __future__ import annotations

import math

import pytest

from rlhealth.completions.scripts import outside


@pytest.mark.parametrize(
    ("prompt", "completion", "expected"),
    [
        ("What is two plus two?", "It is four.", 0.0),
        ("What is two plus two?", "四四四四", 1.0),
        ("What is two plus two?", "four 四四四四", 0.5),
        ("二加二等于多少？", "四", 0.0),
        ("Сколько будет два плюс два?", "четыре", 0.0),
        ("Сколько будет два плюс два?", "four", 1.0),
        ("Find the angle", "α + β = π", 0.0),
        ("Qué es esto?", "é ü ñ", 0.0),
    ],
)
def test_the_share_of_letters_of_another_script(prompt, completion, expected):
    assert outside([prompt], [completion]) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("prompt", "completion"), [("1 + 1 =", "zwei"), ("word", "2 + 2 \x00 ½ 🙂"), ("", ""), ("\ud800", "\udfff")]
)
def test_without_letters_nothing_is_said(prompt, completion):
    assert math.isnan(outside([prompt], [completion]))
