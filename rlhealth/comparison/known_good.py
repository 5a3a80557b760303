"""Known-good runs, and the differences of another run that show before any value is compared: settings, metrics,
length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rlhealth.comparison.envelope import Envelope, Scale, curve, envelope
from rlhealth.errors import RlhealthError
from rlhealth.metrics import Metric, Translation, meaning, translate
from rlhealth.run import Run

_NOT_OF_THE_TASK = ("progress", "speed")  # groups of metrics
_SETTINGS = (
    "learning_rate",
    "critic/learning_rate",
    "clip_range",
    "clip_range_vf",
    "entropy_coef",
)  # logged, but no measurements: reported among the settings
_NO_CHOICES = ("max_steps", "epochs", "logging_steps", "num_total_batches")


RULE = "left-envelope"
FAMILY = "baseline"
TITLE = "Left the envelope of known-good runs"
FIRES = (
    "the median of a metric's last 5 points is outside the band of the known-good runs "
    "for 5 points in a row (`--for`), in `rlhealth compare`",
    "a metric is NaN or infinite, and none of the known-good runs ever was",
    "info, not warning, where it left on the side to which a healthy run moves: a higher reward",
)
WHY = (
    "Known-good runs of the same task show what is usual at each step, better than any limit that "
    "has to fit all tasks. The band is from the lowest to the "
    "highest of them, widened by their noise, by what so few runs cannot show, and by "
    "the furthest that one of them strays from the others."
)
TRY = (
    "Look at the settings that differ, which the finding names.",
    "Look at the step at which the first metric left: the batch, the checkpoint before it, the learning rate.",
)
LIMITS = (
    "noise: three robust standard deviations of the points around their median, pooled over the known-good runs",
    "range: n runs show (n - 1)/(n + 1) of the range that runs can take (David and Nagaraja, Order Statistics, 2003)",
    "strangeness: the furthest that one of the known-good runs is outside the "
    "band of the others for as many points in a row",
    "labelled corpus: with three known-good runs of a task, whose settings differed among them, "
    "1.1 % of a healthy run's metrics left the band (34 of 3,000), "
    "and all of 13 unhealthy runs did (260 of 260 comparisons), at the median from the very step at "
    "which they fell ill; a run that merely stops is not found",
)


@dataclass(frozen=True)
class UsualBand:
    """The usual range of one metric: its scale and its band; None if too few of the runs have enough
    points.
    """

    scale: Scale
    band: Envelope | None


@dataclass(frozen=True)
class KnownGood:
    """The runs to compare with, in canonical names."""

    runs: tuple[Run, ...]
    translations: tuple[Translation, ...]
    _usual: dict[tuple[str, int], UsualBand] = field(default_factory=dict, repr=False, compare=False)

    def metrics(self, name: str) -> list[Metric]:
        """That metric of each run that has it."""
        return [one.metrics[name] for one in self.translations if name in one.metrics and len(one.metrics[name])]

    def usual(self, name: str, hold: int) -> UsualBand:
        """The usual range of a metric that two or more of the runs have, if a run must be outside for `hold` points;
        computed once for all compared runs.
        """
        if (name, hold) not in self._usual:
            good, known = self.metrics(name), meaning(name)
            scale = Scale(good, known is not None and known.log)
            curves = [one for one in (curve(other, scale) for other in good) if one is not None]
            self._usual[name, hold] = UsualBand(scale, envelope(curves, hold) if len(curves) > 1 else None)
        return self._usual[name, hold]


def known_good_of(runs: Sequence[Run], aliases: Mapping[str, str] | None = None) -> KnownGood:
    """The runs, prepared for comparison.

    Raises:
        RlhealthError: for fewer than two, because one run does not show how much good runs differ.
    """
    if len(runs) < 2:
        said = "no known-good run" if not runs else f"one known-good run ({runs[0].name})"
        hint = (
            "give two or more of the same task: --baseline runs/good-1 --baseline "
            "runs/good-2, or a folder that holds them"
        )
        raise RlhealthError(f"{said} does not show how much good runs differ from each other", hint=hint)
    return KnownGood(tuple(runs), tuple(translate(run, aliases) for run in runs))


def comparable(name: str) -> bool:
    """Whether a metric is about the run's health: its progress, the speed of its machine and its settings are
    not.
    """
    known = meaning(name)
    return name not in _SETTINGS and (known is None or known.group not in _NOT_OF_THE_TASK)


def other_trainer(translation: Translation, known: KnownGood) -> str:
    """A sentence that other trainers logged the known-good runs than this run; empty if that is not known."""
    theirs = {one.framework: one.title for one in known.translations}
    if {translation.framework, *theirs} & {"generic", "unknown"} or translation.framework in theirs:
        return ""
    return f"the trainers differ: {translation.title} here, {' and '.join(theirs.values())} in the known-good runs"


def differences(translation: Translation, known: KnownGood) -> str:
    """The settings that no known-good run has, in a sentence; empty if there are none."""
    said = []
    for key, value in sorted(translation.config.items()):
        theirs = [one.config[key] for one in known.translations if key in one.config]
        if key not in _NO_CHOICES and theirs and value not in theirs:
            option = translation.options.get(key, key)
            said.append(
                f"{option} is {_shown(value)} ({', '.join(dict.fromkeys(map(_shown, theirs)))} in known-good runs)"
            )
    return f"Settings that differ: {'; '.join(said)}." if said else ""


def _shown(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def missing_in(translation: Translation, known: KnownGood) -> list[str]:
    """The metrics that every known-good run has and this one has not."""
    everywhere = set.intersection(
        *({name for name, one in other.metrics.items() if len(one)} for other in known.translations)
    )
    return sorted(name for name in everywhere if comparable(name) and not len(translation.metrics.get(name, ())))


@dataclass(frozen=True)
class Unlike:
    """The metrics that could not be compared.

    Attributes:
        apart: those that fewer than two known-good runs have.
        few: those with too few points at steps that two known-good runs reached.
        missing: those that every known-good run has and this one has not.
    """

    apart: tuple[str, ...]
    few: tuple[str, ...]
    missing: tuple[str, ...]

    def nothing_compared(self, hold: int) -> str:
        """Why nothing was compared, if nothing was."""
        if self.few:
            return f"no metric of this run has {_points(hold)} at steps that two of the known-good runs reached"
        return "no metric of this run is in two of the known-good runs"


def _points(count: int) -> str:
    return f"{count} point{'s' if count != 1 else ''}"


def notes_on(run: Run, known: KnownGood, unlike: Unlike, ignore: Mapping[str, str], hold: int) -> list[str]:
    """Notes on the comparison: with which runs, up to which step, and what could not be compared."""
    ends = sorted((one.last_step or 0 for one in known.runs), reverse=True)
    notes = [f"compared with {len(known.runs)} known-good runs: {', '.join(one.name for one in known.runs)}"]
    if (run.last_step or 0) > ends[1]:
        notes.append(f"fewer than two known-good runs came beyond step {ends[1]}: from there on nothing was compared")
    if unlike.apart:
        notes.append(f"not compared, because fewer than two known-good runs have them: {', '.join(unlike.apart)}")
    if unlike.few:
        notes.append(
            f"not compared, because fewer than {_points(hold)} are at steps that two known-good runs reached: "
            f"{', '.join(unlike.few)}"
        )
    if unlike.missing:
        notes.append(f"every known-good run has these metrics, and this one has not: {', '.join(unlike.missing)}")
    notes += [f"not compared: {name} ({reason})" for name, reason in ignore.items()]
    axes = {one.step_axis for one in (run, *known.runs)}
    if len(axes) > 1:
        notes.append(f"steps may not be comparable: they count {' and '.join(sorted(axes))}")
    return notes
