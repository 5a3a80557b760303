"""Excerpts of a log that somebody displayed, its head and its tail: all of them are of one run, which goes on between
them.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from rlhealth.check import judge
from rlhealth.rules.loading import load_rules
from rlhealth.sources.notebooks.document import Cell, Output
from rlhealth.sources.notebooks.outputs import tables_of
from rlhealth.sources.notebooks.table import Table
from tests.sources.notebooks.books import code, notebook, runs, shown, table

STEPS = list(range(10, 410, 10))
LOG = pd.DataFrame(
    {
        "step": STEPS,
        "loss": [round(0.9137 / step, 4) + 0.1 for step in STEPS],
        "reward": [round(0.1713 + step / 1913, 6) for step in STEPS],
        "learning_rate": [1e-6] * len(STEPS),
    }
)
PROGRESS = shown(table([(step, f"{loss:.6f}") for step, loss in zip(LOG["step"], LOG["loss"], strict=True)]))


def displayed(*parts: pd.DataFrame) -> list[Table]:
    """What is read where they are displayed one after the other."""
    html = tables_of(Cell(1, "", [Output(html=part._repr_html_()) for part in parts]))
    text = tables_of(Cell(1, "", [Output(text="".join(f"{part}\n\n" for part in parts), stream="stdout")]))
    assert [one.steps for one in html] == [one.steps for one in text]
    return html


@pytest.mark.parametrize(
    ("parts", "steps", "is_cut"),
    [
        ((LOG.head(), LOG.tail()), [*STEPS[:5], *STEPS[-5:]], True),
        ((LOG.tail(), LOG.head()), [*STEPS[:5], *STEPS[-5:]], True),
        ((LOG[:20], LOG[20:]), STEPS, False),
        ((LOG[:8].head(), LOG[:8].tail()), STEPS[:8], False),  # the two overlap
        ((LOG.head(), LOG[15:20], LOG.tail()), [*STEPS[:5], *STEPS[15:20], *STEPS[-5:]], True),
    ],
)
def test_excerpts_of_one_table_are_one_table(parts: tuple[pd.DataFrame, ...], steps: list[int], is_cut: bool) -> None:
    (one,) = displayed(*parts)
    assert (one.steps, one.is_cut) == (steps, is_cut)


@pytest.mark.parametrize(
    "other",
    [
        LOG.assign(loss=LOG["loss"] / 2).head(),  # the first rows of another run
        LOG.assign(step=LOG["step"] - 200).tail(25),  # steps that begin anew
        LOG.rename(columns={"reward": "kl"}).tail(),  # other columns
        LOG.tail().set_axis([7] * 5),  # numbers that do not tell rows apart
    ],
)
def test_tables_that_are_no_parts_of_one_stay_two(other: pd.DataFrame) -> None:
    assert len(displayed(LOG.head(), other)) == 2


def test_the_rewards_of_every_excerpt_go_to_the_run_whose_progress_shows_the_loss_only(tmp_path: Path) -> None:
    cells = code("trainer.train()", PROGRESS), code("", shown(LOG[:20]._repr_html_()), shown(LOG[20:]._repr_html_()))
    (run,) = runs(tmp_path, notebook(*cells))
    assert run.series["reward"].steps.tolist() == STEPS
    assert not run.excerpted
    cells = code("trainer.train()", PROGRESS), *(code("", shown(one._repr_html_())) for one in (LOG[:20], LOG[20:]))
    (run,) = runs(tmp_path, notebook(*cells))
    assert run.series["reward"].steps.tolist() == STEPS
    assert not run.excerpted


@pytest.mark.parametrize("parts", [(LOG.head(6),), (LOG.head(6), LOG.tail(6))])
def test_a_reward_that_is_displayed_in_part_is_no_reward_that_vanished(
    parts: tuple[pd.DataFrame, ...], tmp_path: Path
) -> None:
    cells = code("trainer.train()", PROGRESS), code("", *(shown(one._repr_html_()) for one in parts))
    (run,) = runs(tmp_path, notebook(*cells))
    assert len(run.series["reward"]) == 6 * len(parts)
    assert run.excerpted == {"reward", "learning_rate"}
    assert "the notebook shows learning_rate, reward at only some of the steps" in run.notes
    assert not [one for one in judge(run, load_rules(), now=2e9).findings if "vanished" in one.rule]


def test_a_reward_that_is_missing_in_the_rows_that_are_displayed_has_vanished(tmp_path: Path) -> None:
    gone = LOG.assign(reward=LOG["reward"].where(LOG["step"] <= 200))
    with pd.option_context("display.max_rows", 100):
        cells = code("GRPOTrainer(model).train()", PROGRESS), code("", shown(gone._repr_html_()))
    (run,) = runs(tmp_path, notebook(*cells))
    assert not run.excerpted
    assert "reward-vanished" in {one.rule for one in judge(run, load_rules(), now=2e9).findings}
