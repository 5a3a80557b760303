"""A number that a notebook prints is what its code says: TRL's KL of whole sequences stays that under any label."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from rlhealth.metrics import translate
from rlhealth.sources import open_runs
from rlhealth.sources.notebooks.printed_names import PrintedNames
from tests.sources.notebooks.books import code, notebook, stream


def printed(source: str) -> PrintedNames:
    found = PrintedNames()
    found.read(ast.parse(source))
    return found


@pytest.mark.parametrize(
    "source",
    [
        "print(f\"kl: {stats['objective/kl']:.3f}\")",
        "print('step', n, 'kl:', stats['objective/kl'].item())",
        "print(f\"step: {n}, KL = {np.mean(stats['objective/kl'])}\")",
        "bar.set_postfix({'kl': f\"{stats['objective/kl']:.3f}\", 'n': n})",
        "bar.set_postfix(kl=stats['objective/kl'])",
        "kl = stats['objective/kl']\nfor _ in range(3):\n    print(f'kl: {kl}')",
        "def show(stats):\n    print(f\"kl: {stats['objective/kl']}\")",
    ],
)
def test_a_label_stands_for_what_the_trainer_returned_under_its_own_name(source: str) -> None:
    assert printed(source).of("kl") == "objective/kl"


@pytest.mark.parametrize(
    "source",
    [
        "print(f\"kl: {own['kl']}\")",
        "print(f\"kl: {stats['objective/kl'] / stats['tokens/responses_len_mean']}\")",
        "print(f\"kl: {stats['objective/kl']}\")\nprint(f\"kl: {stats['ppo/policy/policykl']}\")",
        "print(f\"{stats['objective/kl']} is the kl\")",
        "kl = stats['objective/kl']\nkl = mine(logs)\nprint(f'kl: {kl}')",
    ],
)
def test_a_label_of_anything_else_is_the_name_itself(source: str) -> None:
    assert printed(source).of("kl") == "kl"


def test_the_kl_of_sequences_is_not_judged_as_that_of_tokens(tmp_path: Path) -> None:
    source = "for n, batch in enumerate(loader):\n    stats = ppo_trainer.step(*batch)\n"
    source += "    print(f\"step: {n}, reward: {r}, kl: {stats['objective/kl']:.2f}\")\n"
    rows = "".join(f"step: {n}, reward: 0.5, kl: {3 + n % 4}.25\n" for n in range(20))
    path = tmp_path / "ppo.ipynb"
    path.write_text(json.dumps(notebook(code(source, stream(rows)))))
    (run,) = open_runs(str(path))
    assert {"objective/kl", "reward"} <= translate(run).metrics.keys()
    assert "kl" not in translate(run).metrics
