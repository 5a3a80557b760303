"""Dicts that follow each other are read at once as they are read one by one."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rlhealth.run import Run
from rlhealth.sources.rows.console import ConsoleLog
from rlhealth.sources.rows.dense_dicts import FEWEST, dense_rows

NAMES = ("loss", "reward", "kl", "epoch")
FIRST = "".join(f"{{'loss': 0.5, 'reward': {n / 64 + 0.0123457}, 'kl': 0.01, 'epoch': 0.0}}\n" for n in range(20))


def told(runs: list[Run]) -> list[dict[str, tuple[list[int], list[str]]]]:
    return [
        {tag: (one.steps.tolist(), [repr(value) for value in one.values.tolist()]) for tag, one in run.series.items()}
        for run in runs
    ]


def read(path: Path, text: str, pieces: int) -> list[dict[str, tuple[list[int], list[str]]]]:
    """What is read of a log of which `text` comes in so many pieces after its first rows; each line alone for 0."""
    path.write_text(FIRST)
    log = ConsoleLog(path)
    log.poll()
    lines = text.splitlines(keepends=True)
    size = 1 if not pieces else max(1, len(lines) // pieces)
    for start in range(0, len(lines), size):
        with path.open("a") as file:
            file.write("".join(lines[start : start + size]))
        log.poll()
    return told(log.runs)


def row(n: int, epoch: float, **more: object) -> str:
    return str({"loss": 0.25, "reward": n / 64 + 0.0123457, "kl": 1e-5 * n, "epoch": epoch, **more}) + "\n"


TWO_ON_A_LINE = (
    "{'loss': 0.5, 'reward': 0.5, 'kl': 0.01, 'epoch': 0.6}, {'loss': 0.5, 'reward': 0.7, 'kl': 0.01, 'epoch': 0.6}\n"
)
EVALUATED = "{'eval_reward': 0.5, 'epoch': 0.5}\n"
ODD = st.sampled_from(
    [
        "saving the model\n",
        "{'loss': nan, 'reward': 0.5, 'kl': 0.01, 'epoch': 0.5}\n",
        EVALUATED,
        row(7, 0.5) + row(7, 0.5),
        row(3, 0.0),
        "step 12\nreward: 0.5\n",
        "{'loss': 0.5, 'reward': 'it''s', 'kl': 0.01, 'epoch': 0.6}\n",
        TWO_ON_A_LINE,
    ]
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(st.tuples(st.integers(0, 3 * FEWEST), ODD), min_size=1, max_size=4), pieces=st.integers(1, 3))
@example(parts=[(0, TWO_ON_A_LINE), (FEWEST - 2, EVALUATED)], pieces=1)  # as many lines as are fewest, one row more
def test_whatever_stands_between_them(tmp_path: Path, parts: list[tuple[int, str]], pieces: int) -> None:
    text, n = "", 100
    for many, odd in parts:
        for _ in range(many):
            n += 1
            text += row(n, n / 1000)
        text += odd
    assert read(tmp_path / "train.log", text, pieces) == read(tmp_path / "alone.log", text, 0)


def test_rows_with_a_step_and_whole_numbers(tmp_path: Path) -> None:
    text = "".join(row(n, n / 1000, step=n, num_tokens=100 * n) for n in range(100, 1000))
    assert read(tmp_path / "train.log", text, 1) == read(tmp_path / "alone.log", text, 0)


def test_only_dicts_of_the_same_names_and_plain_numbers_are_taken() -> None:
    line = b"{'loss': 0.5, 'reward': 1}"
    assert len(dense_rows([line] * 50, 0)) == 50
    assert len(dense_rows([line] * 40 + [b"{'loss': 0.5}"], 0)) == 40
    assert not dense_rows([line] * (FEWEST - 1), 0)
    for odd in (
        b"{'loss': None, 'reward': 1}",
        b"{'loss': 0.5, 'reward': 1} {'a': 1}",
        b"{'loss': True}",
        b"{'a': [1]}",
    ):
        assert len(dense_rows([line] * 40 + [odd], 0)) in (0, 40)
