"""The page of what is read keeps its word: each sample and each printed form is read as it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rlhealth.check import check
from rlhealth.metrics import translate
from rlhealth.sources import open_runs
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")
SAMPLES = re.findall(r"^\| [^|]+ \| (fixtures/\S+) \| (\w+) \| (\d+) \|$", PAGE, re.MULTILINE)
FORMS = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)


def test_every_printed_log_table_and_notebook_among_the_fixtures_is_on_the_page() -> None:
    named = {sample for sample, _, _ in SAMPLES}
    kept = [*ROOT.glob("fixtures/consoles/*.log"), *ROOT.glob("fixtures/notebooks/*.ipynb")]
    kept += [*ROOT.glob("fixtures/tables/*.*"), *(path for path in ROOT.glob("fixtures/trackers/*"))]
    assert {str(path.relative_to(ROOT)) for path in kept} <= named


@pytest.mark.parametrize(("sample", "kind", "last"), SAMPLES)
def test_a_sample_is_read_as_what_the_page_says(sample: str, kind: str, last: str) -> None:
    verdict = check(ROOT / sample)
    assert (verdict.errors, verdict.left_out) == ([], [])
    assert {one.run.place.kind for one in verdict.runs} == {kind}
    assert max(one.run.last_step or 0 for one in verdict.runs) == int(last)


@pytest.mark.parametrize("form", FORMS)
def test_a_printed_form_gives_its_reward_at_its_step(form: str, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(form, encoding="utf-8")
    (run,) = open_runs(tmp_path)
    step = re.search(r"(?:step:?|Iter|Ep|episode|回合) ?(\d+)", form, re.IGNORECASE)
    value = re.search(
        r"(?:score/mean:|mean=|avgR |mean reward(?: \(100 episodes\))?\W{1,3}|μ=|reward:? |R: |奖励: )([\d.]+\d)",
        form,
        re.IGNORECASE,
    )
    assert step and value
    reward = translate(run).metrics["reward"]
    assert (reward.steps.tolist(), reward.values.tolist()) == ([int(step[1])], [float(value[1])])
