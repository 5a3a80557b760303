"""What one event file covers, read from its first and its last stretch: steps, times, settings, and who wrote it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlhealth.sources.tensorboard.eventfile import EventFile
from rlhealth.sources.tensorboard.eventsettings import in_text, named
from rlhealth.sources.tensorboard.eventvalues import Settings, Text

_PEEK = 256 << 10
_PROCESS = re.compile(r"tfevents\.\d+\.(.+\.\d+)\.\d+")
_FREE_TO_DIFFER = re.compile(
    r"(?:resume_from_checkpoint|run_name|output_dir|overwrite_output_dir|max_steps|num_train_epochs|ignore_data_skip|report_to|disable_tqdm|local_rank|project"
    r"|restore_callback_states_from_checkpoint|(?:logging|save|eval|hub|push_to|log|dataloader|ddp|trackio)_.*|model_config\.(?:_?name_or_path|transformers_version))"
)


@dataclass
class Extent:
    """What a launch covers, read from the first and the last stretch of its file.

    Attributes:
        every: steps between two points of the tag that is logged most often; 0 if none has two.
        first_steps: the first step of each tag that was seen.
        settings: the configuration that the file carries.
    """

    first_time: float = float("inf")
    last_time: float = float("-inf")
    last_step: int = -1
    every: int = 0
    first_steps: dict[str, int] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)

    def take(self, file: EventFile) -> None:
        """Widens the extent to what the file still has to give."""
        for batch in file.read(min(file.offset + _PEEK, file.path.stat().st_size)):
            for tag, points in batch.points.items():
                steps, _, times = points.arrays()
                self.first_steps.setdefault(tag, int(steps[0]))
                self.first_time = min(self.first_time, float(times.min()))
                self.last_time = max(self.last_time, float(times.max()))
                self.last_step = max(self.last_step, int(steps.max()))
                apart = int(steps[1] - steps[0]) if len(steps) > 1 else 0
                if apart > 0:
                    self.every = min(self.every or apart, apart)
            for _, _, item in batch.items:
                if isinstance(item, Text):
                    self.settings.update(in_text(item))
                elif isinstance(item, Settings):
                    self.settings.update(named(item.values))


def extent(path: Path) -> Extent:
    """The extent of one file, from at most half a megabyte of it.

    Raises:
        OSError: if it cannot be read.
    """
    found = Extent()
    head = EventFile(path)
    found.take(head)
    size = path.stat().st_size
    if size > head.offset:
        found.take(EventFile(path, offset=max(head.offset, size - _PEEK)))
    return found


def extent_or_none(path: Path) -> Extent:
    """The extent of one file; of one that cannot be read, that of an empty one."""
    try:
        return extent(path)
    except OSError:
        return Extent()  # its reader will say why


def process(path: Path) -> str:
    """Host and process that wrote the file, by its name; empty if that does not say."""
    found = _PROCESS.search(path.name)
    return found[1] if found else ""


def same_settings(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two launches were given the same arguments, but for paths, names, lengths and how often things are
    logged or saved.
    """
    return all(
        one.get(key) == other.get(key) for key in one.keys() | other.keys() if not _FREE_TO_DIFFER.fullmatch(key)
    )


def begins_like(starts: Mapping[str, int], new: Extent) -> bool:
    """Whether a launch starts no later than a run with those first steps, or shares no tag with it."""
    shared = starts.keys() & new.first_steps.keys()
    if not shared:
        return True
    return min(new.first_steps[tag] for tag in shared) <= max(min(starts[tag] for tag in shared), new.every)
