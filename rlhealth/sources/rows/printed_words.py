"""Printed lines that need more than separators: names and numbers with only spaces between, sentences that tell a
reward."""

from __future__ import annotations

import re
from typing import Any

from rlhealth.sources.base.spelling import number
from rlhealth.sources.rows.printed_steps import WORD, begins_with_count

LONGEST_SPACED = 1000  # characters of a line of names and numbers
_FIRST_WORD = r"[A-Za-z_][\w/.@%()-]{0,60}"
_NUMBER = r"[-+]?\d(?:[\d.,]*\d)?(?:\.|[eE][-+]?\d{1,3}|/\d{1,15})?|[-+]?nan|[-+]?inf"
_WORD_AND_NUMBER = re.compile(rf"({_FIRST_WORD})\s{{1,9}}({_NUMBER})(?=[\s,;%]|$)")
_WORDS_AND_NUMBERS = re.compile(rf"\W{{0,8}}(?:{_WORD_AND_NUMBER.pattern}[\s,;%]*+){{2,100}}")
#: Behind a count: names of up to three words, a colon behind one or the other.
_NAME_AND_NUMBER = re.compile(
    rf"({_FIRST_WORD}(?: [A-Za-z_][\w/.@()-]{{0,30}}){{0,2}}):?\s{{1,9}}({_NUMBER})(?=[\s,;|%]|:\s|$)"
)
_COUNT_AND_NUMBERS = re.compile(
    rf"\W{{0,8}}(?={WORD}\b\W{{1,12}}\d)(?:{_NAME_AND_NUMBER.pattern}[\s,;:|%]*+){{2,100}}"
    r"(?:[\d.]{1,12}\s?(?:s|sec|ms|it/s)\s*)?",
    re.IGNORECASE,
)
LONGEST_SENTENCE = 300  # characters
_TOLD = re.compile(
    r"(?<![\w-])(?P<name>(?:(?:total|average|avg|mean|cumulative|final|episode)\s)?(?:reward|return|score))s?\s"
    r"(?:(?:of|is|was)\s)?(?P<value>[-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d{1,3})?)(?=[\s,;!)]|\.(?:\s|$)|$)",
    re.IGNORECASE,
)
_STATISTICS = re.compile(
    r"\b(?P<names>mean(?:/(?:median|std|min|max)){1,4}) (?P<of>reward|return|score)s? "
    r"(?P<values>[-+]?\d[\d.]*(?:/[-+]?\d[\d.]*){1,4})(?=[\s,;]|$)"
)


def spaced_pairs(text: str) -> dict[str, Any]:
    """The pairs of a line of only names and numbers, `episode 3 average reward 0.5 length 20`; names of several words
    only behind a count of steps. Empty if it is another."""
    if len(text) > LONGEST_SPACED:
        return {}
    if _WORDS_AND_NUMBERS.fullmatch(text):
        return {pair[1]: pair[2] for pair in _WORD_AND_NUMBER.finditer(text) if number(pair[2]) is not None}
    if _COUNT_AND_NUMBERS.fullmatch(text):
        return {pair[1]: pair[2] for pair in _NAME_AND_NUMBER.finditer(text) if number(pair[2]) is not None}
    return {}


def told_in(text: str) -> dict[str, Any]:
    """The reward in a sentence that begins with a count of steps: `Episode 3 finished with reward 0.5 after 20 steps`,
    and the statistics of one: `mean/median reward 0.5/0.4`."""
    if "/" in text and (several := _STATISTICS.search(text)) is not None:
        names, told = several["names"].split("/"), several["values"].split("/")
        return {f"{name} {several['of']}": value for name, value in zip(names, told, strict=False)}
    if len(text) > LONGEST_SENTENCE or " with " not in text or not begins_with_count(text):
        return {}
    return {pair["name"].strip(): pair["value"] for pair in reversed(list(_TOLD.finditer(text)))}
