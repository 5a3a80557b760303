"""Cases of `*.test.yaml`: what is logged, and what a rule must report."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, StrictBool, StrictInt, StrictStr, field_validator, model_validator

from rlhealth.authoring.shorthand import read_shorthand
from rlhealth.errors import RlhealthError
from rlhealth.metrics import Metric, Translation, meaning, meanings
from rlhealth.metrics.catalogue import frameworks, names
from rlhealth.metrics.groups import members
from rlhealth.metrics.metric import HistogramSeries
from rlhealth.metrics.transforms import reduction_of
from rlhealth.metrics.usual import usual_settings
from rlhealth.parsing.checked import checked, meant, place
from rlhealth.parsing.strict_data import Number, Setting
from rlhealth.parsing.strict_model import StrictModel
from rlhealth.parsing.strict_yaml import read_yaml
from rlhealth.rules.model import Rule
from rlhealth.run import Place, Run, Series

BEGAN = 1_700_000_000.0  # an arbitrary time: only differences of times are judged
STEP_TAKES = 10.0  # seconds


class LoggedHistogram(StrictModel):
    """A distribution that is logged again and again: bin edges of shape (b+1,), counts of shape (b,)."""

    edges: tuple[Number, ...]
    counts: tuple[Number, ...]
    repeat: Annotated[StrictInt, Field(ge=1)] = 1

    @model_validator(mode="after")
    def _fits(self) -> LoggedHistogram:
        if len(self.edges) != len(self.counts) + 1:
            raise ValueError("there must be one edge more than counts")
        return self


class Expected(StrictModel):
    """What a finding must hold; what is not named may be anything.

    `severity` is that of the finding while it held. Text may stand anywhere in the finding's; numbers hold to one
    percent. `changes`: option to new value, all of them.
    """

    severity: Literal["info", "warning", "critical"] | None = None
    metric: StrictStr | None = None
    first_step: StrictInt | None = None
    raised_step: StrictInt | None = None
    last_step: StrictInt | None = None
    worst_step: StrictInt | None = None
    active: StrictBool | None = None
    state: Literal["standing", "lasting", "over"] | None = None
    from_start: StrictBool | None = None
    episodes: StrictInt | None = None
    value: Number | None = None
    limit: Number | None = None
    message: StrictStr | None = None
    advice: StrictStr | None = None
    explains: tuple[StrictStr, ...] | None = None
    changes: dict[StrictStr, Setting] | None = None


class Case(StrictModel):
    """One run in a few lines, and what the rule must report.

    Attributes:
        framework: its id; one that the rule is about if not given.
        every: steps between points (logging_steps).
        from: the step of the first point, where it is not `every`.
        series: canonical metric to shorthand.
        histograms: raw tag to distribution, as that framework's names say what is read off it.
        config: canonical settings.
        steps: where there are no series, a reward that is logged this often; of 0 the log is empty.
        raised: the exception that ended it, as a console or a notebook shows it.
        closed: whether training ended in good order; left out by runs that continue, die or fall silent.
        torn: the file ends inside a record, as that of a killed writer does.
        idle: seconds since the newest point.
        ended: whether the user says that the run is over.
    """

    name: StrictStr
    framework: StrictStr | None = None
    every: Annotated[StrictInt, Field(ge=1)] = 1
    from_: Annotated[StrictInt, Field(ge=0)] | None = Field(default=None, alias="from")
    series: dict[str, StrictStr | Number] = Field(default_factory=dict)
    histograms: dict[str, LoggedHistogram] = Field(default_factory=dict)
    config: dict[str, Setting] = Field(default_factory=dict)
    steps: Annotated[StrictInt, Field(ge=0)] | None = None
    planned: StrictInt | None = None
    exit_code: StrictInt | None = None
    raised: StrictStr = ""
    idle: Number = 0
    closed: StrictBool = True
    torn: StrictBool = False
    ended: StrictBool = False
    expect: Literal["quiet", "skipped"] | Expected

    @field_validator("series")
    @classmethod
    def _readable(cls, series: dict[str, str | float]) -> dict[str, str | float]:
        for name, text in series.items():
            if meaning(name) is None:
                raise ValueError(f"there is no metric `{name}`{meant(name, meanings())}")
            read_shorthand(str(text))
        return series

    @field_validator("framework")
    @classmethod
    def _known(cls, framework: str | None) -> str | None:
        if framework is not None and framework not in framework_ids():
            raise ValueError(f"there is no framework `{framework}`{meant(framework, framework_ids())}")
        return framework

    @model_validator(mode="after")
    def _has_points(self) -> Case:
        if not self.series and not self.histograms and self.steps is None:
            raise ValueError("needs `series`, `histograms` or `steps`")
        if self.config and (unknown := sorted(self.config.keys() - setting_names())):
            raise ValueError(f"there is no setting `{unknown[0]}`{meant(unknown[0], setting_names())}")
        return self


class TestFile(StrictModel):
    """A file of cases of one rule."""

    rule: StrictStr
    cases: Annotated[tuple[Case, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _names_differ(self) -> TestFile:
        seen: set[str] = set()
        for one in self.cases:
            if one.name in seen:
                raise ValueError(f"two cases are called {one.name!r}")
            seen.add(one.name)
        return self


def framework_ids() -> set[str]:
    """Every framework's id."""
    return {entry["id"] for entry in frameworks()}


@lru_cache(maxsize=1)
def setting_names() -> frozenset[str]:
    """Every canonical setting that some framework has, and the planned steps, which are read off settings or the
    log."""
    known = [names(entry["names"]) for entry in frameworks()]
    return frozenset(
        ["planned_steps"]
        + [name for one in known for name in (*(alias.name for alias in one.settings), *one.derived, *one.options)]
    )


def read_cases(text: str, location: str, rules: dict[str, Rule]) -> TestFile:
    """The cases of one test file.

    Raises:
        RlhealthError: naming `location:line:column` and, for a misspelt name, what may have been meant.
    """
    raw, marks = read_yaml(text, location)
    if not isinstance(raw, dict):
        raise RlhealthError(
            f"{location}:1:1: a test file holds one mapping", hint="see `rlhealth rules new`", location=location
        )
    found = checked(TestFile, raw, marks, location, "`rlhealth rules schema --tests` prints the schema of test files")
    if found.rule not in rules:
        raise RlhealthError(
            f"{place(location, marks, ('rule',))}: no rule `{found.rule}`{meant(found.rule, rules)}",
            hint="`rlhealth rules list` shows them",
            location=location,
        )
    return found


def test_files(folder: Path) -> Iterator[Path]:
    """Every test file at and below a folder, in order of name."""
    for one in sorted(folder.iterdir(), key=lambda one: one.name):
        if one.is_dir():
            yield from test_files(one)
        elif one.name.endswith((".test.yaml", ".test.yml")):
            yield one


test_files.__test__ = False  # type: ignore[attr-defined]  # no test of pytest's, whatever its name
TestFile.__test__ = False  # type: ignore[attr-defined]


def run_of(case: Case) -> Run:
    """The run that a case describes, under canonical names."""
    run = Run(
        case.name,
        Place("case", case.name),
        config=dict(case.config),
        exit_code=case.exit_code,
        planned_steps=case.planned,
        raised=case.raised,
        clean=False if case.torn else None,
    )
    alone = {"reward": f"1~0.1x{case.steps}"} if case.steps and not case.histograms else {}
    for name, text in (case.series or alone).items():
        places, values = read_shorthand(str(text), name)
        steps = case.every * places + (case.every if case.from_ is None else case.from_)
        run.add(name, steps, values, np.asarray(BEGAN + STEP_TAKES * steps, np.float64))
    for tag, shape in case.histograms.items():
        for place_ in range(shape.repeat):
            step = case.every * (place_ + 1)
            run.histogram(tag).add(step, shape.edges, shape.counts, BEGAN + STEP_TAKES * step)
    if case.closed and run.last_step is not None:
        run.add("train_runtime", [run.last_step], [STEP_TAKES * run.last_step], [run.last_time])
    return run


def translation_of(case: Case, run: Run, rule: Rule) -> Translation:
    """The case's run in canonical names, which it was written in."""
    wanted = case.framework or _framework_for(rule)
    entry = next(one for one in frameworks() if one["id"] == wanted)
    metrics = {tag: _metric(tag, series) for tag, series in run.series.items() if meaning(tag) is not None}
    known = names(entry["names"])
    for tag, histogram in run.histograms.items():
        for alias in known.histograms.get(tag, ()):
            one = meaning(alias.name)
            source = HistogramSeries(
                histogram, reduction_of(alias.transform), _number(case.config.get("clip_range"), 0.2)
            )
            metrics.setdefault(
                alias.name,
                Metric(
                    name=alias.name,
                    tag=tag,
                    unit=one.unit if one else "",
                    estimator="",
                    transform=alias.transform,
                    note="",
                    source=source,
                ),
            )
    options = {alias.name: alias.raw for alias in reversed(known.settings) if alias.until is None} | known.options
    return Translation(
        framework=entry["id"],
        title=entry["title"],
        version=None,
        is_rl=entry.get("is_rl") != "no",
        assumed=(),
        metrics=metrics,
        config=dict(case.config),
        options=options,
        unrecognised=(),
        planned_steps=case.planned,
        lacks=known.lacks,
        usual=usual_settings(entry["id"], case.config),
    )


def _metric(name: str, series: Series) -> Metric:
    one = meaning(name)
    return Metric(name=name, tag=name, unit=one.unit if one else "", estimator="", transform="", note="", source=series)


def _number(said: Any, default: float) -> float:
    return float(said) if isinstance(said, int | float) and not isinstance(said, bool) else default


def _framework_for(rule: Rule) -> str:
    patterns = [one for one in members(rule.scope.frameworks) if one in framework_ids()]
    return patterns[0] if patterns else "trl-grpo"


def newest_time(run: Run) -> float:
    """Wall time of a case's newest point, from which `idle` counts."""
    return run.last_time if np.isfinite(run.last_time) else BEGAN
