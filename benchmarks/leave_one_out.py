"""How much the limits owe to the runs they are scored on: each era is left out in turn, limits are set without it, and
it is scored.

    python -m benchmarks.leave_one_out CORPUS

CORPUS holds labels.json and runs/. Every limit whose source names the labelled corpus is replaced by one that is set
mechanically: a fifth beyond the most extreme value that its measure takes on the healthy runs of the other eras. A
rule whose metric no other era logs keeps its shipped limit; the table says how many were set and how many kept.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from rlhealth.check import judge
from rlhealth.engine.cannot_run import CannotRun
from rlhealth.engine.limits import bound_of
from rlhealth.engine.metric_choice import pick
from rlhealth.engine.operands import Operand
from rlhealth.metrics import translate
from rlhealth.rules.conditions import Condition
from rlhealth.rules.loading import load_rules
from rlhealth.rules.model import Rule
from rlhealth.run import Run
from rlhealth.sources import open_runs
from rlhealth.verdict.findings import Severity
from rlhealth.verdict.verdicts import RunVerdict

BEYOND = 1.2


@dataclass
class Labelled:
    """One run of the corpus with its label."""

    name: str
    era: str
    sick: bool
    expected: set[str]
    accepted: set[str]
    runs: list[Run]


@dataclass
class Score:
    """What came out on one group of runs."""

    sick: int = 0
    seen: int = 0
    gated: int = 0
    expected: int = 0
    found: int = 0
    stray: int = 0
    well: int = 0
    alarms: int = 0
    gates: int = 0
    notes: list[str] = field(default_factory=list)

    def add(self, label: Labelled, verdicts: Sequence[RunVerdict]) -> None:
        """Counts one run."""
        reported = [one for verdict in verdicts for one in verdict.findings if one.severity >= Severity.WARNING]
        fired = {one.family for one in reported} - {"diagnosis"}
        critical = any(verdict.verdict == "critical" for verdict in verdicts)
        if label.sick:
            self.sick += 1
            self.seen += bool(fired & label.accepted)
            self.gated += critical
            self.expected += len(label.expected)
            self.found += len(label.expected & fired)
            self.stray += len(fired - label.accepted)
            self.notes += (
                [f"{label.name}: missed {', '.join(sorted(label.expected - fired))}"] if label.expected - fired else []
            )
        else:
            self.well += 1
            self.alarms += bool(fired - label.accepted)
            self.gates += critical
            self.notes += (
                [f"{label.name}: alarm {', '.join(sorted(fired - label.accepted))}"] if fired - label.accepted else []
            )


def corpus(folder: Path) -> list[Labelled]:
    """The runs of a corpus, each read from the first of its sources."""
    found = []
    for label in json.loads((folder / "labels.json").read_text()):
        if label.get("visibility"):
            continue
        paths = next(
            label["sources"][kind] for kind in ("tensorboard", "wandb", "trainer_state") if label["sources"].get(kind)
        )
        runs = [
            run
            for path in ([paths] if isinstance(paths, str) else paths)
            for run in open_runs(str(folder / "runs" / path))
        ]
        expected = set(label["expected"])
        found.append(
            Labelled(
                label["run"],
                label["era"],
                label["verdict"] == "unhealthy",
                expected,
                expected | set(label.get("acceptable") or []),
                runs,
            )
        )
    return found


def extreme(rule: Rule, condition: Condition, labelled: Iterable[Labelled]) -> float | None:
    """The value furthest to the unhealthy side that a condition's measure takes on those runs; None if none of them
    logs it.
    """
    values = []
    for one in labelled:
        for run in one.runs:
            translation = translate(run)
            try:
                metric = pick(condition.metric, translation)
                bound = bound_of(condition, translation.config)
            except CannotRun:
                continue
            measured = Operand(condition, metric, None, 1.0).advance(int(metric.steps[-1]))[1].value
            if np.isfinite(measured).any():
                values.append(float(np.nanmax(measured) if bound.sign == "above" else np.nanmin(measured)))
    return (max(values) if condition.above is not None else min(values)) if values else None


def reset(rules: Sequence[Rule], labelled: Sequence[Labelled]) -> tuple[list[Rule], int, int]:
    """The rules with their corpus limits set by those runs; how many were set, and how many kept without data."""
    made, changed, kept = [], 0, 0
    for rule in rules:
        from_corpus = any("labelled corpus" in source.text for source in rule.source)
        condition = rule.when.conditions[0] if rule.when and rule.when.conditions else None
        zero = condition is not None and any(
            isinstance(one, int | float) and abs(one) < 1e-5 for one in (condition.above, condition.below)
        )  # "nothing", not a limit
        simple = (
            not zero
            and condition is not None
            and rule.when is not None
            and len(rule.when.conditions) == 1
            and condition.divided_by is None
        )
        if (
            not (from_corpus and simple)
            or condition is None
            or rule.when is None
            or condition.equals is not None
            or condition.measure == "share_nonfinite"
        ):
            made.append(rule)
            continue
        value = extreme(rule, condition, [one for one in labelled if not one.sick])
        if value is None or value <= 0:
            kept += 1
            made.append(rule)
            continue
        side = "above" if condition.above is not None else "below"
        limit = value * BEYOND if side == "above" else value / BEYOND
        changed += 1
        made.append(
            rule.model_copy(
                update={"when": rule.when.model_copy(update={"all": (condition.model_copy(update={side: limit}),)})}
            )
        )
    return made, changed, kept


def main() -> int:
    """Prints a row for each era left out, and one for all of them together."""
    labelled = corpus(Path(sys.argv[1]))
    rules = load_rules()
    print(
        f"{'left out':16s} {'limits':>12s} {'seen':>9s} {'gated':>9s} {'families':>9s} "
        f"{'stray/run':>9s} {'alarms':>9s} {'gates':>6s}"
    )
    whole = Score()
    for era in sorted({one.era for one in labelled}):
        held = [one for one in labelled if one.era == era]
        without, changed, kept = reset(rules, [one for one in labelled if one.era != era])
        score = Score()
        for one in held:
            verdicts = [judge(run, without) for run in one.runs]
            score.add(one, verdicts)
            whole.add(one, verdicts)
        show(era, f"{changed} set {kept} kept", score)
    show("all together", "", whole)
    print("\n".join(whole.notes))
    return 0


def show(name: str, limits: str, score: Score) -> None:
    """One row."""
    share = [
        f"{part}/{of}"
        for part, of in ((score.seen, score.sick), (score.gated, score.sick), (score.found, score.expected))
    ]
    print(
        f"{name:16s} {limits:>14s} {share[0]:>9s} {share[1]:>9s} {share[2]:>9s} "
        f"{score.stray / max(score.sick, 1):9.2f} "
        f"{score.alarms:>5d}/{score.well:<3d} {score.gates:6d}"
    )


if __name__ == "__main__":
    sys.exit(main())
