"""For test suites: an assertion that a run is healthy, whose message is the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from rlhealth.verdict.verdicts import Verdict


def assert_healthy(
    where: str | Path | Sequence[str | Path],
    fail_on: Literal["critical", "warning", "info"] = "warning",
    *,
    source: str | None = None,
    require: Sequence[str] = (),
    min_steps: int = 0,
    ignore: Mapping[str, str] | Sequence[str] = (),
    rules: str | Path | None = None,
    aliases: Mapping[str, str] | None = None,
    baseline: str | Path | None = None,
    width: int = 100,
) -> Verdict:
    """Asserts that every run at and below `where` was judged, and that no finding is as severe as `fail_on`.

        from rlhealth.testing import assert_healthy

        def test_the_smoke_run_learns(tmp_path):
            train(tmp_path, max_steps=50)
            assert_healthy(tmp_path, require=["reward-trend"], min_steps=50)

    Args:
        where, source, aliases: as in `rlhealth.check`.
        fail_on: the least severity that fails.
        require: rules or families that must have been able to look.
        min_steps: how far a run must have come.
        ignore: rules or families to leave out, with or without reasons.
        rules: a folder of rules to judge by besides the shipped ones.
        baseline: a file of accepted findings, as `rlhealth check --write-baseline` writes it.
        width: columns of the message.

    Returns:
        the verdict, for further assertions.

    Raises:
        AssertionError: its message is the terminal report. A run that cannot be read or judged fails, too: silence is
            not health.
        RlhealthError: for a rule or a name that there is not.
    """
    __tracebackhide__ = True  # pytest shows the caller's line, not this one
    from rlhealth.check import check
    from rlhealth.reports import ReportOptions, write
    from rlhealth.rules.loading import check_names, load_rules
    from rlhealth.verdict.baseline import read_baseline
    from rlhealth.verdict.findings import Severity
    from rlhealth.verdict.gate import Gate

    judged_by = load_rules(*([Path(rules)] if rules is not None else []))
    reasons = dict(ignore) if isinstance(ignore, Mapping) else dict.fromkeys(ignore, "ignored by the test")
    check_names(judged_by, require, "require")
    check_names(judged_by, reasons, "ignore")
    verdict = check(
        where,
        source=source,
        rules=judged_by,
        gate=Gate(Severity.of(fail_on), require=tuple(require), min_steps=min_steps),
        aliases=aliases,
        ignore=reasons,
        baseline=read_baseline(Path(baseline)) if baseline is not None else None,
    )
    if verdict.exit_code:
        raise AssertionError("\n" + write(verdict, "terminal", ReportOptions(width=width)))
    return verdict
