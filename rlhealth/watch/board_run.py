"""One run on the screen: how it stands, the metrics that matter with how near each is to a limit, and what is wrong
now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from rich.cells import cell_len

from rlhealth.reports import words
from rlhealth.reports.glyphs import STYLES
from rlhealth.reports.sparkline import sparkline
from rlhealth.reports.stories import logarithmic, main_metrics, stories
from rlhealth.watch.ahead import Ahead, projections, seconds_left
from rlhealth.watch.board import head, rate_of, rule, state_of
from rlhealth.watch.follower import why_of
from rlhealth.watch.near import CLOSE, LimitMargin, Pending, nearest, pending

if TYPE_CHECKING:
    from rlhealth.metrics import Metric
    from rlhealth.reports.page import Page
    from rlhealth.verdict.findings import Finding
    from rlhealth.verdict.verdicts import RunVerdict
    from rlhealth.watch.follower import Follower
    from rlhealth.watch.loop import Watch

Part = str | tuple[str, str]
_FLAT = 0.02  # of the older mean: a smaller change is none


def write(page: Page, watch: Watch, one: Follower, room: int) -> None:
    """The run in at most about `room` lines; the metrics give way to the findings where there is little room."""
    state, style = state_of(one)
    run = one.reader.run
    planned = one.verdict.translation.planned_steps if one.verdict is not None else None
    step = (
        ""
        if run.last_step is None
        else f"step {words.grouped(run.last_step)}" + (f"/{words.grouped(planned)}" if planned else "")
    )
    right = [(f"{'*' if page.look.ascii else '●'} {state}", style), (step, ""), (rate_of(one), "")]
    head(page, watch, f"rlhealth watch {one.name}", [part for part in right if part[0]])
    if one.blind_for is not None:
        away = words.duration(one.blind_for) or "0 s"
        page.line(
            (f" {page.glyphs.unknown} blind for {away}: ", STYLES["unknown"]), why_of(one.error) if one.error else ""
        )
    elif one.ending is not None:
        left = seconds_left(one.judge) if one.judge is not None and not one.over else None
        eta = f"; the end of the plan in about {words.duration(left)}" if left is not None else ""
        page.line((f" {one.ending.said}{eta}", "dim"))
    rule(page)
    if one.verdict is None or one.judge is None:
        return
    open_now = [
        (cause, following)
        for cause, following in stories(one.verdict)
        if not all(found.ended for found in (cause, *following))
    ]
    shown = _shown(one.verdict, max(2, min(8, room - 6 - 3 * len(open_now))))
    near = nearest(one.judge)
    coming = projections(one.judge) if not one.over else {}
    named = min(max((cell_len(page.safe(metric.name)) for metric in shown), default=0), max(8, page.width // 3))
    for metric in shown:
        write_metric(page, one, metric, near.get(metric.name), named, coming.get(metric.name))
    rule(page)
    wrong = _wrong(page, one, open_now)
    for line in wrong[: max(2, room - len(shown) - 6)]:
        page.line(*line)
    if wrong:
        rule(page)


def _shown(verdict: RunVerdict, most: int) -> list[Metric]:
    """The metrics that a reader looks at first; those that findings are about come before the rest where there is
    little room.
    """
    known = verdict.translation.metrics
    sick = [
        known[one.metric]
        for one in verdict.findings
        if not one.ended and one.metric in known and len(known[one.metric])
    ]
    usual = main_metrics(verdict, most)
    more = [one for one in dict.fromkeys(one.name for one in sick) if one not in {metric.name for metric in usual}]
    kept = usual[: max(1, most - len(more))]
    return kept + [known[name] for name in more[: most - len(kept)]]


def write_metric(
    page: Page, one: Follower, metric: Metric, near: LimitMargin | None, named: int, coming: Ahead | None = None
) -> None:
    """A metric on a line: its curve, its value, where it goes, and how near a limit is or when it will be reached."""
    width, trended = (12, 1) if page.width < 70 else (15, 8) if page.width < 110 else (40, 8)
    steps, values = one.traces.of(metric)
    drawn = sparkline(steps, values, width, ascii=page.look.ascii, log=logarithmic(metric))
    value = page.fit(words.number(float(metric.values[-1]), metric.unit), 8, right=True)
    parts: list[Part] = [
        " ",
        page.fit(metric.name, named),
        "  ",
        (drawn, "blue"),
        "  ",
        (value, "bold"),
        "  ",
        page.fit(trend(metric, page.look.ascii)[:trended], trended),
    ]
    room = page.width - (1 + named + 2 + width + 2 + 8 + 2 + trended + 2)
    if coming is not None and (said := reached(coming, room)):
        parts += ["  ", (said, "yellow")]
    elif near is not None:
        parts += ["  ", distance(near, room)]
    page.line(*parts)


def reached(coming: Ahead, room: int) -> str:
    """When a metric will be at a limit, in that many columns: `reaches 2.5 at about step 640`."""
    level, step = words.number(coming.level, coming.unit), words.grouped(coming.step)
    said = f"reaches {level} at about step {step}", f"{level} at about step {step}", f"{level} at ~{step}"
    return next((one for one in (f"{said[0]} ({coming.rule})", *said) if len(one) <= room), "")


def distance(near: LimitMargin, room: int) -> tuple[str, str]:
    """How near a metric is to its limit, in that many columns, and the style for it."""
    style = "red" if near.share >= 1 else "yellow" if near.share >= CLOSE else "dim"
    if near.share >= 1:  # a multiple of the limit: a per cent would leave open whether it is of the limit or beyond it
        share = "at" if round(near.share, 1) <= 1 else f"{_times(near.share)} times"
        said: tuple[str, ...] = (f"{share} the limit of {near.rule}", f"{share} the limit", f"{share} limit", share)
    else:
        share = f"{round(100 * near.share)} %"
        said = (f"{share} of the limit of {near.rule}", f"{share} of the limit", f"{share} of limit", share)
    return next((one for one in said if len(one) <= room), ""), style


def _times(share: float) -> str:
    return ">999" if share > 999 else words.grouped(round(share)) if share >= 10 else f"{share:.1f}"


def trend(metric: Metric, ascii: bool = False) -> str:
    """Where a metric goes: its last ten points against the twenty before them."""
    recent, before = metric.values[-10:], metric.values[-30:-10]
    recent, before = recent[np.isfinite(recent)], before[np.isfinite(before)]
    if not len(recent) or len(before) < 5:
        return ""
    now, then = float(np.mean(recent)), float(np.mean(before))
    if abs(now - then) <= _FLAT * max(abs(then), 1e-12):
        return "=" if ascii else "→"
    sign = ("^" if ascii else "↑") if now > then else ("v" if ascii else "↓")
    if then > 0 <= now:
        change = (now - then) / then
        return f"{sign} {change:+.0%}".replace("-", "−").replace("%", " %") if abs(change) < 10 else sign
    plus = "+" if now > then else ""  # of what is negative, or was, a percentage says nothing
    return f"{sign} {plus}{words.number(now - then, metric.unit)}"


def _wrong(page: Page, one: Follower, open_now: list[tuple[Finding, list[Finding]]]) -> list[list[Part]]:
    lines: list[list[Part]] = []
    for cause, following in open_now:
        word = str(cause.severity)
        lines.append(
            [
                (f" {page.glyphs.of(word)} ", STYLES[word]),
                (f"{word}[{cause.rule}]", STYLES[word]),
                f"  {words.since(cause)}",
            ]
        )
        lines.append([f"     {cause.message}"])
        if following:
            rules = ", ".join(dict.fromkeys(found.rule for found in following))
            lines.append([(f"     explains {rules}", "dim")])
        if cause.advice:
            lines.append([("     try ", "dim"), cause.advice[0]])
    assert one.judge is not None
    raised = {found.rule for cause, following in open_now for found in (cause, *following)}
    said: list[list[Part]] = [
        [(f" {page.glyphs.dot} ", "yellow"), (soon.rule, "yellow"), f"  {_awaited(soon, raised)}"]
        for soon in pending(one.judge)[:3]
    ]
    return lines + said


def _awaited(soon: Pending, raised: set[str]) -> str:
    """How near a finding is to being raised; what is raised already, to being critical."""
    word = f"{soon.severity} " if soon.rule in raised else ""
    return f"{word}pending: {soon.held} of {soon.needed} points"
