"""A verdict in Python and in a notebook: short text, the report in a frame, a table, a file by its suffix."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

import rlhealth
from rlhealth.errors import RlhealthError
from rlhealth.verdict.verdicts import Verdict
from tests.conftest import ROOT, SICK


@pytest.fixture(scope="module")
def checked() -> Verdict:
    return rlhealth.check(SICK)


def test_a_verdict_is_a_few_lines_of_text(checked: Verdict, many: Verdict, nothing: Verdict) -> None:
    said = repr(checked)
    assert said.startswith("<Verdict lr-jump: critical, steps 1 to 140")
    assert "critical since step 82: learning-rate-jump" in said
    for verdict in (checked, many, nothing):
        lines = repr(verdict).splitlines()
        assert len(lines) <= 10
        assert max(map(len, lines)) <= 160
    assert "29 runs" in repr(many) or "30 runs" in repr(many)
    assert "no runs found in ./logs" in repr(nothing)
    assert len(repr(checked.runs)) < 1000 and len(repr(checked.runs[0].run)) < 200


def test_an_unknown_run_says_why_in_its_text(unknown: Verdict) -> None:
    assert "unknown" in repr(unknown) and unknown.runs[0].no_answer in repr(unknown)


def test_no_name_from_a_log_controls_the_terminal_or_leaves_the_frame(hostile: Verdict) -> None:
    for run in hostile.runs:
        assert repr(run).replace("\n", "").replace("\u200d", "").isprintable()  # a joiner is part of emoji
    framed = hostile._repr_html_()
    assert framed.count("<") == 2  # the frame and its end: everything else is inside the escaped page
    assert 'sandbox="allow-scripts"' in framed


def test_ok_is_whether_the_check_passes(checked: Verdict, healthy: Verdict) -> None:
    assert (checked.ok, checked.runs[0].ok) == (False, False)
    assert (healthy.ok, healthy.runs[0].ok) == (True, True)


def test_a_run_is_found_by_name_and_a_wrong_name_shows_the_nearest(checked: Verdict) -> None:
    assert checked.run("lr-jump") is checked.runs[0]
    with pytest.raises(RlhealthError, match="no run 'lr-jmp'") as raised:
        checked.run("lr-jmp")
    assert "lr-jump" in raised.value.hint


def test_the_table_has_a_row_for_each_finding_and_one_for_a_healthy_run(
    checked: Verdict, many: Verdict, nothing: Verdict
) -> None:
    table = checked.frame()
    assert len(table) == len(checked.runs[0].findings)
    row = table.set_index("rule").loc["learning-rate-jump"]
    assert (row["severity"], row["first_step"], row["state"]) == ("critical", 82, "standing")
    assert set(many.frame()["run"]) == {run.name for run in many.runs}
    assert nothing.frame().empty
    assert list(nothing.frame().dtypes) == list(table.dtypes)


def test_the_vital_signs_are_a_table_of_eight_rows_a_run(checked: Verdict, many: Verdict, nothing: Verdict) -> None:
    table = checked.vitals().set_index("vital")
    assert len(table) == 8 and len(many.vitals()) == 8 * len(many.runs) and nothing.vitals().empty
    assert (table.loc["policy", "state"], table.loc["policy", "unit"]) == ("sick", "nats/token")
    assert table.loc["policy", "end"] > table.loc["policy", "start"]
    assert len(checked.runs[0].vitals()) == 8


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("a.html", "<!doctype html>"),
        ("a.json", "{"),
        ("a.md", "#"),
        ("a.csv", "kind,run"),
        ("a.sarif", "{"),
        ("a.xml", "<?xml"),
    ],
)
def test_save_writes_the_format_of_the_suffix(checked: Verdict, tmp_path: Path, name: str, start: str) -> None:
    assert checked.save(tmp_path / name) == tmp_path / name
    assert (tmp_path / name).read_text().startswith(start)


def test_save_refuses_an_unknown_suffix_a_missing_folder_and_a_log(checked: Verdict, tmp_path: Path) -> None:
    for path, said in ((tmp_path / "health.pdf", ".pdf"), (tmp_path / "none" / "health.html", "No such file")):
        with pytest.raises(RlhealthError, match=said):
            checked.save(path)
    log = tmp_path / "log.csv"
    log.write_text("step,reward\n" + "".join(f"{step},{step / 10}\n" for step in range(1, 30)))
    before = log.read_text()
    with pytest.raises(RlhealthError, match="a log that is being read"):
        rlhealth.check(log).save(log)
    assert log.read_text() == before


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ipykernel") is None, reason="needs the dev extra: ipykernel, nbconvert")
def test_a_notebook_shows_the_report(tmp_path: Path) -> None:
    import nbformat
    from nbconvert import HTMLExporter
    from nbconvert.preprocessors import ExecutePreprocessor

    cells = [f"import sys\nsys.path.insert(0, {str(ROOT)!r})\nimport rlhealth", f"rlhealth.check({str(SICK)!r})"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(one) for one in cells])
    ExecutePreprocessor(timeout=120, kernel_name="python3").preprocess(notebook, {"metadata": {"path": str(tmp_path)}})
    shown = notebook.cells[1].outputs[0]["data"]
    assert shown["text/plain"].startswith("<Verdict lr-jump: critical")
    assert shown["text/html"].startswith("<iframe") and "srcdoc=" in shown["text/html"]
    page, _ = HTMLExporter().from_notebook_node(notebook)
    assert "srcdoc=" in page and "learning-rate-jump" in page
    json.dumps(notebook)  # strictly JSON, as a notebook file is
    (tmp_path / "notebook.html").write_text(page)
