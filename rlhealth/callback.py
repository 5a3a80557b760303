"""`from rlhealth.callback import HealthCallback`: the public name of `rlhealth.integrations.callback`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlhealth.integrations.callback import HealthCallback

__all__ = ["HealthCallback"]


def __getattr__(name: str) -> Any:
    """Imports the callback when it is first asked for: this module can be imported without transformers."""
    if name != "HealthCallback":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from rlhealth.integrations import callback

    return callback.HealthCallback
