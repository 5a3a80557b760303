"""Metric choice: what is said of a name that no metric has."""

from __future__ import annotations

import numpy as np
import pytest

from rlhealth.engine.cannot_run import CannotRun
from rlhealth.engine.metric_choice import pick
from rlhealth.metrics import translate
from rlhealth.run import Place, Run


def test_a_metric_that_was_not_logged_is_named_in_the_reason() -> None:
    run = Run("run", Place("tensorboard", "here"))
    run.add("train/reward", [1], [np.nan])
    with pytest.raises(CannotRun, match="kl or objective/kl was not logged"):
        pick("kl|objective/kl", translate(run))
