"""Errors for the user: what went wrong, where, and what to try next."""

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


class Unavailable(RlhealthError):
    """Cannot be read now, and will be tried again: the network or the server failed, and what has been read stays as it
    is.

    `check` reports it as it does any run that it cannot read; `watch` continues and reports since when it cannot read
    it.

    Args:
        message, hint, location: as in `RlhealthError`.
        reason: why, in a few words ("the connection was cut").
        since: when the first look failed of those that have failed in a row, seconds since 1970.
    """

    def __init__(
        self, message: str, *, hint: str = "", location: str = "", reason: str = "", since: float = float("nan")
    ) -> None:
        super().__init__(message, hint=hint, location=location)
        self.reason = reason or message
        self.since = since
