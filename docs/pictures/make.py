"""Draws the README's picture from a real check of the sample run: `python docs/pictures/make.py`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMMAND = ["check", "fixtures/runs/lr-jump"]
WIDTH = 96


def main() -> None:
    """Runs the command in colour and writes what a terminal would show as an SVG without fonts or links from elsewhere."""
    from rich.console import Console
    from rich.text import Text

    done = subprocess.run(
        [sys.executable, "-m", "rlhealth", *COMMAND, "--color", "always", "--width", str(WIDTH)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    console = Console(record=True, width=WIDTH, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123 (rich keeps it)
    console.print(Text(f"$ rlhealth {' '.join(COMMAND)}\n", style="bold"))
    console.print(Text.from_ansi(done.stdout), no_wrap=True)
    picture = console.export_svg(title="rlhealth")
    picture = re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)
    (Path(__file__).parent / "check.svg").write_text(
        picture.replace("Fira Code", "ui-monospace, Menlo, DejaVu Sans Mono"), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
