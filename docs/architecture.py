"""Draws docs/pictures/architecture.svg and the table of packages in docs/architecture.md from the code: `python
docs/architecture.py [--check]`.

The steps of the data flow are symbols of the code, the layers are the contract that import-linter holds, and what a
package does is the first sentence of its docstring. `--check` fails where a document is stale or a symbol is gone.
"""

from __future__ import annotations

import ast
import html
import sys
import textwrap
import tomllib
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
PICTURE = ROOT / "docs" / "pictures" / "architecture.svg"
BEGIN, END = "<!-- packages: written by docs/architecture.py -->", "<!-- end of packages -->"

#: What passes from step to step: the type, where it is defined, and the function or method that makes the next one of
#: it.
FLOW = [
    ("where", "a path or an address", "rlhealth.sources.discovery.find:find_readers"),
    ("Reader", "rlhealth.sources.base.reader:Reader", "rlhealth.sources.base.reader:Reader.poll"),
    ("Run", "rlhealth.run:Run", "rlhealth.metrics.translation:Translation"),
    ("Metric", "rlhealth.metrics.metric:Metric", "rlhealth.engine.judge:Judge.advance"),
    ("Finding", "rlhealth.verdict.findings:Finding", "rlhealth.engine.judge:Judge.verdict"),
    ("Verdict", "rlhealth.verdict.verdicts:Verdict", "rlhealth.reports:write"),
    ("report", "text on stdout", ""),
]
WIDTH, BOX, GAP, LINE = 1180, 118, 58, 17
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1f2328 } .small { font-size: 11px; fill: #57606a }
  .name { font-weight: 600 } rect { fill: #f6f8fa; stroke: #8c959f } .step rect { fill: #ddf4ff; stroke: #54aeff }
  path { stroke: #57606a; fill: none; marker-end: url(#head) } .background { fill: #ffffff; stroke: none }
"""


def layers() -> list[list[str]]:
    """The packages and modules of each layer, the highest first, as pyproject.toml names them for import-linter."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    contract = next(one for one in settings["contracts"] if one["id"] == "steps")
    return [[name.strip() for name in layer.split("|")] for layer in contract["layers"]]


def source_of(name: str) -> Path:
    """The file that says what a package or module is: its `__init__.py`, or itself."""
    path = ROOT / "rlhealth" / name
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def sentence_of(path: Path) -> str:
    """The first sentence of a file's docstring."""
    said = " ".join((ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n\n")[0].split())
    return said.partition(". ")[0].rstrip(".")


def resolve(symbol: str) -> object:
    """What `module:name.name` is; raises AttributeError or ImportError where the code has no such thing any more."""
    module, _, names = symbol.partition(":")
    found: object = import_module(module)
    for name in names.split("."):
        found = getattr(found, name)
    return found


def table() -> str:
    """Each package and module in a line, from the highest layer to the lowest."""
    rows = ["| package | what it does |", "| --- | --- |"]
    rows += [f"| `{name}` | {sentence_of(source_of(name))} |" for layer in layers() for name in layer]
    return "\n".join(rows)


def picture() -> str:
    """The data flow, and below it the layers of packages."""
    parts, x = [], 20
    for name, home, way in FLOW:
        for symbol in (one for one in (home, way) if ":" in one):
            resolve(symbol)
        parts.append(_box(x, 52, BOX, name, home.partition(":")[0].removeprefix("rlhealth."), "step"))
        if way:
            verb = way.partition(":")[2].rpartition(".")[2]
            parts.append(f'<path d="M{x + BOX + 3} 75 H{x + BOX + GAP - 6}"/>')
            parts.append(_text(x + BOX + GAP / 2, 42, verb, "small", "middle"))
        x += BOX + GAP
    y = 140
    parts.append(_text(20, y, "Packages. Each may import from the rows below its own, never from those above.", "name"))
    for layer in layers():
        y += 14
        width = (WIDTH - 40 - 12 * (len(layer) - 1)) / len(layer)
        for index, name in enumerate(layer):
            parts.append(_box(20 + index * (width + 12), y, width, name, sentence_of(source_of(name)), ""))
        y += 46
    height = y + 20
    head = '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH + 20} {height}" role="img">',
            "<title>How data flows through rlhealth, and the layers of its packages</title>",
            f"<style>{STYLE}</style>",
            f'<defs>{head}<path d="M0 0 L8 4 L0 8 z" style="fill:#57606a;stroke:none;marker-end:none"/>'
            "</marker></defs>",
            f'<rect class="background" width="{WIDTH + 20}" height="{height}"/>',
            _text(20, 24, "Data flow: what passes from step to step, and what makes the next one of it.", "name"),
            *parts,
            "</svg>\n",
        ]
    )


def _box(x: float, y: float, width: float, name: str, said: str, kind: str) -> str:
    room = max(8, int((width - 16) / 5.8))
    short = textwrap.shorten(said, room, placeholder=" …") if " " in said else said
    return (
        f'<g class="{kind}"><rect x="{x:.0f}" y="{y}" width="{width:.0f}" height="46" rx="5"/>'
        f"{_text(x + 8, y + 19, name, 'name')}{_text(x + 8, y + 36, short, 'small')}</g>"
    )


def _text(x: float, y: float, said: str, kind: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.0f}" y="{y}" text-anchor="{anchor}">{html.escape(said)}</text>'


def main() -> int:
    """Writes both, or says which is stale."""
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    page_now = f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"
    stale = []
    for path, text in ((PAGE, page_now), (PICTURE, picture())):
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(path.relative_to(ROOT))
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
    for path in stale:
        print(f"{path}: {'stale: run make docs' if '--check' in sys.argv else 'written'}")
    return int(bool(stale) and "--check" in sys.argv)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    raise SystemExit(main())
