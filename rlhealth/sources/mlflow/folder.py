"""A run in an `mlruns/` folder: meta.yaml, a file per parameter, a file per metric with lines of `timestamp value
step`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from rlhealth.errors import RlhealthError
from rlhealth.run import MOST_TAGS, Place, Run
from rlhealth.sources.base.appended import AppendedFiles, Parse
from rlhealth.sources.base.growing import open_regular
from rlhealth.sources.base.settings_file import settings_file
from rlhealth.sources.base.spelling import FURTHEST, number
from rlhealth.sources.base.values import training_config

KIND = "mlflow"
LONGEST_PARAMETER = 8_000  # characters, as MLflow keeps them
#: What MLflow calls the state of a run, in folders by number.
STATES = {1: "RUNNING", 2: "SCHEDULED", 3: "FINISHED", 4: "FAILED", 5: "KILLED"}
#: A run that failed or was killed ended with an error, whose code MLflow does not keep.
EXIT_CODES = {"FINISHED": 0, "FAILED": 1, "KILLED": 1}
#: MLflow keeps infinities as the largest numbers that there are.
INFINITE = 1.7976931348623157e308


class MlflowFolder:
    """Reads one run of an `mlruns/` folder; the files grow, and each line is read once.

    Args:
        folder: that of the run, with its meta.yaml and its params/, if anybody kept them.
        metrics: the folder with a file per metric.
    """

    def __init__(self, folder: Path, metrics: Path) -> None:
        self.folder = folder
        self._files = AppendedFiles(metrics, "", _parser)
        meta = self._meta()
        self.run = Run(str(meta.get("run_name") or folder.name), Place(KIND, str(folder)))

    def poll(self) -> bool:
        """Reads the new lines; True if there were any.

        Raises:
            RlhealthError: if the folder is gone, or holds no metric.
        """
        changed = self._files.read(self.run)
        state = _state(self._meta().get("status"))
        changed |= self.run.exit_code != EXIT_CODES.get(state)
        self.run.exit_code = EXIT_CODES.get(state)
        self.run.modified = self._files.modified
        self.run.config = training_config(self._parameters())
        self.run.problems[:] = self._files.problems
        if not self.run.series:
            hint = "MLflow writes metrics/ when the first metric is logged"
            raise RlhealthError(f"{self.folder}: no metrics in it", hint=hint, location=str(self.folder))
        return changed

    def _meta(self) -> dict[str, Any]:
        return settings_file(self.folder / "meta.yaml")

    def _parameters(self) -> dict[str, str]:
        found: dict[str, str] = {}
        folder = self.folder / "params"
        for path in sorted(folder.rglob("*"))[:MOST_TAGS] if folder.is_dir() else ():
            try:
                if path.is_file():
                    with open_regular(path) as file:
                        found[path.relative_to(folder).as_posix()] = file.read(LONGEST_PARAMETER).decode(
                            "utf-8", "replace"
                        )
            except (RlhealthError, OSError):
                continue
        return found


def _state(status: object) -> str:
    return STATES.get(status, "") if isinstance(status, int) else str(status)


def _parser() -> Parse:
    return parse_line


def parse_line(cells: list[str]) -> tuple[int, float, float] | None:
    """A point of `timestamp value step`: step, value, seconds since 1970; MLflow before 1.0 wrote no step."""
    if len(cells) not in (2, 3) or not cells[0].isdigit():
        return None
    value = number(cells[1])
    step = number(cells[2]) if len(cells) == 3 else 0.0
    if value is None or step is None or not math.isfinite(step) or abs(step) >= FURTHEST or step != int(step):
        return None
    return int(step), finite(value), int(cells[0][:18]) / 1000


def finite(value: float) -> float:
    """A value with the infinities that MLflow keeps as the largest numbers."""
    return math.copysign(math.inf, value) if abs(value) >= INFINITE else value
