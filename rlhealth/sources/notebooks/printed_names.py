"""What the code says that a printed name stands for: `print(f"kl: {stats['objective/kl']}")` prints TRL's KL of whole
sequences under a name that means the KL of tokens elsewhere."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from rlhealth.metrics.catalogue import names
from rlhealth.sources.rows.row_names import PAID, words

#: The names of what a trainer returns at each step, which user code prints under names of its own.
RETURNED = "trl_legacy.yaml"
_LABEL = re.compile(r"(?:^|[\s,;|(])([A-Za-z][\w./ -]{0,40}?)\s*[:=]\s*\Z")
_POSTFIX = "set_postfix"  # of tqdm
#: `print(episode_reward)`, alone in its line.
_PRINTS_ONE = re.compile(r"^[ \t]*print\([ \t]*([A-Za-z_]\w{0,60})[ \t]*\)[ \t]*(?:#.*)?$", re.MULTILINE)
_ONE_NUMBER = re.compile(r"^[ \t]*([-+]?\d{1,15}(?:\.\d{1,20})?(?:[eE][-+]?\d{1,3})?|nan|-?inf)[ \t]*$", re.MULTILINE)


class PrintedNames:
    """The trainer's names of what the code prints under others; of a label that stands for two, neither."""

    def __init__(self) -> None:
        self._found: dict[str, set[str]] = {}

    def read(self, tree: ast.AST) -> None:
        """Reads the code of a cell."""
        held: dict[str, str] = {}  # by variable
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                held[node.targets[0].id] = _returned(node.value, {})
        for label, value in (pair for node in ast.walk(tree) for pair in _labelled(node)):
            if name := _returned(value, held):
                self._found.setdefault(words(label), set()).add(name)

    def of(self, tag: str) -> str:
        """The trainer's name of what is printed as `tag`; the tag itself where the code does not say it."""
        found = self._found.get(words(tag), ())
        return next(iter(found)) if len(found) == 1 else tag


def with_name_of_numbers(text: str, code: str) -> str:
    """What a cell printed, with the name of the only variable that its code prints alone before each number that stands
    alone, `episode_reward: 25.0`, if that is a reward; unchanged if it is none, or one of several."""
    printed = set(_PRINTS_ONE.findall(code))
    if len(printed) != 1 or PAID.search(name := printed.pop()) is None:
        return text
    return _ONE_NUMBER.sub(rf"{name}: \1", text)


def _labelled(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """The values that a piece of code prints, each with its label: in an f-string, behind a text in `print`, and in the
    postfix of a progress bar."""
    if isinstance(node, ast.JoinedStr):
        yield from _behind_labels(node.values)
    elif isinstance(node, ast.Call):
        called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if called == "print":
            yield from _behind_labels(node.args)
        elif called == _POSTFIX:
            yield from ((one.arg, one.value) for one in node.keywords if one.arg is not None)
            for given in node.args:
                if isinstance(given, ast.Dict):
                    labels = map(_text, given.keys)
                    yield from ((one, value) for one, value in zip(labels, given.values, strict=True) if one)


def _behind_labels(parts: Iterable[ast.expr]) -> Iterator[tuple[str, ast.expr]]:
    """Each part behind a text that ends with a label: `kl: `, `mean kl=`."""
    label = None
    for part in parts:
        if label is not None:
            yield label[1], part
        label = _LABEL.search(_text(part))


def _text(node: ast.expr | None) -> str:
    """The text that a literal is; empty where it is none."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _returned(node: ast.expr, held: dict[str, str]) -> str:
    """The only name that an expression takes out of what the trainer returned, or that a variable in it holds; empty
    where there is none, or several."""
    found = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Subscript):
            found.add(_text(part.slice))
        elif isinstance(part, ast.Name):
            found.add(held.get(part.id, ""))
    known = {one for one in found if "/" in one and one in names(RETURNED).exact}  # few notebooks need that file
    return next(iter(known)) if len(known) == 1 else ""
