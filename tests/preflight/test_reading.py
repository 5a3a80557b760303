"""Options are read from every way in which a training is written down, and the trainer is recognised by them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rlhealth.errors import RlhealthError
from rlhealth.preflight.looking import preflight
from rlhealth.preflight.options import read_options
from rlhealth.preflight.shell import options_in
from rlhealth.preflight.trainer import settings_in

SCRIPT = """\
from trl import GRPOConfig, GRPOTrainer
LR = 5e-2
args = GRPOConfig(
    output_dir="out",
    learning_rate=LR,
    num_generations=1,
)
trainer = GRPOTrainer(model="x", args=args, reward_funcs=[len])
trainer.train()
"""
VERL = """\
set -x
N=1
# actor_rollout_ref.rollout.n=8
python3 -m verl.trainer.main_ppo \\
    algorithm.adv_estimator=grpo \\
    data.train_batch_size=${BATCH:-64} \\
    actor_rollout_ref.actor.optim.lr=1e-6 \\
    actor_rollout_ref.rollout.n=$N \\
    trainer.project_name="$UNKNOWN" $@
"""


def settings_of(file: Path, text: str) -> Any:
    file.write_text(text, encoding="utf-8")
    [options] = read_options(file)
    return settings_in(options)


def test_yaml(tmp_path: Path) -> None:
    settings = settings_of(tmp_path / "c.yaml", "model: x\nlearning_rate: 1e-6\nnum_generations: 1\nbeta: 0.04\n")
    assert (settings.framework, settings.values["learning_rate"]) == ("trl-grpo", 1e-6)
    assert settings.options_of.place("num_generations") == f"{tmp_path / 'c.yaml'}:3"


def test_options_below_a_section_are_found_and_those_of_another_model_are_not(tmp_path: Path) -> None:
    text = "trainer:\n  num_generations: 8\n  beta: 0.04\ngeneration_kwargs:\n  temperature: 0.0\n"
    settings = settings_of(tmp_path / "c.yaml", text)
    assert settings.values["group_size"] == 8 and "temperature" not in settings.values
    assert settings.options["group_size"] == "trainer.num_generations"


def test_json_with_tabs(tmp_path: Path) -> None:
    text = json.dumps({"learning_rate": 1e-6, "num_generations": 8, "beta": 0.04}, indent="\t")
    assert settings_of(tmp_path / "c.json", text).values["group_size"] == 8


def test_a_python_file_is_read_and_not_run(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    settings = settings_of(tmp_path / "train.py", SCRIPT + f"open({str(marker)!r}, 'w')\n")
    assert settings.framework == "trl-grpo"
    assert (settings.values["learning_rate"], settings.values["group_size"]) == (0.05, 1)
    assert settings.options_of.place("num_generations").endswith("train.py:6")
    assert not marker.exists()


def test_a_notebook_with_two_trainers_is_two_trainings(tmp_path: Path) -> None:
    first = "from trl import SFTConfig, SFTTrainer\nt = SFTTrainer(args=SFTConfig(learning_rate=2e-4))\nt.train()"
    cells = [{"cell_type": "code", "source": text, "metadata": {}, "outputs": []} for text in (first, SCRIPT)]
    book = tmp_path / "train.ipynb"
    book.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    assert len(read_options(book)) == 2
    [only] = preflight(book).examined  # supervised training has other settings that hurt
    assert only.settings.framework == "trl-grpo"


def test_a_shell_script_with_its_own_variables(tmp_path: Path) -> None:
    settings = settings_of(tmp_path / "run.sh", VERL)
    assert settings.framework == "verl"
    assert (settings.values["group_size"], settings.values["batch_size"]) == (1, 64)
    assert settings.options_of.place("actor_rollout_ref.rollout.n").endswith("run.sh:8")
    assert "trainer.project_name" not in settings.options_of.values


def test_flags_of_a_command(tmp_path: Path) -> None:
    found, _ = options_in(
        'ray job submit -- python3 -m openrlhf.cli.train_ppo_ray --init-kl-coef -0.1 --bf16 --name "a b"\n'
    )
    assert found == {"m": "openrlhf.cli.train_ppo_ray", "init_kl_coef": "-0.1", "bf16": True, "name": "a b"}


def test_of_an_option_that_stands_twice_the_later_one_counts() -> None:
    assert options_in("x --beta 1 \\\n --beta 2\n") == ({"beta": "2"}, {"beta": 2})


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("c.yaml", "a: 1\na: 2\n", ":2:1"),
        ("c.json", '{"a": [}', ":1:8"),
        ("c.py", "x = (\n", ":1:5"),
        ("c.yaml", "- a\n", ""),
    ],
)
def test_what_cannot_be_read_is_one_line_that_says_where(tmp_path: Path, name: str, text: str, place: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    found = preflight(file)
    assert found.exit_code == 2
    assert found.errors[0].message.startswith(f"{file}{place}") and "\n" not in found.errors[0].message


def test_a_notebook_without_a_trainer_says_so(tmp_path: Path) -> None:
    book = tmp_path / "a.ipynb"
    book.write_text(json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    with pytest.raises(RlhealthError, match="no trainer is made"):
        read_options(book)
