"""What the code cells of a notebook say about its training: the trainer's class, its settings, the installed versions.
No code is run.
"""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from rlhealth.parsing.python_code import tree_of
from rlhealth.sources.base.values import training_config
from rlhealth.sources.notebooks.document import Cell
from rlhealth.sources.notebooks.literals import NotPlain, settings_in, value_of
from rlhealth.sources.notebooks.printed_names import PrintedNames

LONGEST_CODE = 1 << 20  # characters of a cell
#: Settings of the trainer; those of adapters, quantisation and sampling are not its own.
_SETTINGS = re.compile(
    r"^(?!Lora|LoRA|Peft|BitsAndBytes|Auto|Model|Script|Generation|Quant).*(?:Config|Arguments|Args)$"
)
_TRAINER = re.compile(r"Trainer$")
#: Agents of Stable-Baselines3 are trainers too, with their settings among their own arguments.
_AGENTS = frozenset({"PPO", "A2C", "DQN", "SAC", "TD3", "DDPG", "TRPO", "RecurrentPPO", "MaskablePPO"})
_TRAINING = frozenset({"train", "learn", "fit"})
_MAGIC = re.compile(r"^(?P<indent>[ \t]*)(?:[!?]|%(?!%))")
_ASSIGNED_MAGIC = re.compile(r"^(?P<left>[ \t]*[\w., ()]+=[ \t]*)[!%].*$")
_OTHER_LANGUAGE = re.compile(r"\A\s*%%(?!capture|time|timeit|prun|writefile\s+\S+\.py)")
_VERSIONS = re.compile(r"\b(trl|transformers|unsloth|verl|stable[-_]baselines3|ray)-(\d+\.\d+(?:\.\d+)?)\b")
_BANNER = re.compile(r"\bTransformers: (\d+\.\d+\.\d+)\.")


#: Libraries whose trainers and settings are known by their names. A class of the same name out of another module may
#: be anything, such as your own GRPOTrainer for a control task.
_LIBRARIES = frozenset(
    {"trl", "unsloth", "transformers", "swift", "open_r1", "verifiers", "verl", "areal", "openrlhf", "nemo_rl"}
    | {"skyrl", "torchtune", "rllm", "stable_baselines", "stable_baselines3", "sb3_contrib", "sbx"}
)


@dataclass
class Trainer:
    """A trainer as the code makes it: the name of its class, empty if it is of no known library, and the settings that
    are plain literals."""

    name: str
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass
class Code:
    """What the code says.

    Attributes:
        trainings: by cell, the trainers that are started in it, in their order.
        trainers: by cell, every trainer that is made in it.
        versions: library versions that pip or Unsloth printed; those in the code may be newer than the run.
        printed: the trainer's names of what the code prints under names of its own.
    """

    trainings: dict[int, list[Trainer]] = field(default_factory=dict)
    trainers: list[tuple[int, Trainer]] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    printed: PrintedNames = field(default_factory=PrintedNames)


def read_code(cells: Iterable[Cell]) -> Code:
    """Reads the code cells in their order."""
    code = Code()
    reading = _Reading()
    installed: dict[str, str] = {}
    for cell in cells:
        if cell.code:
            tree = _parsed(cell.code)
            if tree is not None:
                reading.trainings, reading.made = [], []
                # Python itself parses what is nested deeper than it can be visited
                with contextlib.suppress(RecursionError):
                    reading.visit(tree)
                code.printed.read(tree)
                code.trainings[cell.number] = reading.trainings
                code.trainers += [(cell.number, trainer) for trainer in reading.made]
        for output in cell.outputs:
            installed.update(_installed(output.text) if output.stream else {})
    code.versions.update(installed)
    return code


def python_of(source: str) -> str | None:
    """A cell without IPython's magics and shell lines, as Python; None if it is another language."""
    if _OTHER_LANGUAGE.search(source):
        return None
    lines: list[str] = []
    continued = False
    for line in source.split("\n"):
        magic = _MAGIC.match(line)
        if continued or line.startswith("%%"):
            lines.append("")
        elif magic:
            lines.append(f"{magic['indent']}pass")
        elif "=" in line and ("!" in line or "%" in line):
            lines.append(_ASSIGNED_MAGIC.sub(r"\g<left>None", line))
        else:
            lines.append(line)
        continued = bool(continued or magic) and line.rstrip().endswith("\\")
    return "\n".join(lines)


def _parsed(source: str) -> ast.Module | None:
    if len(source) > LONGEST_CODE or not any(word in source for word in ("=", "import", ".train(", ".learn(", "(")):
        return None
    python = python_of(source)
    if python is None:
        return None
    try:
        return tree_of(python)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # half a cell, Python 2, nested without end
        return None


def _installed(text: str) -> dict[str, str]:
    """Versions that pip or Unsloth's banner say are installed."""
    if "Successfully installed" not in text and "Transformers: " not in text:
        return {}
    found = {
        name.replace("-", "_"): version
        for line in text.split("\n")
        if line.startswith("Successfully installed")
        for name, version in _VERSIONS.findall(line)
    }
    banner = _BANNER.search(text)
    return found | ({"transformers": banner[1]} if banner else {})


class _Reading(ast.NodeVisitor):
    """Walks the cells in their order and keeps what names stand for: values, settings, trainers, functions that
    train.
    """

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.settings: dict[str, dict[str, Any]] = {}
        self.classes: dict[str, str] = {}
        self.unknown: set[str] = set()  # names of no library: imported from other modules, or of classes defined here
        self.variables: dict[str, Trainer] = {}
        self.functions: dict[str, list[Trainer]] = {}
        self.trainings: list[Trainer] = []
        self.made: list[Trainer] = []
        self._newest = Trainer("")

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """`from trl import GRPOTrainer as T`."""
        self.classes.update((one.asname, one.name) for one in node.names if one.asname)
        names = {one.asname or one.name for one in node.names}
        is_known = node.level == 0 and (node.module or "").partition(".")[0] in _LIBRARIES
        self.unknown = self.unknown - names if is_known else self.unknown | names

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """A trainer class defined in the notebook is named after its base class."""
        bases = [self._class(base) for base in node.bases]
        known = next((name for name in bases if _TRAINER.search(name) or _SETTINGS.search(name)), None)
        if known is not None:
            self.classes[node.name] = known
        else:
            self.unknown.add(node.name)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """A training inside a function counts where the function is called; its names are local."""
        values, settings, variables, trainings = self.values, self.settings, self.variables, self.trainings
        self.values, self.settings, self.variables = dict(values), dict(settings), dict(variables)
        self.trainings = []
        for argument in [*node.args.args, *node.args.kwonlyargs]:
            self._forget(argument.arg)
        for statement in node.body:
            self.visit(statement)
        if self.trainings:
            self.functions[node.name] = self.trainings
        self.values, self.settings, self.variables, self.trainings = values, settings, variables, trainings

    def visit_Assign(self, node: ast.Assign) -> None:
        """`args = GRPOConfig(…)`, `trainer = GRPOTrainer(…)`, `max_length = 2048`, `args.beta = 0.1`."""
        self.visit(node.value)
        for target in node.targets:
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                self._set(target.value.id, target.attr, node.value)
            elif isinstance(target, ast.Name):
                self._assign(target.id, node.value)
            else:
                for part in ast.walk(target):
                    if isinstance(part, ast.Name):
                        self._forget(part.id)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """`beta: float = 0.04`."""
        if node.value is not None and isinstance(node.target, ast.Name):
            self.visit(node.value)
            self._assign(node.target.id, node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """`lr *= 2` makes the name's value unknown."""
        if isinstance(node.target, ast.Name):
            self._forget(node.target.id)

    def visit_For(self, node: ast.For) -> None:
        """A name assigned in a loop is unknown inside the loop and after it."""
        self._branch(node)

    def visit_While(self, node: ast.While) -> None:
        """The same."""
        self._branch(node)

    def visit_If(self, node: ast.If) -> None:
        """A name assigned in a branch is unknown after it."""
        self._branch(node)

    def visit_Call(self, node: ast.Call) -> None:
        """A trainer that is made, or started."""
        self.generic_visit(node)
        name = self._class(node.func)
        if _TRAINER.search(name) or name in _AGENTS:
            self.made.append(self._trainer("" if self._is_unknown(node.func) else name, node))
            self._newest = self.made[-1]
        elif isinstance(node.func, ast.Attribute) and node.func.attr in _TRAINING:
            self._train(node.func.value)
        elif name in self.functions:
            self.trainings += self.functions[name]
        elif name == "unsloth_train" and node.args:
            self._train(node.args[0])

    def _branch(self, node: ast.AST) -> None:
        assigned = [
            part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
        ]
        if not isinstance(node, ast.If):
            for name in assigned:
                self._forget(name)
        self.generic_visit(node)
        for name in assigned:
            self.values.pop(name, None)

    def _assign(self, name: str, value: ast.expr) -> None:
        self._forget(name)
        if isinstance(value, ast.Call):
            called = self._class(value.func)
            if _TRAINER.search(called) or called in _AGENTS:
                self.variables[name] = self._newest
                return
            if _SETTINGS.search(called):
                self.settings[name] = self._settings(value)
                return
        if isinstance(value, ast.Name) and value.id in self.settings:
            self.settings[name] = self.settings[value.id]
            return
        with contextlib.suppress(NotPlain):
            self.values[name] = value_of(value, self.values)

    def _set(self, name: str, key: str, value: ast.expr) -> None:
        if name in self.settings:
            self.settings[name].pop(key, None)
            self.settings[name].update(settings_in([ast.keyword(arg=key, value=value)], self.values))

    def _forget(self, name: str) -> None:
        for known in (self.values, self.settings, self.variables):
            known.pop(name, None)

    def _trainer(self, name: str, node: ast.Call) -> Trainer:
        """The trainer that a call makes: its settings are the object among its arguments that holds them."""
        found = settings_in(node.keywords, self.values) if name in _AGENTS else {}
        for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
            if isinstance(argument, ast.Name) and argument.id in self.settings:
                found |= self.settings[argument.id]
            elif isinstance(argument, ast.Call) and _SETTINGS.search(self._class(argument.func)):
                found |= self._settings(argument)
        return Trainer(name, training_config(found))

    def _train(self, who: ast.expr) -> None:
        if isinstance(who, ast.Name) and who.id in self.variables:
            self.trainings.append(self.variables[who.id])
        elif isinstance(who, ast.Call) and (_TRAINER.search(self._class(who.func)) or self._class(who.func) in _AGENTS):
            self.trainings.append(self._newest)

    def _settings(self, call: ast.Call) -> dict[str, Any]:
        """The settings that a call makes; none if its class is of no known library."""
        return {} if self._is_unknown(call.func) else settings_in(call.keywords, self.values)

    def _is_unknown(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id in self.unknown

    def _class(self, node: ast.expr) -> str:
        """The name of what is called, as its library knows it."""
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        return self.classes.get(name, name)
