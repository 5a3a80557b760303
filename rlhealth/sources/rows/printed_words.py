"""Printed lines that separators alone cannot parse: names and numbers with only spaces between them, and sentences that
state a reward."""

from __future__ import annotations

import re
from typing import Any

from rlhealth.sources.base.spelling import number
from rlhealth.sources.rows.printed_steps import WORD, begins_with_count, behind_count

LONGEST_SPACED = 1000  # characters of a line of names and numbers
_FIRST_WORD = r"[A-Za-z_][\w/.@%()-]{0,60}"
NUMBER = r"[-+]?\d(?:[\d.,]*\d)?(?:\.|[eE][-+]?\d{1,3}|/\d{1,15})?|[-+]?nan|[-+]?inf"
_GLUED_UNIT = r"(?:s|sec|ms|min|h|[KMG]i?B|it/s|tok/s)?"
_WORD_AND_NUMBER = re.compile(rf"({_FIRST_WORD})\s{{1,9}}({NUMBER}){_GLUED_UNIT}(?=[\s,;%]|$)")
_WORDS_AND_NUMBERS = re.compile(rf"\W{{0,8}}(?:{_WORD_AND_NUMBER.pattern}[\s,;%]*+){{2,100}}")
#: After a count: names of up to three words, some with a colon after them.
_NAME_AND_NUMBER = re.compile(
    rf"({_FIRST_WORD}(?: [A-Za-z_][\w/.@()-]{{0,30}}){{0,2}}):?\s{{1,9}}({NUMBER}){_GLUED_UNIT}(?=[\s,;|%]|:\s|$)"
)
_COUNT_AND_NUMBERS = re.compile(
    rf"\W{{0,8}}(?={WORD}\b\W{{1,12}}\d)(?:{_NAME_AND_NUMBER.pattern}[\s,;:|%]*+){{2,100}}"
    r"(?:[\d.]{1,12}\s?(?:s|sec|ms|it/s)\s*|(?<=\s\s)[A-Za-z][\w.-]{0,40}\s*)?",  # a time, or a word in a column
    re.IGNORECASE,
)
#: An aside in brackets: `len 352 (c 324.9 / i 397.6) sig 6/16`.
_ASIDE = re.compile(r"(?<=\d)\s\([^()\n]{1,80}\)(?=\s|$)")
#: Without a count: names of up to three words that end in what is measured.
_WHAT = r"(?:[A-Za-z][\w/-]{0,20} ){1,2}(?:reward|return|score|loss|length|entropy|kl)s?"
_MEASURED = rf"({_WHAT}):?\s{{1,9}}({NUMBER})(?=[\s,;|]|$)"
_MEASURED_AND_NUMBER = re.compile(_MEASURED, re.IGNORECASE)
_MEASURED_AND_NUMBERS = re.compile(rf"\W{{0,8}}(?:{_MEASURED}[\s,;|]*+){{2,20}}", re.IGNORECASE)
#: Names joined to their numbers: `batch_10 score_-186.2 avg_loss_1.18`.
_JOINED = re.compile(
    r"(?P<name>[A-Za-z]\w{0,60}?)_(?P<value>[-+]?\d{1,20}(?:\.\d{1,20})?(?:[eE][-+]?\d{1,3})?)(?=\s|$)"
)
_FEWEST_JOINED = 3  # names on a line
LONGEST_SENTENCE = 300  # characters
_REWARD_IN_SENTENCE = re.compile(
    r"(?<![\w-])(?P<name>(?:(?:total|average|avg|mean|cumulative|final|episode)\s)?(?:reward|return|score))s?\s"
    r"(?:(?:of|is|was)\s)?(?P<value>[-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d{1,3})?)(?=[\s,;!)]|\.(?:\s|$)|$)",
    re.IGNORECASE,
)
#: Words about an episode in a sentence that states its reward.
_ENDS = re.compile(r"\b(?:with|finished|ended|done|completed?|terminated)\b")
_ENDED_WITH = re.compile(
    r"(?:(?:episode|game) )?(?:finished|ended|done|completed?|terminated)"
    r"(?:[.!] | (?:\w+ ){0,4}with (?:an? |the )?)(?=\w)",
    re.IGNORECASE,
)
_WHOSE = (
    r"(?:(?:total|averaged?|avg|mean|cumulative|final|episode|rollout|train(?:ing)?|eval(?:uation)?|validation|test"
    r"|batch)s? ){0,3}"
)
#: Directly after a count, with any text after it: `Episode 3: Win Rate 0.03 (Recent: 0.05), Loss: 1.2`.
_FIRST = re.compile(
    rf"(?P<name>{_WHOSE}(?:reward sum|reward|return|score|win rate|success rate|accuracy)s?)\s{{1,9}}"
    rf"(?P<value>(?:{NUMBER})%?)"
    r"(?=\s?[(,;|\t±]|\s\+/?-\s|\s(?:averaged|over|on|in|after)\b|\.?\s*$)",
    re.IGNORECASE,
)
PAID_WORDS = rf"{_WHOSE}(?:rewards?|returns?|scores?|(?:win|success) rate)"
#: `3 reward -23.1/ 10.5/ 40.0 len 200.0`: an iteration of Ray's examples, with minimum, mean and maximum.
_OF_RAY = re.compile(
    r"\s*(?P<iteration>\d{1,9})\s+reward\s+(?P<reward_min>NUMBER)/\s*(?P<reward_mean>NUMBER)/\s*(?P<reward_max>NUMBER)"
    r"\s+len\s+(?P<episode_len_mean>NUMBER)(?=\s|$)".replace("NUMBER", r"[-+]?\d{1,15}(?:\.\d{1,20})?")
)
_STATISTICS = re.compile(
    r"\b(?P<names>mean(?:/(?:median|std|min|max)){1,4}) (?P<of>reward|return|score)s?:? "
    r"(?P<values>[-+]?\d[\d.]*(?:/[-+]?\d[\d.]*){1,4})(?=[\s,;]|$)"
)


def spaced_pairs(text: str) -> dict[str, Any]:
    """The pairs of a line of only names and numbers, `episode 3 average reward 0.5 length 20`; names of several words
    count only after a step count, or if all end in what is measured: `mean reward 0.5 max reward 3`. Empty for any
    other line."""
    if len(text) > LONGEST_SPACED:
        return {}
    if several := words_and_numbers(text):
        return several
    if _COUNT_AND_NUMBERS.fullmatch(text):
        found = _NAME_AND_NUMBER.finditer(text)
        return {of_an_end(pair[1]): pair[2] for pair in found if number(pair[2]) is not None}
    if _MEASURED_AND_NUMBERS.fullmatch(text):
        return {pair[1]: pair[2] for pair in _MEASURED_AND_NUMBER.finditer(text) if number(pair[2]) is not None}
    return _joined(text) if "_" in text and "." in text else {}


def mixed_pairs(text: str) -> dict[str, Any]:
    """The pairs of a line on which some numbers follow a space, and others an equal sign or an arrow; asides in
    brackets are left out: `step 3  mean_reward 0.5 (best 0.6)  groups=7/8`. Empty for any other line."""
    return spaced_pairs(_ASIDE.sub("", text.replace(" -> ", " ").replace("=", " ")))


def of_an_end(name: str) -> str:
    """What an episode ended with, `reward` of `finished with a reward` and `finished. reward`; any other name is
    unchanged."""
    ended = _ENDED_WITH.match(name)
    return name[ended.end() :] if ended is not None else name


def words_and_numbers(text: str) -> dict[str, Any]:
    """The pairs of a text in which single words and numbers alternate, two pairs or more; empty for any other text."""
    if not _WORDS_AND_NUMBERS.fullmatch(text):
        return {}
    return {pair[1]: pair[2] for pair in _WORD_AND_NUMBER.finditer(text) if number(pair[2]) is not None}


def _joined(text: str) -> dict[str, Any]:
    """The pairs of a line in which all names are joined to their numbers by an underscore."""
    parts = text.split()
    found = [pair for part in parts if (pair := _JOINED.fullmatch(part)) is not None]
    is_all = len(found) == len(parts) >= _FEWEST_JOINED and any("." in pair["value"] for pair in found)
    return {pair["name"]: pair["value"] for pair in found} if is_all else {}


def leading_reward(text: str) -> dict[str, Any]:
    """The reward, or the win rate, that follows directly, without a separator, the step count at the start of a
    line."""
    pair = _FIRST.match(behind_count(text))
    return {pair["name"]: pair["value"].rstrip(".")} if pair is not None else {}


def reward_in_sentence(text: str) -> dict[str, Any]:
    """The reward in a sentence that begins with a step count, `Episode 3 finished with reward 0.5 after 20 steps`,
    or statistics of it: `mean/median reward 0.5/0.4`, `3 reward 0.1/0.5/0.9 len 20`."""
    if "/" in text and (of_ray := _OF_RAY.match(text)) is not None:
        return of_ray.groupdict()
    if "/" in text and (several := _STATISTICS.search(text)) is not None:
        names, values = several["names"].split("/"), several["values"].split("/")
        return {f"{name} {several['of']}": value for name, value in zip(names, values, strict=False)}
    if len(text) > LONGEST_SENTENCE or not _ENDS.search(text) or not begins_with_count(text):
        return {}
    return {pair["name"].strip(): pair["value"] for pair in reversed(list(_REWARD_IN_SENTENCE.finditer(text)))}
