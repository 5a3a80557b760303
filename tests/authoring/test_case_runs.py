"""Every rule's own cases, what every rule file must keep to, and the shorthand that cases are written in."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from rlhealth.authoring.case_runs import find_cases, fires, judge_case, run_case
from rlhealth.authoring.cases import read_cases, run_of, translation_of
from rlhealth.authoring.lint import guidance, lint
from rlhealth.authoring.shorthand import read_shorthand
from rlhealth.engine.judge import NEVER, Judge
from rlhealth.errors import RlhealthError
from rlhealth.rules.loading import load_rules, rule_files, shipped_rules
from tests.examples import is_thorough
from tests.meanwhile import asked_meanwhile

RULES = load_rules()
BY_ID = {rule.id: rule for rule in RULES}
FILES = {Path(str(file)).stem: file for file in rule_files(shipped_rules())}
CAUSES = {rule.id for rule in RULES if rule.cause is not None}
ASKED_MEANWHILE = asked_meanwhile(RULES)
MEANWHILE = {rule.id: rule for rule in ASKED_MEANWHILE}


@cache
def cases_of(rule):
    ((_, tests),) = find_cases([Path(str(FILES[rule]))], RULES)
    return tests.cases


@pytest.mark.parametrize("rule", BY_ID)
def test_a_rule_says_of_its_cases_what_is_expected(rule):
    for case in cases_of(rule):
        outcome = run_case(case, BY_ID[rule], RULES)
        assert outcome.passed, f"{case.name}\nexp: {outcome.exp}\ngot: {outcome.got}"


@pytest.mark.parametrize("rule", [one.id for one in RULES if one.when is not None and one.when.conditions])
def test_a_finding_is_reported_at_its_raised_step_and_not_a_point_earlier(rule):
    for case in filter(fires, cases_of(rule)):
        whole = said_of(rule, case)
        if not whole:
            assert len(MEANWHILE[rule].aspects) < len(BY_ID[rule].aspects), (
                "only what is asked at the end is reported then"
            )
            continue
        first = min(whole, key=lambda one: one.raised_step)
        assert not said_of(rule, case, first.raised_step - 1), case.name
        then = [one for one in said_of(rule, case, first.raised_step) if one.metric == first.metric]
        dates = [(one.first_step, one.raised_step) for one in then]
        assert dates == [(first.first_step, first.raised_step)], case.name


def said_of(rule, case, until=None):
    until = () if until is None else (until,)
    return [one for one in judge_case(case, MEANWHILE[rule], ASKED_MEANWHILE, *until).findings if one.rule == rule]


@pytest.mark.parametrize("rule", [one.id for one in RULES if not (one.when and one.when.ending)])
def test_all_rules_tell_of_a_prefix_what_they_tell_of_the_whole_up_to_there(rule):
    """In the suite of the first case that fires, and of the first that does not."""
    for case in cases_of(rule) if is_thorough() else {fires(one): one for one in reversed(cases_of(rule))}.values():
        run = run_of(case)
        translation = translation_of(case, run, BY_ID[rule])
        whole = told(found(Judge(run, ASKED_MEANWHILE, translation=translation), NEVER))
        watching = Judge(run, ASKED_MEANWHILE, translation=translation)
        last = run.last_step or max(one.steps[-1] for one in run.histograms.values())
        for cut in sorted({1, last // 3, last // 2, last - 1, last}):
            findings = found(watching, cut)
            assert told(findings) == {one for one in whole if one[3] <= cut}, (case.name, cut)
            # a cause may give way to one that explains more, as evidence comes; it is never named before it could be
            # known
            assert all(one.raised_step <= cut for one in findings if one.rule in CAUSES), (case.name, cut)


def found(judge, until):
    judge.advance(until)
    return judge.verdict(0.0).findings


def told(findings):
    return {
        (one.rule, one.metric, one.first_step, one.raised_step)
        for one in findings
        if one.family != "stalled" and one.rule not in CAUSES
    }


@pytest.mark.parametrize("rule", BY_ID)
def test_every_rule_has_a_case_that_fires_and_one_that_is_quiet(rule):
    assert any(fires(case) for case in cases_of(rule)), "no case fires"
    assert any(case.expect == "quiet" for case in cases_of(rule)), "no case is quiet"


@pytest.mark.parametrize("file", list(rule_files(shipped_rules())), ids=lambda file: file.name)
def test_every_rule_file_keeps_its_order_and_names_only_what_exists(file):
    assert lint(file.read_text(encoding="utf-8"), str(file), RULES) == []


def test_a_rule_and_its_cases_lie_side_by_side_in_the_folder_of_its_family():
    for file in rule_files(shipped_rules()):
        rule = BY_ID[Path(str(file)).stem]
        assert Path(str(file)).parent.name == rule.family
        assert Path(str(file)).with_suffix(".test.yaml").is_file(), file


def test_every_sentence_of_trls_guidance_has_a_rule_or_a_reason():
    covered = {row for rule in RULES for row in rule.guidance}
    assert set(guidance()["sentences"]) == {
        *(f"L{n}" for n in range(1, 9)),
        *(f"P{n}" for n in range(1, 11)),
        *(f"G{n}" for n in range(1, 9)),
    }
    for row, sentence in guidance()["sentences"].items():
        assert (row in covered) != ("not_shown" in sentence), row


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("metric: kl", "there is no metric `kll`; did you mean `kl`?"),
        ("{option.kl_coef}", "there is no field {option.kl_coeff}; did you mean `option.kl_coef`?"),
        ("{value:.3g}", "there is no field {valu}; did you mean `value`?"),
        ("guidance: [G2]", "there is no sentence G22 in TRL's guidance"),
        ("critical: {above: 2.5}", "the critical limit 0.1 comes before the limit 1.5"),
        ("id: kl-high-per-token", "the rule is called kl-high-pertoken, and its file kl-high-per-token.yaml"),
    ],
)
def test_a_slip_in_a_rule_is_reported_with_its_place(wrong, said):
    file = next(one for one in rule_files(shipped_rules()) if one.name == "kl-high-per-token.yaml")
    right = {
        "metric: kl": "metric: kll",
        "{option.kl_coef}": "{option.kl_coeff}",
        "{value:.3g}": "{valu:.3g}",
        "guidance: [G2]": "guidance: [G22]",
        "critical: {above: 2.5}": "critical: {above: 0.1}",
        "id: kl-high-per-token": "id: kl-high-pertoken",
    }
    text = file.read_text(encoding="utf-8")
    assert wrong in text
    problems = lint(text.replace(wrong, right[wrong]), str(file), RULES)
    line = text[: text.index(wrong)].count("\n") + 1
    assert [one for one in problems if said in one and one.startswith(f"{file}:{line}:")], problems


def test_a_rule_has_advice_that_is_given_whatever_is_known():
    file = next(one for one in rule_files(shipped_rules()) if one.name == "kl-high-per-token.yaml")
    text = file.read_text(encoding="utf-8")
    before, _, rest = text.partition("try:\n")
    after = rest[rest.index("\nchanges:") + 1 :]
    assert not lint(text, str(file), RULES)
    alone = f"{before}try:\n  - '[[Raise {{option.kl_coef}}.]]'\n{after}"
    assert any("each line may be left out" in one for one in lint(alone, str(file), RULES))
    assert not lint(alone.replace(".]]'", "]], or not.'"), str(file), RULES)


def test_a_framework_that_there_is_none_of_is_reported_with_what_was_meant():
    file = next(one for one in rule_files(shipped_rules()) if one.name == "kl-negative-per-token.yaml")
    text = file.read_text(encoding="utf-8")
    problems = lint(text.replace("generic]", "trl-rlo]", 1), str(file), RULES)
    assert any("there is no framework `trl-rlo`; did you mean `trl-rloo`?" in one for one in problems), problems


@pytest.mark.parametrize(
    ("text", "places", "values"),
    [
        ("0.5x3", [0, 1, 2], [0.5, 0.5, 0.5]),
        ("0..1x3", [0, 1, 2], [0, 0.5, 1]),
        ("1 _x2 2", [0, 3], [1, 2]),
        ("nan inf -inf -2.5e-3", [0, 1, 2, 3], [np.nan, np.inf, -np.inf, -0.0025]),
        ("(1 _)x3 4", [0, 2, 4, 6], [1, 1, 1, 4]),
    ],
)
def test_shorthand_stands_for_points(text, places, values):
    found = read_shorthand(text)
    np.testing.assert_array_equal(found[0], places)
    np.testing.assert_array_equal(found[1], values)


def test_noise_is_the_same_every_time_and_another_for_another_metric():
    _, one = read_shorthand("1~0.1x500", "kl")
    np.testing.assert_array_equal(one, read_shorthand("1~0.1x500", "kl")[1])
    assert not np.array_equal(one, read_shorthand("1~0.1x500", "reward")[1])
    assert abs(one.mean() - 1) < 0.02 and abs(one.std() - 0.1) < 0.02


@pytest.mark.parametrize(
    "text",
    ["", "1..", "x5", "1x", "_~3", "1,2", "1e9999999x", "(1 2x3", "1x100001", "(1x1000)x1000", "(1)x99999999999"],
)
def test_what_is_no_shorthand_is_refused_at_once(text):
    with pytest.raises(ValueError):
        read_shorthand(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "rule: kl-zro\ncases: [{name: a, steps: 3, expect: quiet}]",
            "f.test.yaml:1:1: no rule `kl-zro`; did you mean `kl-zero`?",
        ),
        (
            "rule: kl-zero\ncases:\n  - {name: a, serie: {kl: 1x3}, expect: quiet}",
            "f.test.yaml:3:15: cases.0.serie: unknown key; did you mean `series`?",
        ),
        (
            "rule: kl-zero\ncases:\n  - {name: a, series: {kll: 1x3}, expect: quiet}",
            "there is no metric `kll`; did you mean `kl`?",
        ),
        (
            "rule: kl-zero\ncases:\n  - {name: a, series: {kl: 1y3}, expect: quiet}",
            "f.test.yaml:3:15: cases.0.series: cannot read '1y3'",
        ),
        (
            "rule: kl-zero\ncases:\n  - {name: a, framework: trl-grop, series: {kl: 1x3}, expect: quiet}",
            "did you mean `trl-grpo`?",
        ),
        (
            "rule: kl-zero\ncases:\n  - {name: a, series: {kl: 1x3}, config: {bet: 0}, expect: quiet}",
            "there is no setting `bet`; did you mean `beta`?",
        ),
        ("rule: kl-zero\ncases:\n  - {name: a, series: {kl: 1x3}, expect: {severity: bad}}", "f.test.yaml:3:"),
        (
            "rule: kl-zero\ncases:\n  - {name: a, steps: 3, expect: quiet}\n  - {name: a, steps: 3, expect: quiet}",
            "two cases are called 'a'",
        ),
        ("rule: kl-zero\ncases: []", "f.test.yaml:2:1: cases:"),
        ("[]", "f.test.yaml:1:1: a test file holds one mapping"),
    ],
)
def test_a_slip_in_a_test_file_is_reported_with_its_place(text, said):
    with pytest.raises(RlhealthError) as error:
        read_cases(text, "f.test.yaml", BY_ID)
    assert said in error.value.message


def test_a_case_that_is_not_met_shows_what_was_expected_and_what_was_found():
    file = read_cases(
        "rule: kl-zero\ncases:\n  - {name: a, series: {kl: 0x20}, config: {beta: 0.04}, expect: {first_step: 3, "
        "severity: critical}}\n  - {name: b, series: {kl: 0x20}, config: {beta: 0.04}, expect: quiet}",
        "f",
        BY_ID,
    )
    first, second = (run_case(case, BY_ID["kl-zero"], RULES) for case in file.cases)
    assert (first.exp, first.got) == (["first_step: 3"], ["first_step: 1"])
    assert second.exp == ["quiet"] and second.got[0].startswith("critical from step 1 (raised at 20): ")
    third = read_cases(
        "rule: kl-zero\ncases:\n  - {name: c, series: {kl: 0x3}, config: {beta: 0.04}, expect: {}}", "f", BY_ID
    ).cases[0]
    skipped = run_case(third, BY_ID["kl-zero"], RULES)
    assert skipped.exp == ["a finding"] and skipped.got == ["skipped: kl has 3 of the 20 points it takes to judge"]
