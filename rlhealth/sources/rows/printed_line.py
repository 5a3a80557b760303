"""One printed line: the process and the logger that printed it, the step that it names, and its pairs of a name and a
number."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from rlhealth.sources.base.spelling import AXES, number

LONGEST_NAME = 100  # characters
LABEL = ":"  # ends a rank that a bare number says, `3: loss 0.5`, which may be a count of steps
_ANSI = re.compile(r"\x1b\[[0-9;?]*+[A-Za-z]")
#: Who printed the line, where several processes share a console: Ray, torchrun, PyTorch, srun --label, mpirun.
_RANK = re.compile(
    r"\[(?:default|rank|Rank |local_rank=)(?P<a>\d{1,5})\]:?\s?|\[\d{1,4},(?P<b>\d{1,5})\]<std(?:out|err)>:?"
    r"|(?P<c>\d{1,12}): (?=\S)"
)
_RAY = re.compile(r"\((?:\w{1,80}\s)?pid=(?P<pid>\d{1,9})[^()\n]{0,80}\)\s?")
_LEVEL = r"(?:DEBUG|INFO|WARN(?:ING)?|ERROR|SUCCESS|CRITICAL|NOTICE|TRACE)"
#: What a logger puts before its message, piece by piece: time stamps, levels, places in the code.
_LOGGER = re.compile(
    r"""(?:(?:
        \(AReaL\)
      | \[(?![^\]\n]{0,100}
            (?:[A-Za-z]\s?[:=]\s?-?\d*\.\d|(?i:step|iter|episode|epoch|update|round|\bep\b)\w{0,8}\W{0,8}\d))
        [^\]\n{]{1,100}\]
      | \d{4}[-/]?\d\d[-/]?\d\d(?:[T_ -]\d\d:\d\d(?::\d\d)?(?:[.,]\d{1,9})?Z?)?
      | \d{1,2}[-/]\d\d\s\d\d:\d\d:\d\d(?:[.,]\d{1,9})?
      | \d\d:\d\d:\d\d(?:[.,]\d{1,9})?
      | [IWEF]\d{4}\s\d\d:\d\d:\d\d\.\d{1,9}\s+\d{1,20}\s[\w./-]{1,100}:\d{1,6}\]
      | LEVEL\b | root\b | __main__\b
      | [\w./<>-]{1,100}\.py:\d{1,6}\]? | [\w.]{1,80}:[\w<>.]{1,80}:\d{1,6}
      | [\w.]{1,80}(?=\s-\s|\s+LEVEL\b)
    )(?:[\s:|>]|-\s)*+)++""".replace("LEVEL", _LEVEL),
    re.VERBOSE,
)
WORD = r"(?:(?:step|iteration|iter|timestep|update|episode|epoch|rollout|round)s?|(?<![A-Za-z_])ep\.?)"
_QUALITY = r"(?:learning|global|train(?:ing)?|optim(?:izer)?|policy|pipeline|current|ppo|grpo|rl|metrics)"
#: `Learning iteration 3/1500`, `=== Step 3 ===`, `METRICS STEP 3`, `Epoch 1/3 Step 3/100 Train step 3/300 done.`
_COUNTED = re.compile(
    rf"(?<![A-Za-z]\.)(?P<name>(?:{_QUALITY}[ _-]?)?{WORD})(?:\b|(?<=\.))\]?(?:\s(?:num(?:ber)?|no\.?)\b)?"
    r"(?:[\s:=#\[(]{0,12}|\s-\s)(?P<n>\d{1,3}(?:,\d{3})+(?!\d)|\d{1,15})"
    r"(?:\s?(?:/|of)\s?(?P<total>\d{1,3}(?:,\d{3})+(?!\d)|\d{1,15}))?(?![\w.])\]?",
    re.IGNORECASE,
)
#: `Epoch:[2/3](10/500)`: a step that counts within its epoch.
_WITHIN = re.compile(r"epoch\W{0,2}\[(\d{1,9})/(\d{1,9})\]\W{0,2}\((\d{1,9})/(\d{1,9})\)", re.IGNORECASE)
_ENDS = re.compile(
    r"[\W_]*+(?:\[[^\]\n]{0,60}\][\W_]*+)?(?:metrics\s|(?:results?|summary|stats|eval(?:uation)?|validation)"
    r"\s(?:at|for|of|after)\s)?",
    re.IGNORECASE,
)
#: What may stand behind the count of a heading. `Step 1: Add the two numbers:` is prose, and what is printed behind
#: `Step 1, evaluating...` are often samples.
_LAST_WORDS = re.compile(
    r"[\W_]*+(?:done|start(?:ed|s|ing)?|finish(?:ed)?|begins?|metrics|summary|results?|stats|statistics)?[\W_]*",
    re.IGNORECASE,
)
_TITLE = re.compile(r"[^\d:=|]{0,60}:\s*")  # behind brackets only, `[Step 3] Losses:`
_NUMBER = (
    r"[-+]?(?:\d++(?:,\d{3}(?!\d))*+(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d{1,5})?|[-+]?(?:nan|inf(?:inity)?)\b|None\b"
    r"|[A-Za-z_][\w.]{0,40}\([-+\w.,\[\]=:'<> ]{1,120}\)"
)
_UNIT = (
    r"(?:\s?%|\s?(?:ms|s|sec|seconds|min|minutes|h|hours|it/s|s/it|[kMGT]i?B|tok(?:en)?s?(?:/s(?:ec)?)?|steps/s)\b)?"
)
_AFTER = r"(?=\s*(?:$|[,;|)\]}│┃/•·]|±|\+/-)|\s|\.(?:\s|$)|:\s{1,4}\d{1,3}%\|)"
_VALUE = re.compile(
    rf"[:=]\s{{0,40}}(?:\((?=[-+\d.eE]{{1,30}}\))|\[(?=[-+\d.eE]{{1,30}}\]))?(?P<value>{_NUMBER})(?P<unit>{_UNIT}){_AFTER}",
    re.IGNORECASE,
)
_SPACED = re.compile(
    rf"(?P<name>[A-Za-z_][\w .()/@-]{{0,60}}?)[ ]{{1,9}}(?P<value>{_NUMBER})(?:\s?(?:%|[A-Za-z][\w/%.]{{0,12}}))?",
    re.IGNORECASE,
)
_PARTS = re.compile(r"[|,;\t·•▸►→»]|->|\s-\s")
_CUT = re.compile(r"[,;|\t•·{}\[\]\"]|\s{2,}|\s-\s|±|(?<=[:=])\s")
_NAME = re.compile(r"[A-Za-z_][\w ./()@%'+&<>^-]*+")
_ONE_WORD = re.compile(r"[A-Za-z_][\w./@%()-]*+")
_FIRST_LETTER = re.compile(r"[A-Za-z_]")
_AXES = {axis.lower(): axis for axis in reversed(AXES)}
#: `Total Rewards: mean=0.5, std=0.1`, `[DEBUG] Reward stats - mean: 0.5, max: 1`: what stands before the statistics is
#: part of each name.
_STATISTIC = r"(?:μ|σ|mean|avg|std|min|max|median|low|high|total|cov)\s?"
_LABEL = re.compile(
    rf"(?:\w?\[DEBUG\])?\W{{0,8}}(?P<name>[A-Za-z][\w /-]{{0,60}}?)(?:\sstat(?:istic)?s)?"
    rf"(?::\s{{1,4}}(?={_STATISTIC}=)|\s-\s(?={_STATISTIC}[:=]\s?[-+\d]))"
)
_GREEK = {"μ": "mean", "σ": "std"}
_EVALUATES = re.compile(
    r"[^A-Za-z]{0,40}(?:LEVEL\b[^A-Za-z]{0,10})?(?:\[(?:eval(?:uation)?|valid(?:ation)?|val|test)\]|(?:eval(?:uation)?|validation)\s?[:|>-])".replace(
        "LEVEL", _LEVEL
    ),
    re.IGNORECASE,
)
_EVALUATES_LAST = re.compile(r"\[(?:eval(?:uation)?|valid(?:ation)?|val|test)\]\W*\Z", re.IGNORECASE)
_OF_THE_LAST = re.compile(
    r"(?:\w+ ){0,2}(?:avg|average|mean)\s(?:\w+ )?(?:reward|return|score)s? (?:over|of|in|for|on|across) (?:the )?"
    r"(?:last|past) \d{1,5}(?: \w+)?",
    re.IGNORECASE,
)
MOST_WORDS = 6  # of a name


@dataclass(frozen=True, slots=True)
class PrintedStep:
    """A step that a line names without a colon: `Step 3/100`."""

    name: str
    count: int
    total: int | None


def bare(line: str) -> tuple[str, str]:
    """The rank that printed a line ("" where it does not say, with `LABEL` where it is a bare number), and the line
    without colours, rank and the prefix of a logger."""
    if "\x1b" in line:
        line = _ANSI.sub("", line)
    rank = ""
    start = 0
    found = _RAY.match(line)
    if found:
        start = found.end()
    found = _RANK.match(line, start)
    if found:
        rank, start = next(group for group in found.groups() if group), found.end()
        rank += LABEL if found["c"] else ""
    logger = _LOGGER.match(line, start)
    return rank, line[logger.end() if logger else start :]


def evaluates(line: str, prefix: str = "") -> bool:
    """Whether a line says at its beginning that it is of an evaluation: `[eval] step 3: …`, `Eval | …`, or at the end
    of the prefix that its logger put before it."""
    return _EVALUATES.match(line[:120]) is not None or ("[" in prefix and _EVALUATES_LAST.search(prefix) is not None)


def is_labelled(text: str) -> bool:
    """Whether the line gives statistics of one name: `Rewards: mean=0.5, std=0.1`."""
    return _label(text) is not None


def _label(text: str) -> re.Match[str] | None:
    return _LABEL.match(text) if "=" in text or " - m" in text else None


def begins_with_count(text: str) -> bool:
    """Whether a line begins with a count that prose has none of: `Episode 3 finished …`, where `Step 3` and `Round 3`
    may be those of a solution."""
    begins = _ENDS.match(text)
    counted = _COUNTED.match(text, begins.end()) if begins else None
    return counted is not None and not counted["name"].lower().startswith(("step", "round"))


def heading(text: str) -> PrintedStep | None:
    """The step of a line that names a step and nothing else, such as `Learning iteration 3/1500`."""
    if len(text) > 200:
        return None
    found = None
    place = _ENDS.match(text)
    at = place.end() if place else 0
    while (counted := _COUNTED.match(text, at)) is not None:
        if found is None or counted["name"].lower() != "epoch":
            found = counted
        at = counted.end()
        while at < len(text) and text[at] in " ,|-:":
            at += 1
    if found is None or not (
        _LAST_WORDS.fullmatch(text, at) or (found[0].endswith("]") and _TITLE.fullmatch(text, at))
    ):
        return None
    return _step(found)


def steps_in(text: str) -> PrintedStep | None:
    """The first step that a line names, an epoch only where it names nothing else; steps that count within epochs are
    counted on."""
    within = _WITHIN.search(text[:400]) if "(" in text else None
    if within is not None:
        epoch, epochs, count, each = (int(number) for number in within.groups())
        return PrintedStep("step", (epoch - 1) * each + count, epochs * each)
    found = None
    for counted in _COUNTED.finditer(text[:400]):
        if counted["name"].lower() not in ("epoch", "epochs"):
            return _step(counted)
        found = found or counted
    return _step(found) if found else None


def _step(counted: re.Match[str]) -> PrintedStep:
    count, total = _whole(counted["n"]), _whole(counted["total"]) if counted["total"] else None
    name = counted["name"].lower()
    if name == "steps" and total is None and not counted.string[: counted.start()].rstrip()[-1:].isalnum():
        return PrintedStep("steps", count, None)  # `Steps: 37` may be the length of an episode
    return PrintedStep(_name_of(name), count, total)


def _whole(text: str) -> int:
    return int(text.replace(",", ""))


@lru_cache(maxsize=1024)
def _name_of(counted: str) -> str:
    """The name of the column that counts what a line counts by that name."""
    name = re.sub(r"[\s-]+", "_", counted.strip()).removesuffix("s")
    name = name if name in _AXES else name.rpartition("_")[2]
    name = "episode" if name in ("ep", "ep.") else name
    return _AXES.get(name, name)


def pairs(text: str) -> dict[str, Any]:
    """The pairs of a name and a number on a line, `a: 1 | b=2, c (s): 3.1s`; a percentage is a share."""
    found: dict[str, Any] = {}
    label = _label(text)
    end = label.end() if label else 0
    for pair in _VALUE.finditer(text):
        start = max(end, pair.start() - LONGEST_NAME)
        if label:
            part = text[start : pair.start()].strip(" ,;|")
            name = f"{label['name'].strip()}/{_GREEK.get(part, part)}"
        else:
            name = name_before(text, start, pair.start())
        end = pair.end()
        if name:
            value = pair["value"] + ("%" if pair["unit"].strip() == "%" else "")
            if value == "None" or number(value) is not None:
                found.setdefault(name, value)
    if any(text.count(sign) > 1 for sign in ("|", ",", ";", "\t", "·", "•", " - ", "->")):
        for part in _PARTS.split(text[:4000]) if len(found) < 2 or "|" in text else ():
            spaced = _SPACED.fullmatch(_part(part)) if len(part) < 120 else None
            if spaced and number(spaced["value"]) is not None:
                share = "%" if part.rstrip().endswith("%") else ""
                found.setdefault(spaced["name"].strip(), spaced["value"] + share)
    return found


def _part(text: str) -> str:
    """A part of a line between two separators, without the step before it and the remark behind it."""
    part = text.rpartition(": ")[2].strip()
    return part[: part.rindex("(")].rstrip() if part.endswith(")") and "(" in part.lstrip("(") else part


def name_before(text: str, start: int, end: int) -> str:
    """The name that stands in `text` before `end`, from the last separator on; "" if there is none."""
    part = text[start:end]
    last = None
    for last in _CUT.finditer(part):  # noqa: B007
        pass
    part = part[last.end() :] if last else part
    letter = _FIRST_LETTER.search(part)
    if letter is None:
        return ""
    name = part[letter.start() :].rstrip()
    counted = _COUNTED.match(name)  # `Train step 5 training loss: 1.2`
    name = name[counted.end() :].lstrip(" :,-|") if counted else name
    odd = part[: letter.start()].strip("([{-*#>=~ :.→▶✓✨📊🚀")
    is_long = name.count(" ") >= MOST_WORDS and not _OF_THE_LAST.fullmatch(name)
    if odd or not _NAME.fullmatch(name) or is_long:
        name = part.rsplit(None, 1)[-1] if part.strip() else ""  # what stands before it is the value of another name
        return name if _ONE_WORD.fullmatch(name) else ""
    return name
