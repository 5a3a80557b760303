"""Rewards of one step that are printed as a list: `Rewards: [0.5, 1.0]` below a line that announces the samples of the
step, `Step 3: generating 2 candidates`, or on a line of the step, `[step 3/200] rewards=['0.50', '1.00'] loss=0.01`."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence
from math import isfinite, nan

import numpy as np

from rlhealth.sources.base.spelling import number
from rlhealth.sources.rows.printed_steps import PrintedStep, begun_by, is_of_training, steps_in
from rlhealth.sources.rows.row_names import is_learning

MOST_REWARDS = 64  # of one group
NEAR = 4  # lines before the list, one of which must name the step
LONGEST = 200  # characters of such a line
_LIST = re.compile(
    r"\W{0,8}(?:(?:group|candidate|completion|sample|rollout)\s)?(?:rewards?|scores?)\s?[:=]\s?"
    r"\[(?P<values>[^\[\]\n]{3,2000})\](?:\s\([^()\n]{1,60}\))?\s*",
    re.IGNORECASE,
)
#: On a line of other names: the rewards of a group, or of the agents of an episode.
_BESIDE = re.compile(
    r"(?P<name>(?<!\w)(?:[A-Za-z]{1,20}[_ ])?(?:rewards?|returns?|scores?))(?:\s\([^()\n]{1,40}\))?"
    r"\s?[:=]\s?(?:array\()?\[(?P<values>[^\[\]\n]{3,2000})\]",
    re.IGNORECASE,
)
#: `Step 3: Add the two numbers` is prose.
_SAMPLES = re.compile(r"generat(?:e|ing)|sampl(?:e|ing)\b|candidates|completions|rollouts|responses", re.IGNORECASE)
_OF_A_WHOLE = frozenset({"episode", "epoch"})  # a list of one of these has the rewards of many steps


class ListedRewards:
    """Finds such lists in lines that are passed in order."""

    def __init__(self) -> None:
        self._before: deque[str] = deque(maxlen=NEAR)

    def found(self, line: str) -> tuple[dict[str, float], PrintedStep] | None:
        """The statistics of the group whose rewards this line lists, and the step; None for any other line."""
        rewards = _rewards_in(line) if "[" in line else []
        if not rewards:
            self._before.append(line[:LONGEST])
            return None
        step = self._sampled()
        return (_of_group(rewards), step) if step is not None else None

    def _sampled(self) -> PrintedStep | None:
        """The step whose samples the previous lines announce, by the last of them that begins with a count."""
        for line in reversed(self._before):
            if (begun := begun_by(line)) is not None:
                return begun if begun.name not in _OF_A_WHOLE and _SAMPLES.search(line) else None
        return None


def rewards_beside(text: str, others: Iterable[str]) -> dict[str, float]:
    """The mean of the rewards that a line lists beside other names, and their spread unless they are those of an
    episode's agents, by the name that the line gives them. Empty if there are none, or if the line may be of one step
    in an environment: no name is about learning, it counts no iteration, and speaks of no completions.
    """
    listed = _BESIDE.search(text)
    values = numbers_in(listed["values"]) if listed else []
    if listed is None or not values or len(values) > MOST_REWARDS:
        return {}
    step = steps_in(text)
    is_counted = step is not None and is_of_training(step.name) and step.name != "timestep"
    if not (is_counted or is_learning(others) or _SAMPLES.search(text)):
        return {}
    mean, spread = mean_and_spread(values)
    name = listed["name"].replace(" ", "_")
    found = {f"{name}/mean": mean, f"{name}/std": spread}
    return found if step is None or step.name not in _OF_A_WHOLE else {f"{name}/mean": mean}


def _rewards_in(line: str) -> list[float]:
    """The rewards that are listed on a line; none if it lists something else."""
    listed = _LIST.fullmatch(line)
    found = numbers_in(listed["values"]) if listed else []
    return found if len(found) <= MOST_REWARDS else []


def _of_group(rewards: list[float]) -> dict[str, float]:
    """Mean and standard deviation of the rewards of one group, and whether they are all the same."""
    mean, spread = mean_and_spread(rewards)
    return {"reward": mean, "group_std": spread, "uniform_group_frac": float(len(set(rewards)) == 1)}


def numbers_in(text: str) -> list[float]:
    """The numbers between the brackets of a printed list, two or more; none if anything else is listed."""
    texts = re.split(r"[,\s]\s*", text.strip())
    found = [value for one in texts if (value := number(one.strip("'\""))) is not None]
    return found if 1 < len(found) == len(texts) else []


def mean_and_spread(values: Sequence[float]) -> tuple[float, float]:
    """The mean and the standard deviation; this is NaN if a value is not finite."""
    with np.errstate(over="ignore"):  # of the largest numbers there are
        spread = float(np.std(values)) if all(map(isfinite, values)) else nan
    return sum(values) / len(values), spread
