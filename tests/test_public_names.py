"""The Python interface: what `import rlhealth` offers, and that it costs nothing until it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import rlhealth
from tests.conftest import FIXTURES, ROOT, SICK


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_public_name_is_there_and_listed() -> None:
    for name in rlhealth.__all__:
        assert getattr(rlhealth, name) is not None
        assert name in dir(rlhealth)


def test_a_name_that_there_is_not_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'chek'"):
        rlhealth.chek  # noqa: B018


def test_importing_rlhealth_imports_nothing_else() -> None:
    assert (
        python(
            "import sys, rlhealth; print(sorted(one for one in sys.modules if "
            "one.startswith(('rlhealth.', 'numpy', 'pandas', 'yaml'))))"
        )
        == "[]\n"
    )


@pytest.mark.parametrize(
    "before", ["", "from rlhealth.check import check", "import rlhealth.check", "from rlhealth import check"]
)
def test_check_is_the_function_however_its_module_was_imported(before: str) -> None:
    assert python(f"{before}\nimport rlhealth\nprint(rlhealth.check('no/such/run').exit_code)") == "2\n"


def test_a_check_from_python_gives_the_verdict_of_the_command_line() -> None:
    verdict = rlhealth.check(SICK)
    assert isinstance(verdict, rlhealth.Verdict)
    assert (verdict.verdict, verdict.exit_code) == ("critical", 1)
    assert isinstance(verdict.runs[0].causes[0], rlhealth.Finding)
    assert verdict.runs[0].causes[0].severity is rlhealth.Severity.CRITICAL


def test_runs_open_as_a_table() -> None:
    run = rlhealth.open_runs(FIXTURES / "trainer_state" / "grpo-old")[0]
    table = run.frame()
    assert isinstance(run, rlhealth.Run)
    assert list(table.columns) == ["run", "tag", "step", "time", "value"]
    assert len(table) == sum(len(one) for one in run.series.values())
    reward = table[table.tag == "reward"]
    assert reward.value.tolist() == run.series["reward"].values.tolist()
