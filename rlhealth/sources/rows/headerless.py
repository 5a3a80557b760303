"""Numbers without a header, in a file that is named after them: `rewards.txt`, as numpy saves a list, `rewards.json`,
and the three columns of d3rlpy's `environment.csv`: epoch, step, value."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
import orjson

from rlhealth.run import Place, Run
from rlhealth.sources.base.spelling import BOOKKEEPING, number, whole
from rlhealth.sources.rows.row_names import is_log_name, words
from rlhealth.sources.rows.row_shapes import Cells

FEWEST = 3  # lines
LOOKED_AT = 50  # lines
#: File names of d3rlpy that are no metric names elsewhere.
_FILES = frozenset({"environment", "td_error"})
FEWEST_OF_A_RUN = 10  # numbers in a list that counts as a run if the user did not name the file
MOST_COLUMNS = 8  # of a table of rewards
_OF_ONE_METRIC = ["epoch", "step"]  # stand before the values in d3rlpy's files
_NUMBERED = re.compile(r"[_-]?\d+$")
_HEAD = 200  # characters that show whether a text is a list
#: Nothing but numbers, commas and spaces after a bracket: `[12:30:01] reward 0.5` is a console line.
_LIST = re.compile(
    r"\s*\[\s*[-+\dNIn][^,\[\]]{0,40},(?:[-+.,\s\deE]|NaN|Infinity|null|\](?=\s*\Z))*(?:[A-Za-z]{1,7})?\Z"
)
_PAID = re.compile(r"(?:^|_)(?P<what>reward|return|score)s?(?=_|$)")
#: Words that show that a file's numbers are no plain episode rewards, but statistics or parts of them.
_OTHER = re.compile(
    r"(?:^|_)(?:max|min|std|var|best|worst|median|cum|cumulative|sum|kl|penalty|intrinsic|extrinsic|shaped|shaping|bonus"
    r"|norm|normali[sz]ed|advantages?|loss(?:es)?|step|steps|to_go|discounted|weights?|predicted|expected|baseline"
    r"|labels?|model|targets?|data|dataset|diff|difference|delta|gap|errors?)(?=_|$)"
)
#: Names of what the rows of a table may count.
_COUNT = re.compile(
    r"(?:^|_)(?:step|timestep|iteration|iter|update|episode|epoch|rollout|round|game|match|trial|run|generation|gen|batch"
    r"|frame|cycle|eps?)s?(?=_|$)"
)
#: Names of algorithms, as plots of several of them call their curves: `DQN`, `Noisy DQN`, `double_q_learning`, `PPO*`.
_ALGORITHM = re.compile(
    r"(?:(?:noisy|double|dueling|deep|rainbow|recurrent|prioriti[sz]ed|multi[_ -]?step|n[_ -]?step|distributional"
    r"|vanilla|discrete|expected)[_ -]{0,2}){0,3}"
    r"(?:dqn|ddqn|dddqn|d3qn|qr[_ -]?dqn|drqn|c51|iqn|rainbow|ppo2?|a2c|a3c|sac|td3|ddpg|trpo|reinforce|vpg|acktr"
    r"|impala|sarsa|q[_ -]?learning|actor[_ -]?critic|mappo|maddpg|qmix)\W{0,2}"
)
_REWARDS = "episode_rewards"  # what is drawn of an algorithm alone
_NO_REWARD = re.compile(r"(?:^|_)(?:len(?:gth)?s?|times?|duration|epsilon|eps|q|values?|lr|rate|count)(?=_|$)")
_AROUND = re.compile(rb"(?m)^[ \t]++|[ \t,;]++(?=\r?$)")
_BETWEEN = re.compile(rb"[ \t]*+[,;][ \t]*+|[ \t]++")
_EVALUATED = re.compile(r"(?:^|_)(?:eval|evaluation|val|validation|test)(?=_|$)")


@dataclass
class NumberList:
    """A list of numbers, named after its file.

    Attributes:
        values: the numbers, shape (count,); `null` values are masked.
        cut: whether the file ends inside the list.
    """

    name: str
    values: Cells
    cut: bool = False


def with_commas(rows: bytes) -> bytes:
    """Rows of numbers with spaces or semicolons between them, as numpy writes, rewritten with commas; none after the
    last."""
    return _BETWEEN.sub(b",", _AROUND.sub(b"", rows))


def names_of(name: str, text: str) -> list[str]:
    """The names of the columns of a file without a header, by its name and first lines; empty for any other file."""
    stem = stem_of(name)
    if not is_log_name(stem) and stem.lower() not in _FILES and not _is_result(stem):
        return []
    lines = text.splitlines()[: LOOKED_AT + 1]
    if numbered_header(name, lines):
        return []
    rows = [with_commas(line.encode()).decode().split(",") for line in lines[:LOOKED_AT] if line.strip()]
    if len(rows) < FEWEST or any(number(cell) is None for row in rows[:-1] for cell in row):
        return []
    if all(len(row) == 1 for row in rows):
        return [_REWARDS if _is_result(stem) else tag_of(stem)]
    if is_of_rewards(stem) and all(len(row) == 2 for row in rows):
        first = [row[0] for row in rows]
        if all(map(_counts_on, _stretches(first))):
            return ["episode", tag_of(stem)]
        if len(rows) >= FEWEST_OF_A_RUN and _rises([whole(cell) for cell in first]):
            return ["step", tag_of(stem)]
    counts = [(whole(row[0]), whole(row[1])) for row in rows[:-1] if len(row) == 3]
    rises = _rises([epoch for epoch, _ in counts], or_stays=True) and _rises([step for _, step in counts])
    if len(counts) == len(rows) - 1 and rises:
        return [*_OF_ONE_METRIC, stem]
    return _wider(stem, rows) if is_of_rewards(stem) else []


def algorithm_of(name: str, lines: Sequence[str]) -> str:
    """The algorithm that the only column of a list that pandas saved is named after, `,DQN`: what is drawn of an
    algorithm alone is its reward, unless the file is named after something else (`dqn_loss.csv`); empty for any other
    table."""
    if len(lines) < FEWEST or not lines[0].startswith(",") or not lines[1].startswith("0,"):
        return ""
    column, plain = lines[0][1:].strip(' "'), words(stem_of(name)).replace("-", "_")
    is_other = _OTHER.search(plain) or _NO_REWARD.search(plain) or (is_log_name(plain) and not is_of_rewards(plain))
    return column if _ALGORITHM.fullmatch(words(column)) and not is_other else ""


def numbered_header(name: str, lines: Sequence[str]) -> list[str]:
    """The columns of a list that pandas saved without a name, `,0` or `0`, in a file that is named after it:
    `pd.DataFrame(returns).to_csv("returns.csv")`, or with that of an algorithm; empty for any other table. A 0 above
    whole numbers may be the first of them."""
    if algorithm_of(name, lines):
        return ["", _REWARDS]
    if len(lines) < FEWEST or lines[0].strip() not in (",0", "0") or not is_of_rewards(stem_of(name)):
        return []
    own = tag_of(stem_of(name))
    if lines[0].startswith(","):
        return ["", own]
    return [own] if all("." in line for line in lines[1:FEWEST]) else []


def are_numbered(heads: Sequence[str]) -> bool:
    """Whether a header counts the columns of a table, `0,1,2,3` or `,0,1,2,3`, as pandas writes that of an array: of
    several runs beside each other, or below each other."""
    own = list(heads[1:] if heads[0] == "" else heads)
    return len(own) > 1 and own == [str(one) for one in range(len(own))]


def _is_result(stem: str) -> bool:
    """Whether a file is named after an algorithm and its results, and nothing else: `dqn_results.txt`."""
    own, _, what = words(stem).rpartition("_")
    return what in ("result", "results") and _ALGORITHM.fullmatch(own) is not None


def _wider(stem: str, rows: list[list[str]]) -> list[str]:
    """The columns of a reward table with further columns: a count, the reward, and others named by their position. With
    a column of non-negative integers, which may be lengths, the reward column is ambiguous."""
    rows = rows[:-1]  # the last one may be cut
    width = len(rows[0])
    if any(len(row) != width for row in rows) or not 2 < width <= MOST_COLUMNS:
        return []
    may_be_lengths = all(
        (count := whole(row[1])) is not None and count >= 0 and ("." in row[0] or "." not in row[1]) for row in rows
    )  # beside a count without decimals a length has none either: `1,35.00,0.995`
    if may_be_lengths or not _counts_on([row[0] for row in rows]):
        return []
    return ["episode", tag_of(stem), *(f"column {place}" for place in range(3, width + 1))]


def _stretches(cells: list[str]) -> list[list[str]]:
    """Splits counts where they start again from the first number, as when a loop is started again and appends. A newest
    stretch of one count is left out, because it counts nothing yet."""
    starts = [place for place, cell in enumerate(cells) if cell == cells[0]]
    parts = [cells[start:end] for start, end in pairwise([*starts, len(cells)])]
    return parts[:-1] if len(parts) > 1 and len(parts[-1]) == 1 else parts


def _rises(counts: list[int | None], *, or_stays: bool = False) -> bool:
    """Whether each is an integer above the previous one."""
    found = [one for one in counts if one is not None]
    return len(found) == len(counts) and all(
        early < late or (or_stays and early == late) for early, late in pairwise(found)
    )


def _counts_on(cells: list[str], from_start: bool = False) -> bool:
    """Whether cells are integers with a constant increment. With `from_start`, the first must be 0, 1 or the
    increment."""
    found = [whole(cell) for cell in cells]
    steps = {late - early for early, late in pairwise(found) if late is not None and early is not None}
    is_even = None not in found and len(steps) == 1 and min(steps) > 0
    return is_even and (not from_start or found[0] in (0, 1, *steps))


def is_long(names: list[str]) -> bool:
    """Whether these are the columns of one of several metrics, each in a separate file."""
    return names[:2] == _OF_ONE_METRIC


def stem_of(name: str) -> str:
    """The name of a file without its folder, its suffix and the number at its end."""
    return _NUMBERED.sub("", name.rpartition("/")[2].partition(".")[0])


def is_of_rewards(name: str) -> bool:
    """Whether a name is about rewards, returns or scores, and not about a statistic or part of them."""
    plain = words(name).replace("-", "_")
    return is_log_name(name) and _PAID.search(plain) is not None and _OTHER.search(plain) is None


def tag_of(stem: str) -> str:
    """The metric name for the numbers of a file with that stem: `q_learning_scores` gives `episode_scores`; a known
    metric name is kept."""
    plain = words(stem).replace("-", "_")
    said = _PAID.search(plain)
    if said is None or _OTHER.search(plain) or is_known(stem):
        return stem
    return "eval_reward" if _EVALUATED.search(plain) else f"episode_{said['what']}s"


@lru_cache(maxsize=1024)  # called for each block of a file with that tag
def is_known(tag: str) -> bool:
    """Whether a tag is recognised as a metric if nothing else is logged."""
    from rlhealth.metrics import translate  # late: the names are read from YAML

    alone = Run(tag, Place("csv", tag))
    alone.add(tag, np.array([1]), np.array([0.0]), np.array([np.nan]))
    return bool(translate(alone).metrics)


def is_column(name: str, text: str) -> bool:
    """Whether a table is one column of numbers with a reward's name, apart from the row numbers of pandas. Returns and
    scores count only in a file that is named after them."""
    lines = [line for line in text.splitlines()[: LOOKED_AT + 1] if line.strip() and not line.startswith("#")]
    heads, rows = _heads_and_rows(lines)
    heads = numbered_header(name, lines) or heads
    own = heads[1:] if len(heads) == 2 and heads[0] in BOOKKEEPING else heads
    said = _PAID.search(words(own[0])) if len(own) == 1 and is_log_name(own[0]) else None
    if said is None or (said["what"] != "reward" and not is_of_rewards(stem_of(name))):
        return False
    return (
        len(rows) >= FEWEST_OF_A_RUN
        and all(len(row) == len(heads) for row in rows[:-1])
        and all(number(row[-1]) is not None for row in rows[:-1])
    )


def _heads_and_rows(lines: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """The cells of the first line of a table, and those of the other lines."""
    cells = [[cell.strip(' "') for cell in line.split(",")] for line in lines]
    return (cells[0], cells[1:]) if cells else ([], [])


def counts_rewards(lines: Sequence[str]) -> bool:
    """Whether a table has a column of rewards, and a column that counts its rows from the start and is named after a
    unit of training: `Games,Score`."""
    heads, found = _heads_and_rows([line for line in lines[: LOOKED_AT + 1] if line.strip()])
    rows = found[:-1]  # the last one may be cut
    if len(rows) < FEWEST_OF_A_RUN - 1 or any(len(row) != len(heads) for row in rows):
        return False
    counts = [place for place, head in enumerate(heads) if _COUNT.search(words(head))]
    paid = [place for place, head in enumerate(heads) if is_of_rewards(head)]
    is_counted = any(_counts_on([row[place] for row in rows], from_start=True) for place in counts)
    return is_counted and any(all(number(row[place]) is not None for row in rows) for place in paid)


def is_list(name: str, text: str) -> bool:
    """Whether a JSON text begins as a list of numbers, in a file that is named after them."""
    start = text[:_HEAD].lstrip("\ufeff")
    return _LIST.match(start) is not None and is_log_name(stem_of(name))


def list_in(name: str, text: bytes) -> NumberList | None:
    """The numbers of a JSON file that is one list of numbers; None for any other file. Of a truncated file, the
    numbers before the last comma are kept."""
    if not is_list(name, text[:_HEAD].decode("utf-8-sig", "replace")):
        return None
    found, cut = _parsed(text)
    if not isinstance(found, list) or any(isinstance(one, bool | str) for one in found):
        return None
    missing = [one is None for one in found]
    values = [math.nan if one is None else number(one) for one in found]
    if all(missing) or None in values:
        return None
    return NumberList(tag_of(stem_of(name)), np.ma.masked_array(np.array(values, np.float64), missing), cut)


def _parsed(text: bytes) -> tuple[object, bool]:
    """The JSON document in a text, and whether its end is missing; None if it is damaged in another way."""
    whole_text = text.decode("utf-8-sig", "replace")
    cut = not whole_text.rstrip("\0 \t\r\n").endswith("]")
    if cut:
        whole_text = whole_text.rpartition(",")[0] + "]"
    try:
        return orjson.loads(whole_text), cut
    except ValueError:
        try:
            return json.loads(whole_text), cut  # reads NaN and Infinity too
        except (ValueError, RecursionError):
            return None, cut
