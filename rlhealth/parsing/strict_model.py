"""The base of pydantic models of files that most checks never read: settings, cases of rules, checks of settings."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class StrictModel(BaseModel):
    """A model that refuses unknown keys and numbers written as text."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, defer_build=True
    )  # built when first used: most are only parts of others
