"""Many decimal numbers read at once are the numbers that Python reads one by one."""

import struct

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rlhealth.sources.base.decimals import MARGIN, decimals, words_of
from tests.examples import examples

FINITE = st.floats(allow_nan=False, allow_infinity=False)
WRITTEN = st.one_of(
    FINITE.map(repr),
    st.floats(-1e9, 1e9).map(repr),
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(10**20), 10**20).map(str),
    st.tuples(FINITE, st.integers(0, 17)).map(lambda pair: f"{pair[0]:.{pair[1]}e}"),
    st.tuples(st.floats(-1e6, 1e6), st.integers(0, 20)).map(lambda pair: f"{pair[0]:.{pair[1]}f}"),
)


def read(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    pieces = [text.encode() for text in texts]
    size = np.array([len(piece) for piece in pieces])
    start = MARGIN + np.concatenate([[0], np.cumsum(size + 1)[:-1]])
    buffer = np.frombuffer(bytes(MARGIN) + b",".join(pieces) + bytes(MARGIN), np.uint8)
    return decimals(buffer, words_of(buffer), start, size)


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(WRITTEN, min_size=1, max_size=50))
def test_every_number_that_is_read_is_the_float_that_python_reads(texts):
    values, was_read = read(texts)
    for text, value, fine in zip(texts, values, was_read, strict=True):
        if fine:
            assert struct.pack("d", value) == struct.pack("d", float(text)), text


def test_what_trainers_log_is_read_and_not_left_to_the_caller():
    random = np.random.default_rng(1)
    texts = [repr(float(value)) for value in random.random(5000)] + [
        repr(float(np.float32(value))) for value in random.random(5000)
    ]
    texts += [
        "0",
        "-0",
        "0.5",
        "1",
        "-12.25",
        "76959",
        "1.7952070282390072e+09",
        "1e-05",
        "3.5e-07",
        "0.00001",
        "123456789012",
    ]
    assert read(texts)[1].mean() > 0.99


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.text(alphabet='0123456789.eE+-naNIfity"[]{} ', min_size=1, max_size=40), min_size=1, max_size=20))
def test_what_is_not_a_number_is_left_to_the_caller(texts):
    values, was_read = read(texts)
    for text, value, fine in zip(texts, values, was_read, strict=True):
        if fine:
            assert value == float(text), text


def test_minus_zero_keeps_its_sign_and_halfway_cases_are_exact_or_left():
    values, was_read = read(["-0.0", "9007199254740993", "9007199254740992.5", "9007199254740991"])
    assert np.signbit(values[0]) and was_read[0]
    assert values[3] == 9007199254740991 and was_read[3]
    assert not was_read[1] or values[1] == float("9007199254740993")
