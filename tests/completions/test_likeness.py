"""Repetition and copies: what counting numbers says is what counting words one by one says."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlhealth.completions import ngrams
from rlhealth.completions.likeness import NEARLY, SHORT, copies, likeness

WORDS = st.sampled_from(["a", "b", "cat", "ca", "ät", "猫", "Ж"])
TEXTS = st.lists(st.lists(WORDS, max_size=14).map(" ".join), min_size=1, max_size=12)


def words_of(text: str) -> list[str]:
    return text.replace("猫", " 猫 ").split()


def grams(text: str, n: int) -> list[tuple[str, ...]]:
    said = words_of(text)
    return list(zip(*(said[place:] for place in range(n)), strict=False))


@given(TEXTS)
def test_repetition_is_the_share_of_4_grams_that_stood_there_before(texts):
    found = likeness(texts).repetition
    for text, value in zip(texts, found, strict=True):
        four = grams(text, 4)
        expected = 1 - len(set(four)) / len(four) if four and len(words_of(text)) >= SHORT else 0.0
        assert value == pytest.approx(expected)


@given(TEXTS)
def test_distinct_2_counts_pairs_of_words_over_all_texts(texts):
    pairs = [pair for text in texts for pair in grams(text, 2)]
    expected = len(set(pairs)) / len(pairs) if pairs else np.nan
    assert likeness(texts).distinct_2 == pytest.approx(expected, nan_ok=True)


@given(TEXTS, st.data())
def test_a_text_is_the_same_however_the_texts_are_cut_into_chunks(texts, data):
    whole = likeness(texts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ngrams, "CHUNK", data.draw(st.integers(1, 40)))
        parts = likeness(texts)
    assert np.array_equal(whole.same, parts.same) and np.array_equal(whole.sketch, parts.sketch)
    assert np.array_equal(whole.repetition, parts.repetition) and whole.distinct_2 == pytest.approx(
        parts.distinct_2, nan_ok=True
    )


@given(TEXTS, st.data())
def test_copies_are_counted_as_one_would_by_hand(texts, data):
    groups = np.asarray(data.draw(st.lists(st.integers(0, 3), min_size=len(texts), max_size=len(texts))), np.int64)
    found = copies(likeness(texts), groups)
    members, prompts_of = defaultdict(list), defaultdict(set)
    for text, group in zip(texts, groups.tolist(), strict=True):
        if words_of(text):
            members[group].append(" ".join(words_of(text)))
        prompts_of[" ".join(words_of(text))].add(group)
    shares = [(len(one) - len(set(one))) / (len(one) - 1) for one in members.values() if len(one) > 1]
    assert found["copies_in_group"] == pytest.approx(np.mean(shares) if shares else np.nan, nan_ok=True)
    if len(set(groups.tolist())) > 1:
        repeated = [len(words_of(one)) >= 4 and len(prompts_of[" ".join(words_of(one))]) > 1 for one in texts]
        assert found["copies_across"] == pytest.approx(np.mean(repeated))


def test_a_text_with_one_word_changed_is_a_near_copy_and_a_shuffled_one_is_not():
    rng = np.random.default_rng(0)
    said = [f"word{number}" for number in rng.integers(0, 5000, 200)]
    changed = [*said[:100], "another", *said[101:]]
    shuffled = list(rng.permutation(said))
    alike = likeness([" ".join(one) for one in (said, changed, shuffled, said)])
    groups = np.asarray([0, 0, 1, 2])
    found = copies(alike, groups)
    assert found["copies_in_group"] == 0 and found["near_copies_in_group"] == 1
    assert found["copies_across"] == 0.5 and found["near_copies_across"] == 0.75
    assert NEARLY < 1


def test_answers_of_a_word_or_two_are_no_copies_across_prompts():
    assert copies(likeness(["yes", "yes", "no way", "no way"]), np.asarray([0, 1, 2, 3]))["copies_across"] == 0
