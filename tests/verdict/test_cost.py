"""What a broken run cost: wall-clock time before and after, only where the log has times."""

from __future__ import annotations

from dataclasses import replace

from rlhealth.metrics import translate
from rlhealth.reports import words
from rlhealth.run import Place, Run
from rlhealth.verdict.cost import cost_of
from rlhealth.verdict.evidence import Evidence
from rlhealth.verdict.findings import Episode, Finding, Severity, State
from rlhealth.verdict.verdicts import RunVerdict


def judged(
    *findings: tuple[int, Severity, State], times: list[float] | None = None, steps: tuple[int, ...] = tuple(range(100))
) -> RunVerdict:
    run = Run("made", Place("table", "made.csv"))
    run.add("reward", list(steps), [0.0] * len(steps), times=times)
    found = [
        Finding(
            "kl-high",
            "kl-high",
            severity,
            "off",
            (Evidence(metric="kl", tag="kl", step=99, value=9.0, limit=1.0),),
            first,
            first,
            99,
            state,
            "off",
            "",
            (),
            "",
            episodes=(Episode(first, first, 99, state),),
        )
        for first, severity, state in findings
    ]
    return RunVerdict(run, translate(run), "finished", found)


MINUTES = [1.7e9 + 60 * one for one in range(100)]
CRITICAL, WARNING = Severity.CRITICAL, Severity.WARNING


def test_time_is_split_at_the_first_step_of_the_earliest_critical_finding() -> None:
    spent = cost_of(judged((80, CRITICAL, State.STANDING), (40, CRITICAL, State.LASTING), times=MINUTES))
    assert spent is not None
    assert (spent.step, spent.before, spent.after, spent.standing) == (40, 2400, 3540, True)


def test_a_warning_or_what_is_over_costs_nothing() -> None:
    assert cost_of(judged((10, WARNING, State.STANDING), (5, CRITICAL, State.OVER), times=MINUTES)) is None


def test_without_times_nothing_is_said() -> None:
    assert cost_of(judged((40, CRITICAL, State.STANDING))) is None
    assert words.cost(judged((40, CRITICAL, State.STANDING))) == ""


def test_a_step_after_the_last_point_has_no_time() -> None:
    assert cost_of(judged((500, CRITICAL, State.STANDING), times=MINUTES)) is None


def test_a_step_between_two_points_takes_the_time_of_the_next() -> None:
    even = tuple(range(0, 200, 2))
    spent = cost_of(judged((41, CRITICAL, State.STANDING), times=MINUTES, steps=even))
    assert spent is not None and spent.before == 21 * 60


def test_a_person_reads_it_in_a_sentence() -> None:
    broken = judged((40, CRITICAL, State.STANDING), times=MINUTES)
    assert words.cost(broken) == "healthy for 40 min, then 59 min after it broke at step 40"
    assert words.cost(judged((0, CRITICAL, State.STANDING), times=MINUTES)) == "1.65 h after it broke at step 0"


def broken_in(*spans: tuple[int, int], state: State = State.STANDING) -> Finding:
    over = [Episode(first, first, last, State.OVER) for first, last in spans[:-1]]
    made = judged((spans[0][0], CRITICAL, state)).findings[0]
    return replace(made, episodes=(*over, Episode(spans[-1][0], spans[-1][0], spans[-1][1], state)))


def test_what_broke_early_and_was_over_does_not_date_what_is_broken_now() -> None:
    run = replace(judged(times=MINUTES), findings=[broken_in((6, 19), (78, 99))])
    spent = cost_of(run)
    assert spent is not None and (spent.step, spent.before, spent.earlier) == (78, 78 * 60, ((6, 19),))
    assert words.cost(run) == "21 min after it broke again at step 78; it was broken before, in steps 6–19"


def test_stretches_of_two_findings_that_overlap_are_one() -> None:
    run = replace(judged(times=MINUTES), findings=[broken_in((30, 60), (90, 99)), broken_in((50, 99))])
    spent = cost_of(run)
    assert spent is not None and (spent.step, spent.earlier) == (30, ())


def test_what_lasts_is_dated_by_its_first_stretch() -> None:
    spent = cost_of(replace(judged(times=MINUTES), findings=[broken_in((6, 19), (78, 90), state=State.LASTING)]))
    assert spent is not None and (spent.step, spent.earlier) == (6, ())
