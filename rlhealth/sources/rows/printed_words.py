"""Printed lines that need more than separators: names and numbers with only spaces between, sentences that tell a
reward, steps in other languages."""

from __future__ import annotations

import re
from typing import Any

from rlhealth.sources.base.spelling import number
from rlhealth.sources.rows.printed_steps import WORD, begins_with_count

LONGEST_SPACED = 1000  # characters of a line of names and numbers
_WORD_AND_NUMBER = re.compile(
    r"([A-Za-z_][\w/.@%()-]{0,60})\s{1,9}([-+]?\d[\d.,]*(?:[eE][-+]?\d{1,3}|/\d{1,15})?|[-+]?nan|[-+]?inf)(?=[\s,;%]|$)"
)
_WORDS_AND_NUMBERS = re.compile(rf"\W{{0,8}}(?:{_WORD_AND_NUMBER.pattern}[\s,;%]*+){{2,100}}")
_ENGLISH = {
    **dict.fromkeys(("эпизод", "回合", "エピソード", "에피소드"), "episode"),
    **dict.fromkeys(("шаг", "步骤", "ステップ", "스텝"), "step"),
    **dict.fromkeys(("эпоха", "エポック", "에포크"), "epoch"),
    **{"α": "alpha", "β": "beta", "γ": "gamma", "ε": "epsilon", "η": "eta", "λ": "lambda", "π": "policy", "τ": "tau"},
    "：": ":",
    "，": ",",
}
_SIGNS = "".join(word for word in _ENGLISH if len(word) == 1)
_FOREIGN = re.compile(rf"(?:{'|'.join(word for word in _ENGLISH if len(word) > 1)})\b|[{_SIGNS}]", re.IGNORECASE)
_ORDINAL = re.compile(r"第\s?(?P<n>\d{1,9}(?:\s?/\s?\d{1,9})?)\s?(?:轮|回合|步)")
_NAME_AND_NUMBER = re.compile(
    _WORD_AND_NUMBER.pattern.replace("]{0,60})", "]{0,60}(?: [A-Za-z_][\\w/.@()-]{0,30}){0,2})", 1)
)
_COUNT_AND_NUMBERS = re.compile(
    rf"\W{{0,8}}(?={WORD}\b\W{{1,12}}\d)(?:{_NAME_AND_NUMBER.pattern}[\s,;%]*+){{2,100}}"
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


def in_english(text: str) -> str:
    """The text with the words and signs by which people of other languages name a step in plain English."""
    if text.isascii() or len(text) > LONGEST_SPACED:
        return text
    return _FOREIGN.sub(lambda found: _ENGLISH[found[0].casefold()], _ORDINAL.sub(r"episode \g<n>", text))


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
