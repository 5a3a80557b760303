"""A notebook as cells with their code and their outputs; of a damaged notebook, the cells that are intact."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlhealth.sources.base.values import said_by_exception
from rlhealth.sources.notebooks.salvage import salvage, sides
from rlhealth.sources.rows.last_words import unformatted_in

#: The oldest format that needs no conversion; every notebook of the past ten years has it.
PLAIN_FORMAT = 4
_COLOUR = re.compile(r"\x1b\[[0-9;]*+m")
#: What VS Code puts in the place of an exception where it lost the kernel: the process may have gone on.
_OF_THE_EDITOR = re.compile(
    r"(?:Failed|Unable) to connect to |Canceled future for |Cannot execute code, session has been disposed"
)
_WARNING = re.compile(r"<IPython\.core\.display\.\w+ object>")


@dataclass
class Output:
    """What one output of a cell shows: its HTML, its text, and the error that ended the cell where it is one.

    Attributes:
        stream: where the text was printed, stdout or stderr; empty if it was displayed.
        error: an exception as Python prints it (`ValueError: …`), or what the editor says of a dead kernel.
        is_exception: whether the error has the name of an exception.
    """

    html: str = ""
    text: str = ""
    stream: str = ""
    error: str = ""
    is_exception: bool = False


def printed_text(outputs: Iterable[Output]) -> str:
    """The printed text of some outputs. Where the stream changes, a line ends: a progress bar on stderr draws its last
    state without an end of line."""
    found: list[str] = []
    stream = ""
    for output in outputs:
        if output.stream:
            if found and output.stream != stream and not found[-1].endswith(("\n", "\r")):
                found.append("\n")
            found.append(output.text)
            stream = output.stream
    return "".join(found)


@dataclass
class Cell:
    """One cell.

    Attributes:
        number: its place in the notebook, from 1.
        code: its source where it is code, else "".
        counted: whether the kernel counted it, which it does when it runs a cell.
    """

    number: int
    code: str = ""
    outputs: list[Output] = field(default_factory=list)
    counted: bool = False

    @property
    def has_run(self) -> bool:
        """Whether the kernel ran it, as far as is kept."""
        return self.counted or bool(self.outputs)

    @property
    def error(self) -> str:
        """The error that ended the cell; an exception takes precedence over a kernel message. Empty if the cell
        completed."""
        errors = [output for output in self.outputs if output.error]
        if errors:
            return max(reversed(errors), key=lambda one: one.is_exception).error
        return unformatted_in(printed_text(self.outputs))


@dataclass
class Document:
    """A notebook, or what is left of one.

    Attributes:
        problems: what was damaged, as sentences without the file's name.
        is_whole: whether all of it could be read.
    """

    cells: list[Cell]
    problems: list[str] = field(default_factory=list)
    is_whole: bool = True


def documents(raw: bytes) -> Iterator[Document]:
    """The notebook in these bytes; with git conflict markers, both sides; if it is damaged, the parts that are intact.
    Yields nothing if the bytes are no notebook.
    """
    text = raw.decode("utf-16" if raw.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig", "replace")
    found = _parsed(text)
    if found is not None:
        yield found
        return
    conflicted = sides(text)
    parsed = [(name, one) for name, side in conflicted if (one := _parsed(side)) is not None]
    for name, one in parsed:
        one.problems.append(f"git's conflict marks are in it; the side of {name} was read")
        one.is_whole = False
        yield one
    if parsed:
        return
    cells = [_cell(number, cell) for number, cell in enumerate(salvage(conflicted[0][1] if conflicted else text), 1)]
    if any(cell.outputs or cell.code for cell in cells):
        problem = "not valid JSON (cut off, or damaged); the intact cells and outputs were read"
        yield Document(cells, [problem], is_whole=False)


def _parsed(text: str) -> Document | None:
    try:
        notebook = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(notebook, dict):
        return None
    problems: list[str] = []
    cells = notebook.get("cells")
    if not isinstance(cells, list):
        cells, problems = _converted(notebook)
    return Document([_cell(number, cell) for number, cell in enumerate(cells, 1)], problems)


def _converted(notebook: dict[str, Any]) -> tuple[list[Any], list[str]]:
    """The cells of a notebook in a format older than 4, which has its cells in worksheets."""
    if not isinstance(notebook.get("worksheets"), list):
        return [], []
    import nbformat  # late: a quarter of a second, and only old notebooks need it

    try:
        return list(nbformat.convert(nbformat.from_dict(notebook), PLAIN_FORMAT).get("cells", [])), []
    except Exception as error:  # an old notebook may lack any field
        return [], [
            f"an old notebook (format {notebook.get('nbformat')}) that cannot be converted: {type(error).__name__}"
        ]


def _cell(number: int, cell: object) -> Cell:
    if not isinstance(cell, Mapping):
        return Cell(number)
    outputs = cell.get("outputs")
    if cell.get("output_type"):  # an output without its cell, out of a damaged notebook
        outputs = [cell]
    is_code = cell.get("cell_type") == "code"
    found = [_output(one) for one in outputs if isinstance(one, Mapping)] if isinstance(outputs, list) else []
    is_counted = is_code and isinstance(cell.get("execution_count"), int)
    return Cell(number, _joined(cell.get("source")) if is_code else "", found, is_counted)


def _output(output: Mapping[str, Any]) -> Output:
    kind = output.get("output_type")
    if kind == "stream":
        name = output.get("name")
        return Output(text=_joined(output.get("text")), stream=name if isinstance(name, str) and name else "stdout")
    if kind == "error":
        return _raised(output)
    shown = output.get("data")
    if not isinstance(shown, Mapping):
        return Output()
    text = _joined(shown.get("text/plain"))
    return Output(html=_joined(shown.get("text/html")), text="" if _WARNING.fullmatch(text) else text)


def _raised(output: Mapping[str, Any]) -> Output:
    name = output.get("ename")
    if isinstance(name, str) and name and all(part.isidentifier() for part in name.split(".")):
        said = _first_line(output.get("evalue"))
        return Output(error=said_by_exception(f"{name}: {said}" if said else name), is_exception=True)
    said = _first_line(output.get("evalue")) or _first_line(output.get("traceback"))
    if _OF_THE_EDITOR.match(said):
        return Output()
    return Output(error=said_by_exception(said.rstrip(" .")) or "an exception without a name")


def _first_line(text: object) -> str:
    lines = (line.strip() for line in _COLOUR.sub("", _joined(text)).splitlines())
    return next(filter(None, lines), "")


def _joined(text: object) -> str:
    """A text as nbformat keeps it: whole, or as a list of its lines."""
    if isinstance(text, str):
        return text
    if isinstance(text, Sequence):
        return "".join(one for one in text if isinstance(one, str))
    return ""
