"""The options of a training that has not begun: from YAML, JSON, a Python file or a notebook (by `ast`), or a shell
script."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlhealth.errors import RlhealthError
from rlhealth.parsing.python_code import tree_of
from rlhealth.parsing.strict_yaml import read_yaml
from rlhealth.preflight.shell import options_in
from rlhealth.run import flat
from rlhealth.sources.base.growing import open_regular
from rlhealth.sources.notebooks.code import read_code
from rlhealth.sources.notebooks.document import Cell, documents

LARGEST = 4 << 20  # bytes of a config file; notebooks may be larger, for their pictures
LARGEST_NOTEBOOK = 256 << 20
SUFFIXES = (".yaml", ".yml", ".json", ".py", ".ipynb", ".sh", ".bash")
_LIBRARY = re.compile(r"^\s*(?:from|import)\s+([A-Za-z_]\w*)", re.MULTILINE)
_HINT = "name a trainer's config file, a script, a notebook, or a run"


@dataclass
class Options:
    """The options of one training, as they were written.

    Attributes:
        location: the file, or the run's own place.
        values: flat, nested keys joined with a dot.
        lines: the line on which an option stands, if known.
        trainer: the trainer's class, where the code names it.
        libraries: what the code imports.
    """

    location: str
    values: dict[str, Any]
    lines: dict[str, int] = field(default_factory=dict)
    trainer: str = ""
    libraries: frozenset[str] = frozenset()

    def place(self, option: str) -> str:
        """`file:line` of an option; the file alone where its line is not known."""
        line = self.lines.get(option)
        return f"{self.location}:{line}" if line else self.location


def is_config(where: str) -> bool:
    """Whether a place is a file of settings rather than a log: by its suffix, and a trainer_state.json is a log."""
    path = Path(where)
    if path.suffix.lower() not in SUFFIXES or not path.is_file():
        return False
    if path.suffix.lower() != ".json":
        return True
    with open_regular(path) as file:
        return b'"log_history"' not in file.read(LARGEST)


def read_options(path: Path) -> list[Options]:
    """The options of each training that a file describes; a notebook may describe several.

    Raises:
        RlhealthError: if it cannot be read, or holds no settings; it names the line where it can.
    """
    kind = path.suffix.lower()
    with open_regular(path) as file:
        largest = LARGEST_NOTEBOOK if kind == ".ipynb" else LARGEST
        raw = file.read(largest + 1)
    if len(raw) > largest:
        raise RlhealthError(f"{path}: larger than {largest >> 20} MiB", hint=_HINT, location=str(path))
    if kind == ".ipynb":
        return _of_notebook(path, raw)
    text = raw.decode("utf-8-sig", "replace")
    if kind == ".py":
        return _of_code(path, [Cell(1, _parsed(path, text))])
    if kind in (".sh", ".bash"):
        found, lines = options_in(text)
        return [_some(Options(str(path), found, lines), "names no options")]
    value, marks = read_yaml(text.replace("\t", " ") if kind == ".json" else text, str(path))
    if not isinstance(value, dict):
        raise RlhealthError(f"{path}: not a mapping of options to values", hint=_HINT, location=str(path))
    found = {key: one for key, one in flat(value).items() if not (isinstance(one, str) and "${" in one)}
    lines = {".".join(map(str, keys)): place[0] for keys, place in marks.items() if keys}
    return [_some(Options(str(path), found, lines), "holds no options")]


def _parsed(path: Path, text: str) -> str:
    """The code, if it is Python. Raises RlhealthError with the line where it is not."""
    try:
        tree_of(text)
    except SyntaxError as error:
        said = f"{path}:{error.lineno or 1}:{error.offset or 1}: not Python: {error.msg}"
        raise RlhealthError(said, hint=_HINT, location=str(path)) from None
    except (ValueError, RecursionError, MemoryError):
        raise RlhealthError(f"{path}: not Python", hint=_HINT, location=str(path)) from None
    return text


def _of_notebook(path: Path, raw: bytes) -> list[Options]:
    for document in documents(raw):
        return _of_code(path, document.cells)
    raise RlhealthError(f"{path}: not a notebook", hint=_HINT, location=str(path))


def _of_code(path: Path, cells: list[Cell]) -> list[Options]:
    code = read_code(cells)
    source = "\n".join(one.code for one in cells)
    libraries = frozenset(_LIBRARY.findall(source))
    numbered = source if path.suffix.lower() == ".py" else ""  # lines of a notebook's JSON help nobody
    found = []
    for _, trainer in code.trainers:
        lines = {key: line for key in trainer.settings if (line := _only_line(numbered, key))}
        found.append(Options(str(path), dict(trainer.settings), lines, trainer.name, libraries))
    if not any(one.values for one in found):
        why = "no trainer is made with settings that are plain values"
        raise RlhealthError(f"{path}: {why}", hint=_HINT, location=str(path))
    return [one for one in found if one.values]


def _only_line(source: str, option: str) -> int | None:
    """The line on which an option is given a value, where there is only one."""
    lines = [
        number
        for number, line in enumerate(source.split("\n"), 1)
        if re.search(rf"(?:\b|[\"']){re.escape(option)}[\"']?\s*[=:](?!=)", line)
    ]
    return lines[0] if len(lines) == 1 else None


def _some(options: Options, why: str) -> Options:
    if not options.values:
        raise RlhealthError(f"{options.location}: {why}", hint=_HINT, location=options.location)
    return options
