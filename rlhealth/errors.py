"""Errors that are told to a person: what went wrong, where, and what to try next."""

from __future__ import annotations


class RlhealthError(Exception):
    """Something that the user can act on; `cli` prints it as one line and its hint.

    Args:
        message: what went wrong, with the place (`file:line:column`, metric, step).
        hint: the next thing to try.
        location: the path or address that could not be read, where there is one.
    """

    def __init__(self, message: str, *, hint: str = "", location: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.location = location
