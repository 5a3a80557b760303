"""Translates metric names in other languages into English; the words are in languages.yaml."""

from __future__ import annotations

import re
from functools import cache

from rlhealth.metrics.catalogue import FOLDER
from rlhealth.parsing.own_texts import read_texts

LONGEST_TRANSLATED = 1000  # characters
#: Stems of foreign words for a reward and an episode that are pure ASCII: few lines of a log have one. The last of them
#: begin a header, or stand behind `reward`, which is a sign by itself.
_ASCII_WORDS = ("ecompens", "icompens", "elohnung", "eloning", "agroda", "pisodi", "pizod")
_ASCII_SIGNS = tuple(stem.encode() for stem in _ASCII_WORDS)
_ASCII_STEMS = (*_ASCII_WORDS, "pisod,", "pisod:", "pisod ", "eward moy", "eward prom", "eward cumul", "eward acumul")
#: Where a name of several words begins another one: `RecompensaTotal`.
HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"\w+")
_SIGNALS = re.compile(r"reward|return|score|episode")
SHORTEST_SIGN = 4  # bytes; shorter ones occur in any text
_ALPHABETS = re.compile("[A-Za-z\u00c0-\u024f\u0400-\u04ff\u1e00-\u1eff]")  # Latin and Cyrillic letters
_BEYOND_ASCII = re.compile("[^\\W\\x00-\\x7f]|[\uff1a\uff0c]")  # letters and digits, the colon and the comma of Chinese
_ORDINAL = re.compile(r"第\s?(?P<n>\d{1,9}(?:\s?/\s?\d{1,9})?)\s?(?:个)?(?:轮|回合|步|局|幕|次迭代)")


def in_english(text: str) -> str:
    """The text with foreign words for steps and metrics translated into English. An ASCII text is read only if it has a
    foreign word for a reward or an episode; a text longer than `LONGEST_TRANSLATED` is unchanged."""
    if len(text) > LONGEST_TRANSLATED or not may_be_foreign(text):
        return text
    if HUMP.search(text):
        text = _WORD.sub(_parted, text)
    return _foreign().sub(_english_of, _ORDINAL.sub(r"episode \g<n>", text))


def _parted(found: re.Match[str]) -> str:
    """A word, with spaces between the words that are joined in it if one of them may be foreign."""
    return HUMP.sub(" ", found[0]) if any(stem in found[0] for stem in _ASCII_STEMS) else found[0]


def may_be_foreign(text: str) -> bool:
    """Whether a text has a letter beyond ASCII, or one of the ASCII stems; box characters and symbols are no
    letters."""
    if text.isascii():
        return any(stem in text for stem in _ASCII_STEMS)
    return _BEYOND_ASCII.search(text) is not None


def _english_of(found: re.Match[str]) -> str:
    """The English of a match, separated from adjacent words, because Chinese has no spaces between words."""
    english = _words().get(found[0].casefold().replace("_", " "))
    if english is None:  # one of the few letters that are one where case is ignored, and two where it is folded
        return found[0]
    text, start, end = found.string, found.start(), found.end()
    before = " " if english[0].isalpha() and start and text[start - 1].isalnum() else ""
    behind = " " if english[-1].isalpha() and end < len(text) and text[end].isalnum() else ""
    return f"{before}{english}{behind}"


def signs(block: bytes) -> tuple[bytes, ...]:
    """Parts of words, in UTF-8, at least one of which is in each line of a block that has a reward or an episode in
    another language."""
    return _signs() if not block.isascii() else _ASCII_SIGNS


@cache
def _signs() -> tuple[bytes, ...]:
    """Of the words for rewards and counts those that hold no other, without their first letter where it may be a
    capital."""
    words = [word for word, english in _words().items() if _SIGNALS.search(english)]
    parts = {word[1:] if word[0] != word[0].upper() else word for word in words}
    shortest = {part for part in parts if not any(other != part and other in part for other in parts)}
    return tuple(sign for part in sorted(shortest) if len(sign := part.encode()) >= SHORTEST_SIGN)


@cache
def _words() -> dict[str, str]:
    """The English of each word and phrase."""
    texts: dict[str, list[str]] = read_texts(FOLDER / "languages.yaml")
    return {word.casefold(): english for english, words in texts.items() for word in words}


@cache
def _foreign() -> re.Pattern[str]:
    """The pattern of all words, with phrases before their words; alphabetic words match only without adjacent
    letters."""
    longest = sorted(_words(), key=len, reverse=True)
    whole = "|".join(_pattern(word) for word in longest if _has_spaces(word))
    parts = "|".join(_pattern(word) for word in longest if not _has_spaces(word))
    return re.compile(rf"(?<![^\W_])(?:{whole})(?![^\W_])|(?:{parts})", re.IGNORECASE)


def _pattern(word: str) -> str:
    return re.escape(word).replace("\\ ", "[ _]")


def _has_spaces(word: str) -> bool:
    """Whether the word is of a language with spaces around words: Chinese and Japanese have none, and Korean appends
    particles."""
    return _ALPHABETS.match(word) is not None
