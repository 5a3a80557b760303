"""Runs online that grow while they are read, with the real SDK against a server on loopback: each row once, none
lost.
"""

from __future__ import annotations

from tests.sources.wandb_online import expected, reader, rewards
from tests.wandb_server import HostedRun, WandbServer


def test_each_poll_reads_what_is_new_and_nothing_twice(server: WandbServer, hosted: HostedRun) -> None:
    one = reader()
    assert one.poll()
    assert not one.poll()
    sent = server.rows_sent
    for step in range(6, 16):
        hosted.log(train__global_step=step, train__reward=step / 10)
        assert one.poll()
    assert rewards(one.run) == expected(1, 15)
    assert server.rows_sent - sent == 20, "the new row and the one before it, which may have grown"
    assert one.run.series["train/reward"].revision == 0


def test_a_poll_with_nothing_new_is_one_request(server: WandbServer, hosted: HostedRun) -> None:
    one = reader()
    one.poll()
    before = len(server.asked)
    one.poll()
    assert server.operations()[before:] == ["Run"]


def test_the_newest_row_may_gain_metrics_after_it_was_read(hosted: HostedRun) -> None:
    one = reader()
    one.poll()
    hosted.rows[-1]["eval/reward"] = 0.8
    hosted.heartbeat = "2026-01-02T04:00:00Z"
    assert one.poll()
    assert one.run.series["eval/reward"].steps.tolist() == [5]
    assert rewards(one.run) == expected(1, 5)


def test_rows_that_arrive_late_are_put_where_they_belong(hosted: HostedRun) -> None:
    late = hosted.rows.pop(2)
    one = reader()
    one.poll()
    hosted.rows.insert(2, late)
    for beat in range(2):
        hosted.heartbeat = f"2026-01-02T04:00:0{beat}Z"
        one.poll()
    assert rewards(one.run) == expected(1, 5)
    assert one.run.resumed_at == []


def test_a_run_that_was_rewound_is_read_again(hosted: HostedRun) -> None:
    one = reader()
    one.poll()
    del hosted.rows[3:]
    hosted.rows.append({**hosted.rows[-1], "_step": 3, "train/global_step": 4, "train/reward": 9.0})
    one.poll()
    one.poll()
    assert rewards(one.run) == [*expected(1, 3), (4, 9.0)]


def test_rows_that_the_server_counts_and_does_not_show_are_reported(hosted: HostedRun) -> None:
    hosted.more_counted = 7
    one = reader()
    one.poll()
    assert one.run.problems == ["wandb counts 12 rows in this run's history, of which 5 could be read"]


def test_the_end_is_seen_when_it_comes(hosted: HostedRun) -> None:
    one = reader()
    one.poll()
    assert one.run.exit_code is None
    hosted.state, hosted.summary = "finished", {"train_runtime": 3.0}
    assert one.poll()
    assert one.run.exit_code == 0
    assert "train/train_runtime" in one.run.series
    assert not one.poll()
