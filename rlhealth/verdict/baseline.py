"""The baseline: accepted findings in a file, so that the gate fails only for new ones."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from rlhealth.errors import RlhealthError
from rlhealth.system.files import locked, write_whole
from rlhealth.verdict.findings import Finding, Ignored, Severity
from rlhealth.verdict.verdicts import RunVerdict, Verdict

SCHEMA = "rlhealth.baseline/1"
REASON = "baseline"
Known = tuple[str, str, str]  # run, rule, metric
_HINT = "write it anew with --write-baseline"


@dataclass(frozen=True)
class Baseline:
    """Accepted findings: the severity up to which each is accepted, by run, rule and metric.

    Steps and values are not stored, because they change while a run continues. A finding is new if its run, its rule or
    its metric is new, or if it is more severe than before.
    """

    accepted: dict[Known, Severity] = field(default_factory=dict)

    def knows(self, run: str, one: Finding) -> bool:
        """Whether the finding of that run was accepted, at its present or a higher severity."""
        return self.accepted.get((run, one.rule, one.metric), Severity.INFO - 1) >= one.severity

    def apply(self, run: RunVerdict) -> None:
        """Sets the accepted findings of a run aside: they are counted and do not fail the gate."""
        known = [one for one in run.findings if self.knows(run.name, one)]
        run.ignored += [Ignored(one, REASON) for one in known]
        run.findings = [one for one in run.findings if not any(one is other for other in known)]

    def with_findings(self, runs: Iterable[RunVerdict]) -> Baseline:
        """This baseline with all present findings of these runs in place of their earlier ones; other runs are
        kept.
        """
        runs = list(runs)
        judged = {run.name for run in runs}
        kept = {key: severity for key, severity in self.accepted.items() if key[0] not in judged}
        for run in runs:
            for one in [*run.findings, *(other.finding for other in run.ignored if other.reason == REASON)]:
                key = run.name, one.rule, one.metric
                kept[key] = max(one.severity, kept.get(key, one.severity))
        return Baseline(kept)


def accept_all(verdict: Verdict, before: Baseline) -> Baseline:
    """Accepts all findings: sets them aside in the verdict, and returns the baseline to write."""
    baseline = before.with_findings(verdict.runs)
    for run in verdict.runs:
        baseline.apply(run)
    return baseline


def accept_findings(verdict: Verdict, path: Path, before: Baseline) -> None:
    """Accepts all findings, and writes them to the file together with those that other processes accepted there in the
    meantime.

    Raises:
        RlhealthError: if the file cannot be read or written.
    """
    with locked(path):
        there = read_baseline(path) if path.is_file() and path.stat().st_size else Baseline()
        judged = {run.name for run in verdict.runs}
        others = {key: severity for key, severity in there.accepted.items() if key[0] not in judged}
        write_baseline(accept_all(verdict, Baseline({**others, **before.accepted})), path)


def write_baseline(baseline: Baseline, path: Path) -> None:
    """Writes the file, one finding per line and sorted, so that its diffs are easy to read.

    Raises:
        RlhealthError: if it cannot be written.
    """
    rows = [
        json.dumps({"run": run, "rule": rule, "metric": metric, "severity": str(severity)})
        for (run, rule, metric), severity in sorted(baseline.accepted.items())
    ]
    text = (
        f'{{"schema": "{SCHEMA}", "accepted": ['
        + ",".join(f"\n  {row}" for row in rows)
        + ("\n]}\n" if rows else "]}\n")
    )
    try:
        write_whole(path, text)
    except OSError as error:
        raise RlhealthError(
            f"--write-baseline {path}: {error.strerror}",
            hint="it takes a file in a folder that exists and can be written",
            location=str(path),
        ) from None


def read_baseline(path: Path) -> Baseline:
    """The accepted findings of a file.

    Raises:
        RlhealthError: if it cannot be read or is no baseline, naming the place in it.
    """
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RlhealthError(
            f"--baseline {path}: {error.strerror}", hint="--write-baseline makes the file", location=str(path)
        ) from None
    except UnicodeDecodeError:
        raise RlhealthError(f"{path}: not a text in UTF-8", hint=_HINT, location=str(path)) from None
    except json.JSONDecodeError as error:
        raise RlhealthError(
            f"{path}:{error.lineno}:{error.colno}: not JSON: {error.msg}", hint=_HINT, location=str(path)
        ) from None
    except (ValueError, RecursionError):
        raise RlhealthError(
            f"{path}: not a baseline: a number of thousands of digits, or nested too deep",
            hint=_HINT,
            location=str(path),
        ) from None
    if not isinstance(said, dict) or said.get("schema") != SCHEMA or not isinstance(said.get("accepted"), list):
        raise RlhealthError(
            f"{path}: not a baseline of rlhealth: `schema` has to be {SCHEMA}", hint=_HINT, location=str(path)
        )
    accepted: dict[Known, Severity] = {}
    for number, entry in enumerate(said["accepted"], 1):
        try:
            key = tuple(str(entry[name]) for name in ("run", "rule", "metric"))
            severity = Severity.of(entry["severity"])
        except (KeyError, TypeError, AttributeError):
            wanted = "run, rule, metric, and a severity of info, warning or critical"
            raise RlhealthError(
                f"{path}: accepted finding {number} is not whole: it takes {wanted}", hint=_HINT, location=str(path)
            ) from None
        known = (key[0], key[1], key[2])
        accepted[known] = max(severity, accepted.get(known, severity))
    return Baseline(accepted)
