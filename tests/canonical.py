"""Runs under canonical names, as tests of the engine write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlhealth.metrics import Metric, Translation, meaning
from rlhealth.run import Run


def translated(run: Run, framework: str = "trl-grpo", config: Mapping[str, Any] | None = None) -> Translation:
    """The run's series as the metrics they are called by."""
    known = {tag: meaning(tag) for tag in run.series}
    metrics = {
        tag: Metric(tag, tag, one.unit, "", "", "", run.series[tag]) for tag, one in known.items() if one is not None
    }
    return Translation(framework, framework, None, True, (), metrics, dict(config or {}), {}, ())
