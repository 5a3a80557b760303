"""Draws the figures of docs/statistics.md on onset and on standing, lasting, over, from runs that the engine judges.

python docs/pictures/states.py writes onset.svg and states.svg beside it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rlhealth.authoring.case_runs import judge_case
from rlhealth.authoring.cases import Case, run_of
from rlhealth.rules.loading import load_rules
from rlhealth.verdict.findings import Finding

HERE = Path(__file__).parent
RULES = {one.id: one for one in load_rules()}
KL, REWARD = "kl", "reward"
WIDTH, HEIGHT, LEFT, TOP = 720, 230, 46, 34
STYLE = (
    "text{font:13px ui-sans-serif,system-ui,sans-serif;fill:#333}.title{font-weight:600}.axis{stroke:#999}"
    ".kl{fill:none;stroke:#1f6feb;stroke-width:1.6}.reward{fill:none;stroke:#2da44e;stroke-width:1.6}"
    ".limit{stroke:#cf222e;stroke-dasharray:5 4}.window{fill:#1f6feb;opacity:.13}.held{fill:#cf222e;opacity:.12}"
    ".mark{stroke:#333;stroke-dasharray:2 3}"
)


def judged(series: dict[str, str]) -> tuple[Finding, dict[str, tuple[np.ndarray, np.ndarray]]]:
    """What the rule on KL finds in a run of that shorthand, and the points of the run by metric."""
    case = Case.model_validate({"name": "run", "framework": "trl-grpo", "series": series, "expect": "quiet"})
    rule = RULES["kl-high-per-token"]
    (found,) = judge_case(case, rule, [rule]).findings
    run = run_of(case)
    return found, {name: (run.series[name].steps, run.series[name].values) for name in series}


class Panel:
    """A plot of steps against values within a box of the figure."""

    def __init__(self, x: float, y: float, width: float, height: float, steps: int, most: float) -> None:
        self.x, self.y, self.width, self.height = x, y, width, height
        self.steps, self.most = steps, most
        self.parts = [f'<path class="axis" fill="none" d="M{x} {y}v{height}h{width}"/>']

    def at(self, step: float) -> float:
        """The column of a step."""
        return self.x + self.width * (step - 1) / (self.steps - 1)

    def of(self, value: float) -> float:
        """The row of a value."""
        return self.y + self.height * (1 - value / self.most)

    def curve(self, steps: np.ndarray, values: np.ndarray, style: str) -> None:
        """A line through the points."""
        points = " ".join(f"{self.at(a):.1f},{self.of(b):.1f}" for a, b in zip(steps, values, strict=True))
        self.parts.append(f'<polyline class="{style}" points="{points}"/>')

    def limit(self, value: float) -> None:
        """A level across the panel."""
        self.parts.append(f'<path class="limit" d="M{self.x} {self.of(value):.1f}h{self.width}"/>')

    def shade(self, first: int, last: int, style: str) -> None:
        """A stretch of steps."""
        start, end = self.at(first - 0.5), self.at(last + 0.5)
        self.parts.append(
            f'<rect class="{style}" x="{start:.1f}" y="{self.y}" width="{end - start:.1f}" height="{self.height}"/>'
        )

    def mark(self, step: int, text: str, row: int) -> None:
        """A step with its name below the panel."""
        x, foot = self.at(step), self.y + self.height
        self.parts.append(f'<path class="mark" d="M{x:.1f} {self.y}V{foot + 4 + 16 * row}"/>')
        self.parts.append(f'<text x="{x + 4:.1f}" y="{foot + 15 + 16 * row}">{text}</text>')

    def say(self, text: str) -> None:
        """A title above the panel."""
        self.parts.append(f'<text class="title" x="{self.x}" y="{self.y - 8}">{text}</text>')


def onset() -> str:
    """KL that steps up: the first row beyond the limit, the row where the median passes, and the row that raises it."""
    found, points = judged({KL: "0.1~0.03x24 2.1~0.15x16"})
    steps, values = points[KL]
    panel = Panel(LEFT, TOP, WIDTH - LEFT - 20, HEIGHT - 100, len(steps), 2.6)
    panel.say(f"{KL}: raised at step {found.raised_step}, and dated back to step {found.first_step}")
    panel.shade(found.raised_step - 5, found.raised_step - 1, "window")
    panel.limit(1.5 + float(values[0]))
    panel.curve(steps, values, "kl")
    panel.mark(found.first_step, f"first_step {found.first_step}", 0)
    panel.mark(found.raised_step - 1, "the median of this window passes the limit", 1)
    panel.mark(found.raised_step, f"raised_step {found.raised_step}", 2)
    return figure([panel], HEIGHT)


def states() -> str:
    """The same KL in three runs: still high, gone with the reward, gone while the reward came back."""
    runs = [
        {KL: "0.1~0.03x30 3~0.2x50", REWARD: "0.7~0.03x30 0.3~0.03x50"},
        {KL: "0.1~0.03x30 3~0.2x12 0.1~0.03x38", REWARD: "0.7~0.03x30 0.15~0.03x50"},
        {KL: "0.1~0.03x30 3~0.2x12 0.1~0.03x38", REWARD: "0.7~0.03x30 0.3~0.03x12 0.3..0.75~0.03x18 0.75~0.03x20"},
    ]
    panels = []
    width = (WIDTH - LEFT - 60) / 3
    for place, series in enumerate(runs):
        found, points = judged(series)
        x = LEFT + place * (width + 20)
        for row, (name, most) in enumerate(((KL, 4.0), (REWARD, 1.0))):
            panel = Panel(x, TOP + row * 100, width, 70, len(points[name][0]), most)
            panel.shade(found.first_step, found.last_step, "held")
            panel.say(f"{found.state}: {found.severity}" if not row else "")
            panel.curve(*points[name], name)
            if not row:
                panel.limit(1.6)
            panels.append(panel)
        panels[-1].mark(found.first_step, f"{found.first_step} to {found.last_step}", 0)
    labels = [f'<text x="4" y="{TOP + 40 + 100 * row}">{name}</text>' for row, name in enumerate((KL, "rew."))]
    return figure(panels, TOP + 210, labels)


def figure(panels: list[Panel], height: int, more: list[str] | None = None) -> str:
    """The panels as one SVG without fonts or links from elsewhere."""
    body = "\n".join(part for panel in panels for part in panel.parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"><style>{STYLE}</style>'
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>\n{body}\n' + "\n".join(more or []) + "</svg>\n"
    )


if __name__ == "__main__":
    (HERE / "onset.svg").write_text(onset(), encoding="utf-8")
    (HERE / "states.svg").write_text(states(), encoding="utf-8")
