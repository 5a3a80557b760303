"""JSON as its standard has it."""

from __future__ import annotations

import json


def strict_json(text: str) -> object:
    """Parses JSON.

    Raises:
        AssertionError: for NaN and the infinities, which Python's json reads though they are none.
    """

    def refuse(word: str) -> object:
        raise AssertionError(f"{word} in JSON")

    return json.loads(text, parse_constant=refuse)
