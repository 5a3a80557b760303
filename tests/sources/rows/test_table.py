"""JSONL, JSON and CSV: real rows, written by the writers that people use, whole, growing, several runs in a file,
cut and damaged.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlhealth.errors import RlhealthError
from rlhealth.run import Run
from rlhealth.sources import open_runs
from rlhealth.sources.rows import table
from rlhealth.sources.rows.csv_log import CsvLog
from rlhealth.sources.rows.json_log import JsonLines
from rlhealth.sources.rows.textlog import TextLogRun
from tests.examples import examples

FIXTURES = Path(__file__).parents[3] / "fixtures"
ROWS: list[dict[str, Any]] = json.loads((FIXTURES / "everywhere" / "grpo-short" / "trainer_state.json").read_text())[
    "log_history"
]
PROGRESS = FIXTURES / "tables" / "progress.csv"


def points(run: Run) -> dict[str, list[tuple[int, float]]]:
    return {
        tag: list(zip(one.steps.tolist(), one.values.tolist(), strict=True)) for tag, one in sorted(run.series.items())
    }


def expected(rows: list[dict[str, Any]], step: str = "step") -> dict[str, list[tuple[int, float]]]:
    found: dict[str, dict[int, float]] = {}
    for row in rows:
        for tag in row.keys() - {step}:
            found.setdefault(tag, {})[row[step]] = float(row[tag])
    return {tag: sorted(values.items()) for tag, values in sorted(found.items())}


def jsonl(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def put(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def test_trainers_rows_one_a_line(tmp_path: Path) -> None:
    (run,) = open_runs(put(tmp_path / "logging.jsonl", jsonl(ROWS)))
    assert points(run) == expected(ROWS)
    assert (run.place.kind, run.name, run.step_axis, run.problems, run.notes) == (
        "jsonl",
        tmp_path.name,
        "step",
        [],
        [],
    )


def test_verls_file_logger_nests_its_metrics(tmp_path: Path) -> None:
    nested = [
        {"step": row["step"], "data": {tag: value for tag, value in row.items() if tag != "step"}} for row in ROWS
    ]
    (run,) = open_runs(put(tmp_path / "verl_file_logger.jsonl", jsonl(nested)))
    assert points(run) == expected(ROWS)


def test_rows_of_wandb_count_trainer_steps_and_keep_times_and_distributions(tmp_path: Path) -> None:
    bins = {"_type": "histogram", "bins": [0.0, 0.5, 1.0], "values": [3, 1]}
    rows = [
        {
            "_step": 8 * n,
            "_timestamp": 1.7e9 + n,
            "_runtime": n,
            "train/global_step": n,
            "train/kl": n / 10,
            "ratio": bins,
        }
        for n in range(1, 6)
    ]
    (run,) = open_runs(put(tmp_path / "wandb-history.jsonl", jsonl(rows)))
    assert run.series["train/kl"].steps.tolist() == [1, 2, 3, 4, 5]
    assert run.series["train/kl"].times.tolist() == [1.7e9 + n for n in range(1, 6)]
    assert run.histograms["ratio"].steps == [1, 2, 3, 4, 5]
    assert set(run.series) == {"train/kl"}


def test_several_runs_appended_to_one_file_are_distinguished(tmp_path: Path) -> None:
    runs = open_runs(put(tmp_path / "history.jsonl", jsonl([*ROWS, *ROWS[:12], *ROWS[:20]])))
    assert [points(run) for run in runs] == [expected(ROWS), expected(ROWS[:12]), expected(ROWS[:20])]
    assert [run.name for run in runs] == [tmp_path.name, f"{tmp_path.name}#2", f"{tmp_path.name}#3"]
    assert not any(run.resumed_at for run in runs)


def test_runs_of_many_rows_are_distinguished_by_their_epochs(tmp_path: Path) -> None:
    rows = [{"step": n, "epoch": n / 1000, "loss": 0.5, "reward": n / 7} for n in range(1500)]
    runs = open_runs(put(tmp_path / "history.jsonl", jsonl(rows * 2)))
    assert [len(run.series["reward"]) for run in runs] == [1500, 1500]
    within = [{**row, "epoch": epoch} for epoch in range(3) for row in rows]
    (run,) = open_runs(put(tmp_path / "within.jsonl", jsonl(within)))
    assert run.series["reward"].steps.tolist() == list(range(4500))


def test_a_run_that_begins_in_a_file_that_is_followed_is_offered_once(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text(jsonl(ROWS))
    (reader,) = table.find(path)
    assert isinstance(reader, TextLogRun) and not reader.appeared()
    with path.open("a") as file:
        file.write(jsonl(ROWS[:5]))
    reader.poll()
    (other,) = reader.appeared()
    assert points(other.run) == expected(ROWS[:5])
    assert not reader.appeared() and not other.appeared()


def test_a_resume_goes_back_a_little_and_stays_one_run(tmp_path: Path) -> None:
    again = [{**row, "reward": -1.0} for row in ROWS[19:28]]
    (run,) = open_runs(put(tmp_path / "history.jsonl", jsonl([*ROWS[:25], *again])))
    assert points(run) == expected([*ROWS[:19], *again])
    assert run.resumed_at == [20]


def test_a_row_that_comes_late_neither_starts_a_run_nor_drops_points(tmp_path: Path) -> None:
    late = [*ROWS[:10], {"step": 5, "eval_reward": 0.5, "epoch": 0.1}, *ROWS[10:20]]
    (run,) = open_runs(put(tmp_path / "history.jsonl", jsonl(late)))
    assert run.series["reward"].steps.tolist() == list(range(1, 21))
    assert run.series["eval_reward"].steps.tolist() == [5]
    assert not run.resumed_at


def test_rows_that_come_out_of_order_are_put_in_order(tmp_path: Path) -> None:
    order = [0, 2, 1, 3, 5, 4, 6, 7, 9, 8]
    (run,) = open_runs(put(tmp_path / "history.jsonl", jsonl([ROWS[at] for at in order])))
    assert points(run) == expected(ROWS[:10])
    assert not run.resumed_at


def test_a_line_that_is_cut_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    whole = jsonl(ROWS[:10])
    path.write_text(whole[:-40])
    log = JsonLines(path)
    reader = TextLogRun(log, log.runs[0])
    assert reader.poll()
    assert len(reader.run.series["reward"]) == 9
    assert reader.run.clean is False and not reader.run.problems
    assert reader.run.notes == ["history.jsonl: the last line is not whole; it is waited for"]
    with path.open("a") as file:
        file.write(whole[-40:])
    assert reader.poll()
    assert points(reader.run) == expected(ROWS[:10])
    assert reader.run.clean is None and not reader.run.notes


def test_a_last_line_without_a_line_end_is_whole_if_its_object_is(tmp_path: Path) -> None:
    (run,) = open_runs(put(tmp_path / "history.jsonl", jsonl(ROWS).rstrip("\n")))
    assert points(run) == expected(ROWS)
    assert run.clean is None


def test_each_byte_is_read_once_however_often_it_is_polled(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.touch()
    log = JsonLines(path)
    with path.open("a") as file:
        for row in ROWS:
            file.write(jsonl([row]))
            file.flush()
            before = log.text.offset
            log.poll()
            assert log.text.offset - before == len(jsonl([row]))
            assert not TextLogRun(log, log.runs[0]).log.poll()
    assert points(log.runs[0]) == expected(ROWS)


def test_a_line_that_is_no_json_is_counted_with_its_number(tmp_path: Path) -> None:
    lines = jsonl(ROWS[:10]).splitlines()
    lines[4] = lines[4][:30]
    lines[7] = "Traceback (most recent call last):"
    (run,) = open_runs(put(tmp_path / "history.jsonl", "\n".join(lines) + "\n"))
    assert points(run) == expected([row for at, row in enumerate(ROWS[:10]) if at not in (4, 7)])
    assert run.problems == ["history.jsonl: 2 lines skipped that could not be read, the first is line 5"]


def test_a_file_that_was_written_anew_is_read_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text(jsonl(ROWS[:20]))
    log = JsonLines(path)
    log.poll()
    path.write_text(jsonl(ROWS[5:9]))
    assert log.poll()
    assert points(log.runs[0]) == {**{tag: [] for tag in points(log.runs[0])}, **expected(ROWS[5:9])}


def test_jsonl_under_the_name_json_a_list_and_columns_are_read(tmp_path: Path) -> None:
    rows = ROWS[:20]
    columns = {tag: [row[tag] for row in rows] for tag in rows[0]}
    for name, text in (
        ("training_log.json", jsonl(rows)),
        ("list.json", json.dumps(rows, indent=1)),
        ("named.json", json.dumps({"args": {"lr": 1}, "history": rows})),
        ("columns.json", json.dumps({"args": {"lr": 1}, **columns})),
    ):
        (run,) = open_runs(put(tmp_path / name, text))
        assert points(run) == expected(rows), name


def test_csv_that_pandas_wrote(tmp_path: Path) -> None:
    pd.DataFrame(ROWS).to_csv(tmp_path / "history.csv", index=False)
    (run,) = open_runs(str(tmp_path / "history.csv"))
    assert points(run) == expected(ROWS)


def test_a_table_whose_last_column_was_added_to_later_rows_is_found_in_a_folder(tmp_path: Path) -> None:
    with (tmp_path / "ppo_data.csv").open("w", newline="") as file:
        table_of = csv.writer(file)
        table_of.writerow(["Actor Losses", "Critic Losses", "Total Rewards", "Success Rates"])
        table_of.writerows([0.1, 2.0, -40.0 + row] for row in range(40))
        table_of.writerows([0.1, 2.0, 0.5 * row, 0.9] for row in range(20))
    (run,) = open_runs(str(tmp_path))
    assert (len(run.series["Total Rewards"]), len(run.series["Success Rates"])) == (60, 20)


def test_progress_csv_of_stable_baselines_counts_timesteps_and_leaves_empty_cells_out() -> None:
    (run,) = open_runs(str(PROGRESS))
    frame = pd.read_csv(PROGRESS, dtype=str).astype(float)
    assert run.step_axis == "time/total_timesteps"
    assert run.series["rollout/ep_rew_mean"].values.tolist() == frame["rollout/ep_rew_mean"].tolist()
    assert (
        run.series["train/loss"].steps.tolist() == frame["time/total_timesteps"][frame["train/loss"].notna()].tolist()
    )
    assert "time/total_timesteps" not in run.series


def test_a_header_that_grew_makes_the_table_be_read_anew(tmp_path: Path) -> None:
    """SB3 rewrites the whole file when a metric comes that it had no column for."""
    path = tmp_path / "progress.csv"
    frame = pd.read_csv(PROGRESS)
    frame.head(10)[["time/total_timesteps", "rollout/ep_rew_mean"]].to_csv(path, index=False)
    log = CsvLog(path)
    log.poll()
    frame.head(20).to_csv(path, index=False)
    log.poll()
    assert log.runs[0].series["rollout/ep_rew_mean"].values.tolist() == frame["rollout/ep_rew_mean"].head(20).tolist()
    assert len(log.runs[0].series["train/loss"]) == frame.head(20)["train/loss"].notna().sum()


def test_a_csv_that_grows_is_read_on_and_its_half_line_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "progress.csv"
    text = PROGRESS.read_text()
    log = None
    for end in (200, 2000, 2001, 7777, len(text)):
        path.write_text(text[:end])
        log = log or CsvLog(path)
        try:
            log.poll()
        except RlhealthError:
            assert end == 200
        reached = [] if end == 200 else log.runs[0].series["rollout/ep_rew_mean"].steps.tolist()
        assert len(reached) == max(text[:end].count("\n") - 1, 0)
    assert log is not None and log.text.offset == len(text)


def test_a_last_line_that_nothing_ends_is_a_row_once_nobody_writes(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("step,reward\n1,0.25\n2,0.5")
    log = CsvLog(path)
    log.poll()
    assert points(log.runs[0]) == {"reward": [(1, 0.25)]}
    os.utime(path, (1e9, 1e9))
    log.poll()
    assert points(log.runs[0]) == {"reward": [(1, 0.25), (2, 0.5)]}
    assert log.runs[0].clean is None


def test_nan_in_a_cell_is_kept_and_an_empty_cell_is_not_a_nan(tmp_path: Path) -> None:
    text = 'step,reward,kl,loss\n1,nan,,No Log\n2,0.5,inf,0.1\n3,,-inf,"1,568,987.96"\n4,NaN,0.25,np.float64(1e-06)\n'
    (run,) = open_runs(put(tmp_path / "t.csv", text))
    assert run.series["reward"].steps.tolist() == [1, 2, 4]
    assert math.isnan(run.series["reward"].values[0]) and math.isnan(run.series["reward"].values[2])
    assert points(run)["kl"] == [(2, math.inf), (3, -math.inf), (4, 0.25)]
    assert points(run)["loss"] == [(2, 0.1), (3, 1568987.96), (4, 1e-6)]


def test_an_export_of_wandbs_page_holds_several_runs_and_their_bounds(tmp_path: Path) -> None:
    frame = pd.DataFrame({"Step": [1, 2, 3, 4]})
    for name, shift in (("grpo - a", 0.0), ("grpo - b", 1.0)):
        for column in ("train/reward", "train/reward__MIN", "train/reward__MAX"):
            frame[f"{name} - {column}"] = [0.1 + shift, 0.2 + shift, None if shift else 0.3, 0.4 + shift]
    frame.to_csv(tmp_path / "wandb_export.csv", index=False, quoting=1)
    one, other = open_runs(str(tmp_path / "wandb_export.csv"))
    assert (one.name, other.name) == ("grpo - a", "grpo - b")
    assert points(one) == {"train/reward": [(1, 0.1), (2, 0.2), (3, 0.3), (4, 0.4)]}
    assert points(other) == {"train/reward": [(1, 1.1), (2, 1.2), (4, 1.4)]}


def test_exports_of_tensorboards_page_are_one_tag_a_file_and_one_run_a_name(tmp_path: Path) -> None:
    for tag in ("loss", "reward"):
        pd.DataFrame({"Wall time": [1.7e9, 1.7e9 + 1], "Step": [1, 2], "Value": [0.5, 0.25]}).to_csv(
            tmp_path / f"run-exp1-tag-{tag}.csv", index=False
        )
    (run,) = open_runs(str(tmp_path))
    assert points(run) == {"loss": [(1, 0.5), (2, 0.25)], "reward": [(1, 0.5), (2, 0.25)]}
    assert run.series["loss"].times.tolist() == [1.7e9, 1.7e9 + 1]


def test_a_long_table_is_read_back(tmp_path: Path) -> None:
    (run,) = open_runs(put(tmp_path / "history.jsonl", jsonl(ROWS)))
    run.frame().to_csv(tmp_path / "long.csv", index=False)
    (again,) = open_runs(str(tmp_path / "long.csv"))
    assert points(again) == points(run)


def test_points_of_a_long_table_that_have_no_name_are_counted_and_the_others_read(tmp_path: Path) -> None:
    (run,) = open_runs(put(tmp_path / "long.csv", "tag,step,value,run\nkl,1,0.5,a\n,2,0.7,a\nkl,3,1.0,a\n"))
    assert points(run) == {"kl": [(1, 0.5), (3, 1.0)]}
    assert run.problems == ["long.csv: 1 line skipped that could not be read, the first is line 3"]


@pytest.mark.parametrize(
    ("text", "told", "hint"),
    [
        ("", "is empty", "a log has rows"),
        ("1,2.5,0.1\n2,2.6,0.2\n", "no header", "names its 3 columns"),
        ("0\n-4.5\n-3.2\n", "no header", "names its column, such as reward"),
        (",0,1,2\n0,21,39,13\n1,19,13,9\n", "columns are numbered", "names its 4 columns"),
        ("Name,State,Created,reward\nrun-1,finished,2024,0.5\n", "one row a run", "Export"),
        ("prompt,answer\nhello,world\n", "no metrics", "a log has rows"),
    ],
)
def test_a_table_that_is_no_log_is_reported_with_what_to_do(tmp_path: Path, text: str, told: str, hint: str) -> None:
    with pytest.raises(RlhealthError, match=told) as error:
        open_runs(put(tmp_path / "table.csv", text), source="csv")
    assert hint in error.value.hint


def test_a_headerless_table_is_read_where_names_are_given(tmp_path: Path) -> None:
    log = CsvLog(Path(put(tmp_path / "t.csv", "1,2.5,0.1\n2,2.6,0.2\n")), names=["step", "reward", "kl"])
    log.poll()
    assert points(log.runs[0]) == {"kl": [(1, 0.1), (2, 0.2)], "reward": [(1, 2.5), (2, 2.6)]}


def test_bad_lines_of_a_table_are_counted(tmp_path: Path) -> None:
    lines = PROGRESS.read_text().splitlines()
    lines[10] += ",1,2,3"
    (run,) = open_runs(put(tmp_path / "progress.csv", "\n".join(lines) + "\n"))
    assert len(run.series["rollout/ep_rew_mean"]) == len(lines) - 2
    assert run.problems == ["progress.csv: 1 line skipped that could not be read, the first is line 11"]


@pytest.mark.parametrize("name", ["history.jsonl", "history.csv", "history.json", "train.log"])
def test_a_million_metrics_are_bounded(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is lowered here, so that the test is quick; the path is the same."""
    monkeypatch.setattr("rlhealth.sources.base.points.MOST_TAGS", 100)
    monkeypatch.setattr("rlhealth.sources.rows.csv_log.MOST_TAGS", 200)
    rows = [{"step": step, "loss": 0.5, **{f"m{at}": at / 7 for at in range(150)}} for step in range(1, 4)]
    if name.endswith(".csv"):
        pd.DataFrame(rows).to_csv(tmp_path / name, index=False)
    else:
        put(tmp_path / name, json.dumps(rows) if name.endswith(".json") else jsonl(rows))
    (run,) = open_runs(str(tmp_path / name))
    assert len(run.series) == 100
    assert any("more than 100 metrics" in problem for problem in run.problems)


def test_lines_without_end_and_nests_without_bottom_are_bounded(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    with path.open("w") as file:
        file.write(jsonl(ROWS[:3]))
        file.write('{"a":' * 200_000 + "\n")
        file.write('{"step": 9, "x": "' + "y" * (65 << 20) + '"}\n')
        file.write(jsonl(ROWS[3:6]))
    (run,) = open_runs(str(path))
    assert points(run) == expected(ROWS[:6])
    assert run.problems == [
        "history.jsonl: 1 line skipped that could not be read, the first is line 4",
        "history.jsonl: 1 line skipped, longer than 64 MiB",
    ]


@pytest.mark.parametrize("name", ["history.jsonl", "progress.csv", "train.log", "history.json"])
def test_a_hole_of_a_hundred_gigabytes_is_jumped_over(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(
        PROGRESS.read_text() if name.endswith(".csv") else json.dumps(ROWS) if name.endswith(".json") else jsonl(ROWS)
    )
    with path.open("r+b") as file:
        file.truncate(100 << 30)
    (run,) = open_runs(str(path))
    assert len(max(run.series.values(), key=len)) in (30, 59)


@settings(max_examples=examples(40), deadline=None)
@given(st.data())
def test_any_cut_of_a_text_log_gives_a_prefix_or_a_plain_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    rows = ROWS[:8]
    name = data.draw(st.sampled_from(["a.jsonl", "a.csv", "a.log", "a.json"]))
    frame = io.StringIO()
    pd.DataFrame(rows).to_csv(frame, index=False)
    text = {
        "a.jsonl": jsonl(rows),
        "a.csv": frame.getvalue(),
        "a.log": "".join(f"{row}\n" for row in rows),
        "a.json": json.dumps(rows, indent=1),
    }[name]
    path = tmp_path_factory.mktemp("cut") / name
    path.write_text(text[: data.draw(st.integers(0, len(text)))])
    try:
        (run,) = open_runs(str(path))
    except RlhealthError as error:
        assert error.hint
        return
    whole = expected(rows)
    for tag, found in points(run).items():
        assert set(found[:-1]) <= set(whole[tag]), "a point that was never written"


@settings(max_examples=examples(60), deadline=None)
@given(
    st.binary(max_size=400),
    st.sampled_from(["a.jsonl", "a.csv", "a.log", "a.json", "a.txt", "trainer_state.json", "a"]),
)
def test_any_bytes_are_answered(tmp_path_factory: pytest.TempPathFactory, junk: bytes, name: str) -> None:
    path = tmp_path_factory.mktemp("junk") / name
    path.write_bytes(junk)
    try:
        assert open_runs(str(path))
    except RlhealthError as error:
        assert error.message and error.hint


def test_an_error_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(RlhealthError) as error:
        table.find(tmp_path / "gone.csv")
    assert str(tmp_path / "gone.csv") in error.value.message


def test_powershell_writes_utf_16(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(("Starting\n" + "".join(f"{row}\n" for row in ROWS)).encode("utf-16"))
    (run,) = open_runs(str(path))
    assert points(run) == expected(ROWS)


def test_a_copy_of_a_table_is_no_second_run(tmp_path: Path) -> None:
    put(tmp_path / "history.jsonl", jsonl(ROWS))
    shutil.copy(tmp_path / "history.jsonl", tmp_path / "history (1).jsonl")
    assert len(open_runs(str(tmp_path))) == 1


@pytest.mark.parametrize("count", [5, 40])  # few rows are taken one by one, many as columns
def test_statistics_without_a_name_are_those_of_what_the_file_is_named_after(tmp_path: Path, count: int) -> None:
    rows = [{"step": n, "mean": n / 10, "max": n / 5, "min": 0.0} for n in range(count)]
    (tmp_path / "reward_curve.json").write_text(json.dumps(rows))
    (tmp_path / "grades.json").write_text(json.dumps(rows))
    (run,) = open_runs(tmp_path / "reward_curve.json")
    assert set(run.series) == {"reward/mean", "reward/max", "reward/min"}
    assert run.series["reward/mean"].steps.tolist() == list(range(count))
    (other,) = open_runs(tmp_path / "grades.json")
    assert set(other.series) == {"mean", "max", "min"}
