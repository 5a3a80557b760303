"""How runs end: finished, stopped, running or unknown, by what the logs prove."""

from __future__ import annotations

import math

import pytest

from rlhealth.engine.ending import ending_of
from rlhealth.engine.wording import ending_finding
from rlhealth.metrics import translate
from rlhealth.rules.loading import load_rules
from rlhealth.run import Place, Run
from rlhealth.sources.base.values import said_by_exception

LONG_AGO = 1e6  # seconds after the last event at which a run is asked for


def grpo(
    steps: int, planned: int | None, *, closed: bool = False, exit_code: int | None = None, clean: bool | None = None
) -> Run:
    run = Run("run", Place("tensorboard", "here"), exit_code=exit_code, clean=clean)
    if planned is not None:
        run.config["max_steps"] = planned
    at = list(range(1, steps + 1))
    for tag in ("train/reward", "train/reward_std", "train/completions/mean_length"):
        run.add(tag, at, [0.5 + step % 3 for step in at], [1000.0 + 10 * step for step in at])
    if closed:
        run.add("train/train_runtime", [steps], [60.0], [1000.0 + 10 * steps])
    return run


@pytest.mark.parametrize(
    ("run", "later", "state", "kinds"),
    [
        (grpo(100, 100), LONG_AGO, "finished", set()),
        (grpo(100, 100, closed=True), LONG_AGO, "finished", set()),
        (grpo(99, 100), LONG_AGO, "finished", set()),
        (grpo(80, 200, closed=True), LONG_AGO, "stopped", {"early"}),
        (grpo(62, 200), LONG_AGO, "stopped", {"silent"}),
        (grpo(62, 200), 30.0, "running", set()),
        (grpo(62, None), LONG_AGO, "unknown", set()),
        (grpo(62, None, clean=False), LONG_AGO, "unknown", {"torn"}),
        (grpo(62, 200, clean=False), LONG_AGO, "stopped", {"died"}),
        (grpo(62, None, clean=False), 5.0, "running", set()),
        (grpo(80, 200, clean=True), LONG_AGO, "stopped", {"early"}),
        (grpo(62, 200, exit_code=1), LONG_AGO, "stopped", {"died"}),
        (grpo(62, 200, exit_code=255), 5.0, "stopped", {"early"}),
        (grpo(62, None, exit_code=255), LONG_AGO, "stopped", set()),
        (grpo(62, 200, exit_code=137), 5.0, "stopped", {"died"}),
        (grpo(100, 100, exit_code=0), LONG_AGO, "finished", set()),
    ],
)
def test_the_state_follows_from_the_evidence(run: Run, later: float, state: str, kinds: set[str]) -> None:
    last = 1000.0 + 10 * (run.last_step or 0)
    ending = ending_of(run, translate(run), now=last + later)
    assert (ending.state, set(ending.kinds)) == (state, kinds)


def test_a_run_that_stopped_is_below_its_plan() -> None:
    run = grpo(62, 200)
    silent = next(rule for rule in load_rules() if rule.id == "run-silent")
    told = ending_finding(silent, ending_of(run, translate(run), now=LONG_AGO), translate(run))
    assert told is not None and told.lead.is_beyond
    assert (told.side, told.worst_value, told.limit) == ("below", 62, 200)


@pytest.mark.parametrize(
    ("raised", "planned", "kinds", "said"),
    [
        (
            "RuntimeError: boom",
            200,
            {"died"},
            "training ended with an error at step 62 of 200 planned: RuntimeError: boom",
        ),
        ("RuntimeError: boom", None, {"raised"}, "training ended with an error at step 62: RuntimeError: boom"),
        ("KeyboardInterrupt", 200, {"early"}, "stopped by hand at step 62 of 200 planned (KeyboardInterrupt)"),
        ("KeyboardInterrupt", None, set(), "stopped by hand at step 62 (KeyboardInterrupt)"),
    ],
)
def test_an_exception_is_named_where_it_ended_training(
    raised: str, planned: int | None, kinds: set[str], said: str
) -> None:
    run = grpo(62, planned)
    run.raised = raised
    ending = ending_of(run, translate(run), now=LONG_AGO)
    assert (ending.state, ending.kinds, ending.said) == ("stopped", kinds, said)


@pytest.mark.parametrize(
    ("raised", "is_said"),
    [
        ("RuntimeError: probability tensor contains either `inf`, `nan` or element < 0", True),
        ("FloatingPointError: NaN loss", True),
        ("Exception: Current loss scale already at minimum - cannot decrease scale anymore.", True),
        ("RuntimeError: Function 'LogBackward0' returned nan values in its 0th output.", True),
        (
            said_by_exception(
                "ValueError: Expected parameter loc (Tensor of shape (3200, 7)) of distribution Normal(loc: torch.Size([32"
                "00, 7]), scale: torch.Size([3200, 7])) to satisfy the constraint Real(), but found invalid values:"
            ),
            True,
        ),
        ("ImportError: cannot import name 'nanmean'", False),
        ("ValueError: cannot convert float NaN to integer", False),
        ("KeyError: 'finance'", False),
    ],
)
def test_an_exception_that_says_that_numbers_are_not_finite_is_known_as_one(raised: str, is_said: bool) -> None:
    run = grpo(62, None)
    run.raised = raised
    assert ("not_finite" in ending_of(run, translate(run), now=LONG_AGO).kinds) is is_said


def test_an_exception_before_anything_was_logged_ended_a_run_at_its_start() -> None:
    run = Run("run", Place("console", "here"), raised="OSError: no such model")
    ending = ending_of(run, translate(run), now=LONG_AGO)
    assert (ending.state, ending.kinds) == ("stopped", {"at_start"})
    assert ending.said == "the process ended with an error before it logged a row: OSError: no such model"
    run.raised = "KeyboardInterrupt"
    assert ending_of(run, translate(run), now=LONG_AGO).kinds == set()


def test_an_exception_of_a_process_without_a_plan_is_told_and_that_of_a_cell_is_not() -> None:
    for kind, kinds in (("console", {"raised"}), ("tensorboard", {"raised"}), ("notebook", set())):
        run = Run("run", Place(kind, "here"), raised="RuntimeError: CUDA error")
        run.add("reward", [1, 2, 3], [0.1, 0.2, 0.3])
        ending = ending_of(run, translate(run), now=LONG_AGO)
        assert (ending.state, ending.kinds) == ("stopped", kinds)


def test_a_plan_that_may_count_mini_batches_still_proves_an_early_end() -> None:
    run = Run("ppo", Place("wandb", "here"), planned_steps=600)
    steps = list(range(1, 151))
    for tag in ("objective/rlhf_reward", "val/num_eos_tokens", "loss/value_avg", "objective/kl"):
        run.add(tag, steps, [1.0 + step % 5 for step in steps], [10.0 * step for step in steps])
    assert translate(run).planned_steps is None
    assert ending_of(run, translate(run), now=LONG_AGO).state == "unknown"  # 150 updates of 4 mini-batches each
    assert ending_of(run.until(62), translate(run.until(62)), now=LONG_AGO).kinds == {
        "silent"
    }  # no number of mini-batches makes that 600


def test_patience_grows_with_the_usual_step_time() -> None:
    run = grpo(10, 100)
    slow = Run("slow", run.place, config=run.config)
    steps = list(range(1, 11))
    for tag in run.series:
        slow.add(tag, steps, [1.0 + step % 2 for step in steps], [3600.0 * step for step in steps])
    assert ending_of(slow, translate(slow), now=36000.0 + 10 * 3600).state == "running"
    assert ending_of(slow, translate(slow), now=36000.0 + 30 * 3600).state == "stopped"


@pytest.mark.parametrize("run", [grpo(62, 200), grpo(62, None, clean=False), grpo(62, 200, clean=False)])
def test_the_date_of_a_file_says_nothing_against_the_times_in_the_log(run: Run) -> None:
    endings = []
    for date in (math.nan, 1.0, LONG_AGO, 1062.0 + LONG_AGO):  # unknown, old, and copied a moment ago
        run.modified = date
        endings.append(ending_of(run, translate(run), now=1062.0 + LONG_AGO))
    assert {(one.state, one.kinds) for one in endings} == {(endings[0].state, endings[0].kinds)}


def without_times(kind: str, *, modified: float, clean: bool | None = None) -> Run:
    run = Run("run", Place(kind, "here"), config={"max_steps": 200}, modified=modified, clean=clean)
    for tag in ("train/reward", "train/reward_std", "train/completions/mean_length"):
        run.add(tag, list(range(1, 63)), [0.5 + step % 3 for step in range(62)])
    return run


@pytest.mark.parametrize("kind", ["json", "csv", "console", "trainer_state"])
@pytest.mark.parametrize("clean", [None, False])
def test_a_log_without_times_never_dies_of_its_age(kind: str, clean: bool | None) -> None:
    for date in (0.0, LONG_AGO):
        run = without_times(kind, modified=date, clean=clean)
        assert not ending_of(run, translate(run), now=LONG_AGO).kinds - {"torn"}


def test_the_user_may_say_that_a_run_is_over() -> None:
    fresh = without_times("json", modified=LONG_AGO)
    assert ending_of(fresh, translate(fresh), now=LONG_AGO).state == "running"
    assert ending_of(fresh, translate(fresh), now=LONG_AGO, ended=True).kinds == {"silent"}


@pytest.mark.parametrize(
    ("run", "later", "is_whole"),
    [
        (grpo(100, 100), LONG_AGO, True),
        (grpo(62, 200), LONG_AGO, True),
        (grpo(62, None), LONG_AGO, True),
        (grpo(62, None), 30.0, False),
        (grpo(62, 200), 30.0, False),
        (grpo(62, None, exit_code=0), 30.0, True),
    ],
)
def test_the_newest_row_is_the_last_once_no_more_is_to_come(run: Run, later: float, is_whole: bool) -> None:
    last = 1000.0 + 10 * (run.last_step or 0)
    assert ending_of(run, translate(run), now=last + later).is_whole is is_whole


def test_the_date_of_a_file_says_that_more_may_come_only_to_who_follows_it() -> None:
    fresh = without_times("csv", modified=LONG_AGO)
    fresh.config.clear()
    assert ending_of(fresh, translate(fresh), now=LONG_AGO).is_whole
    assert not ending_of(fresh, translate(fresh), now=LONG_AGO, followed=True).is_whole
    assert ending_of(fresh, translate(fresh), now=2 * LONG_AGO, followed=True).is_whole


def test_a_log_that_breaks_off_before_its_plan_a_checkpoint_and_a_run_begun_anew_or_resumed_are_not_whole() -> None:
    short = without_times("json", modified=0.0)
    assert not ending_of(short, translate(short), now=LONG_AGO).is_whole
    for kind, begun_anew in (("trainer_state", False), ("json", True)):
        run = without_times(kind, modified=0.0)
        run.config.clear()
        run.begun_anew = begun_anew
        assert not ending_of(run, translate(run), now=LONG_AGO).is_whole
    resumed = Run("run", Place("json", "here"))
    resumed.add("train/reward", list(range(151, 251)), [0.5] * 100)
    assert not ending_of(resumed, translate(resumed), now=LONG_AGO).is_whole


def test_a_run_that_was_resumed_is_over_though_its_log_is_not_whole_and_one_begun_anew_is_not_over() -> None:
    run = Run("run", Place("json", "here"))
    run.add("train/reward", list(range(151, 251)), [0.5] * 100)
    assert ending_of(run, translate(run), now=LONG_AGO).is_over
    run.begun_anew = True
    assert not ending_of(run, translate(run), now=LONG_AGO).is_over


def test_a_checkpoint_shows_a_moment_and_no_end() -> None:
    snapshot = without_times("trainer_state", modified=0.0)
    for ended in (False, True):
        ending = ending_of(snapshot, translate(snapshot), now=LONG_AGO, ended=ended)
        assert (ending.state, ending.kinds) == ("unknown", frozenset())


def test_what_the_server_last_heard_counts_as_a_sign_of_life() -> None:
    run = grpo(62, 200)
    run.heartbeat = LONG_AGO
    assert ending_of(run, translate(run), now=LONG_AGO + 30.0).state == "running"
