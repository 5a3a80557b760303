"""Causes: a cause begins no later than its consequences, and is named only where the evidence is there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlhealth.engine.causes import explain
from rlhealth.engine.facts import Facts
from rlhealth.engine.judge import NEVER
from rlhealth.metrics import translate
from rlhealth.rules.loading import load_rules, read_rule
from rlhealth.rules.model import Rule
from rlhealth.run import Place, Run
from rlhealth.verdict.findings import Severity, State
from tests.verdict.test_findings import finding

DIAGNOSES = [rule for rule in load_rules() if rule.cause is not None]
NOTHING = translate(Run("run", Place("tensorboard", "here")))


def test_a_cause_takes_what_follows_and_nothing_is_dropped() -> None:
    before = [
        finding("critical", "approx-kl-high", "approx-kl", 10),
        finding("warning", "kl-high-per-sequence", "kl-high", 14),
        finding("info", "other", "throughput", 12),
    ]
    named, causes, quiet = explain(before, DIAGNOSES, NOTHING, Facts(NOTHING), NEVER)
    assert [one.rule for one in causes] == ["step-size-too-large"]
    assert [one.explained_by for one in named] == ["step-size-too-large", "step-size-too-large", None]
    assert len(named) == len(before)
    assert "step-size-too-large" not in quiet


def test_what_was_no_symptom_neither_begins_a_cause_nor_follows_from_one() -> None:
    root = replace(finding("critical", "approx-kl-high", "approx-kl", 10), refuted=True)
    later = finding("warning", "kl-high-per-sequence", "kl-high", 14)
    named, causes, _ = explain([root, later], DIAGNOSES, NOTHING, Facts(NOTHING), NEVER)
    assert not causes
    assert [one.explained_by for one in named] == [None, None]


def test_a_cause_carries_the_conditions_of_what_it_begins_with_in_their_own_unit() -> None:
    root = finding("critical", "approx-kl-high", "approx-kl", 10)
    seen = replace(root.lead, value=0.1, limit=0.5, side="below", measured="ratio"), replace(root.lead, metric="reward")
    root = replace(root, conditions=seen)
    later = finding("warning", "kl-high-per-sequence", "kl-high", 14)
    [cause] = explain([root, later], DIAGNOSES, NOTHING, Facts(NOTHING), NEVER)[1]
    assert cause.conditions == root.conditions
    assert (cause.measured, cause.side) == ("ratio", "below"), "not a value above its limit, as it was said to be"


def test_what_began_before_the_cause_is_not_its_consequence() -> None:
    named, causes, _ = explain(
        [finding("critical", "approx-kl-high", "approx-kl", 40), finding("warning", "entropy-collapse", "entropy", 10)],
        DIAGNOSES,
        NOTHING,
        Facts(NOTHING),
        NEVER,
    )
    assert causes == []
    assert all(one.explained_by is None for one in named)


@pytest.mark.parametrize(("last", "named"), [(90, False), (30, True)])
def test_what_had_begun_before_the_cause_and_lasted_is_no_consequence_under_another_rule(
    last: int, named: bool
) -> None:
    falling = replace(finding("critical", "reward-decline", "reward-trend", 10), last_step=last)
    gone = finding("warning", "entropy-lost-for-nothing", "entropy", 40)
    never = finding("warning", "reward-never-rose", "reward-trend", 50)
    causes = explain([falling, gone, never], DIAGNOSES, NOTHING, Facts(NOTHING), NEVER)[1]
    assert [one.rule for one in causes] == (["exploration-exhausted"] if named else [])


def test_nothing_follows_later_from_what_is_over_and_did_no_damage() -> None:
    over = replace(finding("critical", "approx-kl-high", "approx-kl", 10).in_state(State.OVER), last_step=12)
    harmless = replace(over, severity=Severity.INFO)
    for root, step, named in ((over, 14, True), (harmless, 11, True), (harmless, 14, False)):
        later = finding("warning", "kl-high-per-sequence", "kl-high", step)
        assert bool(explain([root, later], DIAGNOSES, NOTHING, Facts(NOTHING), NEVER)[1]) == named


def test_one_finding_alone_has_no_cause() -> None:
    named, causes, _ = explain(
        [finding("critical", "kl-negative", "kl-negative", 5)], DIAGNOSES, NOTHING, Facts(NOTHING), NEVER
    )
    assert causes == []
    assert named[0].explained_by is None


def test_the_diagnosis_is_as_severe_as_the_worst_it_explains() -> None:
    _, causes, _ = explain(
        [
            finding("warning", "approx-kl-high", "approx-kl", 10),
            finding("critical", "reward-decline", "reward-trend", 20),
        ],
        DIAGNOSES,
        NOTHING,
        Facts(NOTHING),
        NEVER,
    )
    assert str(causes[0].severity) == "critical"


def test_a_cause_counts_as_its_root_did_as_long_as_a_consequence_lasts() -> None:
    root = replace(finding("warning", "approx-kl-high", "approx-kl", 10), state=State.OVER, peak=Severity.CRITICAL)
    drift = finding("warning", "kl-high-per-sequence", "kl-high", 14)
    said = [
        explain([root, one], DIAGNOSES, NOTHING, Facts(NOTHING), NEVER)[1][0].severity
        for one in (drift, replace(drift, state=State.OVER))
    ]
    assert said == [Severity.CRITICAL, Severity.WARNING]


def test_a_cause_whose_findings_are_all_over_is_a_warning_at_most_however_severe_its_rule() -> None:
    nan = replace(finding("warning", "nonfinite", "numerics", 10), state=State.OVER)
    fall = replace(finding("info", "reward-decline", "reward-trend", 20), state=State.OVER, peak=Severity.CRITICAL)
    [one] = explain([nan, fall], DIAGNOSES, NOTHING, Facts(NOTHING), NEVER)[1]
    assert (one.rule, one.severity) == ("numerical-failure", Severity.WARNING)


def test_value_loss_first_is_the_critic_where_no_reward_was_out_of_scale_and_no_step_size() -> None:
    story = [
        finding("critical", "value-loss-spike", "value-loss", 51),
        finding("warning", "approx-kl-high", "approx-kl", 52),
        finding("critical", "kl-high-per-sequence", "kl-high", 55),
    ]
    _, causes, _ = explain(story, DIAGNOSES, NOTHING, Facts(NOTHING), NEVER)
    assert [one.rule for one in causes] == ["critic-too-wrong"]
    assert causes[0].first_step == 51
    assert causes[0].evidence == ("step 51: title (kl)", "1 step later: title (kl)", "4 steps later: title (kl)")


def cause(id: str, first: str, then: str, more: str = "") -> Rule:
    """A diagnosis that begins with findings of one family, and explains those of others."""
    return read_rule(
        f"id: {id}\nfamily: diagnosis\ntitle: T\nseverity: warning\ncause: {{begins_with: [{first}], followed_by: [{then}]{more}}}\n"
        "message: '{count} findings'\nbecause: b\ntry: [t]\nsource: [{text: s}]\n",
        f"{id}.yaml",
    )


def test_a_message_counts_what_the_cause_explains_and_not_what_another_has_claimed() -> None:
    one = cause("one", "entropy", "kl-high, length")
    two = cause("two", "ratio", "kl-high, length, loss")
    before = [
        finding("critical", "a", "entropy", 1),
        finding("warning", "b", "kl-high", 5),
        finding("warning", "c", "ratio", 2),
        finding("warning", "d", "length", 6),
        finding("warning", "e", "loss", 7),
    ]
    named, causes, _ = explain(before, [two, one], NOTHING, Facts(NOTHING), NEVER)
    assert {one.rule: one.message for one in causes} == {"one": "3 findings", "two": "2 findings"}
    assert [sum(found.explained_by == one.rule for found in named) for one in causes] == [3, 2]


def test_of_two_causes_that_begin_together_the_one_that_explains_more_is_named() -> None:
    little = cause("little", "ratio", "kl-high")
    much = cause("much", "ratio", "kl-high, length")
    before = [
        finding("warning", "a", "ratio", 1),
        finding("warning", "b", "kl-high", 2),
        finding("warning", "c", "length", 3),
    ]
    for order in ([little, much], [much, little]):
        assert [one.rule for one in explain(before, order, NOTHING, Facts(NOTHING), NEVER)[1]] == ["much"]


def test_what_would_distinguish_a_rival_is_said_in_the_names_of_the_trainer() -> None:
    much = cause("much", "ratio", "kl-high, length")
    little = cause("little", "ratio", "kl-high", ", distinguished_by: 'raise {option.kl_coef}'")
    before = [
        finding("warning", "a", "ratio", 1),
        finding("warning", "b", "kl-high", 2),
        finding("warning", "c", "length", 3),
    ]
    for options, said in (({"kl_coef": "beta"}, "raise beta"), ({}, "raise the KL coefficient")):
        known = replace(NOTHING, options=options)
        [one] = explain(before, [much, little], known, Facts(known), NEVER)[1]
        assert one.rivals == (("little", said),)


def test_a_cause_takes_two_findings_however_many_of_its_kind_were_claimed() -> None:
    one = cause("one", "ratio", "kl-high")
    two = cause("two", "length", "kl-high")
    before = [
        finding("warning", "a", "ratio", 1),
        finding("warning", "b", "kl-high", 3),
        finding("warning", "c", "length", 2),
    ]
    assert [one.rule for one in explain(before, [one, two], NOTHING, Facts(NOTHING), NEVER)[1]] == ["one"]


@pytest.mark.parametrize(("step", "named"), [(25, True), (26, False)])
def test_what_follows_begins_within_so_many_points_and_no_later(step: int, named: bool) -> None:
    before = [finding("warning", "a", "loss", 5), finding("warning", "b", "kl-high", step)]
    assert (
        bool(explain(before, [cause("c", "loss", "kl-high", ", within: 20")], NOTHING, Facts(NOTHING), NEVER)[1])
        is named
    )


@pytest.mark.parametrize(("from_outside", "explained"), [(False, "reward-hacking-length"), (True, None)])
def test_what_comes_from_outside_is_explained_only_by_a_cause_that_can_begin_with_it(
    from_outside: bool, explained: str | None
) -> None:
    jumped = replace(finding("warning", "reward-out-of-scale", "reward-signal", 20), from_outside=from_outside)
    longer = cause("reward-hacking-length", "length", "reward-signal")
    named, causes, _ = explain(
        [finding("critical", "length-at-limit", "length", 10), jumped], [longer], NOTHING, Facts(NOTHING), NEVER
    )
    assert [one.explained_by for one in named if one.rule == "reward-out-of-scale"] == [explained]
    assert bool(causes) is not from_outside
    own = cause("reward-outlier", "reward-signal", "length")
    named, _, _ = explain(
        [jumped, finding("critical", "length-at-limit", "length", 30)], [own], NOTHING, Facts(NOTHING), NEVER
    )
    assert [one.explained_by for one in named] == ["reward-outlier", "reward-outlier"]


@pytest.mark.parametrize(("then", "explained"), [("reward-trend", None), ("reward-trend, kl-high", "limit")])
def test_what_is_a_symptom_of_two_families_is_explained_only_by_a_cause_of_both(
    then: str, explained: str | None
) -> None:
    drift = replace(finding("warning", "drift", "reward-trend", 20), also=("kl-high",))
    found = [finding("warning", "cut", "truncation", 10), finding("warning", "flat", "reward-trend", 15), drift]
    named, _, _ = explain(found, [cause("limit", "truncation", then)], NOTHING, Facts(NOTHING), NEVER)
    assert {one.rule: one.explained_by for one in named} == {"cut": "limit", "flat": "limit", "drift": explained}
