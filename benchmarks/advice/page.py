"""The page of the trials: what was healed, by which advice, in how many rounds; what was made worse, and what was not
tried."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from benchmarks.advice.trial import Outcome, TrialRound
from rlhealth.verdict.findings import Change

Found = Sequence[tuple[dict[str, Any], list[Outcome]]]
COUNTED = 2  # rounds within which a set-up counts as healed
TRAINERS = {
    "trl-grpo": "GRPO (TRL 1.16)",
    "trl-rloo": "RLOO (TRL 1.16)",
    "trl-ppo-exp": "PPO (TRL 1.9)",
    "trl-legacy-ppo": "PPO (TRL 0.11)",
}
HEAD = """# Does the advice heal?

Written by `python -m benchmarks.advice`; do not edit. Sick set-ups are trained with the real trainer (tiny models,
three toy tasks, 80 to 160 steps), judged, changed as `rlhealth advise` says, and trained again, up to three rounds.

A run counts as **healed** where its verdict is healthy, and the mean reward of its last fifth is no lower than that of
the same task with healthy settings, less twice the standard deviation of that run's own last fifth. **Worse**: its
reward ended below that of the sick run by more than twice the noise of both. A run can be both: a policy that writes
one text alone may earn more than the healthy settings do. Every figure is a count of runs, one for each seed.

The amounts (a tenth of a learning rate, but no less than is usual for a model of its size, four times a limit, one
pass) and their order were chosen while looking at the runs with the first seed; of the runs with other seeds only the
counts on this page were seen. With a KL coefficient that was 0, legacy PPO (learning rate lowered to a third) ended at
a reward of 0.93 with 0.1; with 0.2 at 0.75 to 0.86, and with 0.05 at 0.97 but with a critic that was lost; healthy
settings: 0.96.
"""


def line(trial: dict[str, Any], seed: int, outcome: Outcome) -> str:
    """One trial with one seed, round by round."""
    parts = []
    for one in outcome.rounds:
        parts.append(f"[{one.verdict} {_named(one) or '-'} {one.reward:.2f}]")
        parts.append(", ".join(_change(change) for change in one.advice.changes))
    healthy = f" healthy settings: {outcome.healthy.verdict} {outcome.healthy.reward:.2f}" if outcome.healthy else ""
    return (
        f"{trial['era']} {trial['run']} seed {seed}: {' '.join(filter(None, parts))}{healthy}; healed: {outcome.healed}"
    )


def summary(found: Found) -> str:
    """How many were healed within two rounds, and how many were made worse."""
    sick = [one for trial, outcomes in found if curable(trial) for one in outcomes if _is_sick(one)]
    healed = sum(one.healed is not None and one.healed <= COUNTED for one in sick)
    worse = [one for one in sick if one.worse]
    though = sum(one.healed is not None for one in worse)
    incurable = [one for trial, outcomes in found if trial.get("curable") is False for one in outcomes if _is_sick(one)]
    silent = sum(not one.rounds[0].advice.changes for one in incurable)
    share = f" ({healed / len(sick):.0%})" if sick else ""
    return (
        f"Healed within {COUNTED} rounds: {healed} of {len(sick)} sick runs that a setting can cure{share}; "
        f"made worse: {len(worse)}{f' ({though} of them healed)' if though else ''}. "
        f"Of {len(incurable)} sick runs that no setting cures, the advice named no setting in {silent}."
    )


def written(found: Found) -> str:
    """The whole page."""
    rows = [_row(trial, outcomes) for trial, outcomes in found if curable(trial) and outcomes]
    others = [_other(trial, outcomes) for trial, outcomes in found if not curable(trial) and outcomes]
    left = [f"{trial['fault']}, {TRAINERS[trial['era']]}" for trial, outcomes in found if not outcomes]
    seeds = max((len(outcomes) for _, outcomes in found), default=0)
    parts = [
        HEAD,
        f"**{summary(found)}** Seeds for each trial: {seeds} at most.\n",
        "## What a setting can cure\n",
        "| fault | trainer | advice of | first change | healed of sick | rounds | worse "
        "| healthy settings are healthy |",
        "|---|---|---|---|---:|---|---:|---:|",
        *rows,
        "",
        "A run whose fault did not show (it was healthy as it was) is not counted as sick.\n",
        "## What no setting can cure\n",
        "The reward function or the data are wrong. "
        "Advice is right where it names no setting and says where to look; where a setting is wrong as well, it names "
        "both.\n",
        "| fault | trainer | cause or symptom named | a setting was named |",
        "|---|---|---|---:|",
        *others,
        "",
    ]
    if left:
        parts += ["## Not tried, or not trainable in the lab\n", *(f"- {one}" for one in left), ""]
    return "\n".join(parts)


def _row(trial: dict[str, Any], outcomes: list[Outcome]) -> str:
    sick = [one for one in outcomes if _is_sick(one)]
    healed = [one.healed for one in sick if one.healed is not None and one.healed <= COUNTED]
    changes = Counter("; ".join(_change(change) for change in one.rounds[0].advice.changes) or "none" for one in sick)
    fine = sum(one.healthy is not None and one.healthy.verdict == "healthy" for one in outcomes)
    cells = [
        trial["fault"],
        TRAINERS[trial["era"]],
        _causes(sick),
        ", ".join(_counted(name, count, len(sick)) for name, count in changes.most_common()),
        f"{len(healed)} of {len(sick)}",
        ", ".join(map(str, healed)) or "–",
        str(sum(one.worse for one in sick)),
        f"{fine} of {len(outcomes)}",
    ]
    return f"| {' | '.join(cells)} |"


def _other(trial: dict[str, Any], outcomes: list[Outcome]) -> str:
    sick = [one for one in outcomes if _is_sick(one)]
    named = sum(bool(one.rounds[0].advice.changes) for one in sick)
    return f"| {trial['fault']} | {TRAINERS[trial['era']]} | {_causes(sick)} | {named} of {len(sick)} |"


def _causes(sick: list[Outcome]) -> str:
    said = Counter(_cause(one) for one in sick)
    return ", ".join(_counted(name, count, len(sick)) for name, count in said.most_common()) or "–"


def _cause(one: Outcome) -> str:
    return _named(one.rounds[0]) or "none"


def _named(one: TrialRound) -> str:
    return one.advice.cause or (one.advice.looks[0].rule if one.advice.looks else "")


def _counted(name: str, count: int, of: int) -> str:
    return f"{name} ({count} of {of})" if count != of else name


def _change(one: Change) -> str:
    before = "?" if one.before is None else f"{one.before:g}" if isinstance(one.before, float) else str(one.before)
    return f"{one.option} {before} → {one.to:g}" if isinstance(one.to, float) else f"{one.option} {before} → {one.to}"


def curable(trial: dict[str, Any]) -> bool:
    """Whether settings alone are wrong."""
    return trial.get("curable", True) is True


def _is_sick(one: Outcome) -> bool:
    return one.rounds[0].verdict not in ("healthy", "unknown")
