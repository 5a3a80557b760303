"""The YAML of names holds together: every alias leads to a metric, and every name resolves where its framework logs
it.
"""

from __future__ import annotations

import itertools

import pytest

from rlhealth.metrics import meaning, meanings
from rlhealth.metrics.catalogue import FOLDER, Alias, frameworks, names, pattern_of, rewritten, version_of
from rlhealth.metrics.recognise import Recognised
from rlhealth.metrics.transforms import change_of, reduction_of
from rlhealth.metrics.translation import translate
from rlhealth.parsing.own_texts import read_texts
from tests.examples import is_thorough
from tests.metrics.logged import run_of

INDEXED = {entry["names"] for entry in frameworks()}
FILES = sorted(INDEXED | {base for file in INDEXED for base in read_texts(FOLDER / file).get("base", [])})
KEYS = {
    "of",
    "as",
    "drop",
    "smoothed",
    "since",
    "until",
    "transform",
    "estimator",
    "unit",
    "note",
    "unsure",
    "except",
    "if_unknown",
    "steps_of",
}
SECTIONS = {
    "library",
    "base",
    "metrics",
    "histograms",
    "sums",
    "ignore",
    "eras",
    "settings",
    "settings_under",
    "options",
    "derived",
    "planned",
    "environment_steps",
    "lacks",
    "switches",
}
ENTRY = {
    "id",
    "title",
    "names",
    "library",
    "is_rl",
    "prefix",
    "strip",
    "class",
    "all",
    "any",
    "none",
    "axis",
    "zero",
    "signed",
    "counts_few",
    "needs_setting",
}
ENTRY |= {"spelling", "assume", "assume_since", "sure_names", "sure_settings"}


def aliases_of(file: str) -> list[Alias]:
    found = names(file)
    return [
        alias
        for group in (*found.exact.values(), *(aliases for _, aliases in found.patterns), *found.histograms.values())
        for alias in group
    ]


@pytest.mark.parametrize("file", FILES)
def test_every_alias_leads_to_a_metric_that_exists(file: str) -> None:
    for alias in aliases_of(file):
        assert bool(alias.name) != bool(alias.drop), alias
        if alias.name:
            assert meaning(alias.name.replace("{f}", "anything")) is not None, alias


@pytest.mark.parametrize("file", FILES)
def test_a_line_holds_only_words_that_are_read(file: str) -> None:
    """A comma in an unquoted note would cut it in two."""
    content = read_texts(FOLDER / file)
    assert set(content) <= SECTIONS
    for section in ("metrics", "histograms", "settings", "sums"):
        for raw, entry in content.get(section, {}).items():
            for one in entry if isinstance(entry, list) else [entry]:
                assert isinstance(one, str) or set(one) <= KEYS, (raw, one)


@pytest.mark.parametrize("file", FILES)
def test_a_switch_and_what_it_switches_are_settings_of_the_same_trainer(file: str) -> None:
    found = names(file)
    known = {one.name for one in found.settings}
    assert {*found.switches, *found.switches.values()} <= known


def test_an_entry_of_the_index_holds_only_words_that_are_read() -> None:
    assert {key for entry in frameworks() for key in entry} <= ENTRY


def test_the_names_of_every_trainer_are_made_once_however_many_trainers_there_are():
    first = [names(entry["names"]) for entry in frameworks()]
    assert all(one is names(entry["names"]) for one, entry in zip(first, frameworks(), strict=True))


def test_every_names_file_is_in_the_index_and_the_other_way_round() -> None:
    held = {path.name for path in FOLDER.glob("*.yaml")} - {
        "canonical.yaml",
        "frameworks.yaml",
        "groups.yaml",
        "languages.yaml",
        "free_names.yaml",
        "options.yaml",
        "rewards.yaml",
        "to_log.yaml",
        "trackers.yaml",
        "usual.yaml",
        "warned.yaml",
    }
    assert held == set(FILES)


@pytest.mark.parametrize("file", FILES)
def test_every_transform_is_one_that_is_known(file: str) -> None:
    for alias in aliases_of(file):
        if alias.transform.startswith("histogram"):
            reduction_of(alias.transform)
        else:
            change_of(alias.transform, {})


@pytest.mark.parametrize("entry", frameworks(), ids=lambda entry: f"{entry['id']}-{entry['names']}")
def test_every_name_of_a_framework_resolves_when_it_logs_it(entry: dict[str, object]) -> None:
    """One name at a time beside the names that the framework is known by, with the trackers' prefixes in turn; in the
    thorough profile with each of them."""
    file = str(entry["names"])
    marks = [*entry.get("all", []), *entry.get("any", [])[:1], *entry.get("zero", [])]  # type: ignore[misc,index]
    marks = [mark.replace("*", "x") for mark in marks]
    config = dict.fromkeys(entry.get("needs_setting", []), 1)  # type: ignore[arg-type]
    prefixes = entry.get("prefix", []) or [""]  # type: ignore[call-overload]
    pairs = (
        itertools.product if is_thorough() else lambda some, others: zip(some, itertools.cycle(others), strict=False)
    )
    for alias, prefix in pairs(aliases_of(file), prefixes):
        if alias.drop or alias.raw in names(file).histograms or alias.transform.startswith("over"):
            continue
        raw = (
            alias.raw.replace("{f}", "fn")
            .replace("{d}", "set")
            .replace("{p}", "p0")
            .replace("{n}", "8")
            .replace("{agent}", "solver")
            .replace("*", "info/")
        )
        if any(mark in (raw,) for mark in entry.get("none", [])):  # type: ignore[attr-defined]
            continue
        run = run_of(
            {name: [0.0 if name in entry.get("zero", []) else 0.5] for name in dict.fromkeys([*marks, raw])},
            prefix=str(prefix),
            config=config,
        )  # type: ignore[operator]
        run.step_axis = next(iter(entry.get("axis", [])), run.step_axis)  # type: ignore[call-overload]
        version = next((v for v in (alias.since, alias.until and alias.until[:3]) if v), None)
        if version and names(file).library:
            run.versions[names(file).library] = ".".join(map(str, version))
        translation = translate(run)
        found = {metric.tag for metric in translation.metrics.values()} | set(translation.dropped)
        rivals = [metric for metric in translation.metrics.values() if metric.name == alias.name.replace("{f}", "fn")]
        assert str(prefix) + raw in found or rivals, (translation.framework, raw)
        assert str(prefix) + raw not in translation.unrecognised


def test_a_metric_has_a_title_a_unit_and_possible_values() -> None:
    for one in meanings().values():
        assert one.title and one.unit and one.group
        assert one.better in ("up", "down", "none")
        assert one.low is None or one.high is None or one.low < one.high


def test_the_reward_of_a_function_and_a_metric_in_evaluation_have_a_meaning() -> None:
    assert meaning("rewards/format/mean").title == "reward format"  # type: ignore[union-attr]
    assert meaning("eval/kl").unit == "nats/token"  # type: ignore[union-attr]
    assert meaning("klx") is None


@pytest.mark.parametrize(
    ("text", "version"),
    [("0.10", (0, 10, 0)), ("1.16.0.dev0", (1, 16, 0)), ("v0.3.0.post1", (0, 3, 0)), ("main", None), (None, None)],
)
def test_versions_are_compared_by_their_parts(text: str | None, version: tuple[int, ...] | None) -> None:
    assert version_of(text) == version
    assert version_of("0.9") < version_of("0.10")  # type: ignore[operator]


def test_a_placeholder_stands_for_one_part_of_a_name_only() -> None:
    assert pattern_of("rewards/{f}").fullmatch("rewards/format")
    assert not pattern_of("rewards/{f}").fullmatch("rewards/format/mean")
    assert pattern_of("*learner_stats/kl").fullmatch("info/learner/p/learner_stats/kl")
    assert not pattern_of("a.b").fullmatch("axb")


def test_what_tensorboardx_rewrites_still_matches() -> None:
    assert rewritten("actor/lr(1e-4)") == "actor/lr_1e-4_"
    assert pattern_of("val-core/{d}/reward/mean@{n}").fullmatch("val-core/gsm8k/reward/mean_8")


def test_recognised_knows_whether_the_hugging_face_trainer_logged() -> None:
    found = Recognised({"id": "x", "prefix": ["train/"]}, names("trl_grpo.yaml"), None, None, None)
    assert found.is_hugging_face
