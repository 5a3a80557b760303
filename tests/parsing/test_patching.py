"""New values in a YAML or JSON text: what is asked for changes, and nothing else does."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rlhealth.errors import RlhealthError
from rlhealth.parsing.patching import patched, written

SIBLINGS = frozenset({"learning_rate", "beta", "num_generations"})


def test_a_value_changes_and_comments_order_and_quotes_stay() -> None:
    before = "# mine\nlearning_rate: 1e-2  # too high?\n\nmodel: 'x'\n"
    assert patched(before, "c", {"learning_rate": 0.001}) == before.replace("1e-2", "0.001")


def test_a_small_number_is_one_for_every_reader_of_yaml() -> None:
    text = patched("learning_rate: 1\n", "c", {"learning_rate": 3e-6})
    assert yaml.safe_load(text) == {"learning_rate": 3e-6}  # YAML 1.1 reads 3e-06 as text


def test_an_option_with_dots_is_found_as_nested_keys() -> None:
    before = "actor:\n  optim:\n    lr: 0.1  # here\ncritic:\n  optim:\n    lr: 0.2\n"
    assert patched(before, "c", {"actor.optim.lr": 0.01}) == before.replace("0.1 ", "0.01 ")


def test_an_option_that_is_nowhere_is_added_beside_its_siblings() -> None:
    before = "model: x\ntrainer:\n    learning_rate: 1  # a\n    stages:\n      - 1\n\n# the end\nname: y\n"
    after = patched(before, "c", {"beta": 0.04}, SIBLINGS)
    assert after == before.replace("      - 1\n", "      - 1\n    beta: 0.04\n")


@pytest.mark.parametrize("indent", [None, 2, "\t"])
def test_json_stays_json_with_its_indentation(indent: Any) -> None:
    before = {"model": "x", "args": {"learning_rate": 0.01, "steps": [1, 2]}}
    after = patched(json.dumps(before, indent=indent), "c", {"learning_rate": 1e-5, "beta": 0.04}, SIBLINGS)
    assert json.loads(after) == {"model": "x", "args": {"learning_rate": 1e-5, "steps": [1, 2], "beta": 0.04}}
    assert after.count("\n") == json.dumps(before, indent=indent).count("\n") + (indent is not None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [1,\n", "c:2:1"),
        ("learning_rate: 1\nb: {learning_rate: 2}\n", "lines 1 and 2"),
        ("x: &a 0.1\nlearning_rate: *a\n", "c:2:1"),
        ("learning_rate: [1, 2]\n", "c:1:1"),
        ("- 1\n", "no settings"),
        ("", "no settings"),
        ("a: 1\n---\nb: 2\n", "c:2:1"),
        ("[" * 5000, "nested too deeply"),
    ],
)
def test_what_cannot_be_changed_safely_is_refused_with_its_place(text: str, said: str) -> None:
    with pytest.raises(RlhealthError, match=said):
        patched(text, "c", {"learning_rate": 0.5})


def test_lines_that_end_as_in_windows_still_do() -> None:
    after = patched("learning_rate: 1\r\nb: 2\r\n", "c", {"learning_rate": 0.5, "beta": 1})
    assert after == "learning_rate: 0.5\r\nb: 2\r\nbeta: 1\r\n"


KEYS = st.text("abcdefgh_", min_size=1, max_size=6)
VALUES = st.recursive(
    st.integers() | st.booleans() | st.text("xyz #:'", max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
NUMBERS = st.floats(1e-9, 1e9) | st.integers(-9, 9) | st.booleans()


@given(
    st.dictionaries(KEYS, VALUES, min_size=1, max_size=5),
    NUMBERS,
    st.booleans(),
    st.sampled_from(["yaml", "flow", "json"]),
)
def test_whatever_the_file_only_the_option_changes(
    settings: dict[str, Any], value: float, is_there: bool, form: str
) -> None:
    before = {**settings, **({"learning_rate": 1} if is_there else {})}
    text = (
        json.dumps(before)
        if form == "json"
        else yaml.safe_dump(before, default_flow_style=form == "flow", sort_keys=False)
    )
    after = yaml.safe_load(patched(text, "c", {"learning_rate": value}))
    assert after == {**before, "learning_rate": pytest.approx(value, rel=5e-5)}  # written with five digits


@given(st.floats(allow_nan=False))
def test_a_written_float_is_read_as_a_float(value: float) -> None:
    read = yaml.safe_load(written(value))
    assert isinstance(read, float)
    assert read == pytest.approx(value, rel=5e-5)  # nine decimals, where a float is that small
