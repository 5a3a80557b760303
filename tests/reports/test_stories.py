"""What a report tells of a run besides its findings."""

from __future__ import annotations

from rlhealth.engine.judge import Judge
from rlhealth.reports.stories import notes
from rlhealth.run import Place, Run


def test_a_resume_is_reported_with_the_steps_that_it_replaced() -> None:
    run = Run("one", Place("jsonl", "one.jsonl"))
    run.add("reward", range(1, 101), [0.5] * 100)
    run.rewind(11)
    run.add("reward", range(11, 51), [0.5] * 40)
    run.rewind(51)  # a continuation where it had stopped
    said = notes(Judge(run, []).verdict())
    assert said[:2] == ["resumed at step 11, replacing steps 11 to 100", "resumed at step 51"]
