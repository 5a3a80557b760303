"""A user's own names go before the catalogue, and a mistake is reported with the place and the nearest name."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from rlhealth.errors import RlhealthError
from rlhealth.metrics import read_aliases, translate
from rlhealth.metrics.aliases import as_flag
from tests.metrics.logged import GRPO, run_of


def test_an_alias_names_a_tag_of_ones_own() -> None:
    metric = translate(run_of([*GRPO, "my/kl"]), {"my/kl": "kl"}).metrics["kl"]
    assert metric.tag == "my/kl"
    assert metric.unit == "nats/token"


def test_an_alias_goes_before_the_catalogue_and_needs_no_prefix() -> None:
    translation = translate(run_of(GRPO, prefix="train/"), {"entropy": "eval/reward"})
    assert translation.metrics["eval/reward"].tag == "train/entropy"
    assert "entropy" not in translation.metrics


def test_an_alias_makes_an_unknown_run_known() -> None:
    assert set(translate(run_of(["foo"]), {"foo": "objective/kl"}).metrics) == {"objective/kl"}


def test_a_misspelt_metric_is_reported_with_the_nearest() -> None:
    with pytest.raises(RlhealthError) as caught:
        translate(run_of(GRPO), {"my/kl": "objective/kll"})
    assert "--alias my/kl=objective/kll: there is no metric 'objective/kll'" in caught.value.message
    assert "did you mean objective/kl" in caught.value.hint


def test_an_alias_for_the_steps_is_refused_with_what_to_do_instead(tmp_path: Path) -> None:
    file = tmp_path / "names.yaml"
    file.write_text("Iteration No.: step\n")
    for refused in (lambda: translate(run_of(GRPO), {"Iteration No.": "step"}), lambda: read_aliases(file)):
        with pytest.raises(RlhealthError, match="an alias names a metric, and the steps are none") as caught:
            refused()
        assert "rename the column that counts the steps to `step`" in caught.value.hint


@pytest.mark.parametrize(
    ("tag", "flag"),
    [("my/kl", "--alias my/kl=kl"), ("a b", "--alias 'a b=kl'"), ("it's $(x)", "--alias 'it'\"'\"'s $(x)=kl'")],
)
def test_a_flag_can_be_pasted_into_a_shell(tag: str, flag: str) -> None:
    assert as_flag(tag, "kl") == flag
    assert shlex.split(flag) == ["--alias", f"{tag}=kl"]


def test_an_alias_for_a_tag_that_is_not_there_is_reported() -> None:
    assert "--alias my/kl: this run has no such tag" in translate(run_of(GRPO), {"my/kl": "kl"}).assumed


def test_a_file_of_aliases_is_read(tmp_path: Path) -> None:
    file = tmp_path / "names.yaml"
    file.write_text("# ours\nmy/kl: kl\n'loss: total': loss\n")
    assert read_aliases(file) == {"my/kl": "kl", "loss: total": "loss"}
    file.write_text("")
    assert read_aliases(file) == {}


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("a: kl\nmy/kl: kll\n", ":2:1", "my/kl: there is no metric 'kll'"),
        ("a: kl\n- b\n", ":2:1", ""),
        ("- a\n- b\n", ":1:1", "expected lines such as"),
        ("a: kl\nb: [kl, loss]\n", ":2:1", "the name of one metric"),
        ("a: kl\na: loss\n", ":2:1", "`a` stands here twice"),
        ("a: 'kl\n", ":2:1", ""),
        ("a: &one kl\nb: *one\n", ":1:4", "anchors and aliases are not used"),
        ("a: !!python/object:os.system kl\n", ":1:4", "tags are not used"),
        ("a: " + "[" * 500, ":1:63", "nested more than"),
    ],
)
def test_a_wrong_line_is_reported_with_file_line_and_column(tmp_path: Path, text: str, place: str, said: str) -> None:
    file = tmp_path / "names.yaml"
    file.write_text(text)
    with pytest.raises(RlhealthError) as caught:
        read_aliases(file)
    assert f"{file}{place}" in caught.value.message
    assert said in caught.value.message
    assert caught.value.hint


def test_a_file_that_cannot_be_read_is_no_traceback(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.yaml", tmp_path):
        with pytest.raises(RlhealthError):
            read_aliases(path)
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00a: \x00")
    with pytest.raises(RlhealthError):
        read_aliases(tmp_path / "bytes.yaml")
