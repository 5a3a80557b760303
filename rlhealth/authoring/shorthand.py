"""Series in shorthand, as rule tests write them: `0.01x160`, `1.0..0.2x100`, `1.0~0.05x200`, `1~0.05@0.8x200`, `_x5`,
`nan`, `(0.1 0.9)x20`."""

from __future__ import annotations

import re
import zlib

import numpy as np

from rlhealth.run import Floats, Ints

LONGEST = 100_000  # points of a test series: a typing error must not fill the memory

_NUMBER = r"[-+]?(?:\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|nan|inf)"
_PIECE = re.compile(
    rf"(?P<start>{_NUMBER}|_)(?:\.\.(?P<end>{_NUMBER}))?(?:~(?P<noise>{_NUMBER})(?:@(?P<stick>0?\.\d+))?)?(?:x(?P<count>\d+))?",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"\((?P<group>[^()]*)\)x(?P<times>\d+)|(?P<piece>\S+)")


def read_shorthand(text: str, name: str = "") -> tuple[Ints, Floats]:
    """The points that a shorthand stands for.

    Pieces are separated by spaces. A piece is a number (or `nan`, `inf`), which may go `..` to another, with `~` noise
    of that standard deviation (`@0.8`: each point's noise resembles the one before, with that correlation), `x` so many
    times; `_` is no point. `(…)x20` repeats pieces. Noise is the same for the same text and name, on every machine.

    Args:
        name: of the metric: two metrics with the same text get different noise.

    Returns:
        places, shape (n,), counted from 0 with the missing points left out; values, shape (n,).

    Raises:
        ValueError: naming the piece that cannot be read.
    """
    noise = np.random.default_rng(zlib.crc32(f"{name}={text}".encode()))
    values, known = _pieces(text, noise)
    places = np.flatnonzero(known).astype(np.int64)
    return places, values[places]


def _pieces(text: str, noise: np.random.Generator) -> tuple[Floats, Ints]:
    values: list[Floats] = []
    known: list[Ints] = []
    for token in _TOKEN.finditer(text):
        if token["piece"] is None:
            inner = [_pieces(token["group"], noise) for _ in range(_few(int(token["times"]), text))]
            values += [one for one, _ in inner]
            known += [one for _, one in inner]
        else:
            made = _piece(token["piece"], noise)
            values.append(made)
            known.append(np.full(len(made), not token["piece"].startswith("_"), np.int64))
        _few(sum(map(len, values)), text)
    if not values:
        raise ValueError("there are no points")
    return np.concatenate(values), np.concatenate(known)


def _piece(piece: str, noise: np.random.Generator) -> Floats:
    found = _PIECE.fullmatch(piece)
    if not found or (found["start"] == "_" and (found["end"] or found["noise"])):
        raise ValueError(
            f"cannot read {piece!r}: write 0.5x20, 1..0.2x100, 1~0.05x50, 1~0.05@0.8x50, _x3, nan or (0.1 0.9)x20"
        )
    count = _few(int(found["count"] or 1), piece)
    if found["start"] == "_":
        return np.full(count, np.nan)
    start = float(found["start"])
    with np.errstate(all="ignore"):  # from inf to somewhere is NaN, and that is what it says
        made = np.linspace(start, float(found["end"]), count) if found["end"] else np.full(count, start)
        if not found["noise"]:
            return made
        drawn = noise.normal(0.0, abs(float(found["noise"])), count)
        return made + (correlated(drawn, float(found["stick"])) if found["stick"] else drawn)


def correlated(drawn: Floats, correlation: float) -> Floats:
    """Independent noise, shape (n,), as a first-order autoregression of the same spread."""
    made, fresh = drawn.copy(), float(np.sqrt(1 - correlation**2))
    for place in range(1, len(made)):
        made[place] = correlation * made[place - 1] + fresh * drawn[place]
    return made


def _few(count: int, text: str) -> int:
    if count > LONGEST:
        raise ValueError(f"{text!r} stands for more than {LONGEST:,} points")
    return count
