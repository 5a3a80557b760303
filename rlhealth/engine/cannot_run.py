"""Why a rule cannot run: the run has no such metric or setting, or the rule does not apply to it."""

from __future__ import annotations


class CannotRun(Exception):
    """A rule cannot run on this run; the message says why."""
