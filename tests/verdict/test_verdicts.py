"""Verdicts: the exit code is decided in one place."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from rlhealth.errors import RlhealthError
from rlhealth.metrics import translate
from rlhealth.run import Place, Run
from rlhealth.verdict.findings import Finding, Severity, Skipped, State
from rlhealth.verdict.gate import Gate
from rlhealth.verdict.verdicts import RunVerdict, Verdict
from tests.verdict.found import finding


def run_with(
    *findings: Finding, quiet: tuple[str, ...] = ("another-rule",), skipped: tuple[Skipped, ...] = ()
) -> RunVerdict:
    run = Run("a run", Place("tensorboard", "somewhere"))
    return RunVerdict(run, translate(run), "finished", list(findings), list(skipped), list(quiet))


@pytest.mark.parametrize(
    ("severity", "fail_on", "code"),
    [
        ("critical", "critical", 1),
        ("critical", "warning", 1),
        ("critical", "info", 1),
        ("warning", "critical", 0),
        ("warning", "warning", 1),
        ("info", "warning", 0),
        ("info", "info", 1),
    ],
)
def test_a_finding_at_or_above_the_gate_leaves_with_1(severity: str, fail_on: str, code: int) -> None:
    assert Verdict([run_with(finding(severity))], gate=Gate(Severity.of(fail_on))).exit_code == code


def test_never_fails_on_nothing() -> None:
    assert Verdict([run_with(finding("critical"))], gate=Gate(None)).exit_code == 0


def test_a_critical_run_exits_with_1_even_where_a_fragment_beside_it_has_no_verdict() -> None:
    error = RlhealthError("unreadable", location="runs/torn.wandb")
    assert Verdict([run_with(finding("critical"))], [error], asked=("runs",)).exit_code == 1
    assert Verdict([run_with(finding("critical")), run_with(quiet=())], asked=("runs",)).exit_code == 1
    assert Verdict([run_with()], [error], asked=("runs",)).exit_code == 2


def test_a_part_that_was_asked_for_by_name_and_has_no_verdict_outranks_a_critical_run() -> None:
    error = RlhealthError("unreadable", location="runs/torn.wandb")
    assert Verdict([run_with(finding("critical"))], [error], asked=("runs", "runs/torn.wandb")).exit_code == 2
    silent = run_with(quiet=())
    assert Verdict([run_with(finding("critical")), silent], asked=("somewhere",)).exit_code == 2
    assert Verdict([run_with(finding("critical"))], gate=Gate(require=("entropy",))).exit_code == 2


def test_what_is_over_is_a_warning_at_most_unless_the_past_counts() -> None:
    past = finding("critical").in_state(State.OVER)
    assert (past.severity, past.worst_severity) == (Severity.WARNING, Severity.CRITICAL)
    assert run_with(past).verdict == "warning"
    assert Verdict([run_with(past)]).exit_code == 0
    assert Verdict([run_with(past)], gate=Gate(Severity.WARNING)).exit_code == 1
    assert Verdict([run_with(past)], gate=Gate(fail_on_past=True)).exit_code == 1
    assert Verdict([run_with(finding("critical").in_state(State.LASTING))]).exit_code == 1


def test_a_run_that_nothing_could_judge_is_unknown_and_leaves_with_2() -> None:
    silent = run_with(quiet=())
    assert silent.verdict == "unknown"
    assert Verdict([silent]).exit_code == 2
    assert Verdict([silent, run_with()]).exit_code == 2


def test_a_run_of_which_records_were_lost_is_judged_and_does_not_pass() -> None:
    damaged = run_with()
    damaged.run.problems.append("3 damaged records skipped at byte 8812")
    assert damaged.verdict == "healthy"
    assert Verdict([damaged]).exit_code == 2
    assert Verdict([damaged], gate=Gate(exit_zero=True)).exit_code == 0


def test_supervised_training_in_the_file_of_a_judged_run_does_not_hold_the_gate() -> None:
    tuned, learned = run_with(quiet=()), run_with()
    tuned.translation = replace(tuned.translation, is_rl=False)
    tuned.run.place = Place("notebook", "train.ipynb")
    learned.run.place = Place("notebook", "train.ipynb", "2")
    both = Verdict([tuned, learned], asked=("train.ipynb",))
    assert (both.exit_code, both.verdict, tuned.verdict) == (0, "healthy", "unknown")
    assert Verdict([tuned, learned], gate=Gate(require=("another-rule",)), asked=("train.ipynb",)).exit_code == 0
    assert Verdict([tuned], asked=("train.ipynb",)).exit_code == 2
    learned.run.place = Place("notebook", "other.ipynb")
    assert both.exit_code == 2
    learned.run.place = Place("notebook", "train.ipynb", "2")
    learned.quiet.clear()
    assert both.exit_code == 2
    learned.findings.append(finding("critical"))
    assert both.exit_code == 1


def test_no_runs_at_all_leave_with_2() -> None:
    assert Verdict([]).exit_code == 2
    assert Verdict([], gate=Gate(exit_zero=True)).exit_code == 2


def test_exit_zero_reports_without_failing() -> None:
    assert Verdict([run_with(finding("critical"))], gate=Gate(exit_zero=True)).exit_code == 0


def test_a_required_rule_that_could_not_look_fails_the_gate() -> None:
    skipped = Skipped("kl-high-per-token", "kl-high", "kl was not logged")
    assert Verdict([run_with(skipped=(skipped,))], gate=Gate(require=("kl-high",))).exit_code == 2
    assert Verdict([run_with(skipped=(skipped,))], gate=Gate(require=("another-rule",))).exit_code == 0


def test_a_required_rule_that_the_run_was_not_judged_by_fails_the_gate() -> None:
    assert Verdict([run_with()], gate=Gate(require=("entropy",))).exit_code == 2


def test_a_required_family_is_met_by_any_of_its_rules() -> None:
    run = run_with(skipped=(Skipped("kl-high-per-sequence", "kl-high", "objective/kl was not logged"),))
    run.quiet.append("kl-high-per-token")
    run.families = {"kl-high-per-token": "kl-high", "kl-high-per-sequence": "kl-high"}
    assert Verdict([run], gate=Gate(require=("kl-high",))).exit_code == 0
    assert Verdict([run], gate=Gate(require=("kl-high-per-sequence",))).exit_code == 2


def test_a_run_that_is_too_short_for_the_gate_is_no_answer_even_with_a_finding() -> None:
    gate = Gate(min_steps=100)
    run = run_with(finding("critical"))
    run.too_short = gate.too_short(99)
    assert "99 of the 100 steps" in run.no_answer
    assert Verdict([run], gate=gate).exit_code == 2
    assert run.verdict == "critical"
    healthy = run_with()
    healthy.too_short = gate.too_short(None)
    assert healthy.verdict == "unknown"
    assert gate.too_short(100) == ""


def test_the_verdict_of_many_is_the_worst_that_is_known() -> None:
    for order in itertools.permutations([run_with(), run_with(finding("warning")), run_with(finding("critical"))]):
        assert Verdict(list(order)).verdict == "critical"
    assert Verdict([run_with(), run_with(finding("warning"))]).verdict == "warning"
    assert Verdict([run_with()], [RlhealthError("lost")]).verdict == "unknown"


def test_information_alone_leaves_a_run_healthy() -> None:
    assert run_with(finding("info")).verdict == "healthy"


def test_causes_stand_before_findings_that_nothing_explains() -> None:
    cause = finding("warning", "the-cause", "diagnosis", first=7)
    consequence = finding("critical", "consequence", first=8, explained_by="the-cause")
    alone = finding("critical", "alone", first=1)
    run = run_with(alone, consequence, cause)
    assert [one.rule for one in run.causes] == ["the-cause", "alone"]
    assert [one.rule for one in run.consequences(cause)] == ["consequence"]
    run.findings.remove(cause)
    assert [one.rule for one in run.causes] == ["alone", "consequence"], "its cause was accepted, and it was not"


def test_a_cause_of_what_is_over_stands_behind_what_is_worse() -> None:
    cause = finding("info", "the-cause", "diagnosis", first=1)
    over = finding("info", "over", first=2, explained_by="the-cause")
    run = run_with(cause, over, finding("warning", "standing", first=3))
    assert [one.rule for one in run.causes] == ["standing", "the-cause"]
