"""What a run could log for better verdicts: options of its trainer and version, which are listed in
to_log.yaml."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rlhealth.metrics.catalogue import FOLDER, version_of
from rlhealth.metrics.recognise import Recognised, recognise
from rlhealth.metrics.settings import plain
from rlhealth.metrics.translation import Translation
from rlhealth.parsing.own_texts import read_texts
from rlhealth.run import Run

#: Settings that advice changes by a multiple: without their logged values, advice cannot name an amount.
_AMOUNTS = ("learning_rate", "kl_coef", "epochs", "max_completion_length")


@dataclass(frozen=True)
class ToLog:
    """One option of the run's trainer that would log more.

    Attributes:
        option: its name; `value` is its new value, or None for a setting whose value should be logged.
        gives: what rlhealth could then find out.
    """

    option: str
    value: Any
    gives: str


def to_log(run: Run, translation: Translation) -> tuple[ToLog, ...]:
    """What the run could log; empty for a trainer without known options."""
    known = recognise(run)
    found = [
        ToLog(one["option"], plain(one["value"]), one["gives"])
        for one in read_texts(FOLDER / "to_log.yaml")
        if translation.framework in one["frameworks"] and _is_there(one, known) and _is_missing(one, run, translation)
    ]
    untold = [] if _is_untold(translation) else _AMOUNTS
    asked = [
        translation.options[name] for name in untold if name in translation.options and name not in translation.config
    ]
    return (*found, *(ToLog(name, None, "its value, so that advice can name an amount") for name in asked))


def _is_there(one: dict[str, Any], known: Recognised) -> bool:
    """Whether every version that the run may be of has the option."""
    since, until = version_of(one.get("since")), version_of(one.get("until"))
    return (since is None or (known.low is not None and known.low >= since)) and (
        until is None or (known.high is not None and known.high <= until)
    )


def _is_untold(translation: Translation) -> bool:
    """Whether the log has none of the settings that advice is about, although some may be derived from its metrics or
    its file."""
    return not any(name in translation.config for name in _AMOUNTS)


def _is_missing(one: dict[str, Any], run: Run, translation: Translation) -> bool:
    if one.get("settings") == "missing":
        return _is_untold(translation)
    value = plain(next((run.config[key] for key in run.config if key.rpartition(".")[2] == one["option"]), None))
    if "over" in one:
        return isinstance(value, int | float) and value > float(one["over"])
    return not value
