"""View: what the screen shows of a watch, and the one table of the keys that change it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlhealth.reports.stories import main_metrics

if TYPE_CHECKING:
    from rlhealth.metrics import Metric
    from rlhealth.watch.follower import Follower

_TROUBLE = {"critical": 0, "warning": 1, "unknown": 2, "healthy": 3}
PAGE = 10  # lines, or runs, that the paging keys move by


def _trouble(one: Follower) -> tuple[int, int]:
    found = one.verdict.findings if one.verdict is not None else []
    return _TROUBLE[one.verdict.verdict if one.verdict else "unknown"], -len(found)


#: How runs can be sorted, in the order in which `s` goes through it; by name within each.
SORTS: dict[str, Callable[[Follower], object]] = {
    "trouble": _trouble,
    "name": lambda one: 0,
    "step": lambda one: -(one.reader.run.last_step or 0),
    "newest": lambda one: -one.news_at,
}


@dataclass
class View:
    """What is shown.

    Attributes:
        shown: `runs`, `overview` and `story` of one run, `metric` for a curve, `help`.
        chosen: the name of the chosen run; empty until one was chosen.
        wanted: what a run's name, verdict or framework must hold to be listed.
        typing: whether keys go into `wanted`.
        top: the first line of a story that is shown.
    """

    shown: str = ""
    chosen: str = ""
    wanted: str = ""
    typing: bool = False
    sort: str = "trouble"
    metric: str = ""
    top: int = 0
    before: list[str] = field(default_factory=list)

    def listed(self, followers: Sequence[Follower]) -> list[Follower]:
        """The runs that pass the filter, in order."""
        wanted = self.wanted.lower()
        kept = [one for one in followers if wanted in _described(one)]
        return sorted(kept, key=lambda one: (SORTS[self.sort](one), one.name))

    def run(self, followers: Sequence[Follower]) -> Follower | None:
        """The chosen run, or the first that is listed."""
        listed = self.listed(followers) or list(followers)
        return next((one for one in listed if one.name == self.chosen), listed[0] if listed else None)

    def page(self, followers: Sequence[Follower]) -> str:
        """What is shown: with one run its overview, with several their list, unless a key asked for more."""
        return self.shown or ("overview" if len(followers) == 1 else "runs")

    def press(self, key: str, followers: Sequence[Follower]) -> bool:
        """Takes a key; False if it is the key to quit."""
        if self.typing:
            self._type(key)
            return True
        one = next((one for one in BINDINGS if key in one.keys), None)
        if one is None:
            return True
        if one.act is None:
            return False
        one.act(self, followers)
        return True

    def open(self, page: str) -> None:
        """Shows a page; Esc goes back from it."""
        if self.shown != page:
            self.before.append(self.shown)
            self.shown, self.top = page, 0

    def back(self) -> None:
        """Shows what was shown before; drops the filter if nothing was."""
        if self.before:
            self.shown, self.top = self.before.pop(), 0
        else:
            self.wanted = ""

    def move(self, lines: int, followers: Sequence[Follower]) -> None:
        """Goes so many lines, runs or metrics down."""
        page = self.page(followers)
        if page == "metric":
            names = [one.name for one in metrics_of(self.run(followers))]
            self.metric = _next(names, self.metric, lines)
        elif page == "runs":
            run = self.run(followers)
            self.chosen = _next([one.name for one in self.listed(followers)], run.name if run else "", lines)
        else:
            self.top = max(0, self.top + lines)

    def _type(self, key: str) -> None:
        if key == "enter":
            self.typing = False
        elif key == "esc":
            self.typing, self.wanted = False, ""
        elif key == "backspace":
            self.wanted = self.wanted[:-1]
        elif len(key) == 1:
            self.wanted += key


def metrics_of(one: Follower | None) -> list[Metric]:
    """The metrics of a run that have points: those a reader looks at first, then the rest by name."""
    if one is None or one.verdict is None:
        return []
    first = main_metrics(one.verdict, 20)
    known = {metric.name for metric in first}
    rest = [metric for metric in one.verdict.translation.metrics.values() if len(metric) and metric.name not in known]
    return [*first, *sorted(rest, key=lambda metric: metric.name)]


def _described(one: Follower) -> str:
    verdict = one.verdict
    said = [one.name, verdict.verdict, verdict.translation.framework] if verdict is not None else [one.name, "unknown"]
    return " ".join(said).lower()


def _next(names: list[str], now: str, lines: int) -> str:
    if not names:
        return now
    place = names.index(now) if now in names else 0
    return names[max(0, min(len(names) - 1, place + lines))]


Act = Callable[[View, Sequence["Follower"]], None]


@dataclass(frozen=True)
class Binding:
    """One thing that keys do.

    Attributes:
        keys: as `keys_in` names them.
        shown: how the help and the foot name them; in ASCII too.
        act: what it does; None leaves.
    """

    keys: tuple[str, ...]
    shown: str
    said: str
    act: Act | None


def _filter(view: View, followers: Sequence[Follower]) -> None:
    view.shown, view.before, view.typing = "runs" if len(followers) != 1 else "", [], True


def _sort(view: View, followers: Sequence[Follower]) -> None:
    names = list(SORTS)
    view.sort = names[(names.index(view.sort) + 1) % len(names)]


def _metric(view: View, followers: Sequence[Follower]) -> None:
    known = [one.name for one in metrics_of(view.run(followers))]
    if view.metric not in known:
        view.metric = known[0] if known else ""
    view.open("metric")


def _enter(view: View, followers: Sequence[Follower]) -> None:
    run = view.run(followers)
    view.chosen = run.name if run is not None else ""
    view.open("story")


BINDINGS = (
    Binding(("up", "k"), "up k", "the run, line or metric above", lambda view, runs: view.move(-1, runs)),
    Binding(("down", "j"), "down j", "the run, line or metric below", lambda view, runs: view.move(1, runs)),
    Binding(("pageup",), "PageUp", f"{PAGE} up", lambda view, runs: view.move(-PAGE, runs)),
    Binding(("pagedown", " "), "PageDown Space", f"{PAGE} down", lambda view, runs: view.move(PAGE, runs)),
    Binding(("home", "g"), "Home g", "the first", lambda view, runs: view.move(-(10**6), runs)),
    Binding(("end", "G"), "End G", "the last", lambda view, runs: view.move(10**6, runs)),
    Binding(("enter", "right"), "Enter", "vital signs and story of the run", _enter),
    Binding(("m",), "m", "a metric's curve with its limits; up and down for the others", _metric),
    Binding(
        ("/",), "/", "list only runs with this text in name, verdict or trainer; Enter keeps it, Esc drops it", _filter
    ),
    Binding(("s",), "s", f"sort the runs by {', '.join(SORTS)}", _sort),
    Binding(("esc", "left", "backspace"), "Esc", "back", lambda view, runs: view.back()),
    Binding(("?", "h"), "?", "this help", lambda view, runs: view.open("help")),
    Binding(("q", "Q"), "q", "leave, with the report and its exit code; Ctrl-C too", None),
)
