"""Watching equals checking: real logs are replayed into growing files, in pieces that end anywhere, and followed by
the real readers and rules.
"""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from rlhealth.check import check, judge
from rlhealth.errors import RlhealthError
from rlhealth.rules.loading import load_rules
from rlhealth.run import Run
from rlhealth.sources import find_readers
from rlhealth.verdict.baseline import Baseline
from rlhealth.verdict.findings import Severity
from rlhealth.verdict.gate import Gate
from rlhealth.verdict.verdicts import RunVerdict
from rlhealth.watch.changes import Change
from rlhealth.watch.loop import Limits, Watch
from tests.growing import GrowingFile, GrowingTrackio, sizes
from tests.watching import HandClock, Recorder, shifted

FIXTURES = Path(__file__).parents[2] / "fixtures"
RULES = load_rules()
EVENT_RUNS = sorted(path for path in (FIXTURES / "tensorboard").iterdir() if path.is_dir())
WANDB_RUNS = sorted((FIXTURES / "wandb").glob("*.wandb"))
TRACKIO = sorted((FIXTURES / "everywhere").rglob("*.db"))
SICK = FIXTURES / "tensorboard" / "grpo-sentences"


def said(verdict: RunVerdict) -> list[str]:
    """All that a verdict says, spelled out, so that NaN is NaN."""
    return [verdict.verdict, verdict.state, *map(repr, verdict.findings), *map(repr, verdict.skipped), *verdict.quiet]


def checked(place: Path, clock: HandClock) -> list[RunVerdict]:
    """What a check says of the whole, at the time that the clock shows."""
    readers = find_readers(str(place))
    for reader in readers:
        reader.poll()
    return [judge(reader.run, RULES, now=clock.wall()) for reader in readers]


def event_file(folder: Path) -> Path:
    return next(path for path in sorted(folder.rglob("*tfevents*")))


def assert_equal_to_check(watch: Watch, recorded: Recorder, place: Path) -> None:
    recorded.finish(watch)
    whole = checked(place, watch.clock)
    assert [said(one) for one in watch.verdict().runs] == [said(one) for one in whole]
    for follower, run in zip(watch.followers, whole, strict=True):
        parts = [(one, follower.ledger.incidents.of(one)) for one in run.findings if one.severity > Severity.INFO]
        assert all(part is not None for _, part in parts), "what a check finds is part of an incident"
        mine = [one.change for one in recorded.events if one.change is not None and one.run == follower.name]
        assert all(part.number in numbers(mine) for one, part in parts if part and one.severity is Severity.CRITICAL)
        assert bool(mine) >= bool(parts), "some of it was reported, the rest is on the screen"
        opened, closed = numbers(mine, "raised"), numbers(mine, "cleared")
        for number, times in opened.items():
            # what the first look told may have been over then: that is not reported as a change of its own
            assert closed[number] <= times <= 1 + closed[number] + (mine[0].incident.number == number), "in turns"


def numbers(recorded: list[Change], kind: str = "") -> Counter[int]:
    """How often each incident was reported, by its number; only what is of that kind."""
    return Counter(one.incident.number for one in recorded if one.incident is not None and kind in (one.kind, ""))


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("source", EVENT_RUNS, ids=lambda path: path.name)
def test_event_files_that_grow_are_judged_as_the_whole(source: Path, seed: int, tmp_path: Path) -> None:
    random, recorded = Random(seed), Recorder()
    place = tmp_path / "run"
    place.mkdir()
    watch = Watch([str(place)], RULES, clock=HandClock())
    for file in sorted(path for path in source.rglob("*") if path.is_file() and path.name != "README.md"):
        growing = GrowingFile(file, place / file.relative_to(source))
        for size in sizes(random, len(growing.source), random.choice([2, 7, 25])):
            growing.grow(size)
            for _ in range(random.choice([1, 1, 2])):
                recorded.look(watch)
    recorded.look(watch)
    assert_equal_to_check(watch, recorded, place)


@pytest.mark.parametrize("source", WANDB_RUNS, ids=lambda path: path.stem)
def test_wandb_files_that_grow_are_judged_as_the_whole(source: Path, tmp_path: Path) -> None:
    random, recorded = Random(3), Recorder()
    growing = GrowingFile(source, tmp_path / "offline-run-20260101_000000-x" / source.name)
    watch = Watch([str(growing.target)], RULES, clock=HandClock())
    for size in sizes(random, len(growing.source), 20):
        growing.grow(size)
        recorded.look(watch)
    assert_equal_to_check(watch, recorded, growing.target)


@pytest.mark.parametrize("source", TRACKIO, ids=lambda path: path.stem)
def test_trackio_databases_that_grow_are_judged_as_the_whole(source: Path, tmp_path: Path) -> None:
    random, recorded = Random(4), Recorder()
    growing = GrowingTrackio(source, tmp_path / source.name)
    watch = Watch([str(tmp_path)], RULES, clock=HandClock())
    for size in sizes(random, len(growing.rows), 12):
        growing.grow(size)
        recorded.look(watch)
    assert_equal_to_check(watch, recorded, tmp_path)
    growing.close()


def test_a_finding_is_reported_while_the_run_is_still_being_written(tmp_path: Path) -> None:
    recorded, growing = Recorder(), GrowingFile(event_file(SICK), tmp_path / event_file(SICK).name)
    watch = Watch([str(tmp_path)], RULES, clock=HandClock())
    growing.grow(len(growing.source) // 2)
    recorded.look(watch)
    recorded.look(watch)
    half = watch.followers[0].reader.run.last_step
    assert half is not None and half < 100
    assert "reward-flat-while-token-kl-grows" in recorded.rules
    assert all(one.change.finding.raised_step <= half for one in recorded.events if one.change)


def test_the_newest_step_is_held_back_until_it_is_complete(tmp_path: Path) -> None:
    recorded, growing = Recorder(), GrowingFile(event_file(SICK), tmp_path / event_file(SICK).name)
    watch = Watch([str(tmp_path)], RULES, clock=HandClock(event_file(SICK)))
    growing.grow(len(growing.source) // 3)
    recorded.look(watch)
    [follower] = watch.followers
    assert follower.judge is not None and follower.judge.judged_to == follower.reader.run.last_step - 1
    recorded.look(watch)
    assert follower.judge.judged_to >= follower.reader.run.last_step


def test_a_watch_may_begin_before_there_is_a_run(tmp_path: Path) -> None:
    recorded, place = Recorder(), tmp_path / "not" / "yet"
    watch = Watch([str(place)], RULES, clock=HandClock())
    recorded.look(watch)
    recorded.look(watch)
    assert [one.kind for one in recorded.events] == ["waiting"], "said once"
    assert watch.verdict().exit_code == 2
    shutil.copytree(SICK, place)
    recorded.look(watch)
    assert [one.kind for one in recorded.events][:2] == ["waiting", "found"]
    assert watch.verdict().exit_code == 1


def test_runs_that_appear_below_a_folder_are_followed_too_and_each_run_once(tmp_path: Path) -> None:
    recorded = Recorder()
    shutil.copytree(SICK, tmp_path / "one")
    watch = Watch([str(tmp_path)], RULES, clock=HandClock())
    recorded.look(watch)
    shutil.copytree(FIXTURES / "tensorboard" / "grpo-sort", tmp_path / "two")
    recorded.look(watch)
    recorded.look(watch)
    assert [one.reader.run.place.location.split("/")[-2:][0] for one in watch.followers] == ["runs", "runs"] or len(
        watch.followers
    ) == 2
    assert len(recorded.of("found")) == 2
    assert sorted(one.verdict for one in watch.verdict().runs) == ["critical", "healthy"]


def test_a_run_that_a_second_tracker_begins_to_write_stays_one_run(tmp_path: Path) -> None:
    recorded, source = Recorder(), FIXTURES / "everywhere" / "grpo-short"
    files = [path for path in sorted(source.rglob("*")) if path.is_file()]
    watch = Watch([str(tmp_path)], RULES, clock=HandClock())
    for file in sorted(files, key=lambda path: path.suffix != ".wandb"):
        target = tmp_path / file.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
        recorded.look(watch)
    assert len(watch.followers) == 1
    assert len(recorded.of("found")) == 1


def test_a_file_that_was_cut_and_written_anew_is_followed(tmp_path: Path) -> None:
    recorded, file = Recorder(), tmp_path / event_file(SICK).name
    shutil.copy(event_file(SICK), file)
    watch = Watch([str(tmp_path)], RULES, clock=HandClock())
    recorded.look(watch)
    file.write_bytes(b"")
    recorded.look(watch)
    file.write_bytes(event_file(SICK).read_bytes())
    recorded.look(watch)
    recorded.look(watch)
    assert_equal_to_check(watch, recorded, tmp_path)


def test_a_run_that_is_deleted_is_reported_once_keeps_its_verdict_and_does_not_pass(tmp_path: Path) -> None:
    recorded, place = Recorder(), tmp_path / "run"
    shutil.copytree(FIXTURES / "tensorboard" / "grpo-sort", place)
    watch = Watch([str(place)], RULES, clock=HandClock())
    recorded.look(watch)
    shutil.rmtree(place)
    for _ in range(5):
        recorded.look(watch)
    assert len(recorded.of("blind")) == 1
    assert watch.verdict().runs[0].verdict == "healthy"
    assert watch.verdict().exit_code == 2, "a gate must not pass on what it can no longer see"


def test_a_run_that_cannot_be_read_for_a_while_is_caught_up_with(tmp_path: Path) -> None:
    recorded, growing = Recorder(), GrowingFile(event_file(SICK), tmp_path / "run" / event_file(SICK).name)
    watch = Watch([str(tmp_path)], RULES, clock=HandClock())
    growing.grow(len(growing.source) // 3)
    recorded.look(watch)
    (tmp_path / "run").rename(tmp_path.parent / "away")
    for _ in range(4):
        recorded.look(watch)
    (tmp_path.parent / "away").rename(tmp_path / "run")
    growing.grow(len(growing.source))
    for _ in range(30):
        recorded.look(watch)
    assert [one.kind for one in recorded.of("blind", "sees")] == ["blind", "sees"]
    assert_equal_to_check(watch, recorded, tmp_path)


def test_a_watch_of_a_finished_run_ends_by_itself(tmp_path: Path) -> None:
    recorded = Recorder()
    shutil.copytree(SICK, tmp_path / "run")
    watch = Watch([str(tmp_path / "run")], RULES, clock=HandClock())
    recorded.look(watch)
    recorded.look(watch)
    assert watch.is_over(Limits())
    assert len(recorded.of("over")) == 1


def test_a_limit_of_steps_or_time_ends_a_watch(tmp_path: Path) -> None:
    growing = GrowingFile(event_file(SICK), tmp_path / event_file(SICK).name)
    growing.grow(len(growing.source) // 2)
    watch = Watch([str(tmp_path)], RULES, clock=HandClock())
    watch.look()
    assert not watch.is_over(Limits())
    assert watch.is_over(Limits(until_step=10)) and not watch.is_over(Limits(until_step=99))
    watch.clock.wait(100)
    assert watch.is_over(Limits(timeout=100)) and not watch.is_over(Limits(timeout=101))
    assert watch.pause(Limits(timeout=101)) <= 1


def test_a_run_that_goes_silent_before_its_plan_is_reported_once_and_cleared_when_it_goes_on(tmp_path: Path) -> None:
    log = shifted(event_file(SICK), tmp_path / "written", lambda step: 900.0 if step > 48 else 0.0)  # it hung so long
    recorded, growing = Recorder(), GrowingFile(log, tmp_path / "run" / log.name)
    watch = Watch([str(growing.target.parent)], RULES, clock=HandClock(log))
    growing.grow_records(0.5)
    for _ in range(60):
        recorded.look(watch)
    assert [change for change in recorded.changes if change[1] == "run-silent"] == [("raised", "run-silent", "step")]
    assert not watch.is_over(Limits()), "it may go on"
    growing.grow_records(0.75)
    recorded.look(watch)
    assert [change for change in recorded.changes if change[1] == "run-silent"] == [
        ("raised", "run-silent", "step"),
        ("cleared", "run-silent", "step"),
    ]


def test_a_night_in_which_the_laptop_slept_is_no_silence_of_the_run(tmp_path: Path) -> None:
    recorded, growing, clock = (
        Recorder(),
        GrowingFile(event_file(SICK), tmp_path / event_file(SICK).name),
        HandClock(event_file(SICK)),
    )
    watch = Watch([str(tmp_path)], RULES, clock=clock)
    growing.grow_records(0.5)
    recorded.look(watch)
    clock.sleep_through(8 * 3600)
    for _ in range(5):
        recorded.look(watch)
    assert not [change for change in recorded.changes if change[1] == "run-silent"]
    for _ in range(60):
        recorded.look(watch)
    assert [change for change in recorded.changes if change[1] == "run-silent"], (
        "but a run that stays silent while one watches is reported"
    )


def test_a_clock_that_is_set_back_harms_nothing(tmp_path: Path) -> None:
    recorded, growing, clock = Recorder(), GrowingFile(event_file(SICK), tmp_path / event_file(SICK).name), HandClock()
    watch = Watch([str(tmp_path)], RULES, clock=clock)
    growing.grow_records(0.5)
    recorded.look(watch)
    clock.sleep_through(-7 * 86400)
    growing.grow(len(growing.source))
    for _ in range(3):
        recorded.look(watch)
    assert_equal_to_check(watch, recorded, tmp_path)


def test_two_watchers_of_one_run_do_not_disturb_each_other_or_the_run(tmp_path: Path) -> None:
    growing, clock = GrowingFile(event_file(SICK), tmp_path / event_file(SICK).name), HandClock()
    watches = [Watch([str(tmp_path)], RULES, clock=clock) for _ in range(2)]
    logs = [Recorder(), Recorder()]
    for size in sizes(Random(5), len(growing.source), 9):
        growing.grow(size)
        for watch, recorded in zip(watches, logs, strict=True):
            recorded.look(watch)
    assert logs[0].changes == logs[1].changes != []
    assert [path.name for path in tmp_path.iterdir()] == [growing.target.name], "nothing is written beside the run"
    assert growing.target.read_bytes() == growing.source


def test_an_error_of_a_reader_that_nobody_expected_is_reported_and_does_not_end_the_watch(tmp_path: Path) -> None:
    recorded, growing = Recorder(), GrowingFile(event_file(SICK), tmp_path / event_file(SICK).name)
    watch = Watch([str(tmp_path)], RULES, clock=HandClock())
    growing.grow_records(0.3)
    recorded.look(watch)
    [follower] = watch.followers
    sound, follower.reader = follower.reader, Breaking(follower.reader.run)
    recorded.look(watch)
    assert "internal error: KeyError" in recorded.of("blind")[0].said
    follower.reader = sound
    growing.grow_records(1.0)
    for _ in range(4):
        recorded.look(watch)
    assert_equal_to_check(watch, recorded, tmp_path)


class Breaking:
    """A reader with a bug."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def poll(self) -> bool:
        raise KeyError("lost")


def test_what_was_reported_stays_reported_when_the_run_is_read_in_another_place_from_then_on(tmp_path: Path) -> None:
    recorded = Recorder()
    shutil.copytree(SICK, tmp_path / "run")
    watch = Watch([str(tmp_path / "run")], RULES, clock=HandClock())
    recorded.look(watch)
    recorded.look(watch)
    before = recorded.changes
    [follower] = watch.followers
    follower.adopt(find_readers(str(tmp_path / "run"))[0])
    recorded.look(watch)
    recorded.look(watch)
    assert recorded.changes == before != []
    assert_equal_to_check(watch, recorded, tmp_path / "run")


def test_a_known_finding_is_not_reported_and_does_not_fail_the_gate(tmp_path: Path) -> None:
    shutil.copytree(SICK, tmp_path / "run")
    whole = check(tmp_path / "run")
    known = Baseline().with_findings(whole.runs)
    assert known.accepted
    watch, recorded = Watch([str(tmp_path / "run")], RULES, clock=HandClock(), baseline=known), Recorder()
    recorded.look(watch)
    recorded.finish(watch)
    assert not recorded.changes
    assert watch.verdict().exit_code == 0
    assert [one.finding.rule for one in watch.verdict().runs[0].ignored] == [one.rule for one in whole.runs[0].findings]


@pytest.mark.parametrize(
    "gate", [Gate(), Gate(min_steps=10**6), Gate(require=("value-loss-spike",))], ids=["plain", "min-steps", "require"]
)
def test_what_the_gate_asks_for_beyond_findings_holds_for_a_watch_too(tmp_path: Path, gate: Gate) -> None:
    shutil.copytree(FIXTURES / "tensorboard" / "grpo-sort", tmp_path / "run")
    watch, recorded = Watch([str(tmp_path / "run")], RULES, clock=HandClock(), gate=gate), Recorder()
    recorded.look(watch)
    recorded.finish(watch)
    assert watch.verdict().exit_code == check(tmp_path / "run", gate=gate).exit_code
    assert (watch.verdict().exit_code == 0) == (gate == Gate()), "grpo-sort is healthy, and GRPO has no value loss"


def test_a_link_that_leads_to_itself_is_an_error_and_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "loop.jsonl").symlink_to(tmp_path / "back.jsonl")
    (tmp_path / "back.jsonl").symlink_to(tmp_path / "loop.jsonl")
    (tmp_path / "later.jsonl").symlink_to(tmp_path / "not-yet.jsonl")
    with pytest.raises(RlhealthError, match="symbolic links"):
        Watch([str(tmp_path / "loop.jsonl")], RULES, clock=HandClock()).look()
    assert [one.kind for one in Watch([str(tmp_path / "later.jsonl")], RULES, clock=HandClock()).look()] == ["waiting"]
