"""One printed line: its process and logger prefix, and its pairs of a name and a number."""

from __future__ import annotations

import re
from typing import Any

from rlhealth.sources.base.spelling import number
from rlhealth.sources.rows.printed_lists import rewards_beside
from rlhealth.sources.rows.printed_steps import COUNTED
from rlhealth.sources.rows.printed_tensors import OPENS, rewards_in
from rlhealth.sources.rows.printed_words import of_an_end, words_and_numbers

LONGEST_NAME = 100  # characters
LABEL = ":"  # ends a rank given as a bare number, `3: loss 0.5`, which may also be a step count
_ANSI = re.compile(r"\x1b\[[0-9;?]*+[A-Za-z]")
#: Who printed the line, where several processes share a console: Ray, torchrun, PyTorch, srun --label, mpirun.
_RANK = re.compile(
    r"\[(?:default|rank|Rank |local_rank=)(?P<a>\d{1,5})\]:?\s?|\[\d{1,4},(?P<b>\d{1,5})\]<std(?:out|err)>:?"
    r"|(?P<c>\d{1,12}): (?=\S)"
)
_RAY = re.compile(r"\((?:\w{1,80}\s)?pid=(?P<pid>\d{1,9})[^()\n]{0,80}\)\s?")
_LEVEL = r"(?:DEBUG|INFO|WARN(?:ING)?|ERROR|SUCCESS|CRITICAL|NOTICE|TRACE)"
#: The parts of a logger's prefix: timestamps, levels, places in the code.
_LOGGER = re.compile(
    r"""\s{0,8}(?:(?:
        \(AReaL\)
      | [A-Z]\[LEVEL\]  # the letter is what a recording leaves of a cursor that moved
      | \[(?![^\]\n]{0,100}
            (?:[A-Za-z]\s?[:=]\s?-?\d*\.\d|(?i:step|iter|episode|epoch|update|round|generation|\b(?:ep|gen)\b)\w{0,8}\W{0,8}\d))
        [^\]\n{]{1,100}\]
      | \d{4}[-/]?\d\d[-/]?\d\d(?:[T_ -]\d\d:\d\d(?::\d\d)?(?:[.,]\d{1,9})?Z?(?:\s[A-Z]{3,4}(?=\s\|))?)?
      | \d{1,2}[-/]\d\d(?:/\d{4})?\s\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:\s[AP]M)?
      | \d\d:\d\d:\d\d(?:[.,]\d{1,9})?
      | [IWEF]\d{4}\s\d\d:\d\d:\d\d\.\d{1,9}\s+\d{1,20}\s[\w./-]{1,100}:\d{1,6}\]
      | LEVEL:[A-Za-z_][\w.]{0,60}:(?=[^\s\d.+-])  # Python's own form
      | [\w./<>-]{1,100}\.py:\d{1,6}\]? | [\w.]{1,80}:[\w<>.]{1,80}:\d{1,6}  # loguru's `__main__:train:17`
      | LEVEL\b | root\b | __main__\b
      | [\w.]{1,80}(?=\s-\s|\s+LEVEL\b)
    )(?:[\s:|>]|-\s)*+)++""".replace("LEVEL", _LEVEL),
    re.VERBOSE,
)
_NUMBER = (
    r"[-+]?(?:\d++(?:,\d{3}(?!\d))*+(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d{1,5})?|[-+]?(?:nan|inf(?:inity)?)\b|None\b"
    r"|[A-Za-z_][\w.]{0,40}\([-+\w.,\[\]=:'<> ]{1,120}\)"
)
_UNIT = (
    r"(?:\s?%|\s?(?:ms|s|sec|seconds|min|minutes|h|hours|it/s|s/it|[kMGT]i?B|tok(?:en)?s?(?:/s(?:ec)?)?|steps/s)\b)?"
)
_AFTER = r"(?=\s*(?:$|[,;|)\]}│┃/•·]|±|\+/-)|\s|\.(?:\s|$)|:\s{1,4}\d{1,3}%\|)"
_VALUE = re.compile(
    rf"[:=]\s{{0,40}}(?:\((?=[-+\d.eE]{{1,30}}\))|\[{{1,2}}(?=(?:[a-z]{{1,8}}\.\w{{1,12}}\()?[-+\d.eE]{{1,30}}\)?\]))?(?P<value>{_NUMBER})(?P<unit>{_UNIT}){_AFTER}",
    re.IGNORECASE,
)
_SPACED = re.compile(
    rf"(?P<name>[A-Za-z_][\w .()/@-]{{0,60}}?)[ ]{{1,9}}(?P<value>{_NUMBER})(?:\s?(?:%|[A-Za-z][\w/%.]{{0,12}}))?",
    re.IGNORECASE,
)
_SPREAD = re.compile(r"(?<=\d)\s?(?:±|\+/?-)\s{0,3}[\d.]{1,30}\Z")
_PARTS = re.compile(r"[|;\t·•▸►→»]|,(?!\d{3}(?!\d))|->|\s-\s|\s\.{2,5}\s")
#: A bracket after a number, `Win Rate 0.06 (Recent: 0.05)`, begins an aside with separate names.
#: So does a sentence that ends with what it counts, `collected 2048 steps. Mean reward`.
_CUT = re.compile(
    r"[,;|\t•·{}\[\]\"]|(?<=\d)\s[a-z]{2,14}\. (?=[A-Z])|\s[-+]?\d{1,15}(?:\.\d{1,20})?%?\s?\(|\s{2,}|\s-\s"
    r"|\s\.{2,5}\s|±|(?<=[:=])\s"
)
_NAME = re.compile(r"[A-Za-z_][\w ./()@%'+&<>^-]*+")
_ONE_WORD = re.compile(r"[A-Za-z_][\w./@%()-]*+")
_FIRST_LETTER = re.compile(r"[A-Za-z_]")
#: `Total Rewards: mean=0.5, std=0.1`, `Reward stats - mean: 0.5, max: 1`, `Rewards  => Avg: 0.5, Max: 1`: the text
#: before the statistics is part of each name.
_STATISTIC = r"(?:μ|σ|mean|avg|std|min|max|median|low|high|total|cov)\s?"
_LABEL = re.compile(
    rf"\W{{0,8}}(?P<name>[A-Za-z][\w /-]{{0,60}}?)(?:\sstat(?:istic)?s)?"
    rf"(?::\s{{1,4}}(?={_STATISTIC}=)|\s-\s(?={_STATISTIC}[:=]\s?[-+\d])|\s{{1,30}}=>\s(?=(?i:{_STATISTIC}):\s))"
)
_GREEK = {"μ": "mean", "σ": "std"}
_EVALUATES = re.compile(
    r"[^A-Za-z]{0,40}(?:LEVEL\b[^A-Za-z]{0,10})?(?:\[(?:eval(?:uation)?|valid(?:ation)?|val|test)\]|(?:eval(?:uation)?|validation)\s?[:|>-]"
    r"|(?:eval(?:uation)?|test(?:ing)?|validation)\s(?:episode|ep|game|trial|run|rollout)s?\b)".replace(
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
_REMARKED = r"(?P<pair>[SIGNS]\s{0,40}[-+]?(?:\.?\d[\d.eE+-]{0,30}|nan|inf)%?)"
_REMARK = r"(?:$|\s(?![^\n]{0,200}[:=]\s?[-+.\d]))"
#: A remark after a number: `kl: 0.38  <---- distance from the reference model`, `kl: 0.38  # in nats`. An assignment
#: with a comment, `kl = 0.38  # in nats`, is source code.
_REMARKS = (
    re.compile(rf"{_REMARKED.replace('SIGNS', ':=')}\s{{0,40}}(?:<-{{1,20}}|<={{2,20}}|←){_REMARK}"),
    re.compile(rf"{_REMARKED.replace('SIGNS', ':')}\s{{1,40}}(?:\#|//){_REMARK}"),
)
#: What DeepSpeed prints, often behind a progress bar: `OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, …`.
_OVERFLOW = re.compile(r"OVERFLOW! Rank [^\n]*")


def bare(line: str) -> tuple[str, str]:
    """The rank that printed a line ("" if it is not given; with `LABEL` if it is a bare number), and the line without
    colours, rank and logger prefix."""
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


def process_of(line: str) -> str:
    """The number of the Ray process that printed a line; "" if none did."""
    found = _RAY.match(_ANSI.sub("", line))
    return found["pid"] if found else ""


def without_remark(text: str) -> str:
    """The line without a remark after its number, which follows an arrow or a comment sign, and without what DeepSpeed
    says of its loss scale."""
    if "OVERFLOW!" in text:
        text = _OVERFLOW.sub("", text)
    if "<" in text or "#" in text or "//" in text or "←" in text:
        for remark in _REMARKS:
            if (found := remark.search(text)) is not None:
                return text[: found.end("pair")]
    return text


def evaluates(line: str, prefix: str = "") -> bool:
    """Whether a line is marked as an evaluation at its start, `[eval] step 3: …`, `Eval | …`, or at the end of its
    logger prefix."""
    return _EVALUATES.match(line[:120]) is not None or ("[" in prefix and _EVALUATES_LAST.search(prefix) is not None)


def is_labelled(text: str) -> bool:
    """Whether the line gives statistics of one name: `Rewards: mean=0.5, std=0.1`."""
    return _label(text) is not None


def _label(text: str) -> re.Match[str] | None:
    return _LABEL.match(text) if "=" in text or " - m" in text else None


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
            bare_part = _part(part) if len(part) < 120 else ""
            if several := words_and_numbers(bare_part):
                found = several | found
                continue
            spaced = _SPACED.fullmatch(bare_part)
            if spaced and number(spaced["value"]) is not None:
                share = "%" if part.rstrip().endswith("%") else ""
                found.setdefault(spaced["name"].strip(), spaced["value"] + share)
    if "[" not in text:
        return found
    return found | (rewards_in(text) if found and OPENS in text else rewards_beside(text, found))


def _part(text: str) -> str:
    """A part of a line between two separators, without the step before it, and the spread and the remark after it."""
    part = _SPREAD.sub("", text.rpartition(": ")[2].strip())
    return part[: part.rindex("(")].rstrip() if part.endswith(")") and "(" in part.lstrip("(") else part


def name_before(text: str, start: int, end: int) -> str:
    """The name in `text` before `end`, from the last separator on; "" if there is none."""
    part = text[start:end].rstrip()
    last = None
    for last in _CUT.finditer(part):  # noqa: B007
        pass
    part = part[last.end() :] if last else part
    letter = _FIRST_LETTER.search(part)
    if letter is None:
        return ""
    name = part[letter.start() :].rstrip()
    counted = COUNTED.match(name)  # `Train step 5 training loss: 1.2`
    name = name[counted.end() :].lstrip(" :,.-|") if counted else name
    name = of_an_end(name)
    odd = part[: letter.start()].strip("([{-*#>=~ :.→▶✓✨📊🚀")
    is_long = name.count(" ") >= MOST_WORDS and not _OF_THE_LAST.fullmatch(name)
    if odd or not _NAME.fullmatch(name) or is_long:
        name = part.rsplit(None, 1)[-1] if part.strip() else ""  # the text before it is the value of another name
        return name if _ONE_WORD.fullmatch(name) else ""
    return name.removesuffix(" is")  # `eval success rate is: 0.5`
