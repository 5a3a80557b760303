"""Draws the figures of docs/statistics.md from the code that judges: `python docs/pictures/statistics.py`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rlhealth.authoring.shorthand import read_shorthand
from rlhealth.engine.best import DropFromBest
from rlhealth.engine.noise import Noise
from rlhealth.engine.shares import MeanFraction
from rlhealth.engine.windows import Rolling, median
from rlhealth.run import Floats

FOLDER = Path(__file__).parent
WIDE, HIGH, EDGE = 720, 170, 34
STYLE = "font: 12px ui-sans-serif, system-ui, sans-serif; fill: #57606a"


class Panel:
    """One chart of the figure: lines over points, in a common scale."""

    def __init__(self, top: int, title: str, low: float, high: float, points: int) -> None:
        self.top, self.low, self.high, self.points = top, low, high, points
        self.parts = [f'<text x="{EDGE}" y="{top + 14}" style="{STYLE}">{title}</text>']

    def place(self, index: Floats, values: Floats) -> list[str]:
        """The points as coordinates."""
        x = EDGE + index / max(self.points - 1, 1) * (WIDE - 2 * EDGE)
        y = (
            self.top
            + HIGH
            - 6
            - (np.clip(values, self.low, self.high) - self.low) / (self.high - self.low) * (HIGH - 34)
        )
        return [f"{one:.1f},{other:.1f}" for one, other in zip(x, y, strict=True)]

    def line(self, values: Floats, colour: str, width: float = 1.5) -> None:
        """A line, with nothing if there is no value."""
        known = np.flatnonzero(np.isfinite(values))
        at = " ".join(self.place(known.astype(float), values[known]))
        self.parts.append(f'<polyline points="{at}" fill="none" stroke="{colour}" stroke-width="{width}"/>')

    def band(self, low: Floats, high: Floats, colour: str) -> None:
        """The area between two lines."""
        known = np.flatnonzero(np.isfinite(low) & np.isfinite(high))
        there, back = (
            self.place(known.astype(float), high[known]),
            self.place(known[::-1].astype(float), low[known][::-1]),
        )
        self.parts.append(f'<polygon points="{" ".join([*there, *back])}" fill="{colour}" fill-opacity="0.2"/>')


def write(name: str, panels: list[Panel]) -> None:
    """The panels below each other, as an SVG without anything from elsewhere."""
    tall = len(panels) * HIGH
    body = "\n".join(part for panel in panels for part in panel.parts)
    (FOLDER / name).write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {tall}" width="{WIDE}" role="img">\n'
        f'<rect width="{WIDE}" height="{tall}" fill="#ffffff"/>\n{body}\n</svg>\n',
        encoding="utf-8",
    )


def noise() -> None:
    """Two plateaus of the same spread, one of independent and one of correlated points, and a real fall."""
    panels = []
    for title, text in (
        ("independent noise: levels of 10 points stray little", "0.1..0.8~0.08x60 0.8~0.08x100 0.8..0.3~0.08x40"),
        (
            "the same spread, each point like the one before: levels stray far",
            "0.1..0.8~0.08@0.9x60 0.8~0.08@0.9x100 0.8..0.3~0.08@0.9x40",
        ),
    ):
        values = read_shorthand(text, "reward")[1]
        level = Rolling(median, 10, 5).extend(values)
        error = Noise((10,)).extend(values)[2]
        fall = DropFromBest(10, 5).extend(values)
        panel = Panel(len(panels) * HIGH, title, -0.1, 1.15, len(values))
        panel.band(level - 2 * error, level + 2 * error, "#0969da")
        panel.line(values, "#afb8c1", 1)
        panel.line(level, "#0969da")
        panel.line(np.where(fall.value > 3.5 * fall.error, level, np.nan), "#cf222e", 3)
        panels.append(panel)
    write("noise.svg", panels)


def shares() -> None:
    """One group a row, 40 % of them unanimous: a median of five is a coin, a mean over 20 groups is an estimate."""
    values = np.random.default_rng(4).binomial(1, 0.4, 120).astype(np.float64)
    found = MeanFraction(5, 5, 20).extend(values)
    panels = [
        Panel(0, "the median of 5 rows", -0.05, 1.1, 120),
        Panel(HIGH, "the mean over 20 groups, with 2.5 standard errors", -0.05, 1.1, 120),
    ]
    panels[0].line(Rolling(median, 5, 5).extend(values), "#9a6700")
    assert found.error is not None
    panels[1].band(found.value - 2.5 * found.error, found.value + 2.5 * found.error, "#0969da")
    panels[1].line(found.value, "#0969da")
    for panel in panels:
        panel.line(np.full(120, 0.5), "#cf222e", 1)
    write("shares.svg", panels)


if __name__ == "__main__":
    noise()
    shares()
