"""A Slurm job that is stopped by scancel, named and shown before."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from typing import Any

from rlhealth.errors import RlhealthError
from rlhealth.reports import words

_JOB = re.compile(r"\d{1,12}(?:_\d{1,9}|\+\d{1,4})?")
_PATIENCE = 20.0  # seconds for Slurm's controller to answer


class SlurmJob:
    """One job of Slurm.

    Attributes:
        name: the job's name, if squeue reports it.

    Raises:
        RlhealthError: for what is no job id, where scancel is not installed, or where squeue knows no such job.
    """

    def __init__(self, job: str) -> None:
        if not _JOB.fullmatch(job):
            raise RlhealthError(
                f"--stop-slurm {job}: this is no job id", hint="such as 123456, or 123456_7 of an array; `squeue --me`"
            )
        if shutil.which("scancel") is None:
            raise RlhealthError(f"--stop-slurm {job}: there is no scancel here", hint="run rlhealth on a login node")
        self.job = job
        self.name = self._name()

    def __str__(self) -> str:
        return f"scancel {self.job}" + (f" ({self.name})" if self.name else "")

    def __call__(self, document: Mapping[str, Any]) -> str:
        """Cancels it; returns what was done. Slurm sends SIGTERM, and SIGKILL after its KillWait."""
        done = _asked(["scancel", self.job])
        if done.returncode:
            said = _last(done.stderr) or f"exit code {done.returncode}"
            raise RlhealthError(f"scancel {self.job}: {said}")
        return f"Slurm was asked to cancel job {self}".replace("job scancel ", "job ")

    def _name(self) -> str:
        if shutil.which("squeue") is None:
            return ""
        done = _asked(["squeue", "--noheader", "--jobs", self.job, "--format", "%j"])
        if done.returncode:
            raise RlhealthError(
                f"--stop-slurm {self.job}: {_last(done.stderr) or 'squeue does not know it'}",
                hint="`squeue --me` lists your jobs",
            )
        names = done.stdout.split("\n")
        if not names[0].strip():
            raise RlhealthError(
                f"--stop-slurm {self.job}: the job is not running", hint="`squeue --me` lists your jobs"
            )
        return words.clean(names[0].strip())[:60]


def _asked(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False, errors="replace")
    except subprocess.TimeoutExpired:
        raise RlhealthError(
            f"{command[0]}: no answer within {_PATIENCE:.0f} s", hint="is Slurm's controller there?"
        ) from None
    except OSError as error:
        raise RlhealthError(f"{command[0]}: {error.strerror}", hint="check that it can be run") from None


def _last(text: str) -> str:
    return words.clean((text.strip().splitlines() or [""])[-1])[:200]
