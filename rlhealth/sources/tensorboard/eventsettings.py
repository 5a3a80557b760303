"""The settings of a TensorBoard run: arguments written as text, hyper-parameters of the hparams plugin, files that
lie beside, a model card.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rlhealth.run import flat
from rlhealth.sources.base.settings_file import yaml_mapping
from rlhealth.sources.base.values import is_private
from rlhealth.sources.base.walk import NAMES
from rlhealth.sources.tensorboard.eventfile import EventFile
from rlhealth.sources.tensorboard.eventvalues import Settings, Text

_TAGS = {
    "args",
    "training_args",
    "config",
    "cfg",
    "hyperparameters",
    "hparams",
    "hyperparams",
    "hyper_parameters",
    "model_config",
}
_UNIX_TIME = re.compile(r"\d{9,10}\.\d+")
_STARTED = re.compile(r"tfevents\.(\d+)")
_HPARAMS_FILE = "hparams.yml"
_MODEL_CARD = "README.md"
_VERSION = re.compile(
    r"^[ \t]*[-*][ \t]*(TRL|Transformers|PyTorch|Datasets|Tokenizers|PEFT)[ \t]*:[ \t]*v?(\d[\w.+-]*)[ \t\r]*$",
    re.MULTILINE | re.IGNORECASE,
)
_LARGEST = 1 << 20  # bytes of a file of settings
_WORDS = {"True": True, "False": False, "None": None}


def named(values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings in one level, their names joined with dots, whichever way the writer joined them, without anything
    private.
    """
    try:
        return {name.replace("/", "."): value for name, value in flat(values).items() if not is_private(name, value)}
    except RecursionError:
        return {}


def in_text(item: Text) -> dict[str, Any]:
    """The configuration in a text summary, or nothing: JSON as transformers writes it, or CleanRL's table of two
    columns.
    """
    tag = item.tag.removesuffix("/text_summary")
    if tag.rsplit("/", 1)[-1].lower() not in _TAGS:
        return {}
    found = named(_json(item.text) or _table(item.text))
    return {f"model_config.{name}": value for name, value in found.items()} if tag.endswith("model_config") else found


def holds_settings_only(folder: Path) -> bool:
    """Whether a sub-folder is what torch's `add_hparams` leaves behind: named after a time in seconds."""
    return bool(_UNIX_TIME.fullmatch(folder.name))


class NeighbourFiles:
    """What lies beside the event files of one folder.

    Args:
        folder: the run's folder.
        cards: folders in which its model card may lie.
    """

    def __init__(self, folder: Path, cards: list[Path]) -> None:
        self._folder = folder
        self._cards = [card / _MODEL_CARD for card in dict.fromkeys(cards)]
        self._listed = -1
        self._files: dict[Path, EventFile] = {}
        self._texts: dict[Path, int] = {}

    def settings(self, files: list[Path]) -> dict[str, Any]:
        """Hyper-parameters that are new since the last call and belong to these event files."""
        self._look(files)
        found: dict[str, Any] = {}
        for file in self._files.values():
            try:
                items = [item for batch in file.read() for _, _, item in batch.items]
            except OSError:
                continue
            for item in items:
                found.update(named(item.values) if isinstance(item, Settings) else {})
        for path in [path for path in self._texts if path.name == _HPARAMS_FILE]:
            found.update(
                named(yaml_mapping(self._new_text(path)))
            )  # after the events: it keeps whole numbers and truth values apart
        return found

    def versions(self) -> dict[str, str]:
        """Versions in a model card, if it is new."""
        return {
            name.lower(): version for card in self._cards for name, version in _VERSION.findall(self._new_text(card))
        }

    def _look(self, files: list[Path]) -> None:
        try:
            changed = self._folder.stat().st_mtime_ns
            if changed == self._listed:
                return
            self._listed = changed
            for folder in self._folder.iterdir():
                if holds_settings_only(folder) and folder.is_dir() and _owner(folder) in files:
                    self._take_up(folder)
        except OSError:
            return

    def _take_up(self, folder: Path) -> None:
        for path in folder.iterdir():
            if path.name == _HPARAMS_FILE:
                self._texts.setdefault(path, -1)
            elif NAMES["tensorboard"].search(path.name) and path.is_file():
                self._files.setdefault(path, EventFile(path))

    def _new_text(self, path: Path) -> str:
        """The text of a small file, or nothing if it is absent or as it was."""
        try:
            found = path.stat()
            if self._texts.get(path) == found.st_mtime_ns or found.st_size > _LARGEST or not path.is_file():
                return ""
            self._texts[path] = found.st_mtime_ns
            return path.read_text("utf-8", "replace")
        except OSError:
            return ""


def _owner(folder: Path) -> Path | None:
    """The event file of the launch that left this folder: the last that was begun before it."""
    before = list(_begun_before(folder.parent, float(folder.name) + 1))
    return max(before)[1] if before else None


def _begun_before(folder: Path, time: float) -> Iterator[tuple[int, Path]]:
    for path in folder.iterdir():
        found = _STARTED.search(path.name)
        if found and int(found[1]) <= time:
            yield int(found[1]), path


def _json(text: str) -> Mapping[str, Any]:
    start, end = text.find("{"), text.rfind("}")
    try:
        found = json.loads(text[start : end + 1]) if 0 <= start < end else None
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _table(text: str) -> dict[str, Any]:
    rows = [
        [cell.strip() for cell in line.strip().strip("|").split("|", 1)]
        for line in text.splitlines()
        if line.lstrip().startswith("|")
    ]
    return {row[0]: _plain(row[1]) for row in rows[2:] if len(row) == 2} if rows[:1] == [["param", "value"]] else {}


def _plain(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
