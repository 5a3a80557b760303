"""What the page says of runs that were healed while they trained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.advice.page import TRAINERS
from benchmarks.advice.trial import LiveOutcome

HEAD = """
## While it trains

`HealthCallback(stop_on="critical")` ends the run at its first critical finding. The run goes back to the last
checkpoint (one every 5 steps) whose weights are older than the first row that agrees with the finding, without the
state of its optimizer, which holds the old learning rate; it takes the advice, and goes on to the step that was
planned. Where it goes back to step 0, no checkpoint is older. **Healed** is as above. The code is
`benchmarks/advice/live.py`.
"""


def line(trial: dict[str, Any], seed: int, outcome: LiveOutcome) -> str:
    """One trial with one seed, part by part."""
    said = "; ".join(f"[{one['verdict']} {one['reward']:.2f}] {_part(one)}" for one in outcome.parts)
    return f"live {trial['era']} {trial['run']} seed {seed}: {said}; healed: {outcome.healed}"


def written(found: Sequence[tuple[dict[str, Any], list[LiveOutcome]]]) -> str:
    """The section of the page; empty where nothing was tried."""
    tried = [(trial, one) for trial, outcomes in found for one in outcomes]
    if not tried:
        return ""
    curable = [one for trial, one in tried if one.healthy is not None and one.parts[0]["stopped"]]
    healed = sum(one.healed for one in curable)
    rows = [_row(trial, one) for trial, one in tried]
    return "\n".join(
        [
            HEAD,
            f"**Healed while they trained: {healed} of {len(curable)} stopped runs that a setting can cure.** "
            "A row is one run.\n",
            "| fault | trainer | stopped at | back to | change | stopped again | ends | reward at the end "
            "| with healthy settings | healed |",
            "|---|---|---:|---:|---|---|---|---:|---:|---|",
            *rows,
            "",
        ]
    )


def _row(trial: dict[str, Any], outcome: LiveOutcome) -> str:
    first, last = outcome.parts[0], outcome.parts[-1]
    again = [_part(one) for one in outcome.parts[1:] if one["stopped"]]
    healthy = outcome.healthy
    cells = [
        trial["fault"],
        TRAINERS[trial["era"]],
        str(first["to"]) if first["stopped"] else "–",
        str(outcome.parts[1]["from"]) if len(outcome.parts) > 1 else "–",
        _changes(first) if first["stopped"] else "–",
        "; ".join(again) or "–",
        "stopped" if last["stopped"] else last["verdict"],
        f"{last['reward']:.2f}",
        f"{healthy.reward:.2f}" if healthy else "–",
        ("yes" if outcome.healed else "no") if healthy else "not by a setting",
    ]
    return f"| {' | '.join(cells)} |"


def _part(one: dict[str, Any]) -> str:
    return f"at {one['to']}: {_changes(one)}" if one["stopped"] else f"ends at {one['to']}"


def _changes(one: dict[str, Any]) -> str:
    """The changes after a part; the cause to look at where there are none."""
    changes = ", ".join(f"{option} {_number(before)} → {_number(to)}" for option, before, to in one["changes"])
    return changes or f"none: {str(one['cause'])[:1].lower()}{str(one['cause'])[1:]}"


def _number(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
