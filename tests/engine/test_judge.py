"""Rules on runs: alternatives, levels, scope and aspects, each judged as its file says."""

from __future__ import annotations

import numpy as np
import pytest

from rlhealth.engine.judge import Judge
from rlhealth.errors import RlhealthError
from rlhealth.metrics import Translation
from rlhealth.rules.loading import load_rules, read_rule
from rlhealth.rules.model import Rule
from rlhealth.run import Place, Run
from rlhealth.verdict.findings import Severity, State
from rlhealth.verdict.rises import Rising
from rlhealth.verdict.verdicts import RunVerdict
from tests.canonical import translated

HEAD = 'title: T\nseverity: {severity}\n{scope}when:\n{when}\n{critical}message: "{{value:g}} against {{limit:g}}"\n'
TAIL = "because: b\ntry: [t]\nsource: [{text: s}]\n"


def rule(when: str, severity: str = "warning", critical: str = "", scope: str = "", more: str = "") -> Rule:
    head = HEAD.format(severity=severity, when=when, critical=critical and f"critical: {critical}\n", scope=scope)
    return read_rule(f"id: a-rule\nfamily: mismatch\n{head}{TAIL}{more}", "a-rule.yaml")


def judged(rules: list[Rule], config: dict[str, object] | None = None, **series: list[float]) -> RunVerdict:
    run = Run("run", Place("jsonl", "run.jsonl"))
    for name, values in series.items():
        run.add(name, np.arange(1, len(values) + 1), values, 1e9 + np.arange(len(values)))
    made: Translation = translated(run, config=config or {})
    judge = Judge(run, rules, translation=made)
    judge.advance()
    return judge.verdict(4e9)


EITHER = "  any:\n    - {metric: kl, below: 0.5}\n    - {metric: loss, above: 2}"


def test_an_alternative_that_was_not_logged_leaves_the_others_to_judge() -> None:
    assert [one.metric for one in judged([rule(EITHER)], loss=[1, 1, 6, 6]).findings] == ["loss"]
    assert [one.metric for one in judged([rule(EITHER)], kl=[1, 0.1, 0.1]).findings] == ["kl"]
    assert [one.reason for one in judged([rule(EITHER)], reward=[1, 2]).skipped] == ["kl was not logged"]


def test_the_evidence_of_an_alternative_is_its_own() -> None:
    sides = "  any:\n    - {metric: kl, below: 0.5}\n    - {metric: kl, above: 2}"
    (found,) = judged([rule(sides)], kl=[1, 1, 6, 9, 7]).findings
    assert (found.worst_value, found.worst_step, found.limit, found.side) == (9, 4, 2, "above")
    assert found.message == "9 against 2"


def test_an_alternative_is_critical_by_itself() -> None:
    sides = "  any:\n    - {metric: kl, below: 0.5}\n    - {metric: kl, above: 2}"
    critical = rule(sides, critical="{above: 5}")
    assert [one.severity for one in judged([critical], kl=[1, 1, 6, 6]).findings] == [Severity.CRITICAL]
    assert [one.severity for one in judged([critical], kl=[1, 1, 3, 3]).findings] == [Severity.WARNING]
    assert [one.severity for one in judged([critical], kl=[1, 0.1, 0.1]).findings] == [Severity.WARNING]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            {"when": "  {metric: kl, above: 1}", "severity": "critical", "critical": "{held_for: 6}"},
            "severity: critical",
        ),
        ({"when": "  {metric: kl, above: 1}", "critical": "{below: 0.5}"}, "limit `below`"),
        (
            {"when": "  {metric: kl, last: 5, at_least: 3, measure: gain_since_start, above: 1}"},
            "`at_least` means nothing",
        ),
        ({"when": "  {metric: kl, at_least: 3, measure: max_so_far, above: 1}"}, "`at_least` means nothing"),
        ({"when": "  {metric: kl, above: 1, at_end: true, held_for: 5}"}, "`at_end` goes with conditions"),
        ({"when": "  {ending: [died], at_end: true}"}, "`at_end` goes with conditions"),
        ({"when": "  {metric: kl, above: 1, at_end: true}", "critical": "{above: 2}"}, "`at_end` has one level"),
        ({"when": "  {metric: kl, last: 5, above: 1}"}, "`measure: value` is that of one point"),
        ({"when": "  {metric: kl, last: 5, measure: share_of_points, where: {}, above: 0.5}"}, "every point counts"),
    ],
)
def test_what_means_nothing_is_no_rule(text: dict[str, str], said: str) -> None:
    with pytest.raises(RlhealthError, match=said):
        rule(**text)


def test_a_setting_that_is_not_known_does_not_pass() -> None:
    only = rule("  {metric: kl, above: 1}", scope="scope: {only_if: {num_iterations: {above: 1}}}\n")
    assert [one.reason for one in judged([only], kl=[5, 5]).skipped] == ["num_iterations is unknown"]
    assert judged([only], {"num_iterations": 2}, kl=[5, 5]).findings
    assert judged([only], {"num_iterations": 1}, kl=[5, 5]).skipped


def ending() -> Rule:
    return rule("  ending: [died]").model_copy(update={"id": "ended", "family": "stalled"})


@pytest.mark.parametrize(("code", "verdict"), [(1, "critical"), (0, "unknown"), (None, "unknown")])
def test_a_process_that_ended_with_an_error_is_reported_though_no_metric_was_recognised(
    code: int | None, verdict: str
) -> None:
    run = Run("run", Place("wandb", "run.wandb"), exit_code=code)
    run.add("what/is/this", [1], [0.5])
    judge = Judge(run, load_rules())
    judge.advance()
    assert judge.verdict(4e9).verdict == verdict


RISING = {"reward": [step / 60 for step in range(60)], "entropy": [2 - step / 60 for step in range(60)]}


@pytest.mark.parametrize("others", [[], ["ended"], ["waits"], ["ended", "waits"]])
def test_a_run_is_not_healthy_where_no_rule_looked_at_a_metric(others: list[str]) -> None:
    patient = rule("  {metric: kl, last: 40, measure: median, above: 9}").model_copy(update={"id": "waits"})
    cause = "id: c\nfamily: diagnosis\ntitle: C\nseverity: warning\ncause: {begins_with: [waits]}\nmessage: m\n"
    named = {"ended": ending(), "waits": patient}
    chosen = [read_rule(cause + TAIL, "c.yaml"), *(named[one] for one in others)]
    blind = judged(chosen, kl=[1.0] * 20, **RISING)
    assert (blind.verdict, "c" in blind.quiet) == ("unknown", False)
    seen = judged([*chosen, rule("  {metric: kl, above: 9}")], kl=[1.0] * 20, **RISING)
    assert (seen.verdict, "c" in seen.quiet) == ("healthy", True)


def test_an_ignored_finding_of_what_a_resume_replaced_is_counted() -> None:
    run = Run("run", Place("jsonl", "run.jsonl"))
    run.add("kl", [1, 2, 3, 4], [1.0, 1.0, 9.0, 9.0], [1e9, 1e9, 1e9, 1e9])
    run.rewind(3)
    run.add("kl", [3, 4], [1.0, 1.0], [2e9, 2e9])
    judge = Judge(run, [rule("  {metric: kl, above: 5}")], translation=translated(run))
    judge.advance()
    assert [one.rule for one in judge.verdict(4e9).findings] == ["a-rule"]
    told = judge.verdict(4e9, {"a-rule": ""})
    assert (told.findings, [one.finding.rule for one in told.ignored]) == ([], ["a-rule"])


def test_a_diagnosis_heeds_its_scope() -> None:
    first, then = rule("  {metric: kl, above: 1}"), rule("  {metric: loss, above: 1}")
    then = then.model_copy(update={"id": "another"})
    text = "id: c\nfamily: diagnosis\ntitle: C\nseverity: warning\n{}cause: {{begins_with: [a-rule], followed_by: [another]}}\nmessage: m\n"
    for scope, named in (
        ("", True),
        ("scope: {frameworks: [openrlhf]}\n", False),
        ("scope: {only_if: {num_iterations: 3}}\n", False),
    ):
        verdict = judged([first, then, read_rule(text.format(scope) + TAIL, "c.yaml")], kl=[5, 5], loss=[5, 5])
        assert ("c" in {one.rule for one in verdict.findings}) is named
        assert ("c" in {one.rule for one in verdict.skipped}) is not named


def test_the_largest_divisor_so_far_is_carried_from_piece_to_piece() -> None:
    relative = rule("  {metric: loss, divided_by: {metric: reward, max_so_far: true}, above: 1.5}")
    run = Run("run", Place("jsonl", "run.jsonl"))
    judge: Judge | None = None
    for step, (loss, reward) in enumerate([(1.0, 9.0), (3.0, 1.0), (4.0, 1.0), (5.0, 1.0)], 1):
        run.add("loss", [step], [loss], [1e9])
        run.add("reward", [step], [reward], [1e9])
        judge = judge or Judge(run, [relative], translation=translated(run))
        judge.advance()
    assert judge is not None
    assert judge.verdict(4e9).findings == [], "5 is no more than the 9 that reward once was"


ASPECTS = """aspects:
  - {title: Spiked, severity: critical, when: {all: [{metric: kl, above: 9}]}, message: "spiked to {value:g}"}
"""


def test_a_price_that_is_paid_alone_is_no_more_severe_than_its_rule_says() -> None:
    price = rule("  {metric: kl, above: 1}", critical="{above: 2}", scope="severity_while_alone: warning\n")
    damage = rule("  {metric: loss, above: 1}").model_copy(update={"id": "another", "family": "loss"})
    rising, flat = [step / 60 for step in range(60)], [0.5 + step % 2 / 9 for step in range(60)]

    def severity(reward: list[float], loss: float = 0.0) -> Severity:
        found = judged([price, damage], reward=reward, kl=[3.0] * 60, loss=[loss] * 60).findings
        return next(one.worst_severity for one in found if one.metric == "kl")

    assert severity(rising) is Severity.WARNING
    assert severity(rising, loss=3.0) is Severity.CRITICAL, "something else is wrong"
    assert severity(flat) is Severity.CRITICAL, "it bought nothing"


def test_one_symptom_is_one_finding_in_the_words_of_its_worst_aspect() -> None:
    both = rule("  {metric: kl, above: 2}", more=ASPECTS)
    (found,) = judged([both], kl=[1, 3, 20, 20]).findings
    assert (found.title, found.message, found.severity) == ("Spiked", "spiked to 20", Severity.CRITICAL)
    assert (found.first_step, found.raised_step) == (2, 2), "it was raised by its other aspect"
    (mild,) = judged([both], kl=[1, 3, 3]).findings
    assert (mild.title, mild.severity) == ("T", Severity.WARNING)


def test_what_is_asked_at_the_end_is_said_of_the_whole_run_and_only_of_its_last_row() -> None:
    at_end = rule("  at_end: true\n  metric: kl\n  above: 2")
    (found,) = judged([at_end], kl=[1, 9, 3]).findings
    assert (found.first_step, found.raised_step, found.last_step, found.active) == (1, 3, 3, True)
    assert found.message == "3 against 2", "not the worst that there ever was"
    assert not judged([at_end], kl=[1, 9, 1]).findings


def test_what_is_asked_at_the_end_is_not_reported_while_more_may_come() -> None:
    run = Run("run", Place("jsonl", "run.jsonl"))
    run.add("kl", np.arange(1, 4), [1, 9, 3], 1e9 + np.arange(3))
    judge = Judge(run, [rule("  at_end: true\n  metric: kl\n  above: 2")], translation=translated(run))
    judge.advance()
    assert not judge.verdict(1e9 + 10).findings
    assert len(judge.verdict(1e9 + 10, ended=True).findings) == 1
    assert len(judge.verdict(4e9).findings) == 1


def test_the_newest_points_and_a_fall_are_asked_at_the_end_of_a_resumed_run_and_its_whole_is_not() -> None:
    run = Run("run", Place("jsonl", "run.jsonl"))
    run.add("kl", np.arange(901, 921), [9.0] * 8 + [3.0] * 12, 1e9 + np.arange(20))
    fell = rule("  at_end: true\n  metric: kl\n  last: 4\n  measure: below_all_before\n  above: 7.5")
    falls = rule("  at_end: true\n  metric: kl\n  last: 8\n  measure: order_score\n  below: -2.33")
    low = rule("  at_end: true\n  metric: kl\n  below: 4")
    for asked, first_steps in ((fell, [909]), (falls, [901]), (low, [])):
        judge = Judge(run, [asked], translation=translated(run))
        judge.advance()
        assert [one.first_step for one in judge.verdict(4e9).findings] == first_steps


def test_what_a_resume_replaced_is_not_asked_for_its_end() -> None:
    run = Run("run", Place("jsonl", "run.jsonl"))
    run.add("kl", np.arange(1, 11), [1.5] * 2 + [5.0] * 8, 1e9 + np.arange(10))
    run.rewind(3)
    run.add("kl", np.arange(3, 11), [1.5] * 8, 1e9 + 20 + np.arange(8))
    for asks, found in (("  metric: kl\n  above: 2", 1), ("  at_end: true\n  metric: kl\n  above: 2", 0)):
        judge = Judge(run, [rule(asks)], translation=translated(run))
        judge.advance()
        assert sum(one.replaced_at is not None for one in judge.verdict(4e9).findings) == found


def test_what_was_reported_before_the_end_keeps_its_words_there() -> None:
    last = "{title: Last, severity: warning, when: {at_end: true, all: [{metric: kl, above: 2}]}, message: at the end}"
    (found,) = judged([rule("  {metric: kl, above: 2}", more=f"aspects: [{last}]\n")], kl=[1, 3, 3]).findings
    assert (found.title, found.raised_step) == ("T", 2)


def test_an_aspect_is_of_the_rules_own_metric() -> None:
    with pytest.raises(RlhealthError, match="an aspect is of the rule's own metric"):
        rule("  {metric: loss, above: 2}", more=ASPECTS)


def test_a_run_is_too_short_where_more_rules_wait_than_have_looked() -> None:
    looked = rule("  {metric: kl, above: 9}")
    waiting = [
        rule("  {metric: kl, last: 5, measure: median, above: 9}").model_copy(update={"id": f"waits-{one}"})
        for one in (1, 2)
    ]
    assert "too few points for 2 of the 3 rules" in judged([looked, *waiting], kl=[1, 1]).too_short
    assert "too few points" not in judged([looked, waiting[0]], kl=[1, 1]).too_short
    of_long_runs = [
        rule("  {metric: kl, last: 40, measure: median, above: 9}").model_copy(update={"id": f"long-{one}"})
        for one in (1, 2)
    ]
    assert not judged([looked, *of_long_runs], kl=[1, 1]).too_short, "what speaks of long runs makes no run too short"


def test_a_reward_that_rose_slowly_and_surely_did_so_in_the_end_though_its_ends_alone_say_little() -> None:
    random = np.random.default_rng(9)
    values = np.append(np.full(300, 62.0), np.linspace(62, 73, 500)) + 20 * random.standard_t(6, size=800)
    assert Rising(values).surely() and Rising(values).somewhat()
    assert not Rising(values).early(), "its ends alone say little"
    rules = [one for one in load_rules() if one.id == "reward-never-rose-in-control"]
    run = Run("run", Place("csv", "run.csv"))
    run.add("episode_reward", range(1, 801), values)
    judge = Judge(run, rules)
    judge.advance()
    (found,) = judge.verdict().findings
    assert (found.state, found.severity, found.worst_severity) == (State.OVER, Severity.INFO, Severity.WARNING)
