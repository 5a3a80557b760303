"""Runs judged and reported for the fuzzer: any points, any rule, any text, through every format."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache
from xml.etree import ElementTree

import numpy as np

from rlhealth.check import judge
from rlhealth.errors import RlhealthError
from rlhealth.reports import REPORTS, ReportOptions, write
from rlhealth.rules.loading import load_rules
from rlhealth.rules.model import Rule
from rlhealth.run import Place, Run
from rlhealth.verdict.verdicts import RunVerdict, Verdict
from tests.fuzz.strictness import strict_json

NOW = 1_800_000_000.0
#: What TRL's GRPO and PPO trainers log, so that most rules can look.
TAGS = (
    "train/loss",
    "train/reward",
    "train/reward_std",
    "train/kl",
    "train/entropy",
    "train/grad_norm",
    "train/completions/mean_length",
    "train/completions/clipped_ratio",
    "train/frac_reward_zero_std",
    "train/learning_rate",
    "train/clip_ratio/region_mean",
    "train/step_time",
    "train/epoch",
    "train/sampling/importance_sampling_ratio/mean",
    "train/objective/kl",
    "train/policy/approxkl_avg",
    "train/val/ratio",
    "train/loss/value_avg",
    "train/objective/entropy",
)
ALLOWED = "\n\t\u202f\u00a0\u200d"  # what reports themselves write beside printable characters


@cache
def shipped() -> list[Rule]:
    return load_rules()


def run_of(
    columns: Sequence[tuple[Sequence[int], Sequence[float]]], name: str = "fuzzed", tags: Sequence[str] = TAGS
) -> Run:
    """A run of those steps and values, one pair of columns a tag."""
    run = Run(
        name,
        Place("jsonl", f"runs/{name}"),
        config={"beta": 0.04, "max_completion_length": 32, "learning_rate": 1e-6},
        versions={"trl": "1.16.0"},
    )
    for tag, (steps, values) in zip(tags, columns, strict=False):
        run.add(tag, steps, values, [NOW - 1000.0 + one % 1000 for one in steps])
    return run


def judged_points(raw: bytes) -> bool:
    """The bytes as values, at steps that come unordered and twice: judged without a warning, and reported in strict
    JSON.
    """
    values = np.frombuffer(raw[: len(raw) // 8 * 8][:4096], "<f8")
    if not len(values):
        return False
    width = 1 + raw[0] % len(TAGS)
    columns = []
    for index in range(width):
        part = values[index::width]
        steps = np.arange(len(part)) * (1 + raw[-1] % 7)
        if raw[0] % 3 == 1:
            steps = steps[::-1] // 2
        columns.append((steps.tolist(), part.tolist()))
    verdict = judged_verdict(run_of(columns))
    strict_json(write(verdict, "json"))
    return bool(verdict.runs[0].findings)


def judged_verdict(run: Run) -> Verdict:
    """The verdict; a numpy warning on the way is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        return Verdict([judge(run, shipped(), now=NOW)])


@cache
def _sick() -> tuple[tuple[Sequence[int], Sequence[float]], ...]:
    steps = list(range(1, 61))
    return tuple(
        (steps, [1.0 + (number % 7) * 0.01 if number < 30 else 10.0 ** min(number - 29, 8) for number in steps])
        for _ in TAGS
    )


def judged(rule: Rule) -> RunVerdict:
    """One rule on a run in which everything goes wrong half-way."""
    return judge(run_of(_sick()), [rule], now=NOW)


def reported(text: str) -> bool:
    """A sick run in which every text is `text`, told in every format: no control character, and what claims to be
    JSON or XML is.
    """
    run = run_of(_sick(), text, [*TAGS[:8], f"train/{text}", text])
    run.place = Place("tensorboard", text)
    run.problems.append(f"1 damaged record in {text}")
    run.notes.append(text)
    run.config[f"k{text}"] = text
    run.versions[text] = text
    verdict = Verdict(
        [judge(run, shipped(), ignore={"entropy-collapse": text}, now=NOW)],
        [RlhealthError(text, hint=text, location=text)],
    )
    for format in REPORTS:
        for look in (
            (ReportOptions(width=40, color=False), ReportOptions(width=100, color=True, show_all=True))
            if format == "terminal"
            else (ReportOptions(),)
        ):
            told = write(verdict, format, look)
            told.encode("utf-8")
            if not look.color:
                wrong = {one for one in told if not one.isprintable() and one not in ALLOWED}
                assert not wrong, f"{format}: {wrong}"
            if format in ("json", "sarif", "gitlab"):
                strict_json(told)
            elif format == "junit":
                ElementTree.fromstring(told)
    return True
