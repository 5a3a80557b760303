"""Answers for reports to show: healthy, sick with a diagnosis, thirty runs, rules that could not run, hostile names."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rlhealth.errors import RlhealthError
from rlhealth.metrics import translate
from rlhealth.run import Place, Run
from rlhealth.verdict.evidence import Evidence
from rlhealth.verdict.findings import Episode, Finding, Ignored, Severity, Skipped, State
from rlhealth.verdict.gate import Gate
from rlhealth.verdict.verdicts import RunVerdict, Verdict

FIXTURES = Path(__file__).parents[2] / "fixtures" / "reports"
NASTY = (
    "<script>alert(1)</script>",
    "]]></system-out><x/>",
    "::error file=a::b%0A",
    "\x1b[31mred\x1b]8;;http://evil\x07",
    "two\nlines\r\nthree",
    "x" * 10_000,
    "run🏃‍♀️ é ﬁ",
    "\u202eright to left\u2069 שלום",
    "[bold red]markup[/]",
    "'\"><img src=x onerror=alert(1)>",
    "| a | b |\n# head",
    "=cmd|' /C calc'!A0",
    "\udc80 lone",
    "\x00\x9b31m",
    "{x} %s %0a ,:",
)


def run_of(folder: str, name: str) -> Run:
    """A run as the trainer wrote it: one row a logged step."""
    rows = json.loads((FIXTURES / folder / "trainer_state.json").read_text())["log_history"]
    run = Run(
        name,
        Place("trainer_state", f"runs/{name}"),
        versions={"trl": "1.16.0"},
        config={"beta": 0.04, "max_completion_length": 32},
    )
    for tag in sorted({tag for row in rows for tag in row} - {"step"}):
        points = [(row["step"], row[tag]) for row in rows if isinstance(row.get(tag), int | float)]
        run.add(f"train/{tag}", *zip(*points, strict=True), times=[1.7e9 + 6 * step for step, _ in points])
    return run


def found(
    rule: str,
    family: str,
    severity: Severity,
    title: str,
    metric: str,
    first: int,
    raised: int,
    last: int,
    worst: tuple[int, float],
    limit: float | None,
    unit: str = "",
    tag: str = "",
    beside: tuple[Evidence, ...] = (),
    **more: object,
) -> Finding:
    tag = tag or f"train/{metric}"
    lead = Evidence(metric=metric, tag=tag, step=worst[0], value=worst[1], limit=limit, unit=unit, measure=metric)
    finding = Finding(
        rule,
        family,
        severity,
        title,
        (lead, *beside),
        first,
        raised,
        last,
        State.STANDING,
        f"{metric} reached {worst[1]:.3g}" + (f" (limit {limit:.3g})" if limit is not None else ""),
        "The policy moved far from the one that collected the data, so its importance ratios stop "
        "being trustworthy and each update makes the next one worse.",
        (
            "Lower the learning rate, or run fewer epochs on each rollout.",
            "Go back to the checkpoint before the first of these steps.",
        ),
        "TRL docs, logging page",
        episodes=(Episode(first, raised, last),),
    )
    return replace(finding, **more)  # type: ignore[arg-type]


REWARD_FELL = Evidence(
    metric="reward",
    tag="train/reward",
    step=84,
    value=8.2,
    error=2.0,
    limit=0.0,
    sure=3.5,
    measured="noise",
    unit="reward",
    measure="the fall of reward from its best so far",
)
SKIPPED = [
    Skipped("kl-coef-rising", "kl-coef", "objective/kl_coef was not logged"),
    Skipped("ratio-far-from-one", "ratio", "val/ratio was not logged"),
    Skipped("value-loss-spike", "value-loss", "loss/value_avg was not logged"),
    Skipped("value-underfit", "value-loss", "val/explained_variance was not logged"),
]
QUIET = ["numerics-nan", "reward-flat", "completions-truncated", "entropy-rising", "grad-norm-spike"]


def healthy_run(name: str = "sort-s1") -> RunVerdict:
    run = run_of("sort", name)
    return RunVerdict(
        run, translate(run), "finished", skipped=list(SKIPPED), quiet=[*QUIET, "kl-high", "entropy-collapse"]
    )


def sick_run(name: str = "polite-lr-jump") -> RunVerdict:
    run = run_of("lr-jump", name)
    run.resumed_at.append(70)
    cause = found(
        "step-size-too-big",
        "diagnosis",
        Severity.CRITICAL,
        "Each update moves the policy too far",
        "grad_norm",
        81,
        83,
        140,
        (82, 9.4),
        4.0,
        message="3 findings share one cause: from step 81 each update moved the policy too far",
    )
    members = [
        found(
            "grad-norm-spike",
            "grad-norm",
            Severity.WARNING,
            "Gradients exploded",
            "grad_norm",
            81,
            83,
            90,
            (82, 9.4),
            4.0,
            state=State.OVER,
            explained_by="step-size-too-big",
        ),
        found(
            "kl-high",
            "kl-high",
            Severity.CRITICAL,
            "The policy left its reference",
            "kl",
            82,
            84,
            140,
            (84, 3.4),
            1.0,
            unit="nats/token",
            beside=(REWARD_FELL,),
            explained_by="step-size-too-big",
        ),
        found(
            "entropy-collapse",
            "entropy",
            Severity.WARNING,
            "The policy stopped exploring",
            "entropy",
            86,
            90,
            140,
            (139, 0.02),
            0.2,
            unit="nats/token",
            explained_by="step-size-too-big",
        ),
    ]
    alone = found(
        "no-group-signal",
        "reward-signal",
        Severity.WARNING,
        "Most groups teach nothing",
        "frac_reward_zero_std",
        90,
        95,
        140,
        (120, 1.0),
        0.8,
        unit="fraction",
    )
    hint = found(
        "lengths-drop",
        "length",
        Severity.INFO,
        "Completions became shorter",
        "completions/mean_length",
        83,
        88,
        110,
        (99, 2.0),
        None,
        unit="tokens",
        state=State.OVER,
    )
    ignored = Ignored(
        found("loss-jumps", "loss", Severity.WARNING, "The loss jumps", "loss", 80, 82, 99, (85, 3.0), 1.0),
        "known since May",
    )
    return RunVerdict(
        run,
        translate(run),
        "finished",
        [hint, *members, alone, cause],
        list(SKIPPED),
        list(QUIET),
        [ignored],
        seconds=0.2,
    )


def unknown_run(name: str = "no-rl-here") -> RunVerdict:
    run = Run(
        name,
        Place("table", f"runs/{name}.csv"),
        problems=["3 damaged lines skipped, the first at line 12"],
        notes=["the step was taken from the column 'it'"],
    )
    run.add("my/number", range(10), np.arange(10.0))
    return RunVerdict(run, translate(run), "unknown", skipped=list(SKIPPED))


@pytest.fixture
def healthy() -> Verdict:
    return Verdict([healthy_run()])


@pytest.fixture
def sick() -> Verdict:
    return Verdict([sick_run()])


@pytest.fixture
def unknown() -> Verdict:
    return Verdict([unknown_run()], gate=Gate(Severity.WARNING, require=("kl-high",)))


@pytest.fixture
def nothing() -> Verdict:
    return Verdict(
        [],
        [
            RlhealthError(
                "no runs found in ./logs",
                hint="looked for event files, *.wandb and trainer_state.json",
                location="./logs",
            )
        ],
    )


@pytest.fixture
def many() -> Verdict:
    """Thirty runs: 24 healthy, 3 critical, 1 warning, 1 unknown and one that could not be read."""
    runs = [healthy_run(f"lr3e-4_s{number}") for number in range(24)]
    runs += [sick_run(f"lr3e-3_s{number}") for number in range(3)]
    warned = healthy_run("lr1e-3_s1")
    warned.findings.append(
        found(
            "no-group-signal",
            "reward-signal",
            Severity.WARNING,
            "Most groups teach nothing",
            "frac_reward_zero_std",
            9,
            15,
            40,
            (20, 1.0),
            0.8,
            unit="fraction",
            state=State.OVER,
        )
    )
    return Verdict(
        [*runs, warned, unknown_run()],
        [
            RlhealthError(
                "runs/lr1e-4_s2: the event file is empty",
                hint="delete it, or wait until the run writes",
                location="runs/lr1e-4_s2",
            )
        ],
    )


@pytest.fixture
def hostile() -> Verdict:
    """Every text that can come from a log or an error, as nasty as it gets."""
    runs = []
    for number, name in enumerate(NASTY):
        one = sick_run(name)
        tag = f"train/{name}"
        one.run.add(tag, range(1, 5), [1.0, float("nan"), float("inf"), 2.0])
        one.run.place = Place("tensorboard", f"runs/{name}")
        one.run.problems.append(f"{number} records lost in {name}")
        one.run.notes.append(f"note {name}")
        one.translation = translate(one.run)
        one.findings.append(
            found(
                "nan-loss",
                "numerics",
                Severity.CRITICAL,
                f"Title {name}",
                name,
                2,
                2,
                4,
                (3, float("inf")),
                float("nan"),
                tag=tag,
                message=f"message {name}",
            )
        )
        one.skipped.append(Skipped("skipped-one", "dead", f"{name} was not logged"))
        runs.append(one)
    return Verdict(
        runs, [RlhealthError(f"{name}: cannot be read", hint=f"see {name}", location=name) for name in NASTY]
    )
