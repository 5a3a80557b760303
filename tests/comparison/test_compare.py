"""Comparing with known-good runs: they stay inside each other's envelope, a sick run is found where it fell ill, and
the answer is a gate.
"""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlhealth.comparison.compare import compare, compare_run
from rlhealth.comparison.envelope import Curve, envelope
from rlhealth.comparison.known_good import KnownGood, known_good_of
from rlhealth.errors import RlhealthError
from rlhealth.parallel import jobs
from rlhealth.reports import REPORTS
from rlhealth.run import Place, Run
from rlhealth.sources import open_runs
from rlhealth.verdict.findings import Severity
from rlhealth.verdict.verdicts import Verdict
from rlhealth.verdict.vitals import VitalState, vitals
from tests.conftest import FIXTURES, Cli
from tests.examples import examples

RUNS = FIXTURES / "compare"
GOOD = ("good-polite", "good-tight-kl", "good-strong-kl", "good-every-other-step", "../trainer_state/grpo-resumed")
SICK = RUNS / "forgets"
JUMP = FIXTURES / "reports" / "lr-jump"


def read(path: Path) -> Run:
    return open_runs(str(path))[0]


@pytest.fixture(scope="module")
def known() -> KnownGood:
    return known_good_of([read(RUNS / name) for name in GOOD])


@pytest.mark.parametrize("name", GOOD)
def test_a_known_good_run_stays_inside_the_envelope_of_the_others(name: str) -> None:
    others = known_good_of([read(RUNS / other) for other in GOOD if other != name])
    found = compare_run(read(RUNS / name), others)
    assert found.findings == []
    assert found.verdict == "healthy"
    assert found.quiet == ["left-envelope"]


@pytest.mark.parametrize(("path", "onset"), [(SICK, 77), (JUMP, 82)])
def test_a_sick_run_is_found_from_the_step_at_which_it_fell_ill(known: KnownGood, path: Path, onset: int) -> None:
    found = compare_run(read(path), known)
    assert found.verdict == "warning"
    assert abs(found.findings[0].first_step - onset) <= 2
    assert found.findings[0].raised_step <= onset + 12
    assert {one.family for one in found.findings} == {"baseline"}
    assert all(one.first_step >= onset - 2 for one in found.findings)


def test_the_first_to_leave_explains_and_the_others_are_folded_under_it(known: KnownGood) -> None:
    found = compare_run(read(SICK), known)
    first, *others = found.findings
    assert found.causes == [first]
    assert found.consequences(first) == sorted(others, key=lambda one: (one.first_step, one.rule))
    assert len(others) >= 3
    assert "envelope of 5 known-good runs" in first.source
    assert f"{len(others)} more metrics" in first.message


@settings(max_examples=examples(25), deadline=None)
@given(step=st.integers(20, 140))
def test_what_is_reported_of_a_prefix_is_what_is_reported_of_the_whole_up_to_there(step: int) -> None:
    known = known_good_of([read(RUNS / name) for name in GOOD[:3]])
    run = read(SICK)
    whole = {
        (one.metric, one.first_step, one.raised_step)
        for one in compare_run(run, known).findings
        if one.raised_step <= step
    }
    prefix = {(one.metric, one.first_step, one.raised_step) for one in compare_run(run.until(step), known).findings}
    assert prefix == whole


def test_what_comes_after_the_known_good_runs_end_is_not_compared_and_that_is_said(known: KnownGood) -> None:
    run = read(RUNS / "good-polite")
    for series in run.series.values():
        series.extend(series.steps[-1] + np.arange(1, 200), np.full(199, 1e6))
    found = compare_run(run, known)
    assert any("fewer than two known-good runs came beyond step 120" in note for note in found.run.notes)
    assert all(one.first_step <= 120 for one in found.findings)


def test_a_value_that_is_no_number_is_outside_at_once(known: KnownGood) -> None:
    run = read(RUNS / "good-polite")
    series = run.series["grad_norm"]
    series.extend([int(series.steps[40])], [math.nan])
    found = [one for one in compare_run(run, known).findings if one.metric == "grad_norm"]
    assert [(one.first_step, one.raised_step) for one in found] == [(int(series.steps[40]), int(series.steps[40]))]
    assert "NaN" in found[0].message


def test_leaving_it_on_the_better_side_does_not_fail() -> None:
    known = known_good_of([of_values("good", np.linspace(0, 1, 60) + shift) for shift in (0.0, 0.05, 0.1)])
    better = compare_run(of_values("better", np.linspace(0, 3, 60)), known)
    worse = compare_run(of_values("worse", np.linspace(0, -1, 60)), known)
    assert [one.severity for one in better.findings] == [Severity.INFO]
    assert [one.severity for one in worse.findings] == [Severity.WARNING]
    assert better.verdict == "healthy"


def test_settings_that_differ_are_named_first_of_what_to_look_at() -> None:
    good = [
        replace(of_values("good", np.linspace(0, 1, 60) + shift), config={"beta": 0.04, "learning_rate": 1e-5})
        for shift in (0.0, 0.05)
    ]
    worse = replace(of_values("worse", np.linspace(0, -1, 60)), config={"beta": 0.04, "learning_rate": 1e-3})
    advice = compare_run(worse, known_good_of(good)).findings[0].advice[0]
    assert "learning_rate is 0.001 (1e-05 in known-good runs)" in advice
    assert "beta" not in advice


def test_a_metric_that_only_this_run_lacks_or_has_is_said() -> None:
    good = [of_values("good", np.linspace(0, 1, 60) + shift) for shift in (0.0, 0.05)]
    for one in good:
        one.add("kl", np.arange(1, 61), np.linspace(0, 0.1, 60))
    run = of_values("mine", np.linspace(0, 1, 60))
    run.add("entropy", np.arange(1, 61), np.linspace(2, 1, 60))
    notes = " ".join(compare_run(run, known_good_of(good)).run.notes)
    assert "every known-good run has these metrics, and this one has not: kl" in notes
    assert "fewer than two known-good runs have them: entropy" in notes


def test_several_processes_say_what_one_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "PATIENCE", -1.0)
    for number, run in enumerate([SICK, JUMP, *[RUNS / name for name in GOOD[:3]]] * 2):
        shutil.copytree(run, tmp_path / f"{number:02d}")
    (tmp_path / "05-broken").mkdir()
    (tmp_path / "05-broken" / "broken.wandb").write_bytes(b"not wandb at all" * 10)
    one, two = (compare(tmp_path, [RUNS / name for name in GOOD[:3]], jobs=count) for count in (1, 2))
    assert len(one.runs) == 10 and len(one.errors) == 1
    assert [(run.name, run.findings, run.skipped, run.run.notes) for run in one.runs] == [
        (run.name, run.findings, run.skipped, run.run.notes) for run in two.runs
    ]
    assert list(map(str, one.errors)) == list(map(str, two.errors)) and one.exit_code == two.exit_code


def of_values(name: str, rewards: np.ndarray) -> Run:
    run = Run(name, Place("jsonl", name))
    steps = np.arange(1, len(rewards) + 1)
    run.add("reward", steps, rewards)
    run.add("reward_std", steps, np.full(len(rewards), 0.1))
    run.add("completions/mean_length", steps, np.full(len(rewards), 12.0))
    return run


def curve_of(values: np.ndarray) -> Curve:
    return Curve(np.arange(len(values)), values, values)


@given(st.lists(st.lists(st.floats(-1e6, 1e6), min_size=12, max_size=12), min_size=2, max_size=5), st.integers(1, 6))
def test_no_known_good_run_is_outside_its_own_envelope(runs: list[list[float]], hold: int) -> None:
    curves = [curve_of(np.array(one)) for one in runs]
    low, high = envelope(curves, hold).band(curves[0].steps)
    for one in curves:
        assert np.all(one.smooth >= low)
        assert np.all(one.smooth <= high)


@given(st.floats(0.1, 100), st.floats(-1e3, 1e3))
def test_the_envelope_follows_the_unit(factor: float, shift: float) -> None:
    random = np.random.default_rng(1)
    values = [random.normal(size=40) + center for center in (0.0, 0.5, 1.0)]
    low, high = envelope([curve_of(one) for one in values], 5).band(np.arange(40))
    moved_low, moved_high = envelope([curve_of(one * factor + shift) for one in values], 5).band(np.arange(40))
    np.testing.assert_allclose(moved_low, low * factor + shift, rtol=1e-9, atol=1e-9 * (factor + abs(shift)))
    np.testing.assert_allclose(moved_high, high * factor + shift, rtol=1e-9, atol=1e-9 * (factor + abs(shift)))


def test_runs_with_the_same_noise_around_the_same_course_leave_it_seldom() -> None:
    """200 runs whose course and noise are those of the known-good ones: a metric is reported of less than one in fifty."""
    random = np.random.default_rng(7)
    course = np.linspace(0, 1, 120)

    def one() -> Run:
        return of_values("run", course + random.normal(0, 0.1) + random.normal(0, 0.05, 120))

    told = 0
    for _ in range(40):
        known = known_good_of([one() for _ in range(4)])
        told += sum(any(found.metric == "reward" for found in compare_run(one(), known).findings) for _ in range(5))
    assert told <= 12


def flags(*names: str) -> list[str]:
    return [part for name in names for part in ("--baseline", str(RUNS / name))]


def test_it_is_a_gate(cli: Cli) -> None:
    assert cli("compare", SICK, *flags(*GOOD)).returncode == 1
    assert cli("compare", SICK, *flags(*GOOD), "--fail-on", "critical").returncode == 0
    assert cli("compare", RUNS / GOOD[0], *flags(*GOOD[1:])).returncode == 0
    assert cli("compare", SICK, *flags(*GOOD), "--exit-zero").returncode == 0


def test_the_terminal_names_the_metrics_and_where_each_left(cli: Cli) -> None:
    done = cli("compare", SICK, *flags(*GOOD), "--width", "100")
    assert "warning[left-envelope]" in done.stdout
    assert "compared with 5 known-good runs" in " ".join(done.stdout.split())
    assert "completions/mean_length" in done.stdout
    assert "rlhealth explain left-envelope" in done.stdout
    assert "known-good runs" in cli("explain", "left-envelope").stdout
    assert done.stdout.splitlines()[-1].rstrip().endswith("exit 1")


@pytest.mark.parametrize("format", REPORTS)
def test_every_format_tells_it(cli: Cli, tmp_path: Path, format: str) -> None:
    done = cli("compare", SICK, *flags(*GOOD), "-f", format, "-o", tmp_path / "report")
    assert done.returncode == 1, done.stderr
    assert "left-envelope" in (tmp_path / "report").read_text(encoding="utf-8")


def test_a_folder_of_runs_serves_and_a_run_is_never_compared_with_itself(cli: Cli, tmp_path: Path) -> None:
    for name in GOOD:
        shutil.copytree(RUNS / name, tmp_path / Path(name).name)
    done = cli("compare", tmp_path / GOOD[0], "--baseline", tmp_path, "-f", "json")
    assert done.returncode == 0
    notes = " ".join(json.loads(done.stdout)["runs"][0]["notes"])
    assert "compared with 4 known-good runs" in notes
    assert GOOD[0] not in notes


def test_one_known_good_run_is_too_few_and_a_missing_one_is_reported(cli: Cli, tmp_path: Path) -> None:
    alone = cli("compare", SICK, *flags(GOOD[0]))
    assert (alone.returncode, alone.stdout) == (2, "")
    assert "does not show how much good runs differ" in alone.stderr
    assert cli("compare", SICK, *flags(*GOOD), "--baseline", tmp_path / "nowhere").returncode == 2
    assert compare(tmp_path / "nowhere", [RUNS / name for name in GOOD]).exit_code == 2
    with pytest.raises(RlhealthError, match="no known-good run"):
        known_good_of([])


def test_runs_with_nothing_in_common_are_no_answer() -> None:
    run = Run("empty", Place("jsonl", "x"))
    run.add("foo", [1, 2, 3], [1.0, 2.0, 3.0])
    found = compare_run(run, known_good_of([read(RUNS / GOOD[0]), read(RUNS / GOOD[1])]))
    assert found.no_answer
    assert found.skipped[0].reason == "no metric of this run is in two of the known-good runs"
    assert found.no_answer == found.skipped[0].reason


@pytest.mark.parametrize(("first", "points"), [(200, 40), (56, 40)])
def test_a_run_without_enough_points_where_the_known_good_runs_are_has_no_answer(first: int, points: int) -> None:
    known = known_good_of([of_values("good", np.linspace(0, 1, 60) + shift) for shift in (0.0, 0.05, 0.1)])
    later = Run("later", Place("jsonl", "later"))
    later.add("reward", list(range(first, first + points)), np.linspace(0, 1, points).tolist())
    found = compare_run(later, known)
    assert found.verdict == "unknown"
    assert found.quiet == []
    assert found.no_answer == "no metric of this run has 5 points at steps that two of the known-good runs reached"
    assert any("steps that two known-good runs reached: reward" in note for note in found.run.notes)
    assert Verdict([found]).exit_code == 2


def test_as_many_points_as_a_finding_takes_are_an_answer() -> None:
    known = known_good_of([of_values("good", np.linspace(0, 1, 60) + shift) for shift in (0.0, 0.05, 0.1)])
    found = compare_run(of_values("short", np.linspace(0, 0.1, 7)), known)
    assert found.verdict == "healthy"
    assert "reward" in (found.compared or ())
    assert compare_run(of_values("shorter", np.linspace(0, 0.1, 6)), known).verdict == "unknown"
    assert compare_run(of_values("shorter", np.linspace(0, 0.1, 6)), known, hold=4).verdict == "healthy"


def test_a_finding_names_as_many_points_as_there_were() -> None:
    known = known_good_of([of_values("good", np.linspace(0, 1, 60) + shift) for shift in (0.0, 0.05, 0.1)])
    early = compare_run(of_values("early", np.full(3, -9.0)), known, hold=1)
    late = compare_run(of_values("late", np.linspace(0, -9, 60)), known)
    assert "(median of 3 points)" in early.findings[0].message
    assert "(median of 5 points)" in late.findings[0].message


def test_what_was_compared_and_stayed_inside_is_well(known: KnownGood) -> None:
    inside = {one.id: one for one in vitals(compare_run(read(RUNS / GOOD[0]), known))}
    assert {inside[name].state for name in ("reward", "exploration", "numbers")} == {VitalState.WELL}
    assert inside["pace"].said == "not compared with the known-good runs"
    left = {one.id: one for one in vitals(compare_run(read(SICK), known))}
    assert left["completions"].state is VitalState.WATCH
    assert left["numbers"].state is VitalState.WELL


def test_a_metric_that_could_not_be_compared_decides_no_vital_sign() -> None:
    known = known_good_of([of_values("good", np.linspace(0, 1, 60) + shift) for shift in (0.0, 0.05, 0.1)])
    run = of_values("more", np.linspace(0, 1, 60))
    run.add("entropy", list(range(60)), np.linspace(1, 0.5, 60).tolist())
    found = {one.id: one for one in vitals(compare_run(run, known))}
    assert found["exploration"].state is VitalState.UNKNOWN
    assert found["exploration"].said == "not compared with the known-good runs"


def test_piped_notes_are_shown_by_all(cli: Cli) -> None:
    asked = ("compare", RUNS / GOOD[0], *flags(*GOOD[1:]))
    assert "note: compared with 4 known-good runs" in cli(*asked, "--all").stdout
    assert "note:" not in cli(*asked).stdout


def test_a_metric_can_be_left_out(cli: Cli) -> None:
    done = cli("compare", SICK, *flags(*GOOD), "--ignore", "completions/clipped_ratio", "-f", "json")
    run = json.loads(done.stdout)["runs"][0]
    assert "completions/clipped_ratio" not in {one["metric"] for one in run["findings"]}
    assert any("not compared: completions/clipped_ratio (--ignore)" in note for note in run["notes"])
    assert cli("compare", SICK, *flags(*GOOD), "--ignore", "no/such").returncode == 2


def test_runs_of_another_trainer_are_said_to_be_and_no_setting_is_blamed() -> None:
    known = known_good_of([read(RUNS / name) for name in GOOD[:2]])
    found = compare_run(read(FIXTURES / "trainer_state" / "ppo-nan"), known)
    said = "the trainers differ: TRL PPOTrainer here, TRL GRPOTrainer in the known-good runs"
    assert said in found.run.notes and found.findings[0].message.endswith(said)
    assert "same trainer" in found.findings[0].advice[0] and "Settings" not in " ".join(found.findings[0].advice)
    assert not [note for note in compare_run(read(SICK), known).run.notes if "trainers differ" in note]
