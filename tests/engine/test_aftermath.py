"""Standing, lasting, over: what became of a finding is read off its metric and the reward."""

from __future__ import annotations

import pytest

from rlhealth.authoring.case_runs import judge_case
from rlhealth.authoring.cases import Case, run_of, translation_of
from rlhealth.engine.judge import Judge
from rlhealth.rules.loading import load_rules
from rlhealth.verdict.findings import Finding, Severity, State

RULES = {one.id: one for one in load_rules()}


def found(rule: str, until: int | None = None, framework: str | None = None, **series: str) -> Finding:
    names = {name.replace("__", "/"): text for name, text in series.items()}
    case = Case.model_validate({"name": "a run", "framework": framework, "series": names, "expect": "quiet"})
    return next(one for one in judge_case(case, RULES[rule], [RULES[rule]], until).findings if one.rule == rule)


def test_a_kl_that_came_back_in_a_run_that_goes_on_learning_is_over() -> None:
    one = found("kl-high-per-token", kl="0.1x30 5x10 0.1x60", reward="0.1..0.8~0.02x100")
    assert (one.state, one.severity, one.worst_severity) == (State.OVER, Severity.INFO, Severity.CRITICAL)
    unknown = found("kl-high-per-token", kl="0.1x30 5x10 0.1x60")
    assert (unknown.state, unknown.severity) == (State.OVER, Severity.WARNING), "no reward shows that it cost nothing"
    assert (one.first_step, one.last_step < 50) == (31, True)


def test_an_entropy_that_turned_negative_is_of_continuous_actions_and_has_not_collapsed() -> None:
    one = found(
        "entropy-collapse-in-control", framework="skrl", entropy="20..-5x300 -5..-20x300", reward="0..1~0.02x600"
    )
    assert (one.state, one.severity) == (State.OVER, Severity.INFO)
    gone = found(
        "entropy-collapse-in-control", framework="skrl", entropy="2..0.01x300 0.01x300", reward="0..1~0.02x600"
    )
    assert gone.state is State.STANDING


def test_in_control_whatever_is_over_is_a_note_once_reward_lies_at_its_best() -> None:
    """Reward is the task there; what is paid for texts may be at its best because it is being cheated."""
    critic = "-3~0.1x80 0.8~0.02x80"
    game = found("critic-useless", framework="sb3", val__explained_variance=critic, reward="20~1x80 20..200~2x80")
    assert (game.state, game.severity) == (State.OVER, Severity.INFO)
    lost = found(
        "critic-useless", framework="sb3", val__explained_variance=critic, reward="20~1x80 20..200~2x40 20~2x40"
    )
    assert lost.severity is Severity.WARNING
    texts = found(
        "critic-useless", framework="trl-ppo", val__explained_variance=critic, reward="0.2~0.01x80 0.2..2~0.02x80"
    )
    assert (texts.state, texts.severity) == (State.OVER, Severity.WARNING)


def test_a_wrecked_run_whose_kl_went_quiet_is_wrecked() -> None:
    one = found("kl-high-per-token", kl="0.1x30 5x10 0.1x60", reward="0.8~0.02x30 0.1~0.02x70")
    assert (one.state, one.severity) == (State.LASTING, Severity.CRITICAL)


def test_a_fall_of_the_reward_is_a_note_only_once_reward_shows_that_it_came_back() -> None:
    fall = "0.1..0.8~0.03x60 0.8..0.2~0.03x30 0.2~0.03x20"
    regained = found("reward-decline", reward=f"{fall} 0.2..0.9~0.03x40 0.9~0.03x40")
    assert (regained.state, regained.severity, regained.worst_severity) == (
        State.OVER,
        Severity.INFO,
        Severity.CRITICAL,
    )
    part = found("reward-decline", reward=f"{fall} 0.2..0.6~0.03x40 0.6~0.03x40")
    assert (part.state, part.severity) == (State.LASTING, Severity.CRITICAL)


def test_a_fall_that_was_made_good_once_is_over_whatever_chance_does_later() -> None:
    fall = "0.1..0.8~0.03x60 0.8..0.2~0.03x30 0.2~0.03x20 0.2..0.8~0.03x40 0.8~0.03x40"
    dip = found("reward-decline", reward=f"{fall} 0.6~0.2x20")
    assert (dip.state, dip.severity) == (State.OVER, Severity.INFO)
    lost = found("reward-decline", reward=f"{fall} 0.8..0.2~0.03x30 0.2~0.03x20")
    assert (lost.state, lost.severity) == (State.LASTING, Severity.CRITICAL), "it was lost again"


def test_truncation_from_the_first_row_on_is_a_note_once_it_is_over_and_reward_has_risen() -> None:
    learned = found("completions-cut-off", completions__clipped_ratio="0.95x60 0.1x60", reward="0.1..0.8~0.02x120")
    assert (learned.state, learned.severity, learned.worst_severity) == (State.OVER, Severity.INFO, Severity.CRITICAL)
    stuck = found("completions-cut-off", completions__clipped_ratio="0.95x60 0.1x60", reward="0.1~0.02x120")
    assert (stuck.state, stuck.severity) == (State.OVER, Severity.WARNING)


def test_what_a_long_window_still_contains_is_over_once_its_newer_half_shows_it() -> None:
    shares = "0.9x12 0.8..0.55x6 0.2~0.02x{}"
    still = found("completions-cut-off", completions__clipped_ratio=shares.format(6))
    over = found("completions-cut-off", completions__clipped_ratio=shares.format(12))
    assert (still.state, over.state) == (State.STANDING, State.OVER)
    assert over.last_step > 24, "the window of twenty is above its limit for longer than that of five"


def test_rewards_without_differences_before_the_first_gain_are_a_note_once_reward_has_risen() -> None:
    learned = found("reward-constant", framework="trl-grpo", reward="0x20 0..0.8~0.05x60 0.8~0.05x20")
    assert (learned.state, learned.severity, learned.worst_severity) == (State.OVER, Severity.INFO, Severity.CRITICAL)
    stuck = found("reward-constant", framework="trl-grpo", reward="0x20 0~0.003x80")
    assert stuck.severity > Severity.INFO


def test_reward_that_comes_back_takes_its_time() -> None:
    course = {"kl": "0.1x30 5x10 0.1x160", "reward": "0.8~0.02x30 0.1~0.02x20 0.1..0.8~0.02x50 0.8~0.02x100"}
    states = [found("kl-high-per-token", until, **course).state for until in (40, 60, 80, 200)]
    assert states == [State.STANDING, State.LASTING, State.LASTING, State.OVER]


def test_a_learning_rate_that_stays_a_hundred_times_higher_has_not_recovered() -> None:
    rate = "1e-6x60 1e-4x100"
    one = found("learning-rate-jumped", learning_rate=rate, reward="0.1..0.8~0.02x160")
    assert one.state is State.LASTING
    back = found("learning-rate-jumped", learning_rate="1e-6x60 1e-4x10 1e-6x90", reward="0.1..0.8~0.02x160")
    assert back.state is State.OVER


def test_a_kl_that_stays_just_below_its_limit_has_not_come_back() -> None:
    assert found("kl-high-per-token", kl="0.1x30 5x10 1.4x60").state is State.LASTING
    assert found("kl-high-per-token", kl="0.1x30 5x10 0.3x60").state is State.OVER


def test_a_value_loss_that_grew_with_the_reward_is_no_loss() -> None:
    spike = "0.5~0.05x40 100x3 8~0.5x60"
    same = found("value-loss-spike", framework="trl-ppo", loss__value_avg=spike, reward="1~0.02x103")
    grown = found("value-loss-spike", framework="trl-ppo", loss__value_avg=spike, reward="1~0.02x40 4~0.02x63")
    assert (same.state, grown.state) == (State.LASTING, State.OVER)


@pytest.mark.parametrize("rest", [3, 6, 9])
def test_a_limit_that_is_crossed_back_and_forth_is_one_standing_finding(rest: int) -> None:
    one = found("completions-cut-off", **{"completions/clipped_ratio": f"0.05x20 (0.6x14 0.41x{rest})x6"})
    assert one.state is State.STANDING
    assert one.first_step == 21


def test_what_came_back_twice_and_then_rested_for_long_is_over() -> None:
    text = "0.05x20 0.6x14 0.41x6 0.6x14 0.05x60"
    assert found("completions-cut-off", **{"completions/clipped_ratio": text}).state is State.OVER


def test_a_state_is_read_off_what_was_judged_and_not_off_what_came_since() -> None:
    text = {"kl": "0.1x30 5x10 0.1x60", "reward": "0.8~0.02x30 0.1~0.02x20 0.1..0.8~0.02x25 0.8~0.02x25"}
    case = Case.model_validate({"name": "a run", "series": text, "expect": "quiet"})
    rule = RULES["kl-high-per-token"]
    for until in (40, 55, 70, 100):
        run = run_of(case).until(until)
        alone = Judge(run, [rule], translation=translation_of(case, run, rule))
        alone.advance()
        assert [found("kl-high-per-token", until, **text)] == alone.verdict(4e9).findings


def best_of(reward: str, until: int | None = None) -> bool:
    case = Case.model_validate({"name": "a run", "series": {"reward": reward}, "expect": "quiet"})
    run = run_of(case)
    judge = Judge(run, [], translation=translation_of(case, run, RULES["kl-high-per-token"]))
    judge.advance(*([] if until is None else [until]))
    return judge.verdict().reward_is_best


def test_reward_is_at_its_best_where_it_rose_and_has_not_fallen() -> None:
    assert best_of("0.1..0.9~0.05x80 0.9~0.05x40")
    assert not best_of("0.1..0.9~0.05x80 0.9..0.5~0.05x40"), "it has fallen since"
    assert not best_of("0.5~0.05x120"), "it never rose, so it is nothing to keep"
    assert not best_of("0.1..0.9~0.05x20"), "too few rows to say"


def test_in_a_long_run_of_noisy_episodes_many_of_them_say_whether_reward_is_at_its_best() -> None:
    assert best_of("0..1~2x3000 1~2x3000")
    assert not best_of("0..1~2x3000 1..0~2x3000")


def test_whether_reward_is_at_its_best_is_known_from_what_came_before() -> None:
    course = "0.1..0.9~0.05x80 0.9..0.1~0.05x60"
    assert best_of(course, until=80)
    assert not best_of(course, until=140)
