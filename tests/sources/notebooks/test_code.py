"""Settings, trainers and versions in the code of a notebook: what is plain is read, what would have to be run is
not.
"""

from __future__ import annotations

from typing import Any

import pytest

from rlhealth.sources.notebooks.code import Code, python_of, read_code
from rlhealth.sources.notebooks.document import Cell, Output


def read(*sources: str) -> Code:
    return read_code(Cell(number, source) for number, source in enumerate(sources, 1))


def settings(*sources: str) -> dict[str, Any]:
    """The settings of the only trainer that the cells start."""
    ((trainer,),) = [started for started in read(*sources).trainings.values() if started]
    return trainer.settings


START = "trainer = GRPOTrainer(model, args=args)\ntrainer.train()"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "args = GRPOConfig(learning_rate=5e-6, max_completion_length=200)",
            {"learning_rate": 5e-6, "max_completion_length": 200},
        ),
        (
            "args = trl.GRPOConfig(beta=-0.5, bf16=True, report_to=None)",
            {"beta": -0.5, "bf16": True, "report_to": None},
        ),
        ("n = 2048\nm = n // 4\nargs = GRPOConfig(max_completion_length=n - m)", {"max_completion_length": 1536}),
        ("more = dict(beta=0.1)\nargs = GRPOConfig(**more, epsilon=0.2)", {"beta": 0.1, "epsilon": 0.2}),
        ("more = {'beta': 0.1, 'seed': f()}\nargs = GRPOConfig(**more)", {"beta": 0.1}),
        ("args = GRPOConfig(beta=0.1)\nargs.beta = 0.2", {"beta": 0.2}),
        ("args = GRPOConfig(beta=0.1)\nargs.beta = ask()", {}),
        ("args = GRPOConfig(reward_weights=[1.0, 0.5])", {"reward_weights": [1.0, 0.5]}),
        ("args: GRPOConfig = GRPOConfig(beta=0.1)", {"beta": 0.1}),
        ("lr = 1e-5\nif big:\n    lr = 1e-6\nargs = GRPOConfig(learning_rate=lr, beta=0.1)", {"beta": 0.1}),
        ("for lr in (1, 2):\n    pass\nargs = GRPOConfig(learning_rate=lr, beta=0.1)", {"beta": 0.1}),
        ("lr = 1\nlr *= 2\nargs = GRPOConfig(learning_rate=lr, beta=0.1)", {"beta": 0.1}),
        ("args = GRPOConfig(learning_rate=1/0, beta=1e300*1e300, epsilon=0.2)", {"epsilon": 0.2}),
        ("args = GRPOConfig(beta=__import__('os').system('true'))", {}),
        ("from trl import GRPOConfig as C\nargs = C(beta=0.1)", {"beta": 0.1}),
        ("class C(GRPOConfig):\n    pass\nargs = C(beta=0.1)", {"beta": 0.1}),
        ("args = GRPOConfig(beta=0.1)\npeft = LoraConfig(r=8, lora_alpha=16)", {"beta": 0.1}),
        ("lr = 3\ndef f(lr):\n    return 1\nargs = GRPOConfig(learning_rate=lr)", {"learning_rate": 3}),
    ],
)
def test_settings_that_are_plain_are_read(source: str, expected: dict[str, Any]) -> None:
    assert settings(source, START) == expected


def test_settings_made_in_the_call_of_the_trainer_are_read() -> None:
    assert settings("GRPOTrainer(model=m, args=GRPOConfig(beta=0.1)).train()") == {"beta": 0.1}
    assert settings("model = PPO('MlpPolicy', env, learning_rate=3e-4)\nmodel.learn(1000)") == {"learning_rate": 3e-4}


def test_a_function_that_trains_counts_where_it_is_called() -> None:
    code = read(f"args = GRPOConfig(beta=0.1)\ndef run():\n    {START.replace(chr(10), chr(10) + '    ')}\n", "run()")
    assert [(cell, [one.name for one in started]) for cell, started in code.trainings.items()] == [
        (1, []),
        (2, ["GRPOTrainer"]),
    ]


def test_a_trainer_of_the_notebooks_own_goes_by_the_class_it_is_made_from() -> None:
    code = read("class Mine(GRPOTrainer):\n    pass\nt = Mine()\nt.train()")
    assert code.trainings[1][0].name == "GRPOTrainer"


@pytest.mark.parametrize(
    ("imports", "name", "settings"),
    [
        ("from trl import GRPOConfig, GRPOTrainer", "GRPOTrainer", {"beta": 0.2}),
        ("from trl.trainer.grpo_trainer import GRPOConfig, GRPOTrainer", "GRPOTrainer", {"beta": 0.2}),
        ("from scripts.grpo import GRPOConfig, GRPOTrainer", "", {}),
        ("from trl import GRPOConfig\nclass GRPOTrainer:\n    pass", "", {"beta": 0.2}),
        ("from trl import GRPOConfig, GRPOTrainer as T\nclass GRPOTrainer(T):\n    pass", "GRPOTrainer", {"beta": 0.2}),
        ("from .grpo import GRPOTrainer\nfrom trl import GRPOConfig", "", {"beta": 0.2}),
        ("from scripts.grpo import GRPOTrainer\nfrom trl import GRPOConfig, GRPOTrainer", "GRPOTrainer", {"beta": 0.2}),
    ],
)
def test_a_class_counts_as_its_librarys_only_where_it_is_imported_from_one(
    imports: str, name: str, settings: dict[str, Any]
) -> None:
    code = read(f"{imports}\nargs = GRPOConfig(beta=0.2)\n{START}")
    ((trainer,),) = code.trainings.values()
    assert (trainer.name, trainer.settings) == (name, settings)


@pytest.mark.parametrize(
    "source",
    [
        "%%bash\npython train.py",
        "%%html\n<b>",
        "print 'Python 2'",
        "def half(",
        "(" * 5000,
        "-" * 100_000 + "1",
        "x = " + "[" * 150 + "]" * 150,
        "a.b.c.d().train()",
        "trainer.train()",
        "\x00",
        "GRPOConfig(**" + "{**" * 90 + "x" + "}" * 90 + ")",
    ],
)
def test_code_that_cannot_be_read_says_nothing(source: str) -> None:
    assert not any(read(source).trainings.values())


def test_magics_and_shell_lines_are_taken_out() -> None:
    source = (
        "%%capture\n!pip install trl \\\n  peft\n%matplotlib inline\nif x:\n "
        "   !ls\nfiles = !ls *.txt\na = 7 % 3\n?help"
    )
    assert python_of(source) == "\npass\n\npass\nif x:\n    pass\nfiles = None\na = 7 % 3\npass"
    compile(python_of(source) or "", "cell", "exec")
    assert python_of("%%writefile train.py\nargs = 1") == "\nargs = 1"


def test_no_setting_is_private() -> None:
    token = "hf_" + "a" * 34
    cell = (
        f"args = GRPOConfig(beta=0.1, hub_token='x', run_name='{token}', hub_model_id='me/model', api_key='k')\n{START}"
    )
    assert token not in repr(settings(cell))
    assert {"hub_token", "api_key", "run_name"}.isdisjoint(settings(cell))


def test_only_versions_that_were_installed_count() -> None:
    said = (
        "Successfully installed trl-0.19.1 stable-baselines3-2.7.0\n==((====))==  Unsloth 2025.3.19: "
        "Fast Qwen2 patching. Transformers: 4.50.0. vLLM: 0.8.2."
    )
    code = read_code([Cell(1, "!pip install trl==0.22.2", [Output(text=said, stream="stdout")])])
    assert code.versions == {"trl": "0.19.1", "stable_baselines3": "2.7.0", "transformers": "4.50.0"}
