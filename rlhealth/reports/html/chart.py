"""Charts of the page: an SVG curve that stretches to any width, its limit, usual range and onset, with the words
beside it as text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rlhealth.reports import words
from rlhealth.reports.html.curve import Scale, breaks, path, scale_of, thinned
from rlhealth.reports.html.levels import Level
from rlhealth.reports.html.markup import Html, el
from rlhealth.reports.stories import logarithmic
from rlhealth.verdict.findings import Finding

if TYPE_CHECKING:
    from rlhealth.metrics import Metric
    from rlhealth.run import Floats

Span = tuple[int, int]


@dataclass(frozen=True)
class Marks:
    """What is drawn besides the curve.

    Attributes:
        findings: whose episodes are shaded.
        onset: where a vertical line stands, usually the onset of the cause.
        level: the limit, where it is a level of the metric.
        usual: the range that was usual before.
    """

    findings: tuple[Finding, ...] = ()
    onset: int | None = None
    level: Level | None = None
    usual: tuple[float, float] | None = None


def chart(
    metric: Metric,
    span: Span,
    marks: Marks = Marks(),
    *,
    buckets: int,
    tall: int = 1000,
    focus: bool = False,
    exact: bool = False,
) -> Html:
    """One metric over the run's steps; with `focus` it has a scale and answers to the keyboard, with `exact` it carries
    the values that its points stand for.
    """
    steps, values = metric.steps, metric.values
    scale = scale_of(values, tall, log=logarithmic(metric), also=marks.level.value if marks.level else None)
    first, wide = span[0], max(1, span[1] - span[0])
    kept = thinned(steps, values, buckets)
    drawn = el(
        "svg",
        *_behind(marks, scale, first, wide),
        el("path", class_="line", d=Html(path(steps[kept], values[kept], scale, first))),
        _gaps(breaks(steps, values, first), tall),
        el("path", class_="onset", d=Html(f"M{marks.onset - first} 0V{tall}")) if marks.onset is not None else None,
        viewBox=f"0 0 {wide} {tall}",
        preserveAspectRatio="none",
        role="img",
        aria_label=chart_in_words(metric, marks),
        tabindex="0" if focus else None,
        data_name=metric.name,
        data_v=exactly(values[kept]) if exact else None,
        data_first=first,
        data_low=f"{scale.low:.7g}",
        data_high=f"{scale.high:.7g}",
        data_log=scale.log,
        data_least=f"{scale.height(scale.least):.0f}" if scale.log else None,
        data_percent=metric.unit == "fraction",
    )
    return el("div", drawn, *(_words(metric, marks, scale) if focus else ()), class_="chart")


def _behind(marks: Marks, scale: Scale, first: int, wide: int) -> list[Html]:
    parts: list[Html] = []
    if marks.usual is not None:
        high, low = scale.height(marks.usual[1]), scale.height(marks.usual[0])
        parts.append(
            el(
                "rect",
                class_="usual",
                x=0,
                y=f"{high:.0f}",
                width=wide,
                height=f"{max(low - high, scale.tall / 60):.0f}",
            )
        )
    for one in marks.findings:
        parts += [
            el(
                "rect",
                class_=f"episode {one.severity}",
                x=start - first,
                y=0,
                width=max(end - start, wide // 200),
                height=scale.tall,
            )
            for start, end in one.spans[-40:]
        ]
    if marks.level is not None and _visible(marks.level, scale):
        height = scale.height(marks.level.value)
        if marks.level.side != "equals":
            top, size = (0.0, height) if marks.level.side == "above" else (height, scale.tall - height)
            parts.append(el("rect", class_="beyond", x=0, y=f"{top:.0f}", width=wide, height=f"{max(0.0, size):.0f}"))
        parts.append(el("path", class_="limit", d=Html(f"M0 {height:.0f}H{wide}")))
    return parts


def _words(metric: Metric, marks: Marks, scale: Scale) -> list[Html]:
    finite = metric.values[np.isfinite(metric.values)]
    parts = []
    if len(finite):
        parts.append(
            el(
                "span",
                words.number(float(finite.max()), metric.unit),
                class_="end top",
                style=f"top:{_share(scale, float(finite.max())):.1f}%",
                aria_hidden="true",
            )
        )
        if finite.max() > finite.min():
            parts.append(
                el(
                    "span",
                    words.number(float(finite.min()), metric.unit),
                    class_="end bottom",
                    style=f"top:{_share(scale, float(finite.min())):.1f}%",
                    aria_hidden="true",
                )
            )
    if marks.level is not None:
        said = f"limit {words.number(marks.level.value, metric.unit)}"
        if _visible(marks.level, scale):
            parts.append(
                el(
                    "span",
                    said,
                    class_="limit-label",
                    style=f"top:{_share(scale, marks.level.value):.1f}%",
                    aria_hidden="true",
                )
            )
        else:
            parts.append(
                el(
                    "span",
                    f"{said} ({'above' if marks.level.value > scale.high else 'below'} this chart)",
                    class_="limit-label outside",
                    aria_hidden="true",
                )
            )
    broken = len(metric) - len(finite)
    if broken:
        parts.append(el("span", f"{words.grouped(broken)} not finite", class_="broken", aria_hidden="true"))
    if scale.log:
        parts.append(el("span", "log", class_="log", title="logarithmic scale"))
    return parts


def _visible(level: Level, scale: Scale) -> bool:
    return scale.low <= level.value <= scale.high


def _share(scale: Scale, value: float) -> float:
    return min(100.0, max(0.0, 100 * scale.height(value) / scale.tall))


def _gaps(places: list[int], tall: int) -> Html | None:
    return el("path", class_="gap", d=Html("".join(f"M{x} 0v{tall}" for x in places))) if places else None


def exactly(values: Floats) -> str:
    """The finite values of shape (n,) to five significant digits, in the order of the path's points."""
    return " ".join(f"{one:.5g}" for one in values[np.isfinite(values)].tolist())


def chart_in_words(metric: Metric, marks: Marks) -> str:
    """The chart in a sentence, for those who do not see it."""
    finite = metric.values[np.isfinite(metric.values)]
    if not len(finite):
        return f"{metric.name}: no finite value in {words.plural(len(metric), 'point')}"
    first, last, low, high = (
        words.measured(float(one), metric.unit) for one in (finite[0], finite[-1], finite.min(), finite.max())
    )
    said = (
        f"{metric.name} over steps {int(metric.steps[0])} to {int(metric.steps[-1])}: "
        f"from {first} to {last}, between {low} and {high}"
    )
    broken = len(metric) - len(finite)
    found = "".join(f"; {one.severity} {one.rule} {words.since(one)}" for one in marks.findings)
    limit = f"; limit {words.number(marks.level.value, metric.unit)}" if marks.level else ""
    return (said + (f"; {broken} not finite" if broken else "") + limit + found).replace(words.THIN, "")


def axis(span: Span, onset: int | None = None, said: str = "", tone: str = "") -> Html:
    """The steps below one or more charts, and where the onset lies."""
    share = 100 * (onset - span[0]) / max(1, span[1] - span[0]) if onset is not None else 50.0
    ends = [
        el("span", words.grouped(step), class_=side)
        for step, side, near in ((span[0], "from", share < 8), (span[1], "to", share > 92))
        if not near
    ]
    if onset is None:
        return el("div", *ends, class_="axis")
    sign = el("b", "▲", class_=f"mark {tone}", style=f"left:{share:.2f}%", aria_hidden="true")
    label = el(
        "span", said, class_="said", style=f"left:{share:.2f}%;transform:translateX(-{share:.2f}%)"
    )  # never beyond either end
    return el("div", *ends, sign, label, class_="axis")
