"""The parts of the screen that hold whatever is watched: the head, one line per run, the log of what happened, and the
foot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len

from rlhealth.reports import words
from rlhealth.reports.glyphs import STYLES
from rlhealth.reports.sparkline import sparkline
from rlhealth.reports.stories import logarithmic, main_metrics, worst
from rlhealth.reports.terminal_vitals import marks
from rlhealth.watch.clock import clock_time
from rlhealth.watch.lines import counted
from rlhealth.watch.view import View

if TYPE_CHECKING:
    from rlhealth.reports.page import Page
    from rlhealth.watch.changes import Change
    from rlhealth.watch.follower import Event, Follower
    from rlhealth.watch.loop import Watch

_SIGNS = {
    "sees": "healthy",
    "over": "healthy",
    "blind": "unknown",
    "trouble": "unknown",
    "silent": "unknown",
}


def state_of(one: Follower) -> tuple[str, str]:
    """How a run stands in a word, and the style of the word."""
    if one.blind_for is not None:
        return "blind", STYLES["unknown"]
    if one.ending is None:
        return "waiting", "dim"
    if one.over:
        return ("finished", STYLES["healthy"]) if one.ending.state == "finished" else ("stopped", STYLES["critical"])
    if one.ending.state == "running":
        return "live", STYLES["healthy"]
    if "silent" in one.ending.kinds or one.ending.state == "unknown":
        return "silent", STYLES["warning"]
    return one.ending.state, STYLES["warning"] if one.ending.state == "stopped" else STYLES["healthy"]


def rate_of(one: Follower) -> str:
    """Steps a second, or seconds a step where they are slow; nothing if no times are known."""
    longest = max(one.reader.run.series.values(), key=len, default=None)
    if longest is None or len(longest) < 3:
        return ""
    steps, times = longest.steps[-50:], longest.times[-50:]
    passed, made = float(times[-1] - times[0]), float(steps[-1] - steps[0])
    if not passed > 0 or not made > 0:
        return ""
    return f"{words.number(made / passed)} steps/s" if made >= passed else f"{words.number(passed / made)} s/step"


def rule(page: Page) -> None:
    """A line across."""
    page.line((" " + page.glyphs.line * (page.width - 2), "dim"))


def head(page: Page, watch: Watch, left: str, right: list[tuple[str, str]]) -> None:
    """The first two lines: what is watched and how it stands, then the time."""
    dot = f" {page.glyphs.dot} "
    tail = sum(cell_len(page.safe(text)) for text, _ in right) + 2 * (len(right) - 1)
    room = page.width - tail - 3
    if room < 12:
        right, room = right[:1], page.width - cell_len(page.safe(right[0][0])) - 3
    parts: list[str | tuple[str, str]] = [" ", (page.fit(left, room), "bold")]
    for text, style in right:
        parts += ["  " if len(parts) > 2 else " ", (text, style)]
    page.line(*parts)
    up = words.duration(round(watch.clock.monotonic() - watch.begun)) or "0 s"
    said = [f"looked {_ago(watch.clock.monotonic() - watch.looked_at)}", f"every {watch.interval:g} s", f"up {up}"]
    text = f" {dot.join(said)}"
    key = "? keys  q quit"
    gap = page.width - cell_len(page.safe(text)) - len(key) - 1
    page.line((text, "dim"), (f"{' ' * gap}{key}" if gap >= 2 else "", "dim"))


def _ago(seconds: float) -> str:
    return f"{words.duration(max(0.0, round(seconds))) or '0 s'} ago"


def write(page: Page, watch: Watch, followers: list[Follower], room: int, view: View | None = None) -> None:
    """One line per run, those in trouble first unless the view says otherwise; the chosen one is marked and in
    sight."""
    view = view or View()
    waiting = list(watch.discovery.waiting.items())
    places = ", ".join(watch.discovery.places)
    count = words.plural(len(followers), "run") if followers else "waiting"
    ordered = view.listed(followers)
    if len(ordered) < len(followers) or view.wanted or view.typing:
        count = f"{len(ordered)} of {count}"
    head(page, watch, f"rlhealth watch {places}", [(count, STYLES["healthy"] if followers else "dim")])
    if view.typing or view.wanted or view.sort != "trouble":
        filtered = f" / {view.wanted}{'_' if view.typing else ''}" if view.typing or view.wanted else ""
        page.line((f"{filtered:<20}  sorted by {view.sort}", "cyan"))
    rule(page)
    for place, error in waiting:
        page.line(f" {page.glyphs.unknown} {place}: ", (error.message.removeprefix(f"{place}: "), STYLES["unknown"]))
        if error.hint:
            page.prose("try", error.hint, indent=3, hang=6, most=2)
    named = min(max((cell_len(page.safe(one.name)) for one in ordered), default=0), max(10, page.width // 3))
    chosen = view.run(followers) if len(ordered) > 1 else None
    room = max(1, room)
    at = ordered.index(chosen) if chosen in ordered else 0
    top = max(0, at - room + 1)
    for one in ordered[top : top + room]:
        _row(page, one, named, chosen=one is chosen and bool(view.chosen))
    if len(ordered) > room:
        hidden = words.plural(len(ordered) - room, "more run", "more runs")
        page.line((f"   {page.glyphs.ellipsis} and {hidden}", "dim"))
    rule(page)


def _row(page: Page, one: Follower, named: int, *, chosen: bool = False) -> None:
    word = one.verdict.verdict if one.verdict is not None else "unknown"
    state, style = state_of(one)
    step = one.reader.run.last_step
    parts: list[str | tuple[str, str]] = [
        (">" if chosen else " ", "bold cyan"),
        (f"{page.glyphs.of(word):<2}", STYLES.get(word, "")),
        (page.fit(one.name, named), "bold reverse" if chosen else "bold"),
        "  ",
        (f"{state:<8}", style),
    ]
    parts.append(f" {words.grouped(step) if step is not None else '–':>8}")
    if page.width >= 70:
        parts += ["  ", (_spark(page, one, 8 if page.width < 100 else 20), "blue")]
    if page.width >= 70 and one.verdict is not None:
        parts += ["  ", *marks(page, one.verdict)]
    used = sum(cell_len(page.safe(part if isinstance(part, str) else part[0])) for part in parts)
    found = worst(one.verdict) if one.verdict is not None else None
    said = f"since {words.grouped(found.since_step)} {found.rule}" if found else ("" if word == "healthy" else word)
    parts += ["  ", (cut(page, said, max(4, page.width - used - 3)).rstrip(), STYLES.get(word, ""))]
    page.line(*parts)


def _spark(page: Page, one: Follower, width: int) -> str:
    metric = next(iter(main_metrics(one.verdict, 1)), None) if one.verdict is not None else None
    if metric is None:
        return " " * width
    steps, values = one.traces.of(metric)
    return sparkline(steps, values, width, ascii=page.look.ascii, log=logarithmic(metric))


def log(page: Page, events: list[tuple[float, Event]], *, several: bool) -> None:
    """What happened, the newest last, and a line below."""
    for moment, event in events:
        who = f"{event.run}: " if several else ""
        change = event.change
        if change is None:
            word = _SIGNS.get(event.kind, "info")
            said = who + {"over": "ended", "sees": "back", "found": "watching"}.get(event.kind, event.kind)
            body, step = event.said, ""
        else:
            word = "healthy" if change.kind == "cleared" else str(change.finding.severity)
            said = f"{who}{change.finding.rule} {change.kind}{f' ({change.note})' if change.note else ''}"
            body, step = _what(change)
        left = f" {clock_time(moment)[:5]}  {page.glyphs.of(word)} "
        room = page.width - cell_len(page.safe(left)) - 1
        tail = f"  {step}" if step else ""
        head_ = page.fit(said, min(cell_len(page.safe(said)), room - cell_len(tail)))
        middle = room - cell_len(page.safe(head_)) - cell_len(tail) - 2
        between = cut(page, body, middle) if middle >= 12 else " " * max(0, middle)
        page.line((left, STYLES.get(word, "")), (head_, STYLES.get(word, "")), "  ", (between, "dim"), tail)
    rule(page)


def _what(change: Change) -> tuple[str, str]:
    """The message of a change, and its step, with the one since which it is so."""
    one, step = change.finding, f"step {words.grouped(change.step)}"
    if change.kind == "cleared":
        return "", step
    return one.message, f"{step}, since {words.grouped(one.since_step)}" if one.since_step < change.step else step


def cut(page: Page, text: str, width: int) -> str:
    """The beginning of a text, in exactly so many columns."""
    shown = page.safe(text)
    if cell_len(shown) > width:
        while cell_len(shown) > width - cell_len(page.glyphs.ellipsis):
            shown = shown[:-1]
        shown += page.glyphs.ellipsis
    return shown + " " * (width - cell_len(shown))


def foot(page: Page, watch: Watch) -> None:
    """How many rules ran and found something, and the exit code of the watch."""
    count = counted(watch)
    said = [f"{number} {word}" for word, number in count.items()]
    code = watch.verdict().exit_code if watch.followers else 2
    style = {0: "bold green", 1: "bold red"}.get(code, "bold magenta")
    words_ = "would exit" if page.width < 78 else "if it ended now: exit"
    page.flow(said, end=f"{words_} {code}", end_style=style)
