"""Causes: a cause begins no later than its consequences, and is named only where the evidence is there."""

from __future__ import annotations

from rlhealth.engine.causes import explain
from rlhealth.engine.facts import END, Facts
from rlhealth.metrics import translate
from rlhealth.rules.loading import load_rules
from rlhealth.run import Place, Run
from tests.verdict.test_findings import finding

DIAGNOSES = [rule for rule in load_rules() if rule.cause is not None]
NOTHING = translate(Run("run", Place("tensorboard", "here")))


def test_a_cause_takes_what_follows_and_nothing_is_dropped() -> None:
    before = [
        finding("critical", "approx-kl-high", "approx-kl", 10),
        finding("warning", "kl-high-per-sequence", "kl-high", 14),
        finding("info", "other", "throughput", 12),
    ]
    named, causes, quiet = explain(before, DIAGNOSES, NOTHING, Facts(NOTHING), END)
    assert [one.rule for one in causes] == ["step-size-too-large"]
    assert [one.explained_by for one in named] == ["step-size-too-large", "step-size-too-large", None]
    assert len(named) == len(before)
    assert "step-size-too-large" not in quiet


def test_what_began_before_the_cause_is_not_its_consequence() -> None:
    named, causes, _ = explain(
        [finding("critical", "approx-kl-high", "approx-kl", 40), finding("warning", "entropy-collapse", "entropy", 10)],
        DIAGNOSES,
        NOTHING,
        Facts(NOTHING),
        END,
    )
    assert causes == []
    assert all(one.explained_by is None for one in named)


def test_one_finding_alone_has_no_cause() -> None:
    named, causes, _ = explain(
        [finding("critical", "kl-negative", "kl-negative", 5)], DIAGNOSES, NOTHING, Facts(NOTHING), END
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
        END,
    )
    assert str(causes[0].severity) == "critical"


def test_value_loss_first_is_the_critic_where_no_reward_was_out_of_scale_and_no_step_size() -> None:
    story = [
        finding("critical", "value-loss-spike", "value-loss", 51),
        finding("warning", "approx-kl-high", "approx-kl", 52),
        finding("critical", "kl-high-per-sequence", "kl-high", 55),
    ]
    _, causes, _ = explain(story, DIAGNOSES, NOTHING, Facts(NOTHING), END)
    assert [one.rule for one in causes] == ["critic-too-wrong"]
    assert causes[0].first_step == 51
    assert causes[0].evidence == ("step 51: title (kl)", "1 later: title (kl)", "4 later: title (kl)")
