"""The tables of rows that the outputs of one cell hold: in HTML, as text, or as rows printed among other text."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, zip_longest

from rlhealth.metrics.languages import may_be_foreign
from rlhealth.run import MOST_TAGS
from rlhealth.sources.base.spelling import AXES, BOOKKEEPING, number, whole
from rlhealth.sources.base.spelling import axis as axis_of
from rlhealth.sources.notebooks.code import LONGEST_CODE
from rlhealth.sources.notebooks.document import Cell, printed_text
from rlhealth.sources.notebooks.excerpts import axis_of_names, with_excerpts_joined
from rlhealth.sources.notebooks.frame_text import frames
from rlhealth.sources.notebooks.html_table import Grid, grids
from rlhealth.sources.notebooks.printed_names import with_name_of_numbers
from rlhealth.sources.notebooks.table import Table, plain
from rlhealth.sources.rows.printed import Printed
from rlhealth.sources.rows.printed_row import PrintedRow
from rlhealth.sources.rows.printed_warnings import warns
from rlhealth.sources.rows.row_choice import RowChoice
from rlhealth.sources.rows.row_names import PAID, has_step, is_log_row, names_step
from rlhealth.sources.rows.row_shapes import flatten

#: Rows of one metric among other text that are a log; fewer are a result that somebody printed.
FEWEST_ROWS = 3
#: What transformers returns once, when training has ended; no row of a log.
CLOSING = frozenset(
    {
        "train_runtime",
        "train_samples_per_second",
        "train_steps_per_second",
        "total_flos",
        "train_loss",
        "epoch",
        "train_tokens",
    }
)
NAMED = 0.8  # of the printed lines: where so many name their step, the others are no rows of the run
#: Of the steps of printed rows, those that a table must have too to be of the same run.
SAME_STEPS = 0.8
_LINE_ENDS = re.compile(r"\r\n?|\n")  # a progress bar draws its states over each other
_DOTS = frozenset({"...", "..", "…", "⋮"})
_TRUNCATED = "Streaming output truncated to the last"
#: Of rows among other text, those of training: an environment that is tried out prints rewards too.
_TRAINED = re.compile(
    r"loss|grad_?norm|learning_rate|(?:^|/)lr$|(?:^|[/_])kl(?:$|[/_])|entropy|approx_?kl|ep_rew_?mean|explained_var|mean|avg"
    r"|average|epsilon",
    re.IGNORECASE,
)
#: Rows of nothing but rewards are training where so many of them count on, and the code of their cell trains: an
#: environment is tried out for ten episodes.
FEWEST_REWARDS = 20
FEWEST_UNCOUNTED = 100  # of rewards without any count
_COUNTS = (*AXES, "epoch", "Epoch")
_RISING = 0.9  # of the counts of such rows: several environments end at one step, seeds come one after another
_TRAINS = re.compile(
    r"\.backward\(|\b\w*optim\w*\.(?:step|apply_gradients|minimize|update)\(|apply_gradients\(|GradientTape|\bgrad\("
    r"|\.(?:learn|fit|train|train_step|optimize|train_on_batch)\(|[Tt]rainer\.step\(|(?:\b|_)train\w*\(|(?:\b|_)(?:learn|optimi[sz]e)(?:_\w*)?\(|\b[Qq]\w*\[[^\n=]{1,80}\]\s*\+?=(?!=)"
    r"|(?<![\w.])upd(?:ate)?(?:_(?:policy|agents?|actor|critic|networks?|model|parameters|params|weights|q\w*))?\("
    r"|\b\w*(?:buff?er|memory|replay)\w*\.(?:append|add|push|store)\("
    r"|\.(?:replay|remember|finish_episode)\(|\bfinish_episode\(|\b\w*(?:agent|policy|actor|learner|brain|dqn|ppo|sac|td3|ddpg)\w*\.(?:update|step)\w*\("
    r"|\boptimi[sz]er\s*[,)]|\bsetup_ignite\(|(?:\b|_)(?:reinforce\w*|(?:ma)?ppo|d?dqn|a2c|a3c|sac|td3|(?:ma)?ddpg|q_?learning|sarsa|policy_gradient)\s*\("
    r"|^\s*!.*(?:train|ppo|grpo|dqn|a2c|sac|reinforce)\w*\.(?:py|sh)",
    re.MULTILINE,
)
#: What the Trainer's train() returns: a summary of the whole, and no row.
_RETURNED = "TrainOutput("
#: What an evaluation returns, whose result a notebook prints.
_EVALUATED = ("eval_", "test_", "predict_")
_EVALUATING = frozenset({"Training Loss", "Validation Loss"})


def tables_of(cell: Cell) -> list[Table]:
    """The tables of a cell, in order; printed rows that repeat a table beside them are left out."""
    displayed: list[Grid] = []
    texts: list[str] = []
    streamed = with_name_of_numbers(printed_text(cell.outputs), cell.code[:LONGEST_CODE])
    for output in cell.outputs:
        if "<table" in output.html:
            displayed += grids(output.html)
        elif output.text and not output.stream and not output.text.startswith(_RETURNED):
            displayed += frames(output.text)
            texts.append(output.text)
    found = _tables(cell.number, displayed)
    framed = _tables(cell.number, frames(streamed)) if "tep" in streamed else []
    found += framed
    if any(PAID.search(tag) for table in found for tag in table.tags):
        return found  # a trainer prints less beside such a table than the table shows
    rows = _chosen([row for text in ([] if framed else [streamed]) + texts for row in _rows(text)])
    rows = [row for row in rows if row.form != "warning"] if found else rows
    often = {tag for tag, count in Counter(tag for row in rows for tag in row).items() if count >= FEWEST_ROWS}
    trained = {tag for tag in often if _TRAINED.search(tag) and not tag.startswith(_EVALUATED)}
    if trained or often & _warned(rows) or _are_of_training(cell, rows):
        return _with_rows(found, _table_of(cell.number, rows, _TRUNCATED in streamed))
    if found and rows:
        _add(found[-1], _table_of(cell.number, rows, _TRUNCATED in streamed))
    return found


def _chosen(rows: Sequence[PrintedRow]) -> list[PrintedRow]:
    """Of the rows that a cell printed, those of the run: the best form that occurs, as in a console. Where nearly every
    line names its step, the others are of samples.
    """
    choice = RowChoice()
    judged = [(one, row) for row in rows if (one := choice.judge(row)) is not None]
    best = choice.best()
    chosen = [row for one, row in judged if best is not None and choice.accepts(best, one, row)]
    lines = [row for row in chosen if row.form == "line"]
    if not any(map(has_step, chosen)) or sum(map(has_step, lines)) < NAMED * len(lines):
        return chosen
    return list(_of_steps(chosen))


def _of_steps(rows: Iterable[PrintedRow]) -> Iterator[PrintedRow]:
    """The rows without the lines that name no step; of the warnings before a line that names one, the newest is of that
    step.
    """
    warned: PrintedRow | None = None
    for row in rows:
        if has_step(row) or row.form not in ("line", "warning"):
            if warned is not None and has_step(row):
                warned.update((name, value) for name, value in row.items() if names_step(name))
                yield warned
                warned = None
            yield row
        elif row.form == "warning":
            warned = row


def trains(code: str) -> bool:
    """Whether the code of a cell trains, by the calls that it makes: `loss.backward()`, `agent.learn()`."""
    return _TRAINS.search(code[:LONGEST_CODE]) is not None


def _warned(rows: Iterable[PrintedRow]) -> set[str]:
    """The metrics whose values come from warnings."""
    return {tag for row in rows if row.form == "warning" for tag in row if not names_step(tag)}


def _are_of_training(cell: Cell, rows: Sequence[PrintedRow]) -> bool:
    """Whether rows that hold rewards and nothing else of learning are those of a training: many, with counts that rise,
    or very many without any and little between them, in a cell whose code trains. Most rows name the count; lines
    between them may name another, `running reward: 1.5 at episode 20`.
    """
    rewarded = [row for row in rows if any(PAID.search(tag) and not tag.startswith(_EVALUATED) for tag in row)]
    if len(rewarded) < FEWEST_REWARDS or not trains(cell.code):
        return False
    counted = max(([row[axis] for row in rewarded if axis in row] for axis in _COUNTS), key=len)
    if not counted:
        lines = [line for line in _LINE_ENDS.split(printed_text(cell.outputs)) if line.strip()]
        return len(rewarded) >= max(FEWEST_UNCOUNTED, len(lines) / 2)
    counts = [count for one in counted if (count := whole(one)) is not None]
    if len(counts) < max(FEWEST_REWARDS, len(rewarded) / 2) or len(counts) < len(counted):
        return False
    rises = sum(after >= before for before, after in pairwise(counts))
    return counts[0] < counts[-1] and rises >= _RISING * (len(counts) - 1)


def _rows(text: str) -> Iterator[PrintedRow]:
    """The log rows in a text; lines that are no log, and those of a single sample, are left out."""
    if not _TRAINED.search(text) and not PAID.search(text) and not warns(text) and not may_be_foreign(text):
        return
    printed = Printed()
    for line in _LINE_ENDS.split(text):
        yield from filter(_is_row, printed.rows(line))
    yield from filter(_is_row, printed.end())


def _is_row(row: PrintedRow) -> bool:
    if row.form == "warning":
        return True
    return not row.names_sample and is_log_row(row) and not row.keys() <= CLOSING | BOOKKEEPING | set(AXES)


def _tables(cell: int, found: Iterable[Grid]) -> list[Table]:
    whole_ones = with_excerpts_joined(found)
    return [table for grid in whole_ones if (table := _table(cell, grid)) is not None and table.rows]


def _table(cell: int, grid: Grid) -> Table | None:
    """A grid as rows of numbers; None if it is no log."""
    names = _with_evaluations(grid.heading[: MOST_TAGS + 1])
    axis = axis_of_names(names)
    metrics = [name for name in names if name not in ("", axis) and name not in _DOTS]
    if not axis or not (names[0] == axis or is_log_row(dict.fromkeys(metrics, 1.0)) or "Training Loss" in metrics):
        return None
    rows: list[dict[str, float]] = []
    place = names.index(axis)
    cut = grid.is_cut or any(name in _DOTS for name in names)
    for cells in grid.rows:
        if cells[place : place + 1] and cells[place] in _DOTS:
            cut = True
            continue
        if names[0] == "" and cells and number(cells[0]) is None:  # the summary of a table: count, mean, std
            continue
        row = {
            name: found
            for name, text in zip_longest(names, cells[: len(names)], fillvalue="")
            if name
            and name not in _DOTS
            and (found := number(text)) is not None
            and not (grid.is_frame and math.isnan(found))  # pandas shows it if nothing was logged
        }
        if whole(row.get(axis)) is not None and len(row) > 1:
            rows.append(row)
    total = grid.epochs if axis in ("Epoch", "epoch") else grid.total
    done = grid.done if axis not in ("Epoch", "epoch") else None
    return Table(cell, axis, rows, done, total, cut)


def _with_evaluations(heading: list[str]) -> list[str]:
    """The heading with the logged names of what transformers shows of evaluations: beside `Validation Loss`, all that
    is neither a count nor a loss is of them, and `eval_completions/mean_length` is shown as `Completions/mean Length`
    (`NotebookProgressCallback.on_evaluate`).
    """
    if not {*heading} >= _EVALUATING:
        return heading
    return [
        f"eval_{name.lower().replace(' ', '_')}"
        if name[:1].isupper() and "_" not in name and name not in _EVALUATING and not axis_of_names([name])
        else name
        for name in heading
    ]


def _table_of(cell: int, rows: Sequence[PrintedRow], is_cut: bool) -> Table:
    """Printed rows as a table; without an axis where not all of them name their step."""
    flat = [{tag: found for tag, value in flatten(row).items() if (found := number(value)) is not None} for row in rows]
    counted = [name for name in AXES if all(whole(row.get(name)) is not None for row in flat)]
    axis = axis_of({name: row[name] for name in counted} for row in flat) if counted else None
    return Table(cell, axis or "", flat, is_cut=is_cut, is_table=False, warned=_warned(rows))


def _with_rows(found: list[Table], printed: Table) -> list[Table]:
    """The tables of a cell and the rows that were printed in it: where both show one run, the one that shows more of it
    counts.
    """
    if not found:
        return [printed]
    if printed.axis:
        return found if _add(found[-1], printed) else [*found, printed]
    if not any(PAID.search(tag) for tag in printed.tags):
        return found
    last = found[-1]
    if len(last.rows) != len(printed.rows):
        return [*found, printed]
    known = last.tags
    for row, more in zip(last.rows, printed.rows, strict=True):
        row.update((tag, value) for tag, value in more.items() if plain(tag) not in known)
    return found


def _add(table: Table, printed: Table) -> bool:
    """Adds rows that a callback printed to the trainer's table of the same steps; False if they are another run's."""
    if not table.axis.lower().endswith("step") or not printed.axis.lower().endswith("step"):
        return False
    rows = dict(zip(table.steps, table.rows, strict=True))
    known = table.tags
    shared = set(printed.steps) & rows.keys()
    if len(shared) < SAME_STEPS * max(len(set(printed.steps)), 1):
        return False
    if any(plain(tag) in known for tag in printed.tags):
        return False
    for step, more in zip(printed.steps, printed.rows, strict=True):
        if step in rows:
            rows[step].update((tag, value) for tag, value in more.items() if tag != printed.axis)
    return True
