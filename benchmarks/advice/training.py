"""Trains a set-up in the lab, or finds the trained run: the folder's name and a file in it identify the set-up."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

Setup = dict[str, Any]
HERE = Path(__file__).parent


class Lab:
    """The lab's code, a folder for its runs, and one Python for each trainer's era.

    Attributes:
        code: the folder with `batch.py`, `manifest.json` and the eras.
        folder: where runs go.
        pythons: era to (the Python it runs in, a folder that goes before that Python's packages, or none).
    """

    def __init__(self, code: Path, folder: Path, pythons: dict[str, tuple[str, str]]) -> None:
        self.code, self.folder, self.pythons = code, folder, pythons
        self.setups: dict[str, Setup] = {one["id"]: one for one in json.loads((code / "manifest.json").read_text())}
        self._trainers: dict[str, subprocess.Popen[str]] = {}

    def trained(self, setup: Setup) -> Path | None:
        """The folder of the run that this set-up gives; None if it could not be trained, or no Python is there for
        it."""
        known = json.dumps(setup, sort_keys=True)
        name = f"{setup['id']}-{hashlib.sha1(known.encode()).hexdigest()[:8]}"
        folder, done = self.folder / "runs" / name, self.folder / "done" / f"{name}.json"
        if not done.exists():
            if setup["era"] not in self.pythons:
                return None
            answer = self._train(
                {**setup, "id": name, "report_to": ["tensorboard"], "log_with": "tensorboard", "timeout": 300}
            )
            done.parent.mkdir(parents=True, exist_ok=True)
            done.write_text(json.dumps({"setup": setup, **answer}))
        return folder if not any(json.loads(done.read_text())["codes"]) else None

    def healed_live(self, setup: Setup) -> list[dict[str, Any]] | None:
        """What `benchmarks.advice.live` says of this set-up; None if it was not tried and no Python is there for it."""
        known = json.dumps(setup, sort_keys=True)
        name = f"{setup['id']}-{hashlib.sha1(known.encode()).hexdigest()[:8]}"
        done = self.folder / "live" / f"{name}.json"
        if not done.exists():
            if setup["era"] not in self.pythons:
                return None
            python, before = self.pythons[setup["era"]]
            env = {**self._settings(before), "PYTHONPATH": f"{before}{os.pathsep}{HERE.parents[1]}"}
            with (self.folder / "trainer.log").open("a") as log:
                made = subprocess.run(
                    [python, "-m", "benchmarks.advice.live", str(self.code)],
                    input=json.dumps({**setup, "id": name}),
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    check=True,
                    env={**os.environ, **env},
                )
            done.parent.mkdir(parents=True, exist_ok=True)
            done.write_text(made.stdout)
        parts: list[dict[str, Any]] = json.loads(done.read_text())
        return parts

    def _settings(self, before: str) -> dict[str, str]:
        return {"LAB": str(self.folder), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONPATH": before}

    def _train(self, setup: Setup) -> dict[str, Any]:
        trainer = self._trainer(setup["era"])
        assert trainer.stdin is not None and trainer.stdout is not None
        trainer.stdin.write(json.dumps(setup) + "\n")
        trainer.stdin.flush()
        line = trainer.stdout.readline()
        if not line:
            raise SystemExit(f"{setup['era']}: its trainer ended; see {self.folder / 'trainer.log'}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _trainer(self, era: str) -> subprocess.Popen[str]:
        if era not in self._trainers:
            python, before = self.pythons[era]
            with (self.folder / "trainer.log").open("a") as log:
                self._trainers[era] = subprocess.Popen(
                    [python, str(HERE / "trainer.py"), str(self.code), era],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    env={**os.environ, **self._settings(before)},
                )
        return self._trainers[era]

    def close(self) -> None:
        """Ends the trainers: each ends with its input."""
        for one in self._trainers.values():
            assert one.stdin is not None
            one.stdin.close()
            one.wait()
