"""Which trainer some options belong to, recognised by their names, and what they mean as canonical settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from rlhealth.errors import RlhealthError
from rlhealth.metrics.catalogue import FOLDER, Names, frameworks, names
from rlhealth.metrics.recognise import PLAIN, Recognised, asks_values, recognise
from rlhealth.metrics.settings import plain, settings_of
from rlhealth.metrics.translation import translate
from rlhealth.parsing.checked import meant
from rlhealth.parsing.own_texts import read_texts
from rlhealth.preflight.options import Options
from rlhealth.run import Place, Run

FEWEST = 2  # options of a trainer's own vocabulary by which it is recognised; one that has dots is enough
#: Sections of a config whose options are not the trainer's own, though they may have its names.
_OTHERS = frozenset(
    {"model_config", "generation_kwargs", "val_kwargs", "critic", "reward_model", "ref", "eval", "peft", "lora", "env"}
)
#: In a log without settings, the largest value of these metrics is used as the setting.
_LOGGED = {"learning_rate": "learning_rate"}


@dataclass
class Settings:
    """Canonical settings of one training.

    Attributes:
        options_of: the options as they were written.
        framework, title: the trainer's id, and what people call it.
        is_rl: False for supervised training, which other settings hurt.
        values: canonical name to value; what is not set is absent.
        options: canonical name to the option as it stands in the file, or as this trainer calls it.
        started: whether it is a run's own log, and so has started.
    """

    options_of: Options
    framework: str
    title: str
    is_rl: bool
    values: dict[str, Any]
    options: dict[str, str] = field(default_factory=dict)
    started: bool = False

    @property
    def count(self) -> int:
        """How many options were understood; one may be several canonical settings."""
        return len({self.options.get(name, name) for name in self.values})


def settings_in(options: Options, framework: str | None = None) -> Settings:
    """What the options mean, for the trainer that has them.

    Raises:
        RlhealthError: if no trainer is recognised, or `framework` is none.
    """
    entry = entry_of(framework) if framework else _best_match(options)
    known = Recognised(entry, names(entry["names"]), None, None, None)
    written = _written(options.values, known.names)
    run = Run(
        options.location,
        Place("config", options.location),
        config={raw: options.values[key] for raw, key in written.items()},
    )
    values = {name: value for name, value in settings_of(run, known).items() if value is not None}
    calls: dict[str, str] = {}
    for alias in known.names.settings:
        if alias.name not in calls or (alias.raw in written and calls[alias.name] not in options.values):
            calls[alias.name] = written.get(alias.raw, alias.raw)
    return Settings(options, entry["id"], entry["title"], entry.get("is_rl") != "no", values, calls)


def settings_of_run(run: Run) -> Settings:
    """The settings of a logged run; settings that were not logged are taken from its metrics."""
    known = translate(run)
    values = {name: value for name, value in known.config.items() if value is not None}
    options = Options(run.place.location, dict(run.config), trainer=run.trainer)
    for name, metric in _LOGGED.items():
        series = known.metrics.get(metric)
        if name not in values and series is not None and len(series):
            largest = float(max(series.values))
            if largest > 0:
                values[name] = largest
    return Settings(options, known.framework, known.title, known.is_rl, values, dict(known.options), started=True)


def entry_of(framework: str) -> dict[str, Any]:
    """The entry of a trainer in frameworks.yaml. Raises RlhealthError if there is none."""
    ids = [str(one["id"]) for one in frameworks()]
    found = next((one for one in frameworks() if one["id"] == framework), None)
    if found is None:
        raise RlhealthError(
            f"--framework {framework}: unknown trainer" + meant(framework, ids),
            hint=f"one of {', '.join(dict.fromkeys(ids))}",
        )
    return found


def _best_match(options: Options) -> dict[str, Any]:
    """The entry of the trainer with most of these option names; a trainer that the code names takes precedence."""
    if options.trainer:
        run = Run(options.location, Place("config", options.location), trainer=options.trainer)
        entry = recognise(run).entry
        if entry.get("class") not in (None, *PLAIN) or options.trainer in ("PPO", "A2C", "DQN", "SAC", "TD3"):
            return entry if entry["id"] != "unknown" else entry_of("sb3")
    best: tuple[tuple[int, int], dict[str, Any]] | None = None
    for entry in frameworks():
        if "needs_setting" in entry and not any(key in options.values for key in entry["needs_setting"]):
            continue
        if asks_values(entry):
            continue
        own = _own(entry["names"])
        hits = list(_written(options.values, names(entry["names"])))
        mine = [raw for raw in hits if raw in own]
        weight = len(hits) + sum(FEWEST for raw in mine if "." in raw)
        if mine and weight >= FEWEST and (best is None or (weight, len(mine)) > best[0]):
            best = (weight, len(mine)), entry
    if best is None:
        raise RlhealthError(
            f"{options.location}: its options match no known trainer",
            hint="name it: --framework trl-grpo, verl, openrlhf, …",
            location=options.location,
        )
    return best[1]


@lru_cache(maxsize=64)
def _own(file: str) -> frozenset[str]:
    """The options in a trainer's own file of names, without those of the files that it builds on."""
    return frozenset(read_texts(FOLDER / file).get("settings", {}))


def _written(values: Mapping[str, Any], known: Names) -> dict[str, str]:
    """The trainer's name of each option that is there to the key that it stands under: itself, or the end of one key
    alone."""
    found: dict[str, str] = {}
    for raw in dict.fromkeys(alias.raw for alias in known.settings):
        if raw in values:
            found[raw] = raw
            continue
        ends = [
            key for key in values if key.endswith(f".{raw}") and not _OTHERS & set(key.removesuffix(raw).split("."))
        ]
        if len(ends) == 1:
            found[raw] = ends[0]
    return {raw: key for raw, key in found.items() if plain(values[key]) is not None}
