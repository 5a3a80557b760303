"""Settings: found from the folder upwards, checked with their place, and put into the rules."""

import json
import tomllib
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlhealth.authoring.case_runs import judge_case
from rlhealth.authoring.cases import read_cases
from rlhealth.errors import RlhealthError
from rlhealth.parsing.toml_places import toml_places
from rlhealth.rules.loading import load_rules, shipped_rules
from rlhealth.settings.project import apply, load_settings
from rlhealth.settings.schema import SettingsFile
from rlhealth.settings.schema import examples as examples_of_keys
from tests.examples import examples

RULES = load_rules()
TODAY = date(2026, 6, 1)


def load(folder: Path, text: str, name: str = "rlhealth.toml"):
    (folder / name).write_text(text, encoding="utf-8")
    return load_settings(folder, today=TODAY)


def rule(rules, name):
    return next(one for one in rules if one.id == name)


def test_without_a_file_nothing_is_set(tmp_path):
    found = load_settings(tmp_path)
    assert (found.location, found.fail_on, found.ignore, found.notes) == ("", None, {}, ())
    assert apply(found, RULES) == RULES


def test_the_nearest_file_upwards_counts(tmp_path):
    (tmp_path / "rlhealth.toml").write_text('fail-on = "info"')
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert load_settings(below).fail_on == "info"
    (tmp_path / "a" / "pyproject.toml").write_text('[project]\nname = "other"')
    assert load_settings(below).fail_on == "info", "a pyproject.toml that does not speak of rlhealth is passed by"
    (tmp_path / "a" / "pyproject.toml").write_text('[tool.rlhealth]\nfail-on = "warning"')
    assert load_settings(below).fail_on == "warning"
    (tmp_path / "a" / "rlhealth.toml").write_text('fail-on = "never"')
    assert load_settings(below).fail_on == "never", "rlhealth.toml goes before pyproject.toml"


def test_a_file_that_is_named_counts_alone(tmp_path):
    (tmp_path / "rlhealth.toml").write_text('fail-on = "info"')
    (tmp_path / "ci.toml").write_text('fail-on = "never"')
    assert load_settings(tmp_path, tmp_path / "ci.toml").fail_on == "never"
    with pytest.raises(RlhealthError, match=r"none\.toml: cannot be read"):
        load_settings(tmp_path, tmp_path / "none.toml")


def test_everything_that_may_be_set(tmp_path):
    (tmp_path / "mine").mkdir()
    found = load(
        tmp_path,
        """
        fail-on = "warning"
        select = ["kl-high", "reward-decline"]
        require = ["kl-high"]
        min-steps = 20
        rule-folders = ["mine"]
        ignore = [{rule = "stalled", reason = "stopped by hand"}]
        [rules.kl-high-per-token]
        above = 2.0
        held_for = 5
        critical = {above = 9}
        [gate]
        ended = true
        [aliases]
        "my/kl" = "kl"
        """,
    )
    assert (found.fail_on, found.select, found.require, found.min_steps, found.ended) == (
        "warning",
        ("kl-high", "reward-decline"),
        ("kl-high",),
        20,
        True,
    )
    assert (found.rule_folders, found.ignore, found.aliases) == (
        (tmp_path / "mine",),
        {"stalled": "stopped by hand"},
        {"my/kl": "kl"},
    )
    changed = rule(apply(found, RULES), "kl-high-per-token")
    assert (changed.when.conditions[0].above, changed.when.held_for, changed.critical.above) == (2.0, 5, 9)
    assert changed.cites.startswith("changed in ") and rule(RULES, "kl-high-per-token").cites in changed.cites


def test_an_ignore_that_expired_counts_again_and_is_reported(tmp_path):
    text = '[[ignore]]\nrule = "stalled"\nreason = "known"\nuntil = {}\n'
    assert load(tmp_path, text.format("2026-06-01")).ignore == {"stalled": "known"}, "the last day still holds"
    found = load(tmp_path, text.format("2026-05-31"))
    assert found.ignore == {}
    assert found.notes == (f"{found.location}: ignoring stalled (known) ended on 2026-05-31: it counts again",)


CASES = """
rule: kl-high-per-token
cases:
  - {name: two nats, series: {kl: "0..2x100 2x4"}, expect: quiet}
"""


def test_a_severity_that_is_set_holds_for_every_aspect_and_level(tmp_path):
    text = CASES.replace("0..2x100 2x4", "0.1x20 900x20")
    case = read_cases(text, "f", {one.id: one for one in RULES}).cases[0]
    for severity in ("info", "critical"):
        changed = apply(load(tmp_path, f'[rules.kl-high-per-token]\nseverity = "{severity}"'), RULES)
        ours = rule(changed, "kl-high-per-token")
        assert {one.severity for one in ours.aspects} == {severity}
        assert severity == "info" or all(one.critical is None for one in ours.aspects)
        assert [str(one.worst_severity) for one in judge_case(case, ours, changed).findings] == ["critical"]


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("", "warning"),
        ("above = 2.2", None),
        ("limit = 2.2", None),
        ("critical.above = 1.8", "critical"),
        ("held_for = 30", None),
        ('severity = "info"', "info"),
        ("above = 0.5\ncritical.above = 0.6", "critical"),
    ],
)
def test_a_parameter_changes_what_the_engine_says(tmp_path, text, severity):
    changed = apply(load(tmp_path, f"[rules.kl-high-per-token]\n{text}"), RULES)
    case = read_cases(CASES, "f", {one.id: one for one in RULES}).cases[0]
    found = judge_case(case, rule(changed, "kl-high-per-token"), changed).findings
    assert [str(one.severity) for one in found] == ([severity] if severity else [])


def test_an_aspect_that_repeats_the_limit_of_its_rule_takes_the_one_that_is_set(tmp_path):
    shipped = rule(RULES, "kl-high-per-sequence")
    assert shipped.aspects[0].when.all[0] == shipped.when.all[0]
    text = "[rules.kl-high-per-sequence]\nabove = 20\ncritical.above = 30\n"
    changed = rule(apply(load(tmp_path, text), RULES), "kl-high-per-sequence")
    assert [one.above for one in (changed.when.all[0], *changed.aspects[0].when.all)] == [20, 20, 1.5]


def test_a_rule_with_two_sides_takes_each_by_its_name(tmp_path):
    changed = rule(apply(load(tmp_path, "[rules.sampler-ratio-off]\nabove = 4.0"), RULES), "sampler-ratio-off")
    assert [(one.below, one.above) for one in changed.when.conditions] == [(0.5, None), (None, 4.0)]


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ('fail_on = "warning"', "1:1", "fail_on: unknown key; did you mean `fail-on`?"),
        ('fail-on = "bad"', "1:1", "fail-on: expected one of 'critical', 'warning', 'info' or 'never'"),
        ("fail-on = 3", "1:1", "fail-on: expected one of 'critical', 'warning', 'info' or 'never'"),
        ('select = "kl-high"', "1:1", "select: expected a list, such as […]"),
        ("select = [3]", "1:11", "select.0: expected text in quotes"),
        ('ignore = ["entropy"]', "1:11", "ignore.0: expected a table of names and values"),
        ("aliases = 3", "1:1", "aliases: expected a table of names and values"),
        ("[aliases]\nfoo = 3", "2:1", "aliases.foo: expected text in quotes"),
        ("min-steps = 4.5", "1:1", "min-steps: expected a whole number"),
        ("min-steps = -4", "1:1", "min-steps: expected 0 or more"),
        ("[gate]\nstrict = 1", "2:1", "gate.strict: expected true or false"),
        ("[watch]\ninterval = 0", "2:1", "watch.interval: expected 0.1 or more"),
        ('[watch]\ninterval = "5"', "2:1", "watch.interval: expected a number"),
        (
            '\nselect = ["kl-high",\n  "kl-hihg"]',
            "3:3",
            "there is no rule or family `kl-hihg`; did you mean `kl-high`?",
        ),
        ('[[ignore]]\nrule = "stalled"', "1:1", "ignore.0.reason: is missing"),
        (
            'ignore = [{rule = "stalled", reason = ""}]',
            "1:30",
            "ignore.0.reason: expected text of 1 or more characters",
        ),
        (
            'ignore = [\n  {rule = "stalld", reason = "x"},\n]',
            "2:4",
            "there is no rule or family `stalld`; did you mean `stalled`?",
        ),
        (
            "[rules.kl-hi-per-token]\nabove = 1",
            "1:1",
            "there is no rule `kl-hi-per-token`; did you mean `kl-high-per-token`?",
        ),
        (
            "[rules]\nkl-high-per-token.abov = 1",
            "2:1",
            "rules.kl-high-per-token.abov: unknown key; did you mean `above`?",
        ),
        (
            "[rules.kl-high-per-token]\n# loose\nbelow = 1",
            "3:1",
            "kl-high-per-token has no limit `below`; it has `above`",
        ),
        ("[rules.kl-high-per-token]\nabove = 1\nlimit = 1", "2:1", "`limit` and `above` exclude each other"),
        ("[rules.kl-high-per-token]\nabove = true", "2:1", "rules.kl-high-per-token.above: expected a number"),
        ('[rules.kl-high-per-token]\nabove = "2"', "2:1", "rules.kl-high-per-token.above: expected a number"),
        (
            "[rules.kl-high-per-token]\nabove = 99",
            "1:1",
            "kl-high-per-token would be critical at 2.5, before the warning at 99",
        ),
        ("[rules.sampler-ratio-off]\nlimit = 1", "2:1", "sampler-ratio-off has two limits; say `above` or `below`"),
        ("[rules.run-died]\nlimit = 1", "2:1", "run-died has no limit that could be set"),
        ('[aliases]\n"my/kl" = "kll"', "2:1", "there is no metric `kll`; did you mean `kl`?"),
        ('rule-folders = ["nowhere"]', "1:17", "there is no folder nowhere"),
        ("fail-on = ", "1:11", "Invalid value"),
        ('fail-on = "info"\nfail-on = "info"', "2:17", "Cannot overwrite a value"),
    ],
)
def test_a_slip_is_reported_with_its_place_and_what_may_have_been_meant(tmp_path, text, place, said):
    for name, before in (("rlhealth.toml", ""), ("pyproject.toml", "tool.rlhealth")):
        if before and not text.startswith(("[rules", "[aliases")):
            continue
        full = (
            text.replace("[rules", "[tool.rlhealth.rules").replace("[aliases", "[tool.rlhealth.aliases")
            if before
            else text
        )
        folder = tmp_path / name.removesuffix(".toml")
        folder.mkdir()
        with pytest.raises(RlhealthError) as error:
            apply(load(folder, full, name), RULES)
        assert f"{name}:{place}: {said}" in error.value.message
        assert error.value.hint


@pytest.mark.parametrize(
    ("text", "name", "example"),
    [
        ('select = "kl-high"', "rlhealth.toml", '`select = ["kl-high"]`;'),
        ('ignore = ["entropy"]', "rlhealth.toml", '`[[ignore]]`, `rule = "entropy"`, `reason = "'),
        ('[tool.rlhealth]\nignore = ["entropy"]', "pyproject.toml", '`[[tool.rlhealth.ignore]]`, `rule = "entropy"`'),
    ],
)
def test_the_hint_shows_what_may_be_written_instead(tmp_path, text, name, example):
    with pytest.raises(RlhealthError) as error:
        load(tmp_path, text, name)
    assert error.value.hint.startswith(f"for example {example}")


@pytest.mark.parametrize("section", ["", "tool.rlhealth."])
def test_every_key_has_an_example_that_may_be_set(tmp_path, section):
    assert examples_of_keys(section).keys() == SettingsFile.model_json_schema()["properties"].keys()
    (tmp_path / "rules").mkdir()
    for key, lines in examples_of_keys(section).items():
        text = lines if lines.startswith("[") or not section else f"[{section[:-1]}]\n{lines}"
        found = load(tmp_path, text, "pyproject.toml" if section else "rlhealth.toml")
        assert found._said.model_fields_set == {key.replace("-", "_")}
        apply(found, RULES)


def test_somebody_elses_broken_pyproject_is_not_ours_to_judge(tmp_path):
    assert load(tmp_path, "[project\nname = 1", "pyproject.toml").location == ""


def test_settings_may_speak_of_rules_that_a_folder_adds(tmp_path):
    (tmp_path / "mine").mkdir()
    text = (
        (shipped_rules() / "kl-high" / "kl-high-per-token.yaml")
        .read_text(encoding="utf-8")
        .replace("id: kl-high-per-token", "id: my-kl")
    )
    (tmp_path / "mine" / "my-kl.yaml").write_text(text)
    found = load(tmp_path, 'rule-folders = ["mine"]\n[rules.my-kl]\nabove = 0.2')
    assert rule(apply(found, load_rules(*found.rule_folders)), "my-kl").when.conditions[0].above == 0.2


KEYS = st.sampled_from(["a", "b-c", "d_1", "x y", "in.dex", 'qu"ote'])
SCALARS = st.sampled_from(
    [
        "1",
        "-2.5e3",
        "true",
        "2026-01-01",
        '"te#xt = [ {"',
        "'lit]eral}'",
        '"""mul\nti "q" line"""',
        "'''raw\n= #'''",
        '"esc\\" = \\\\"',
    ]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: "[ # a comment = [\n" + ",\n ".join(items) + "\n]"),
        st.dictionaries(KEYS, inner, max_size=3).map(
            lambda items: "{" + ", ".join(f"{quoted(key)} = {one}" for key, one in items.items()) + "}"
        ),
    ),
    max_leaves=6,
)


def quoted(key: str) -> str:
    return key if key.replace("-", "").replace("_", "").isalnum() else "'" + key + "'"


def paths_of(value, path=()):
    yield path, value
    if isinstance(value, dict):
        for key, one in value.items():
            yield from paths_of(one, (*path, key))
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from paths_of(one, (*path, index))


@settings(max_examples=examples(150), deadline=None)
@given(
    st.dictionaries(KEYS, VALUES, max_size=3),
    st.lists(st.dictionaries(KEYS, VALUES, max_size=2), max_size=3),
    st.dictionaries(KEYS, VALUES, max_size=2),
)
def test_every_key_of_any_toml_has_its_place(top, items, table):
    lines = [f"{quoted(key)} = {value}  # end" for key, value in top.items()]
    for one in items:
        lines += ["[[list]]", *(f"  {quoted(key)} = {value}" for key, value in one.items()), "[list.sub.deep]", "z = 1"]
    lines += ["[ table . 'in ner' ]", *(f"{quoted(key)}.leaf = {value}" for key, value in table.items())]
    text = "\n".join(lines) + "\n"
    places = toml_places(text)
    for path, value in paths_of(tomllib.loads(text)):
        if path not in places:
            assert isinstance(value, dict), (
                f"{path} has no place"
            )  # a table that only dotted keys imply has none of its own
        elif path:
            line, column = places[path]
            here = text.splitlines()[line - 1][column - 1 :]
            assert isinstance(path[-1], int) or str(path[-1]) in here


def test_check_follows_the_settings_and_flags_go_before_them(cli, tmp_path):
    sick = Path(__file__).parents[2] / "fixtures" / "runs" / "lr-jump"
    assert cli("check", sick, cwd=tmp_path).returncode == 1
    (tmp_path / "rlhealth.toml").write_text('fail-on = "never"\n')
    assert cli("check", sick, cwd=tmp_path).returncode == 0
    assert cli("check", sick, "--fail-on", "warning", cwd=tmp_path).returncode == 1
    (tmp_path / "ci.toml").write_text("min-steps = 100000\n")
    assert cli("check", sick, "--config", "ci.toml", cwd=tmp_path).returncode == 2
    assert cli("check", sick, "--config", "ci.toml", "--min-steps", "1", cwd=tmp_path).returncode == 1
    (tmp_path / "rlhealth.toml").write_text('select = ["kl-negative"]\n')
    chosen = cli("check", sick, "-f", "json", cwd=tmp_path).stdout
    assert '"kl-negative"' in chosen and '"reward-decline"' not in chosen


def test_a_run_that_is_said_to_be_over_died_before_its_plan(cli, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    rows = [{"current_steps": at, "total_steps": 200, "reward": 0.1 + at % 3, "reward_std": 0.5} for at in range(1, 41)]
    (run / "trainer_log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    silent = "run-silent"
    assert silent not in cli("check", run, cwd=tmp_path).stdout, "a fresh log may go on"
    assert silent in cli("check", run, "--ended", cwd=tmp_path).stdout
    (tmp_path / "rlhealth.toml").write_text("[gate]\nended = true\n")
    assert silent in cli("check", run, cwd=tmp_path).stdout


def test_a_watch_follows_as_the_settings_say_and_a_flag_goes_before_them(cli, tmp_path):
    rows = [{"current_steps": at, "total_steps": 200, "reward": at / 50, "reward_std": 0.5} for at in range(1, 41)]
    (tmp_path / "trainer_log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = tmp_path / "rlhealth.toml"
    settings.write_text("[watch]\ninterval = 0.1\ntimeout = 0.5\n")
    assert "watching" in cli("watch", "trainer_log.jsonl", cwd=tmp_path, timeout=60).stdout, (
        "it ended, as the run did not"
    )
    settings.write_text("[watch]\ninterval = 3600\ntimeout = 3600\n")
    flags = ("--interval", "0.1", "--timeout", "0.5")
    assert "watching" in cli("watch", "trainer_log.jsonl", *flags, cwd=tmp_path, timeout=60).stdout
    settings.write_text("[watch]\ninterval = 0\n")
    wrong = cli("watch", "trainer_log.jsonl", cwd=tmp_path)
    assert wrong.returncode == 2 and "rlhealth.toml:2:" in wrong.stderr


def test_what_settings_ignore_is_counted_and_what_expired_is_reported(cli, tmp_path):
    sick = Path(__file__).parents[2] / "fixtures" / "runs" / "lr-jump"
    families = sorted({one.family for one in RULES})
    (tmp_path / "rlhealth.toml").write_text(
        "".join(f'[[ignore]]\nrule = "{one}"\nreason = "known"\n' for one in families)
    )
    found = cli("check", sick, cwd=tmp_path)
    assert found.returncode == 0 and " ignored" in found.stdout.splitlines()[-1]
    (tmp_path / "rlhealth.toml").write_text(
        "".join(f'[[ignore]]\nrule = "{one}"\nreason = "known"\nuntil = 2020-01-01\n' for one in families)
    )
    found = cli("check", sick, cwd=tmp_path)
    assert (
        found.returncode == 1
        and "note: rlhealth.toml: ignoring approx-kl (known) ended on 2020-01-01: it counts again" in found.stderr
    )


def test_a_slip_in_the_settings_is_no_answer(cli, tmp_path):
    (tmp_path / "rlhealth.toml").write_text('fail-no = "never"\n')
    found = cli("check", "anywhere", cwd=tmp_path)
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr.startswith("error: rlhealth.toml:1:1: fail-no: unknown key; did you mean `fail-on`?\nhint: ")
