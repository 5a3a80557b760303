"""The measures that a rule may name, and their properties for texts and checks; the engine implements them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MeasureKind:
    """One measure.

    Attributes:
        words: its description in documentation and `rules explain`; may use {window}, {metric}, {other}, {last},
                {items} and {where}.
        unit: of its values: "value" (the metric's own), "noise" (the noise of one point), "share", "ratio",
            "count" or "correlation".
        level: whether a limit on it is a level of the metric's own values, which a chart can draw.
        has_error: whether it is an estimate, so that a rule can ask for `standard_errors`.
        at_once: whether it has a value from the first point on, whatever its window.
        falls: whether it measures a fall: the fallen points are the lower half of the window.
        predicts: whether it predicts a future event, which has no first row.
        of_newest: whether it is about the newest points, which are unlike those before: what it finds began with the
            first of them.
        in_parts: whether the log of a resumed run shows it too, which lacks the first steps: a reward that falls from
            its first row to its last is lost wherever it began.
    """

    words: str
    unit: str = "value"
    level: bool = False
    has_error: bool = False
    at_once: bool = False
    falls: bool = False
    predicts: bool = False
    of_newest: bool = False
    in_parts: bool = False


KINDS: dict[str, MeasureKind] = {
    "value": MeasureKind("{metric}", level=True),
    "mean": MeasureKind("the mean of {window} of {metric}", level=True),
    "median": MeasureKind("the median of {window} of {metric}", level=True),
    "std": MeasureKind("the standard deviation of {window} of {metric}"),
    "min": MeasureKind("the smallest of {window} of {metric}", level=True),
    "max": MeasureKind("the largest of {window} of {metric}", level=True),
    "range": MeasureKind("the span of {window} of {metric}"),
    "share_nonfinite": MeasureKind(
        "the share of {window} of {metric} that are NaN or infinite", unit="share", at_once=True
    ),
    "share_of_points": MeasureKind("the share of {window} of {metric} {where}", unit="share"),
    "count": MeasureKind("the number of {window} of {metric} {where}", unit="count", at_once=True),
    "streak": MeasureKind(
        "how surely it is no chance that so many points of {metric} in a row are those {where} ({window} or more)",
        unit="ratio",
    ),
    "mean_fraction": MeasureKind(
        "the mean of {metric} over {window}, or as many as it takes to have seen {items} groups or completions",
        level=True,
        has_error=True,
    ),
    "drop_from_best": MeasureKind(
        "the fall of {metric} from its best so far (by the median of {window})",
        unit="noise",
        has_error=True,
        falls=True,
    ),
    "share_of_gain_lost": MeasureKind(
        "the part of its gain that {metric} has lost (by the median of {window})", unit="share", falls=True
    ),
    "gap_from_best": MeasureKind(
        "how far nearly all of {window} of {metric} lie below nearly all of those of its best median so far", falls=True
    ),
    "gain_since_start": MeasureKind(
        "the gain of {metric} (the median of {window} less that of the first {last})", unit="noise", has_error=True
    ),
    "climb": MeasureKind(
        "how far the median of {window} of {metric} lies above that of the {last} points before",
        unit="noise",
        has_error=True,
        predicts=True,
    ),
    "plunge": MeasureKind(
        "how far a point of {metric} lies below the median of the {last} before it", unit="noise", has_error=True
    ),
    "arrival": MeasureKind(
        "in how many points {metric} is down to a twentieth of its start, at the rate of {window}, where it falls ever "
        "faster,",
        unit="count",
        predicts=True,
    ),
    "correlation": MeasureKind(
        "the correlation of the changes of {metric} with those of {other} over {window}",
        unit="correlation",
        has_error=True,
    ),
    "gain_by_thirds": MeasureKind(
        "how far the mean of the newest third of {metric} lies above that of its first third",
        unit="noise",
        has_error=True,
        at_once=True,
    ),
    "rank_trend": MeasureKind(
        "the rank correlation of {metric} with time (means of twelve parts of all its points, {last} or more)",
        unit="correlation",
        falls=True,
    ),
    "order_score": MeasureKind(
        "Mann and Kendall's score of the order of all points of {metric} ({last} to 120 of them)",
        unit="correlation",
        falls=True,
        in_parts=True,
    ),
    "standstill": MeasureKind(
        "how many times longer than usual {metric} has stood still ({window} or more)", unit="ratio"
    ),
    "standstill_beyond_chance": MeasureKind(
        "how many times longer than usual {metric} has stood still, or than half of what chance explains of a common "
        "value ({window} or more)",
        unit="ratio",
    ),
    "max_so_far": MeasureKind("the largest value of {metric} so far", level=True, at_once=True),
    "above_lowest": MeasureKind("how far the largest of {window} of {metric} lies above its lowest so far"),
    "below_all_before": MeasureKind(
        "the number of newest points of {metric} that lie below all points before them ({last} or more)",
        unit="count",
        of_newest=True,
    ),
    "shift_down": MeasureKind(
        "how far five or more newest points of {metric} lie below all of the {last} before them, in spans of these",
        unit="ratio",
        of_newest=True,
    ),
}
MEASURES = tuple(KINDS)
COUNTS = ("count", "streak")  # each point is compared with its past before it is counted
STANDSTILLS = ("standstill", "standstill_beyond_chance")  # begin with the first row of the newest value
ESTIMATED = tuple(name for name, kind in KINDS.items() if kind.has_error)
