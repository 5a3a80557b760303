"""Words and numbers as reports show them: log text made harmless, values to three digits, steps and times for
people."""

from __future__ import annotations

import math
import unicodedata
from typing import TYPE_CHECKING

from rlhealth.verdict.cost import cost_of
from rlhealth.verdict.verdicts import counts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlhealth.verdict.findings import Change, Finding
    from rlhealth.verdict.gate import Gate
    from rlhealth.verdict.verdicts import RunVerdict, Verdict
    from rlhealth.verdict.vitals import Vital

NBSP = "\u00a0"
THIN = "\u202f"  # narrow no-break space: groups thousands and never breaks a line
_JOINERS = (
    "\u200c\u200d"  # part of spelling in Persian and Indic scripts and of emoji; they cannot reorder or hide text
)
_PLAIN = str.maketrans(
    {
        THIN: ",",
        NBSP: " ",
        "·": "-",
        "–": "-",
        "—": "-",
        "−": "-",
        "…": "...",
        "→": "->",
        "≥": ">=",
        "≤": "<=",
        "×": "x",
        "⟦": "[[",
        "⟧": "]]",
        "σ": " sd",
        "“": '"',
        "”": '"',
        "’": "'",
        "∞": "inf",
    }
)


def clean(text: object, *, ascii: bool = False) -> str:
    r"""Text from a log with everything that could steer a terminal or a reader's eye written out: ESC as \x1b, a
    newline as \n, bidi overrides as \u202e."""
    said = str(text)
    shown = said if said.isprintable() else "".join(map(_shown, said))
    return plain(shown) if ascii else shown


def _shown(character: str) -> str:
    if character.isprintable() or character in _JOINERS or character in (THIN, NBSP):
        return character
    if character in "\n\r\t":
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}[character]
    if unicodedata.category(character) == "Zs":
        return " "
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def plain(text: str) -> str:
    """The text in ASCII alone: dashes and dots by their nearest sign, anything else by its escape."""
    return text.translate(_PLAIN).encode("ascii", "backslashreplace").decode("ascii")


def number(value: float | None, unit: str = "") -> str:
    """A value to three significant digits with its unit: 0.0123, 1 234, 1.2e-05, 51 % for a fraction; a dash for
    None."""
    if value is None:
        return "–"
    if not math.isfinite(value):
        return "NaN" if value != value else "∞" if value > 0 else "−∞"
    if unit == "fraction" and math.isfinite(100 * value):
        return f"{_digits(100 * value)}{NBSP}%"
    return _digits(value)


def measured(value: float | None, unit: str = "") -> str:
    """A value with its unit written out, where the unit says something: `0.21 nats/token`, `51 %`, `3.2 s`."""
    spelled = "" if unit in ("", "1", "fraction", "loss", "reward", "count") else f" {unit}"
    return number(value, unit) + (spelled if value is not None and math.isfinite(value) else "")


def _digits(value: float) -> str:
    size = abs(value)
    if size >= 1e7 or 0 < size < 1e-3:
        mantissa, exponent = f"{value:.2e}".split("e")
        text = f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
    elif size >= 100 or value == int(value):
        text = grouped(round(value))
    else:
        text = f"{value:.{2 - math.floor(math.log10(size))}f}".rstrip("0").rstrip(".")
    return text.replace("-", "−", 1) if text.startswith("-") else text


def grouped(count: int) -> str:
    """A whole number with its thousands separated: 12 345."""
    return f"{count:,}".replace(",", THIN)


def shortened(text: str, most: int) -> str:
    """The text with its middle replaced where it is longer than `most` characters: both ends of a name distinguish
    runs."""
    half = (most - 1) // 2
    return text if len(text) <= most else f"{text[: most - 1 - half]}…{text[-half:]}"


def plural(count: int, word: str, many: str = "") -> str:
    """`1 run`, `30 runs`."""
    return f"{grouped(count)} {word if count == 1 else many or word + 's'}"


def duration(seconds: float) -> str:
    """A duration for people: 45 s, 14 min, 6.1 h, 2.3 d; nothing for an unknown time."""
    if not math.isfinite(seconds) or seconds < 0:
        return ""
    for size, word in ((86400, "d"), (3600, "h")):
        if seconds >= size:
            return f"{_digits(seconds / size)} {word}"
    return f"{round(seconds / 60)} min" if seconds >= 60 else f"{round(seconds)} s"


_TRACKERS = {
    "tensorboard": "TensorBoard",
    "wandb": "wandb",
    "wandb_export": "wandb export",
    "wandb-file": "wandb offline",
    "wandb_file": "wandb offline",
    "wandb-api": "wandb",
    "wandb_api": "wandb",
    "trackio": "Trackio",
    "trainer_state": "trainer_state.json",
    "trainer-state": "trainer_state.json",
    "table": "table",
    "csv": "CSV",
    "jsonl": "JSONL",
}


def tracker(kind: str) -> str:
    """A tracker's own spelling."""
    return _TRACKERS.get(kind, kind)


def span_of(run: RunVerdict) -> tuple[int, int] | None:
    """The first and last step of the run, or None if nothing was logged."""
    first, last = run.run.first_step, run.run.last_step
    return None if first is None or last is None else (first, last)


def wall_time(run: RunVerdict) -> float:
    """Seconds between the run's first and last point; NaN if the tracker kept no times."""
    starts = [float(one.times[0]) for one in run.run.series.values() if len(one) and math.isfinite(float(one.times[0]))]
    return run.run.last_time - min(starts) if starts else float("nan")


def since(one: Finding) -> str:
    """The steps of a finding: `since step 41`, `from the start`, `steps 41–90, not recovered`, or `steps 41–90, over`;
    where it stands again, also where it did before: `since step 238 (before that: steps 6–19)`.
    """
    if not one.active:
        spans = one.spans if one.breaks else [(one.first_step, one.last_step)]
        return f"{_stretches(spans)}, {'over' if one.ended else 'not recovered'}"
    paused = f" with {plural(one.breaks, 'break')}" if one.breaks else ""
    if one.earlier:
        return f"since step {grouped(one.since_step)}{paused} (before that: {_stretches(one.earlier)})"
    return ("from the start" if one.from_start else f"since step {grouped(one.first_step)}") + paused


def began(group: Sequence[Finding]) -> str:
    """The step at which the first of some findings began, and where it stands again, the one since which it does: `6,
    238`."""
    first = min(group, key=lambda one: (one.first_step, one.since_step))
    return ", ".join(grouped(step) for step in dict.fromkeys((first.first_step, first.since_step)))


def _stretches(spans: Sequence[tuple[int, int]]) -> str:
    """The steps from the first to the last of those stretches, and how many there are: `steps 6–190 in 3 stretches`."""
    first, last = spans[0][0], spans[-1][1]
    steps = f"step {grouped(first)}" if first == last else f"steps {grouped(first)}–{grouped(last)}"
    return steps if len(spans) == 1 else f"{steps} in {len(spans)} stretches"


def vital(one: Vital) -> str:
    """A vital sign in a few words: what is wrong and since when, or why it is unknown; and its course."""
    course = next(iter(courses(one)), "") if one.finding is None else ""
    return ", ".join(part for part in (reason(one), course) if part)


def reason(one: Vital) -> str:
    """What is wrong with a vital sign and since when, or why it is unknown; empty if it is healthy."""
    if one.finding is None:
        return one.said
    limit = f", limit {number(one.level, one.metric.unit)}" if one.level is not None and one.metric is not None else ""
    return f"{one.said}, {since(one.finding)}{limit}"


def courses(one: Vital) -> tuple[str, ...]:
    """The course of a vital sign in a word or two, the longest first; empty where nothing is said of it, and where the
    two values that it stands beside read the same.
    """
    unit = one.metric.unit if one.metric is not None else ""
    if not one.trend or (one.trend in ("rose", "fell") and number(one.start, unit) == number(one.end, unit)):
        return ()
    return (f"{one.trend}, still moving", one.trend) if one.moving else (one.trend, one.trend.replace(", then", ","))


def ends(one: Vital, arrow: str = "→", *, unit: bool = True) -> str:
    """From where to where a vital sign's metric went: `0.012 → 4.3 nats/token`; one value where both read the same."""
    if one.metric is None or one.start is None:
        return ""
    own = one.metric.unit
    first, last = number(one.start, own), number(one.end, own)
    spelled = measured(one.end, own) if unit else last
    return spelled if first == last else f"{first} {arrow} {spelled}"


def cost(run: RunVerdict) -> str:
    """What a broken run cost: `healthy for 1.2 h, then 5.3 h after it broke at step 82`, or `2 min after it broke again
    at step 238; it was broken before, in steps 6–19`; empty if times are not known."""
    spent = cost_of(run)
    if spent is None or not round(spent.after):
        return ""
    where = f"after it broke {'again ' if spent.earlier else ''}at step {grouped(spent.step)}"
    if spent.earlier:
        return f"{duration(spent.after)} {where}; it was broken before, in {_stretches(spent.earlier)}"
    healthy = f"healthy for {duration(spent.before)}, then " if round(spent.before) else ""
    return f"{healthy}{duration(spent.after)} {where}"


def tally(run: RunVerdict) -> str:
    """How many findings of each severity: `2 critical, 1 warning`; the bare verdict if there is none."""
    parts = [(sum(str(one.severity) == word for one in run.findings), word) for word in ("critical", "warning", "info")]
    return (
        ", ".join(f"{count} {word}" for count, word in parts if count)
        if run.verdict in ("warning", "critical")
        else run.verdict
    )


def closing(verdict: Verdict) -> str:
    """The last line: how many runs got which verdict, what was hidden, the gate, the exit code."""
    found = ", ".join(f"{count} {word}" for word, count in counts(verdict).items() if count)
    total = plural(len(verdict.runs) + len(verdict.errors), "run").replace(THIN, "")
    unseen = hidden(verdict)
    if not verdict.runs and not verdict.left_out:  # what is unreadable is a place, or files in it, and no run
        return f"no run could be read; {gate(verdict.gate)}; exit {verdict.exit_code}"
    return (
        f"{total}: {found or 'nothing found'}; "
        + (f"{unseen}; " if unseen else "")
        + f"{gate(verdict.gate)}; exit {verdict.exit_code}"
    )


def gate(asked: Gate) -> str:
    """Everything besides the findings that the exit code depends on: `fail-on warning, fail-on-past, min-steps 50`."""
    parts = (
        (f"fail-on {asked}", True),
        ("fail-on-past", asked.fail_on_past),
        (f"min-steps {asked.min_steps}", asked.min_steps),
        ("strict", asked.strict),
        ("exit-zero", asked.exit_zero),
    )
    return ", ".join(said for said, is_asked in parts if is_asked)


def hidden(verdict: Verdict) -> str:
    """What was not judged or not shown, for the last line of every format: `2 ignored, 3 rules skipped`; empty if
    all was."""
    ignored = sum(len(run.ignored) for run in verdict.runs)
    left = len(verdict.left_out)
    damaged = sum(bool(run.run.problems) for run in verdict.runs)
    unmet = len({name for _, name in verdict.unmet})
    parts = (
        ([f"{plural(unmet, 'required rule')} could not run"] if unmet else [])
        + ([f"{plural(left, 'file')} not read"] if left else [])
        + ([f"{damaged} damaged"] if damaged else [])
        + ([f"{ignored} ignored"] if ignored else [])
        + _skipped(verdict.runs)
    )
    return ", ".join(parts)


def _skipped(runs: Sequence[RunVerdict]) -> list[str]:
    """How many rules could not run: `71 rules skipped`; of several runs in each of them, and in some."""
    each = [{one.rule for one in run.skipped} for run in runs]
    everywhere = set.intersection(*each) if each else set()
    somewhere = set().union(*each) - everywhere
    every = f"{plural(len(everywhere), 'rule')} skipped{' in every run' if len(runs) > 1 else ''}"
    if not somewhere:
        return [every] if everywhere else []
    if not everywhere:
        return [f"{plural(len(somewhere), 'rule')} skipped in some runs"]
    return [every, f"{grouped(len(somewhere))} in some"]


def left_out(verdict: Verdict, most: int = 5) -> list[str]:
    """The files that look like logs and were not read, as sentences: how many, then each with its reason, `most` of
    them; empty if there is none."""
    found = verdict.left_out
    if not found:
        return []
    said = f"{plural(len(found), 'file')} {'was' if len(found) == 1 else 'were'} not read"
    lines = [f"{one.location}: {one.reason}" for one in found[:most]]
    return [f"{said}:", *lines, *([f"… and {grouped(len(found) - most)} more"] if len(found) > most else [])]


def changed(one: Change) -> str:
    """A setting that is worth changing, as a line: `learning_rate: 0.01 -> 0.001 (why)`."""
    before = (
        "unknown" if one.before is None else f"{one.before:g}" if isinstance(one.before, float) else str(one.before)
    )
    to = f"{one.to:g}" if isinstance(one.to, float) else str(one.to)
    return f"{one.option}: {before} -> {to} ({one.why})"
