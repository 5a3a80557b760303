"""Filling: fields filled from what is known of a run, and nothing said of what is not."""

import pytest

from rlhealth.authoring.cases import Case, run_of, setting_names, translation_of
from rlhealth.metrics.catalogue import frameworks, names
from rlhealth.rules.filling import advise, fewer, fields_of, fill, option_phrases, settings, within_a_sentence
from rlhealth.rules.loading import load_rules

RULES = load_rules()


def said_of(framework: str, **config):
    case = Case(name="a", framework=framework, steps=3, config=config, expect="quiet")
    return settings(translation_of(case, run_of(case), RULES[0]))


@pytest.mark.parametrize(
    ("framework", "text"),
    [
        ("trl-ppo-legacy", "Raise init_kl_coef (now 0.2) over a batch (ppo_epochs)."),
        ("trl-ppo", "Raise kl_coef (now 0.2) over a batch (num_ppo_epochs)."),
        ("trl-grpo", "Raise beta (now 0.2) over a batch (num_iterations)."),
        ("rllib", "Raise the KL coefficient (now 0.2) over a batch (num_epochs)."),
        ("prime-rl", "Raise loss.kl_tau (now 0.2) over a batch."),
    ],
)
def test_advice_speaks_each_trainers_own_language(framework, text):
    assert (
        fill(
            "Raise {option.kl_coef}[[ (now {config.kl_coef})]] over a batch[[ ({option.epochs})]].",
            said_of(framework, kl_coef=0.2),
        )
        == text
    )


def test_what_the_run_does_not_tell_is_left_out():
    assert (
        fill("Lower {option.learning_rate}[[ (now {config.learning_rate})]].", said_of("trl-grpo"))
        == "Lower learning_rate."
    )
    assert fill("top_k 0[[ (now {config.top_k})]]", said_of("trl-grpo", top_k=None)) == "top_k 0"


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({}, "Clip gradients."),
        ({"a": "max_norm"}, "Clip gradients (max_norm)."),
        ({"a": "max_norm", "b": 1.0}, "Clip gradients (max_norm, now 1)."),
        ({"b": 1.0}, "Clip gradients."),
    ],
)
def test_parts_may_lie_within_parts(said, text):
    assert fill("Clip gradients[[ ({a}[[, now {b}]])]].", said) == text


@pytest.mark.parametrize(
    ("config", "advice"),
    [
        ({}, ("Lower it, or do fewer passes (num_iterations).", "Do fewer passes.")),
        ({"epochs": 4}, ("Lower it, or do fewer passes (num_iterations).", "Do fewer passes.")),
        ({"epochs": 1}, ("Lower it.",)),
        ({"epochs": 1.0}, ("Lower it.",)),
    ],
)
def test_fewer_is_not_advised_of_what_is_one_already(config, advice):
    texts = ["Lower it[[, or do {fewer.epochs} passes[[ ({option.epochs})]]]].", "[[Do {fewer.epochs} passes.]]"]
    assert advise(texts, said_of("trl-grpo", **config)) == advice


def test_what_a_trainer_lacks_is_not_made_fewer():
    assert "fewer.epochs" in fewer({}) and "fewer.epochs" not in fewer({}, {"epochs"})


def test_numbers_read_as_numbers():
    assert (
        fill("{a} {b:.1%} {c:,.3g} {d}", {"a": 5.0000000000000004e-06, "b": 0.256, "c": 12345.6, "d": 3})
        == "5e-06 25.6% 1.23e+04 3"
    )


def test_a_count_takes_the_words_that_go_with_it():
    assert fill("{count:finding follows|findings follow} from it", {"count": 1}) == "1 finding follows from it"
    assert fill("{count:finding follows|findings follow} from it", {"count": 3}) == "3 findings follow from it"
    assert fill("{count:finding|findings}", {"count": "many"}) == "many"


def test_a_field_cannot_reach_into_what_it_names():
    class Secret:
        key = "never"

    for text in ("{a.key}", "{a[key]}", "{a.__class__}"):
        assert "never" not in fill(text, {"a": Secret()}) and "Secret" not in fill(text, {"a": Secret()})


def test_a_format_that_does_not_fit_shows_the_value():
    assert fill("{a:.2f} {b:d}", {"a": "many", "b": 1.5}) == "many 1.5"


def test_every_setting_that_advice_names_has_a_plain_phrase():
    used = {
        name.removeprefix("option.")
        for rule in RULES
        for text in (rule.message, *rule.try_)
        for name in fields_of(text)
        if name.startswith("option.")
    }
    assert used <= option_phrases().keys() <= setting_names()


def test_no_text_of_any_rule_keeps_its_brackets_for_any_trainer():
    for entry in frameworks():
        said = said_of(entry["id"]) if names(entry["names"]) else {}
        for rule in RULES:
            for text in rule.try_:
                shown = fill(text, said)
                assert not any(mark in shown for mark in ("[[", "]]", "()", "{", "}")), shown


@pytest.mark.parametrize(
    ("title", "said"),
    [
        ("KL to the reference jumped", "KL to the reference jumped"),
        ("NaN or infinity in training", "NaN or infinity in training"),
        ("Policy and reference are far apart", "policy and reference are far apart"),
        ("A metric became NaN", "a metric became NaN"),
    ],
)
def test_a_title_within_a_sentence_keeps_its_names(title, said):
    assert within_a_sentence(title) == said
