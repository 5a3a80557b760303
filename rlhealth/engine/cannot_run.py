"""Why a rule cannot run at a run: its metric or a setting is missing, or it is not meant for it."""

from __future__ import annotations


class CannotRun(Exception):
    """A rule cannot run at this run; the message says why."""
