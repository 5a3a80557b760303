"""The step that a printed line names: `Step 3/100`, `Episode 3`, `=== Epoch 1/3 Step 30 ===`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from rlhealth.sources.base.spelling import AXES

_GENERATION = r"generation(?=\W{1,4}\d[^\n]{1,200}fitness)"  # of evolution; that of a sample is no count
WORD = (
    rf"(?:(?:step|iteration|iter|timestep|update|episode|epoch|rollout|round|game|{_GENERATION})s?"
    r"|(?<![A-Za-z_])ep(?:i\b|\.?))"
)
_QUALITY = r"(?:learning|global|train(?:ing)?|optim(?:izer)?|policy|pipeline|current|ppo|grpo|rl|metrics)"
#: `Learning iteration 3/1500`, `== Step 3 ==`, `METRICS STEP 3`, `Epoch 1/3 Step 3/100 Train step 3/300 done.`, `EP3`.
#: The number behind `reward of the last 100 episodes: 3` is no count.
COUNTED = re.compile(
    r"(?<![A-Za-z]\.)(?!(?<=\d\s)[a-z]{2,14}s\b)"
    rf"(?P<glued>(?<![\w/])(?=[A-Za-z]{{2,10}}\d))?(?P<name>(?:{_QUALITY}[ _-]?)?{WORD})"
    r"(?(glued)|(?:\b|(?<=\.)))\]?(?:\s(?:num(?:ber)?|no\.?)\b)?"
    r"(?:[\s:=#\[(]{0,12}|\s-\s)(?P<n>\d{1,3}(?:,\d{3})+(?!\d)|\d{1,15})"
    r"(?:\s?(?:/|of)\s?(?P<total>\d{1,3}(?:,\d{3})+(?!\d)|\d{1,15}))?"
    r"(?!\w|\.(?!\s{1,4}[A-Za-z_][\w ]{0,30}(?:[:=]|\Z)))\]?",
    re.IGNORECASE,
)
#: `updates 3/80 episodes, total num timesteps 96000/7680000, FPS 1210.`, MAPPO's heading of the lines below.
_TIMESTEPS = re.compile(
    r"updates? \d{1,15}/\d{1,15} episodes?, total num timesteps (?P<n>\d{1,15})/(?P<total>\d{1,15}), FPS \d{1,9}\W*\Z"
)
#: `Epoch:[2/3](10/500)`: a step within its epoch.
_WITHIN = re.compile(r"epoch\W{0,2}\[(\d{1,9})/(\d{1,9})\]\W{0,2}\((\d{1,9})/(\d{1,9})\)", re.IGNORECASE)
_EVALUATION = r"(?:eval(?:uation)?|validation|test)"
_ENDS = re.compile(
    r"[\W_]*+(?:\[[^\]\n]{0,60}\][\W_]*+)?"
    rf"(?:(?:metrics|starting|ended|finished|completed|end of)\s|(?:(?:{_EVALUATION}|train(?:ing)?)\s)?"
    rf"(?:results?|metrics|summary|stats|statistics|{_EVALUATION})\s(?:at|for|of|after)\s)?",
    re.IGNORECASE,
)
_HEADS_EVALUATION = re.compile(rf"[\W_]*+{_EVALUATION}\b", re.IGNORECASE)
#: Text that may follow the count in a heading. `Step 1: Add the two numbers:` is prose, and the text after
#: `Step 1, evaluating...` is often samples.
_LAST_WORDS = re.compile(
    r"[\W_]*+(?:done|start(?:ed|s|ing)?|finish(?:ed)?|complet(?:ed?|ion)|ended|over|begins?|metrics|summary|results?|stats|statistics"
    r"|report|scorecard)?[\W_]*",
    re.IGNORECASE,
)
_TITLE = re.compile(r"[^\d:=|]{0,60}:\s*")  # only after brackets, `[Step 3] Losses:`
_AXES = {axis.lower(): axis for axis in reversed(AXES)}


@dataclass(frozen=True, slots=True)
class PrintedStep:
    """A step that a line names without a colon, `Step 3/100`, and the epoch beside it."""

    name: str
    count: int
    total: int | None
    epoch: int | None = None


def begins_with_count(text: str) -> bool:
    """Whether a line begins with a count that does not occur in prose: `Episode 3 finished …`. `Step 3` and `Round 3`
    may be part of a solution text."""
    counted = _first_in(text)
    return counted is not None and is_of_training(counted["name"])


def behind_count(text: str) -> str:
    """The text after the count at the start of a line; "" if it begins with none, or with one that prose uses."""
    counted = _first_in(text)
    return text[counted.end() :].lstrip(" \t:,|-") if counted is not None and is_of_training(counted["name"]) else ""


def is_of_training(name: str) -> bool:
    """Whether a count of that name is one of training; a step or a round may be one in a solution text."""
    return not name.lower().startswith(("step", "round"))


def begun_by(text: str) -> PrintedStep | None:
    """The step at the start of a line, `Step 3: generating 8 completions`; it may be part of a solution text."""
    counted = _first_in(text)
    return _step(counted, None) if counted is not None else None


def _first_in(text: str) -> re.Match[str] | None:
    begins = _ENDS.match(text)
    return COUNTED.match(text, begins.end()) if begins else None


def heading(text: str) -> PrintedStep | None:
    """The step of a line that names a step and nothing else, such as `Learning iteration 3/1500`."""
    if len(text) > 200:
        return None
    if "num timesteps" in text and (counts := _TIMESTEPS.search(text)) is not None:
        return PrintedStep("timesteps", int(counts["n"]), int(counts["total"]))
    found = epoch = None
    place = _ENDS.match(text)
    at = place.end() if place else 0
    while (counted := COUNTED.match(text, at)) is not None:
        if counted["name"].lower() != "epoch":
            found = counted
        else:
            found, epoch = found or counted, epoch or counted
        at = counted.end()
        while at < len(text) and text[at] in " ,|-:":
            at += 1
    if found is None or not (
        _LAST_WORDS.fullmatch(text, at) or (found[0].endswith("]") and _TITLE.fullmatch(text, at))
    ):
        return None
    return _step(found, epoch)


def heads_evaluation(text: str) -> bool:
    """Whether a heading says that the rows below it are of an evaluation: `Eval metrics at step 6:`."""
    return _HEADS_EVALUATION.match(text) is not None


def steps_in(text: str) -> PrintedStep | None:
    """The first step that a line names, or an epoch if it names nothing else. Steps within epochs are converted to
    steps of the run."""
    within = _WITHIN.search(text[:400]) if "(" in text else None
    if within is not None:
        epoch, epochs, count, each = (int(number) for number in within.groups())
        return PrintedStep("step", (epoch - 1) * each + count, epochs * each)
    counts = COUNTED.finditer(text[:400])
    if "epoch" not in text[:400].lower():
        found = next(counts, None)  # the usual case, in a tenth of the time
        return _step(found, None) if found else None
    first: dict[bool, re.Match[str]] = {}
    for one in counts:
        first.setdefault(one["name"].lower() in ("epoch", "epochs"), one)
    beside = first.get(True)
    found = first.get(False, beside)
    return _step(found, beside) if found else None


def _step(counted: re.Match[str], epoch: re.Match[str] | None) -> PrintedStep:
    beside = _whole(epoch["n"]) if epoch is not None and epoch is not counted else None
    count, total = _whole(counted["n"]), _whole(counted["total"]) if counted["total"] else None
    name = counted["name"].lower()
    if name == "steps" and total is None and not counted.string[: counted.start()].rstrip()[-1:].isalnum():
        return PrintedStep("steps", count, None, beside)  # `Steps: 37` may be the length of an episode
    return PrintedStep(_name_of(name), count, total, beside)


def _whole(text: str) -> int:
    return int(text.replace(",", ""))


@lru_cache(maxsize=1024)
def _name_of(counted: str) -> str:
    """The name of the column for a count of that name in a line."""
    name = re.sub(r"[\s-]+", "_", counted.strip()).removesuffix("s")
    name = name if name in _AXES else name.rpartition("_")[2]
    name = "episode" if name in ("ep", "ep.", "epi", "game") else name
    return _AXES.get(name, name)
