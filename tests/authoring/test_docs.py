"""What is written from the rules: documents, explanations, schemas, and the commands that print them."""

import json
import re
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml

from rlhealth.authoring.docs import documents, repository, stale, write
from rlhealth.cli import app as cli
from rlhealth.cli.rules_bodies import explain_text, schema_of
from rlhealth.rules.loading import load_rules, rule_files, shipped_rules
from rlhealth.rules.words import advice, in_words

RULES = load_rules()
ROOT = Path(__file__).parents[2]


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    """Calls the command line in a folder without settings; answers with the exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def called(*arguments: str):
        monkeypatch.setattr(sys, "argv", ["rlhealth", *arguments])
        with pytest.raises(SystemExit) as left:
            cli.main()
        said = capsys.readouterr()
        return left.value.code or 0, said.out, said.err

    return called


def test_the_documents_say_what_the_rules_say():
    assert stale(ROOT) == [], "run `rlhealth rules docs --write`"
    assert repository() == ROOT


def test_a_changed_rule_makes_the_documents_stale(tmp_path):
    names = ["docs/coverage.md", "docs/settings.md", "docs/trl-guidance.md", "rules/README.md"]
    assert sorted(write(tmp_path)) == names
    assert write(tmp_path) == stale(tmp_path) == []
    changed = [rule.model_copy(update={"title": "Another title"}) if rule.id == "kl-zero" else rule for rule in RULES]
    assert stale(tmp_path, changed) == ["rules/README.md"]
    uncovered = [rule.model_copy(update={"guidance": ()}) if rule.id == "kl-zero" else rule for rule in RULES]
    assert stale(tmp_path, uncovered) == ["docs/trl-guidance.md"]


def test_every_rule_and_every_link_is_in_the_documents():
    texts = documents()
    for rule in RULES:
        assert f"[{rule.id}]({rule.family}/{rule.id}.yaml)" in texts["rules/README.md"]
        assert (ROOT / "rules" / rule.family / f"{rule.id}.yaml").is_file()
    assert "| none |" not in texts["docs/trl-guidance.md"]


def test_every_rule_is_explained_with_all_its_parts():
    text = explain_text([rule.id for rule in RULES], RULES, [shipped_rules()])
    heading = "|".join(f"{rule.id}\n{re.escape(rule.title)}$" for rule in RULES)
    explained = {part.split("\n", 1)[0]: part for part in re.split(f"^(?={heading})", text, flags=re.MULTILINE)}
    for rule in RULES:
        for part in (rule.title, "fires where", "why", "try", "limits from", "cases in", "quiet: "):
            assert part in explained[rule.id], (rule.id, part)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_is_explained_without_a_field_left_open(rule):
    for line in (*in_words(rule), *advice(rule)):
        assert not set("{}[]") & set(line), line
        assert line.strip()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "kl-high-per-sequence",
            [
                "the median of the last 3 to 5 points of `objective/kl` is above 6 nats/sequence",
                "and the median of the last 3 to 5 points of `objective/kl`, less the run's first point, is above "
                "6 nats/sequence, for 2 points in a row",
                "critical where it is above 10",
                "or as warning “Policy far from the reference”: the median of the last 3 to 5 points of `objective/kl` is "
                "above 6 nats/sequence",
                "and the median of the last 3 to 5 points of `objective/kl`, as a multiple of the run's first "
                "point, is above 1.5, for 2 points in a row",
            ],
        ),
        (
            "nonfinite",
            [
                "`loss`, `loss/policy_avg`, `loss/value_avg` or else `grad_norm` is NaN or infinite",
                "and a point of the same metric was finite",
                "and the step is above 0 steps",
                "or as critical “NaN or infinity in training”: `loss`, `loss/policy_avg`, `loss/value_avg` or else `grad_norm` "
                "is NaN or infinite",
                "and the share of the last 1000 points of the same metric that are NaN or infinite is above 0.999",
                "and the step is above 0 steps",
            ],
        ),
        ("run-ended-early", ["training ended in good order before its planned steps"]),
        (
            "ratio-too-low",
            [
                "the median of the last 1 to 3 points of `val/ratio` is below 1 − the setting "
                "clip_range (0.8 if unknown), for 3 points in a row",
                "critical where it is below 0.5, at the first point",
            ],
        ),
    ],
)
def test_conditions_read_as_sentences(name, words):
    assert in_words(next(rule for rule in RULES if rule.id == name)) == words


def test_every_shipped_file_fits_the_schema_that_editors_use():
    rule = jsonschema.Draft202012Validator(schema_of("rule"))
    test = jsonschema.Draft202012Validator(schema_of("test"))
    for file in rule_files(shipped_rules()):
        rule.validate(plain(file))
        test.validate(plain(Path(str(file)).with_suffix(".test.yaml")))
    broken = plain(next(iter(rule_files(shipped_rules()))))
    assert not list(rule.iter_errors(broken))
    assert list(rule.iter_errors(broken | {"tilte": "x"}))
    assert not list(rule.iter_errors(broken | {"family": "of-my-own"})), "families are open"
    assert list(rule.iter_errors(broken | {"family": "Not a name"}))
    assert list(rule.iter_errors({key: one for key, one in broken.items() if key != "message"}))


def plain(file) -> dict:
    text = file.read_text(encoding="utf-8")
    return json.loads(json.dumps(yaml.safe_load(text)))


def test_rules_list_is_a_table_of_tabs_when_piped(call):
    code, out, _ = call("rules", "list")
    rows = [line.split("\t") for line in out.splitlines()]
    assert code == 0 and rows[0] == ["rule", "family", "severity", "title"]
    assert [row[0] for row in rows[1:]] == [rule.id for rule in RULES]
    assert {len(row) for row in rows} == {4}
    assert [row.split("\t")[0] for row in call("rules", "list", "kl-negative")[1].splitlines()[1:]] == [
        rule.id for rule in RULES if rule.family == "kl-negative"
    ]


@pytest.mark.parametrize("command", [["explain"], ["rules", "explain"]])
def test_explain_takes_a_rule_or_a_family_and_says_what_may_have_been_meant(call, command):
    code, out, _ = call(*command, "kl-zero")
    assert code == 0 and out.startswith("kl-zero\nThe policy does not leave the reference\n")
    assert call(*command, "value-loss")[1].count("fires where") == sum(rule.family == "value-loss" for rule in RULES)
    code, out, err = call(*command, "kl-zro")
    assert (code, out) == (2, "") and err.startswith(
        "error: there is no rule or family `kl-zro`; did you mean `kl-zero`?\nhint: "
    )


def test_explain_shows_the_limits_that_hold_here(call, tmp_path):
    (tmp_path / "rlhealth.toml").write_text("[rules.kl-high-per-sequence]\nabove = 7.5\n")
    out = call("explain", "kl-high-per-sequence")[1]
    assert "above 7.5 nats/sequence" in " ".join(out.split()) and "changed in rlhealth.toml" in out


def test_the_rule_that_new_prints_passes_its_own_test(call, tmp_path):
    assert call("rules", "new", "my-kl", "-o", str(tmp_path))[0] == 0
    assert sorted(one.name for one in tmp_path.iterdir()) == ["my-kl.test.yaml", "my-kl.yaml"]
    assert call("rules", "test", str(tmp_path))[:2] == (0, "1 rule, 3 cases: all as expected\n")
    assert call("rules", "test", str(tmp_path / "my-kl.yaml"))[:2] == (0, "1 rule, 3 cases: all as expected\n")
    assert "my-kl" in call("rules", "list", "--rules", str(tmp_path))[1]
    code, _, err = call("rules", "new", "my-kl", "-o", str(tmp_path))
    assert code == 2 and "File exists" in err, "files are not replaced"
    printed = call("rules", "new", "my-kl")[1]
    assert printed == f"{(tmp_path / 'my-kl.yaml').read_text()}---\n{(tmp_path / 'my-kl.test.yaml').read_text()}\n"
    assert call("rules", "new", "My KL")[0] == 2
    assert "did you mean `entropy`?" in call("rules", "new", "my-kl", "--family", "entorpy")[2]
    assert call("rules", "new", "my-kl", "--family", "diagnosis")[0] == 2, "a rule with a limit is no diagnosis"


def test_a_family_of_ones_own_is_chosen_and_explained_by_its_name(call, tmp_path):
    assert call("rules", "new", "my-kl", "--family", "my-team", "-o", str(tmp_path))[0] == 0
    assert call("rules", "test", str(tmp_path))[0] == 0
    assert "my-kl" in call("explain", "my-team", "--rules", str(tmp_path))[1]
    rule = tmp_path / "my-kl.yaml"
    rule.write_text(rule.read_text().replace("family: my-team", "family: kl-hihg"))
    assert "no shipped family is called `kl-hihg`; did you mean `kl-high`?" in call("rules", "test", str(tmp_path))[1]


@pytest.mark.parametrize(
    "old", ["over: 5", "least: 3", "for: 2", "minus: {first: 3}", "ratio_to: {before: 3}", "sure: 1"]
)
def test_a_word_has_one_spelling(call, tmp_path, old):
    call("rules", "new", "my-kl", "-o", str(tmp_path))
    rule = tmp_path / "my-kl.yaml"
    rule.write_text(rule.read_text().replace("when:\n", f"when:\n  {old}\n"))
    assert "unknown key" in call("rules", "test", str(tmp_path))[2]


def test_rules_test_shows_what_was_expected_and_what_was_found(call, tmp_path):
    call("rules", "new", "my-kl", "-o", str(tmp_path))
    file = tmp_path / "my-kl.test.yaml"
    file.write_text(file.read_text().replace("first_step: 21", "first_step: 7"))
    code, out, _ = call("rules", "test", str(tmp_path))
    assert code == 1
    assert (
        out == f"{file}: my-kl: two nats a token\n    exp: first_step: 7\n    got: first_step: "
        "21\n1 rule, 3 cases: 1 failed, 0 problems\n"
    )


def test_rules_test_tells_a_slip_in_a_rule_and_a_case_that_is_missing(call, tmp_path):
    call("rules", "new", "my-kl", "-o", str(tmp_path))
    rule, test = tmp_path / "my-kl.yaml", tmp_path / "my-kl.test.yaml"
    rule.write_text(rule.read_text().replace("metric: kl ", "metric: kll "))
    test.write_text("rule: my-kl\ncases:\n  - {name: a, series: {reward: 1x9}, expect: skipped}\n")
    code, out, _ = call("rules", "test", str(tmp_path))
    assert code == 1
    assert out.splitlines() == [
        f"{rule}:11:3: there is no metric `kll`; did you mean `kl`?",
        "my-kl: no case in which it fires",
        "my-kl: no case in which it is quiet",
        "1 rule, 1 case: 0 failed, 3 problems",
    ]


def test_rules_test_leaves_with_2_where_a_file_cannot_be_used(call, tmp_path):
    call("rules", "new", "my-kl", "-o", str(tmp_path))
    rule = tmp_path / "my-kl.yaml"
    whole = rule.read_text()
    for wrong, said in (
        (whole.replace("measure:", "mesure:"), ":14:3: when.all.0.mesure: unknown key; did you mean `measure`?"),
        ("a: [", "the file must be YAML"),
    ):
        rule.write_text(wrong)
        code, out, err = call("rules", "test", str(tmp_path))
        assert (code, out) == (2, "") and said in err
    assert call("rules", "test", str(tmp_path / "nowhere"))[0] == 2


def test_docs_are_checked_and_written_on_demand_only(call):
    assert call("rules", "docs", "--check")[:2] == (0, "up to date\n")
    assert call("rules", "docs")[0] == 2


@pytest.mark.parametrize(("flag", "key"), [([], "when"), (["--tests"], "cases"), (["--settings"], "fail-on")])
def test_schemas_are_json_that_names_its_keys(call, flag, key):
    code, out, _ = call("rules", "schema", *flag)
    assert code == 0 and key in json.loads(out)["properties"]


def test_every_family_is_described_in_the_documents():
    text = documents()["rules/README.md"]
    for family in {rule.family for rule in RULES}:
        assert text.split(f"\n## {family}\n\n")[1][0] not in "|\n"


def test_the_coverage_names_the_trainers_that_log_what_a_rule_needs():
    rows = documents()["docs/coverage.md"].splitlines()
    (unanimous,) = [row for row in rows if row.startswith("| [groups-unanimous]")]
    assert "`frac_reward_zero_std`" in unanimous and "trl-grpo" in unanimous and "sb3" not in unanimous
    (critic,) = [row for row in rows if row.startswith("| [critic-useless]")]
    assert "sb3" in critic and "trl-grpo" not in critic.rpartition("|")[0].rpartition("|")[2]
