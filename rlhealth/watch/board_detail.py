"""The screens that a key asks for: a run's vital signs and story, one metric's curve, and the keys themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlhealth.reports import terminal_run, terminal_vitals, words
from rlhealth.reports.page import Page
from rlhealth.watch.ahead import limits_of, projections, seconds_left
from rlhealth.watch.board import head, rate_of, rule, state_of
from rlhealth.watch.board_run import reached, write_metric
from rlhealth.watch.near import nearest
from rlhealth.watch.plot import plot
from rlhealth.watch.view import BINDINGS, View, metrics_of

if TYPE_CHECKING:
    from rlhealth.watch.follower import Follower
    from rlhealth.watch.loop import Watch

MOST_METRICS = 8


def story(page: Page, watch: Watch, one: Follower | None, view: View, height: int) -> None:
    """A run's vital signs, its metrics with their limits, and its findings, from line `view.top` on."""
    assert one is not None and one.judge is not None and one.verdict is not None
    _head(page, watch, one)
    body = Page(page.look)
    terminal_vitals.write(body, one.verdict)
    body.gap()
    near, coming = nearest(one.judge), projections(one.judge) if not one.over else {}
    shown = metrics_of(one)[:MOST_METRICS]
    named = min(max((len(metric.name) for metric in shown), default=8), page.width // 3)
    for metric in shown:
        write_metric(body, one, metric, near.get(metric.name), named, coming.get(metric.name))
    terminal_run.findings(body, one.verdict)
    lines = body.text().rstrip("\n").split("\n")
    room = max(1, height - 5)
    view.top = max(0, min(view.top, len(lines) - room))
    page.extend(body, view.top, view.top + room)
    rule(page)
    more = len(lines) - view.top - room
    said = f"{more} more lines below" if more > 0 else "the end"
    page.line((f" {said} {page.glyphs.dot} Esc back {page.glyphs.dot} m curves {page.glyphs.dot} ? keys", "dim"))


def metric(page: Page, watch: Watch, one: Follower | None, view: View, height: int) -> None:
    """One metric's curve over the whole screen, with the limits of the rules that judge its level."""
    assert one is not None and one.judge is not None
    _head(page, watch, one)
    known = {metric.name: metric for metric in metrics_of(one)}
    shown = known.get(view.metric) or next(iter(known.values()), None)
    if shown is None:
        page.line(" nothing was logged yet")
        return
    place = list(known).index(shown.name) + 1
    value = words.measured(float(shown.values[-1]), shown.unit)
    page.line(
        " ", (shown.name, "bold"), f"  {value}", (f"  {place} of {len(known)}, up and down for the others", "dim")
    )
    limits = limits_of(one.judge).get(shown.name, [])
    for line in plot(page, one.traces.of(shown), shown.unit, [(at, side) for at, _, side in limits], height=height - 8):
        page.line(*line)
    coming = projections(one.judge).get(shown.name) if not one.over else None
    said = [f"{side} {words.number(at, shown.unit)}: {rule_}" for at, rule_, side in sorted(limits)]
    if coming is not None:
        said.insert(0, reached(coming, page.width))
    page.line((f" {f' {page.glyphs.dot} '.join(said) or 'no rule judges its level'}", "yellow" if coming else "dim"))
    page.line((f" Esc back {page.glyphs.dot} ? keys", "dim"))


def help_(page: Page, watch: Watch, one: Follower | None, view: View, height: int) -> None:
    """Every key, from the table that they are dispatched by."""
    head(page, watch, "rlhealth watch: keys", [("", "")])
    rule(page)
    for binding in BINDINGS:
        page.line(f" {binding.shown:<16}", (binding.said, "dim"))
    page.gap()
    marks = [(page.glyphs.of(word), word) for word in ("healthy", "warning", "critical", "unknown")]
    page.line((f" {f' {page.glyphs.dot} '.join(f'{sign} {word}' for sign, word in marks)}", "dim"))
    page.line((" the eight marks of a run are its vital signs, in the order in which Enter lists them", "dim"))


def _head(page: Page, watch: Watch, one: Follower) -> None:
    assert one.judge is not None
    state, style = state_of(one)
    last, planned = one.reader.run.last_step, one.judge.translation.planned_steps
    step = "" if last is None else f"step {words.grouped(last)}" + (f"/{words.grouped(planned)}" if planned else "")
    left = None if one.over else seconds_left(one.judge)
    right = [(f"{'*' if page.look.ascii else '●'} {state}", style), (step, ""), (rate_of(one), "")]
    right.append((f"{words.duration(left)} left" if left is not None else "", "dim"))
    word = one.verdict.verdict if one.verdict is not None else "unknown"
    head(page, watch, f"{page.glyphs.of(word)} {one.name}", [part for part in right if part[0]])
    rule(page)
