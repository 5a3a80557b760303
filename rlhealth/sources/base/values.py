"""Values as wandb and Trackio store them: numbers in any spelling, distributions, and settings that may be
shown.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from rlhealth.run import Floats, flat
from rlhealth.sources.base import spelling

#: transformers writes these once, when training has ended, and never into the history of wandb.
END_OF_TRAINING = ("train_runtime", "train_samples_per_second", "train_steps_per_second", "total_flos", "train_loss")
LIST_BINS = 32  # as many as wandb uses for a longer array
LONGEST_SETTING = 2000  # characters; a longer text is a template or a prompt, not a setting
LONGEST_EXCEPTION = 100  # characters
NON_FINITE = {
    "nan": math.nan,
    "infinity": math.inf,
    "-infinity": -math.inf,
    "inf": math.inf,
    "-inf": -math.inf,
    "+infinity": math.inf,
    "+inf": math.inf,
}
SKIPPED = ("_", "profiling/", "system/")
_PRIVATE_KEY = re.compile(
    r"(?:^|[._/-])(?:hub_token|push_to_hub_token|access_token|auth_token|token|api_?key|secret\w*|passw\w*|credentials?|private_key|e?mail|host|hostname|host_?name"
    r"|user|username|user_name|base_url|command|cmd|argv|executable)(?=$|\.)|(?:access|auth|hub|api|bearer|hf)_?(?:key|token)(?=$|\.)"
    r"|_(?:host|key|secret|password|email)(?=$|\.)",
    re.IGNORECASE,
)
#: Keys by the marks that their makers put on them, web tokens, e-mail addresses, passwords in addresses; 40 hexadecimal
#: digits are a key of wandb's, but a commit where they stand in a path or behind @.
_PRIVATE_VALUE = re.compile(
    r"(?:\b|(?<=\\[nrt]))(?:(?:hf_|sk-|gh[oprsu]_|github_pat_|glpat-|xox[a-z]-|AKIA|ASIA|wandb_v\d+_)[A-Za-z0-9_-]{12,}"
    r"|(?:gsk_|xai-|nvapi-|npm_)[A-Za-z0-9_]{20,}|AIza[\w-]{30,}|eyJ[\w-]{10,}\.[\w-]{10,}"
    r"|local-[0-9a-f]{40}\b)|BEGIN [A-Z ]*PRIVATE KEY|[\w.+-]+@[\w-]+\.[A-Za-z]{2,}|://[^/\s:@]+:[^/\s@]+@"
    r"|(?:(?<![\w/@.-])|(?<=\\[nrt]))[0-9a-f]{40}\b"
)
_DEEPEST = 20  # levels of lists and groups in a setting: deeper values are neither read nor shown


def number(value: object) -> float | None:
    """The number that `value` is, however NaN and the infinities are spelt; None if it is not one (null, text,
    list, dict).
    """
    if isinstance(value, str):
        return NON_FINITE.get(value.lower())
    return spelling.number(value)


def distribution(value: object) -> tuple[Floats, Floats] | None:
    """Bin edges, shape (b+1,), and counts, shape (b,), of a stored histogram or of a plain list of numbers; None if
    there is neither.

    A histogram is `{"_type": "histogram", "values": counts, "bins": edges}` (wandb), with `packedBins: {min, size,
    count}` in place of the edges (wandb's server), or of `_type` "trackio.histogram". Of a list, the finite numbers are
    counted in 32 bins of equal width.
    """
    if isinstance(value, Mapping):
        return _stored(value) if value.get("_type") in ("histogram", "trackio.histogram") else None
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)) or not value:
        return None
    numbers = [number(one) for one in value]
    if any(one is None for one in numbers):
        return None
    found = np.asarray(numbers, np.float64)
    return _counted(found[np.isfinite(found)])


def _stored(value: Mapping[str, Any]) -> tuple[Floats, Floats] | None:
    try:
        counts: Floats = np.asarray(value["values"], np.float64)
        if "bins" in value:
            edges: Floats = np.asarray(value["bins"], np.float64)
        else:
            packed = value["packedBins"]
            edges = np.asarray(float(packed["min"]) + float(packed["size"]) * np.arange(counts.size + 1), np.float64)
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    fits = counts.ndim == edges.ndim == 1 and len(edges) == len(counts) + 1 and len(counts) > 0
    return (edges, counts) if fits and np.isfinite(edges).all() and np.isfinite(counts).all() else None


def _counted(found: Floats) -> tuple[Floats, Floats] | None:
    if not len(found):
        return None
    low, high = float(found.min()), float(found.max())
    if low == high:  # numpy would make a bin of width 1 round it, and the mean would be off by up to half a bin
        half = max(abs(low), 1.0) * 1e-9
        return np.array([low - half, low + half]), np.array([float(len(found))])
    try:
        counts, edges = np.histogram(found, LIST_BINS)
    except ValueError:  # the range overflows, or is too narrow to be cut in 32
        return None
    return edges, counts.astype(np.float64)


def training_config(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The trainer's settings, flat, without the trackers' own (`_…`, and an argument that Trackio keeps), without the
    wrapping {"value": …}, and without anything private.

    A setting is private where its name says so (token, key, password, e-mail, host, command) or its value looks like
    one. Very long texts (chat templates) are left out too.
    """
    bare = {
        str(key): _unwrapped(value)
        for key, value in settings.items()
        if not str(key).startswith("_") and key != "allow_val_change"
    }
    return {key: value for key, value in flat(bare).items() if not is_private(key, value)}


def _unwrapped(value: object) -> object:
    if isinstance(value, Mapping) and "value" in value and set(value) <= {"value", "desc"}:
        return value["value"]
    return value


def hidden(text: str) -> str:
    """A text without anything that looks like a key, a token or an e-mail address."""
    return _PRIVATE_VALUE.sub("(hidden)", text)


def said_by_exception(text: str) -> str:
    """The message of an exception, shortened and without possible keys."""
    public = hidden(text)
    return public if len(public) <= LONGEST_EXCEPTION else public[: LONGEST_EXCEPTION - 1] + "…"


def is_private(key: str, value: object) -> bool:
    """Whether a setting is private: by its name (token, key, password, e-mail, host, command), or because its value
    looks like one of these or is a prompt.
    """
    if isinstance(value, (int, float)):
        return False
    if isinstance(value, str) and len(value) > LONGEST_SETTING:
        return True
    return _says_private(key) or _holds_private(value)


@lru_cache(maxsize=4096)  # the runs of a sweep have the same settings
def _says_private(key: str) -> bool:
    return _PRIVATE_KEY.search(key) is not None


def _holds_private(value: object, depth: int = 0) -> bool:
    """Whether a text in a value looks like a key, or has the name of a private setting in it."""
    if isinstance(value, str):
        return _PRIVATE_VALUE.search(value) is not None
    if isinstance(value, (list, tuple, Mapping)) and depth > _DEEPEST:
        return True
    if isinstance(value, Mapping):
        return any(
            (not isinstance(one, (int, float)) and _says_private(str(key)))
            or _holds_private(str(key))
            or _holds_private(one, depth + 1)
            for key, one in value.items()
        )
    return isinstance(value, (list, tuple)) and any(_holds_private(one, depth + 1) for one in value)


def end_of_training(summary: Mapping[str, Any]) -> dict[str, float]:
    """Values that transformers writes only to the summary, when training has ended: {"train/train_runtime": seconds,
    …}, named as in TensorBoard.
    """
    found = {f"train/{key}": number(summary.get(key, summary.get(f"train/{key}"))) for key in END_OF_TRAINING}
    return {tag: value for tag, value in found.items() if value is not None}


def is_metric(tag: str) -> bool:
    """Whether a top-level key may be a metric: not wandb's own (`_step`), a timing of TRL's or the machine's."""
    return not tag.startswith(SKIPPED)


def metrics_of(row: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Tags and values of a row; a dict without `_type` is a group of metrics, which wandb names `outer.inner`; media
    and tables are no metrics.
    """
    for key, value in row.items():
        if not prefix and not is_metric(key):
            continue
        if isinstance(value, Mapping):
            if value.get("_type") in ("histogram", "trackio.histogram"):
                yield f"{prefix}{key}", value
            elif "_type" not in value and prefix.count(".") < 8:  # deeper than anything a trainer logs
                yield from metrics_of(value, f"{prefix}{key}.")
        elif not isinstance(value, str) or value.lower() in NON_FINITE:
            yield f"{prefix}{key}", value


def whole(value: object) -> int | None:
    """The step that `value` is; None if it is none."""
    found = number(value)
    return int(found) if found is not None and math.isfinite(found) and abs(found) < 2**62 else None
