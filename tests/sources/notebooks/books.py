"""Notebooks for tests: the real ones of fixtures/, and others made out of their cells."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from rlhealth.run import Run
from rlhealth.sources import open_runs

FIXTURES = Path(__file__).parents[3] / "fixtures" / "notebooks"


def book(name: str) -> dict[str, Any]:
    """A notebook of fixtures/."""
    return json.loads((FIXTURES / f"{name}.ipynb").read_text())


def code(source: str, *outputs: dict[str, Any]) -> dict[str, Any]:
    """A code cell."""
    return {"cell_type": "code", "execution_count": 1, "metadata": {}, "source": source, "outputs": list(outputs)}


def stream(text: str) -> dict[str, Any]:
    """What a cell printed."""
    return {"name": "stdout", "output_type": "stream", "text": text}


def shown(html: str, text: str = "<IPython.core.display.HTML object>") -> dict[str, Any]:
    """What a cell displayed."""
    data = {"text/plain": text} | ({"text/html": html} if html else {})
    return {"output_type": "display_data", "metadata": {}, "data": data}


def table(rows: list[tuple[object, ...]], heading: tuple[str, ...] = ("Step", "Training Loss"), bar: str = "") -> str:
    """A table as transformers' NotebookTrainingTracker lays it out."""
    head = "".join(f"      <th>{name}</th>\n" for name in heading)
    body = "".join("    <tr>\n" + "".join(f"      <td>{cell}</td>\n" for cell in row) + "    </tr>\n" for row in rows)
    return (
        "\n    <div>\n      <progress value='1' max='2' style='width:300px;'></progress>\n "
        f"     {bar}\n    </div>\n    "
        '<table border="1" class="dataframe">\n  <thead>\n <tr style="text-align: '
        f'left;">\n{head}    </tr>\n  </thead>\n'
        f"  <tbody>\n{body}  </tbody>\n</table><p>"
    )


def notebook(*cells: dict[str, Any]) -> dict[str, Any]:
    """A notebook of format 4 with those cells."""
    return {"cells": [copy.deepcopy(cell) for cell in cells], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def runs(folder: Path, content: dict[str, Any] | str | bytes, name: str = "train.ipynb") -> list[Run]:
    """The runs in a notebook with that content."""
    raw = json.dumps(content, indent=1) if isinstance(content, dict) else content
    (folder / name).write_bytes(raw if isinstance(raw, bytes) else raw.encode())
    return open_runs(str(folder / name))


def values(run: Run, tag: str) -> list[tuple[int, float]]:
    """Steps and values of one metric."""
    return list(zip(run.series[tag].steps.tolist(), run.series[tag].values.tolist(), strict=True))


def large(size: int) -> bytes:
    """A notebook of that many bytes: a real one, with pictures, completions and more tables."""
    whole = book("sft-then-grpo")
    picture = {
        "output_type": "display_data",
        "metadata": {},
        "data": {"image/png": "A" * 200_000, "text/plain": "<Figure>"},
    }
    text = stream("Question: what is 2 + 2?\nAnswer: | 4 | a = 3, b = {x}\n" * 4_000)
    table_cell = whole["cells"][-1]
    while len(json.dumps(whole)) < size:
        whole["cells"] += [code("plt.show()", picture), code("print(1)", text), table_cell, table_cell]
    return json.dumps(whole).encode()[: max(size, 0) + 10_000_000]
