"""Rows of any trainer become the same batch."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlhealth.completions.batch import batches, holds_texts, in_columns

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda one: st.lists(one) | st.dictionaries(st.text(), one),
    max_leaves=5,
)


@pytest.mark.parametrize(
    "row",
    [
        {"step": 3, "prompt": "hi", "completion": "yo", "acc": 1.0, "advantage": 0.5},
        {"input": "hi", "output": "yo", "gts": "7", "score": 1.0, "step": 3, "acc": "True"},
        {"query": "hi", "response": "yo", "reward": 1.0, "step": 3},
        {
            "step": 3,
            "prompt": [{"role": "user", "content": "hi"}],
            "completion": [{"role": "assistant", "content": "yo"}],
            "acc": 1.0,
        },
        {
            "step": 3,
            "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}],
            "reward": 1.0,
        },
        {"input_prompt": "hi", "output_response": "yo", "score": 1.0, "stop_reason": "length", "global_step": 3},
    ],
)
def test_the_same_texts_are_read_from_the_rows_of_every_trainer(row):
    assert holds_texts(row)
    found = batches(in_columns([row, row]))[0]
    assert (found.step, found.prompts, found.completions) == (3, ["hi"] * 2, ["yo"] * 2)
    assert found.total.tolist() == [1.0, 1.0] and "gts" not in found.functions


def test_rows_of_several_steps_are_as_many_batches_in_order():
    rows = [{"step": step, "prompt": "p", "completion": str(step), "reward": step} for step in (3, 1, 3, 2)]
    assert [(one.step, one.completions) for one in batches(in_columns(rows))] == [
        (1, ["1"]),
        (2, ["2"]),
        (3, ["3", "3"]),
    ]


def test_several_reward_functions_count_together_and_ids_are_no_rewards():
    rows = [
        {
            "step": 1,
            "prompt": "p",
            "completion": "c",
            "acc": 1.0,
            "format": 0.5,
            "example_id": 7,
            "completion_length": 3,
            "advantage": 0.1,
        }
    ]
    found = batches(in_columns(rows))[0]
    assert (
        list(found.functions) == ["acc", "format"]
        and found.total.tolist() == [1.5]
        and found.advantages.tolist() == [0.1]
    )


def test_a_function_whose_name_holds_another_word_is_still_a_reward():
    for name in ("sentiment", "pos_count", "good_length", "identity"):
        assert name in batches({"step": [1], "prompt": ["p"], "completion": ["c"], name: [1.0]})[0].functions


def test_a_missing_reward_is_nan_and_a_cut_text_is_reported():
    rows = [
        {"step": 1, "prompt": "p", "completion": "c", "acc": None, "finish_reason": "stop"},
        {"step": 1, "prompt": "p", "completion": "d", "acc": 1, "finish_reason": "length"},
    ]
    found = batches(in_columns(rows))[0]
    assert math.isnan(found.functions["acc"][0]) and found.cut.tolist() == [0.0, 1.0]


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(
                ["step", "prompt", "completion", "reward", "acc", "advantage", "finish_reason", "messages"]
            ),
            ANYTHING,
        ),
        max_size=5,
    )
)
def test_whatever_stands_in_the_cells_is_read_or_left_out(rows):
    columns = in_columns(rows)
    if holds_texts(columns):
        for one in batches(columns):
            assert len(one.prompts) == len(one.completions) == len(one.total) == len(one.group_of) == len(one.lengths)
            assert np.isnan(one.cut).sum() + (one.cut >= 0).sum() == len(one)
