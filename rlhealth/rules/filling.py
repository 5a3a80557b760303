"""Fills the fields in a rule's texts. `{value:.2f}` becomes a number, and `{count:finding|findings}` a number with the
singular or plural. `[[…]]` is left out if one of its fields is unknown. `{fewer.epochs}` becomes "fewer", and is
unknown if there can be no fewer: one pass over a batch is the minimum. `{task.completions}` is the word for what the
policy produces. `{in.text}` is empty, and known only if the trainer's policy writes texts; `{in.control}` only if it
plays episodes; neither is known of a trainer that may do either.
"""

from __future__ import annotations

import re
import string
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

from rlhealth.metrics import Translation
from rlhealth.metrics.catalogue import FOLDER
from rlhealth.parsing.own_texts import read_texts

_SEGMENT = re.compile(r"\[\[((?:(?!\[\[).)*?)\]\]", re.DOTALL)  # the innermost
_FORMAT = re.compile(
    r"[<>^=]?[-+ ]?#?0?\d{0,2}[,_]?(?:\.\d{1,2})?[a-zA-Z%]?"
)  # {value:>999999999} shall not fill the memory

_IN_TEXT = {"completion": "completion", "token": "token", "answer": "answer"}
_IN_EITHER = {"completion": "sample", "token": "action", "answer": "action"}
_IN_CONTROL = {"completion": "episode", "token": "action", "answer": "action"}

FIRST_POINTS = 5  # within that many first points of a metric there is no healthy checkpoint to go back to


def settings(translation: Translation) -> dict[str, Any]:
    """The known settings of the run, and their names in its trainer, as fields of a message: {config.beta},
    {option.kl_coef}.
    """
    known = {f"config.{key}": value for key, value in translation.config.items() if value is not None}
    named = {f"option.{key}": name for key, name in translation.options.items() if key not in translation.lacks}
    lacks = {"lacks": frozenset(f"option.{key}" for key in translation.lacks)}
    return known | named | fewer(translation.config, translation.lacks) | lacks | task(translation.writes_texts)


def task(writes_texts: bool | None = True) -> dict[str, str]:
    """The words for what the policy of a trainer produces, and which parts of a text apply to it."""
    named = _IN_EITHER if writes_texts is None else _IN_TEXT if writes_texts else _IN_CONTROL
    plurals = {f"task.{key}s": f"{word}s" for key, word in named.items()}
    applies = {} if writes_texts is None else {"in.text" if writes_texts else "in.control": ""}
    return {f"task.{key}": word for key, word in named.items()} | plurals | applies


def fewer(config: Mapping[str, Any], lacks: Collection[str] = ()) -> dict[str, str]:
    """The word "fewer" for each setting that can be lowered: it is not known to be 1 already, and the trainer is not
    known to lack it.
    """
    return {f"fewer.{key}": "fewer" for key in option_phrases() if key not in lacks and not _is_least(config.get(key))}


def _is_least(value: Any) -> bool:
    return isinstance(value, int | float) and value <= 1


@lru_cache(maxsize=1)
def option_phrases() -> dict[str, str]:
    """The words for each setting in advice, if the trainer's name for it is unknown."""
    phrases: dict[str, str] = read_texts(FOLDER / "options.yaml")
    return phrases


class _Fill(string.Formatter):
    """Fills {name} and {name:format} from a flat mapping; nothing in a message can reach an attribute or an index."""

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, str]:
        return kwargs.get(field_name, _Unknown(field_name)), field_name

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, float) and not format_spec:
            format_spec = ".6g"  # a setting of 5e-6 may read as 5.0000000000000004e-06
        if isinstance(value, int) and "|" in format_spec:
            one, many = format_spec.split("|", 1)
            return f"{value} {one if value == 1 else many}"
        if not _FORMAT.fullmatch(format_spec):
            return str(value)
        try:
            return str(super().format_field(value, format_spec))
        except (ValueError, TypeError):
            return str(value)


class _Unknown:
    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        kind, _, name = self.name.rpartition(".")
        return option_phrases().get(name, name) if kind == "option" else name


def always_said(text: str) -> str:
    """The part of a message that is always shown: all text outside [[…]]."""
    before = ""
    while before != text:
        before, text = text, _SEGMENT.sub("", text)
    return text.strip()


def fill(text: str, said: Mapping[str, Any]) -> str:
    """A message with its fields filled.

    Text in [[…]] is left out if one of its fields is unknown: `raise it[[ (now {config.beta})]]`. Outside of it, a
    setting whose name in the trainer is unknown is given in plain words, and any other unknown field by its field name.
    """
    before = ""
    while before != text:
        before = text
        text = _SEGMENT.sub(lambda found: found[1] if all(name in said for name in fields_of(found[1])) else "", text)
    try:
        return _Fill().vformat(text, (), said).strip()
    except ValueError:  # fields nested in fields
        return text.strip()


def advise(texts: Sequence[str], said: Mapping[str, Any]) -> tuple[str, ...]:
    """Lines of advice, filled. Empty lines are left out, and so is a line about a setting that the trainer does not
    have, if another line remains.
    """
    lacks = said.get("lacks", frozenset())
    fit = [one for one in texts if not lacks & set(fields_of(_SEGMENT.sub("", one)))] or texts
    filled = [(one, fill(one, said)) for one in fit]
    return tuple(one[:1].upper() + one[1:] if text.startswith("{back}") else one for text, one in filled if one)


def back_to(points: int, step: object) -> str:
    """What to go back to from a step before which a metric has that many points: a checkpoint, if there can be one."""
    if points < FIRST_POINTS:
        return f"start the run again, since it was so by step {step} and no checkpoint is older"
    return f"go back to the last checkpoint before step {step}"


def within_a_sentence(title: str) -> str:
    """A title as the part of a sentence: its first word in small letters, unless it is a name such as KL or NaN."""
    first = title.split(" ", 1)[0]
    is_name = any(letter.isupper() for letter in first[1:])
    return title if is_name else title[:1].lower() + title[1:]


def fields_of(text: str) -> list[str]:
    """The names of the fields in a message.

    Raises:
        ValueError: for braces that do not close.
    """
    return [name for _, name, _, _ in string.Formatter().parse(text) if name is not None]
