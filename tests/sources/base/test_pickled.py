"""Pickles: plain values are read as they were saved, and nothing that a pickle asks for is run."""

from __future__ import annotations

import os
import pickle
import struct
from collections import OrderedDict, defaultdict, deque
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlhealth.sources.base import pickled
from rlhealth.sources.base.pickled import ForeignObjectError, plain_value

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(PLAIN, st.sampled_from(PROTOCOLS))
def test_plain_values_come_back_as_they_were_saved(value: Any, protocol: int) -> None:
    try:
        assert plain_value(pickle.dumps(value, protocol)) == value
    except ForeignObjectError as error:
        assert "lists in each other" in str(error)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("kind", ["<f8", ">f8", "<f4", "<f2", "<i8", "<i4", "u1"])
def test_arrays_and_numbers_of_numpy_are_lists_and_numbers(kind: str, protocol: int) -> None:
    values = np.array([1, 2, 3], dtype=kind)
    held = {"array": values, "numbers": [*values], "square": np.asfortranarray([[1.0, 2.0], [3.0, 4.0]])}
    found = plain_value(pickle.dumps(held, protocol))
    assert found == {"array": [1, 2, 3], "numbers": [1, 2, 3], "square": [[1.0, 2.0], [3.0, 4.0]]}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_collections_hold_is_read(protocol: int) -> None:
    named: defaultdict[str, list[float]] = defaultdict(list)
    named["rewards"].append(0.5)
    held = [deque([1.0, 2.0], maxlen=5), OrderedDict(a=1), named, np.array([0.5, None], dtype=object)]
    assert plain_value(pickle.dumps(held, protocol)) == [[1.0, 2.0], {"a": 1}, {"rewards": [0.5]}, [0.5, None]]


class _Command:
    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.place),)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_command_is_refused_and_not_run(protocol: int, tmp_path: Path) -> None:
    raw = pickle.dumps([0.5, _Command(tmp_path / "made")], protocol)
    with pytest.raises(ForeignObjectError, match=r"(posix|nt)\.mkdir"):
        plain_value(raw)
    assert not (tmp_path / "made").exists()
    pickle.loads(raw)
    assert (tmp_path / "made").exists(), "it was a command"


@pytest.mark.parametrize("held", [Decimal(1), {1, 2}, np.array(["a"]), 1j])
def test_other_objects_are_named_and_refused(held: object) -> None:
    with pytest.raises(ForeignObjectError, match="it holds"):
        plain_value(pickle.dumps(held))


def test_a_few_bytes_that_stand_for_billions_of_values_are_refused() -> None:
    held: Any = [0.5] * 10
    for _ in range(4):
        held = [held] * 100
    raw = pickle.dumps(held)
    assert len(raw) < 2000
    with pytest.raises(ForeignObjectError, match="more than"):
        plain_value(raw)
    itself: list[Any] = []
    itself.append(itself)
    with pytest.raises(ForeignObjectError):
        plain_value(pickle.dumps(itself))


CALLED = (
    b"ccollections\ndeque\n(h\x00tR",  # a copy of a list
    b"c_codecs\nencode\n(h\x01X\x06\x00\x00\x00latin1tR",  # a copy of a text
    b"cnumpy.core.multiarray\n_reconstruct\n(tR(K\x01Nh\x02\x89h\x00tb",  # an array of objects
)


@pytest.mark.parametrize("called", CALLED)
def test_what_is_made_again_and_again_is_counted_each_time(called: bytes) -> None:
    held = b"\x80\x02]q\x00(" + b"K\x01" * 100_000 + b"e0"
    text = b"X" + struct.pack("<I", 6_400_000) + b"a" * 6_400_000 + b"q\x010"
    kind = b"cnumpy\ndtype\n(X\x01\x00\x00\x00OtRq\x020"
    with pytest.raises(ForeignObjectError, match="more than"):
        plain_value(held + text + kind + b"](" + called * 50 + b"e.")


def test_billions_of_empty_rows_are_no_value() -> None:
    kind = b"cnumpy\ndtype\n(X\x02\x00\x00\x00f8tR"
    shape = b"(J\xff\xff\xff\x7fK\x00t"
    raw = b"cnumpy.core.numeric\n_frombuffer\n(X\x00\x00\x00\x00" + kind + shape + b"X\x01\x00\x00\x00CtR."
    assert plain_value(raw) == []


@pytest.mark.parametrize(
    "raw",
    [
        b"c_codecs\nencode\n(J\xff\xff\xff\x7fX\x06\x00\x00\x00latin1tR.",  # two gigabytes of zeros
        b"",
        b".",
        b"\x80\x04]",
        b"\x80\x02K\x01r" + struct.pack("<I", 2**32 - 1) + b".",  # a place in the memo that would take 64 GiB
        b"K\x01p4294967295\n.",
        b"\x80\x04\x8e" + struct.pack("<Q", 1 << 40) + b"ab.",
        b"\x80\x02cnumpy\ndtype\n}X\x05\x00\x00\x00_makeK\x01sb.",  # it would change what makes a dtype
        pickle.dumps(np.arange(5.0))[:-20],
    ],
)
def test_what_is_damaged_or_made_to_hurt_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueError):
        plain_value(raw)
    assert plain_value(pickle.dumps(np.arange(2.0))) == [0.0, 1.0]


def test_a_pickle_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pickled, "LARGEST", 100)
    with pytest.raises(ValueError, match="larger than"):
        plain_value(pickle.dumps([0.5] * 100))
