"""Draws the pictures of the terminal: a real check of the sample run, and the screen of a watch of runs that grow.

    python -m docs.pictures.make

The watched runs are made of noise around the courses that such runs take; they are written and followed for real.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from io import StringIO
from pathlib import Path

import numpy as np

from rlhealth.reports import ReportOptions
from rlhealth.rules.loading import load_rules
from rlhealth.watch.follower import Event
from rlhealth.watch.loop import Watch
from rlhealth.watch.screen import drawn
from rlhealth.watch.view import View

ROOT, HERE = Path(__file__).parents[2], Path(__file__).parent
COMMAND = ["check", "fixtures/runs/lr-jump"]
RUNS = {"lr1e-6": "well", "lr1e-5": "drifts", "lr3e-5": "breaks", "beta-0": "cut off", "base": "well"}
WIDTH, HEIGHT, STEPS = 110, 26, 180


def main() -> None:
    """Draws check.svg, watch.svg, watch-run.svg and watch-metric.svg beside this file."""
    command = [sys.executable, "-m", "rlhealth", *COMMAND, "--color", "always", "--width", "96"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    draw(HERE / "check.svg", done.stdout, command=f"rlhealth {' '.join(COMMAND)}")
    with tempfile.TemporaryDirectory() as folder:
        logs = {name: (Path(folder) / "sweep" / f"{name}.jsonl") for name in RUNS}
        next(iter(logs.values())).parent.mkdir()
        random, begun = np.random.default_rng(3), time.time() - 10 * STEPS
        watch, events = Watch([str(Path(folder) / "sweep")], load_rules()), list[tuple[float, Event]]()
        for step in range(1, STEPS + 1):
            for name, log in logs.items():
                with log.open("a") as out:
                    row = {"step": step, "_timestamp": begun + 10 * step, **one_row(RUNS[name], step, random)}
                    out.write(json.dumps(row) + "\n")
            if step % 10 == 0:
                events += [(begun + 10 * step, one) for one in watch.look() if one.kind != "found"]
        view = View()
        keys = {
            "watch": ["down", "down", "up"],
            "watch-run": ["enter"],
            "watch-metric": ["esc", "/", *"lr1e-5", "enter", "m", "down"],
        }
        for name, pressed in keys.items():
            for key in pressed:
                view.press(key, watch.followers)
            lines = drawn(watch, events, ReportOptions(WIDTH, True), WIDTH, HEIGHT, view)
            draw(HERE / f"{name}.svg", "\n".join(lines).replace(folder, ""), width=WIDTH, title="rlhealth watch sweep")


def one_row(kind: str, step: int, random: np.random.Generator) -> dict[str, float]:
    """What a GRPO trainer logs at a step of a run of that kind."""
    noise = random.normal(size=8)
    learned = 1 / (1 + np.exp(-(step - 60) / 40))
    row = {
        "reward": 0.2 + 0.5 * learned + 0.03 * noise[0],
        "reward_std": 0.3 + 0.02 * noise[1],
        "kl": 0.01 + 2e-4 * step + 0.002 * abs(noise[2]),
        "entropy": 1.8 - 0.4 * learned + 0.03 * noise[3],
        "completions/mean_length": 180 + 40 * learned + 8 * noise[4],
        "completions/clipped_ratio": max(0.0, 0.03 + 0.01 * noise[5]),
        "frac_reward_zero_std": max(0.0, 0.1 + 0.02 * noise[6]),
        "grad_norm": 0.5 + 0.1 * abs(noise[7]),
        "loss": 0.02 + 0.01 * noise[0],
        "learning_rate": 1e-6,
    }
    if kind == "drifts":
        row["kl"] = 0.02 + 0.0065 * step + 0.02 * noise[2]
    if kind == "cut off" and step > 60:
        row["completions/clipped_ratio"] = min(0.95, 0.1 + 0.01 * (step - 60))
    if kind == "breaks" and step > 90:
        row |= {"kl": 4 + 0.5 * noise[2], "reward": 0.6 - min(0.6, 0.02 * (step - 90)) + 0.02 * noise[0]}
        row |= {"entropy": 0.3 + 0.02 * noise[3], "completions/clipped_ratio": min(1.0, 0.2 + 0.05 * (step - 90))}
    return {name: float(value) for name, value in row.items()}


def draw(path: Path, shown: str, *, command: str = "", width: int = 96, title: str = "rlhealth") -> None:
    """Writes a picture of text with escape sequences, below the command that gave it."""
    from rich.console import Console
    from rich.text import Text

    console = Console(record=True, width=width, file=StringIO())
    if command:
        console.print(Text(f"$ {command}\n", style="bold"))
    console.print(Text.from_ansi(shown), no_wrap=True)
    picture = console.export_svg(title=title)
    picture = re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)
    path.write_text(picture.replace("Fira Code", "ui-monospace, Menlo, DejaVu Sans Mono"), encoding="utf-8")


if __name__ == "__main__":
    main()
