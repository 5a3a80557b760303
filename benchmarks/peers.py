"""rlhealth beside other tools that diagnose runs, on one labelled corpus, in one run.

    python -m benchmarks.peers CORPUS [--write docs/peers.md]

CORPUS holds labels.json and runs/. Each peer is installed from its package into an environment of its own, given the
same TensorBoard runs one by one, and asked as a user would ask it; its words for sicknesses are put beside the families
of the labels (`PEERS`). A peer that cannot answer for a run is counted so. Times are whole processes, on this machine.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

Findings = set[str] | None  # families; None: no answer

RLDOCTOR = {
    "advantage_collapse": "reward-signal",
    "entropy_collapse": "entropy",
    "reward_hacking": "reward-hacking",
    "length_pathology": "length",
    "clip_saturation": "clip-fraction",
    "kl_drift": "kl-high",
    "gradient_pathology": "grad-norm",
    "reward_composition": "reward-hacking",
    "plateau": "reward-trend",
}
TRAINPROOF = {
    "TP-GRAD-SPIKE": "grad-norm",
    "TP-DEAD-RUN": "dead",
    "TP-ZERO-LOSS": "dead",
    "TP-DIVERGED": "loss",
    "TP-NAN": "numerics",
    "TP-NO-LOSS": "loss",
    "TP-LR-ZERO": "dead",
}


def rlhealth(done: subprocess.CompletedProcess[str]) -> Findings:
    """What rlhealth says, from its JSON."""
    runs = json.loads(done.stdout)["runs"]
    if not runs or all(run["verdict"] == "unknown" for run in runs):
        return None
    return {one["family"] for run in runs for one in run["findings"] if one["severity"] != "info"} - {"diagnosis"}


def rldoctor(done: subprocess.CompletedProcess[str]) -> Findings:
    """What rldoctor says: warnings and critical findings by detector."""
    found = json.loads(done.stdout)["findings"]
    if all(one["severity"] == "SKIPPED" for one in found):
        return None
    families = set()
    for one in found:
        if one["severity"] in ("WARNING", "CRITICAL"):
            truncated = one["detector"] == "length_pathology" and "truncat" in one["summary"]
            hidden = one["detector"] == "gradient_pathology" and one["metrics"].get("n_nonfinite")
            families |= (
                {RLDOCTOR[one["detector"]]}
                | ({"truncation"} if truncated else set())
                | ({"numerics"} if hidden else set())
            )
    return families


def trainproof(done: subprocess.CompletedProcess[str]) -> Findings:
    """What trainproof says: its WARN and FAIL lines."""
    if "VERDICT" not in done.stdout:
        return None
    return {TRAINPROOF.get(rule, "loss") for rule in re.findall(r"^\[(?:WARN|FAIL)\] (TP-[A-Z-]+):", done.stdout, re.M)}


def runmedic(done: subprocess.CompletedProcess[str]) -> Findings:
    """What runmedic says: warnings and worse, distinguished by their words."""
    families = set()
    for run in json.loads(done.stdout):
        for one in run.get("findings", run.get("diagnoses", [])):
            if str(one.get("severity", "")).upper() in ("WARNING", "CRITICAL"):
                text = json.dumps(one).lower()
                families.add("numerics" if "nan" in text else "grad-norm" if "grad" in text else "loss")
    return families


def losslint(done: subprocess.CompletedProcess[str]) -> Findings:
    """What losslint says: warnings and errors, by what they are about."""
    text = done.stdout.lower()
    if done.returncode == 2 or not text.strip():
        return None
    words = {"nan": "numerics", "diverg": "loss", "spike": "loss", "stagnat": "dead", "overfit": "loss"}
    said = re.findall(r'"(?:code|rule|check)": *"([^"]+)"', text)
    return {family for word, family in words.items() for one in said if word in one}


def zen(done: subprocess.CompletedProcess[str]) -> Findings:
    """What zen says: the names of what it found, one a line."""
    words = {
        "LR_TOO_HIGH": "approx-kl",
        "ENTROPY": "entropy",
        "DEAD_RUN": "dead",
        "CAPPED": "reward-trend",
        "POLICY": "loss",
    }
    if "Error" in done.stdout or not done.stdout.strip():
        return None
    return {family for word, family in words.items() if any(line.startswith(word) for line in done.stdout.splitlines())}


@dataclass(frozen=True)
class Peer:
    """One tool: what to install, how it is asked, how its answer is read."""

    name: str
    install: tuple[str, ...]
    command: str
    read: Callable[[subprocess.CompletedProcess[str]], Findings]


PEERS = (
    Peer(
        "rldoctor",
        ("rldoctor", "tbparse", "pandas", "tensorboard"),
        "rl-doctor diagnose {path} --format json",
        rldoctor,
    ),
    Peer("trainproof", ("trainproof",), "trainproof doctor {path}", trainproof),
    Peer("runmedic", ("runmedic",), "runmedic diagnose {path} --json", runmedic),
    Peer("losslint", ("losslint", "tensorboard"), "losslint check --format json {file}", losslint),
    Peer("zen", ("zen-rl", "tbparse", "pandas", "tensorboard"), "zen {path}", zen),
)


@dataclass
class Tally:
    """What one tool got right and wrong."""

    runs: int = 0
    answered: int = 0
    sick: int = 0
    seen: int = 0
    expected: int = 0
    right: int = 0
    well: int = 0
    alarms: int = 0
    seconds: float = 0.0
    said: list[str] = field(default_factory=list)

    def row(self, name: str) -> str:
        """One row of the table."""
        return (
            f"| {name} | {self.answered}/{self.runs} | {self.seen}/{self.sick} "
            f"({self.seen / max(self.sick, 1):.0%}) | {self.right}/{self.expected}"
            f" ({self.right / max(self.expected, 1):.0%}) | {self.alarms}/{self.well} "
            f"({self.alarms / max(self.well, 1):.0%}) "
            f"| {self.seconds / max(self.runs, 1):.2f} |"
        )


def main() -> int:
    """Prints the table, and writes it where asked."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("corpus", type=lambda said: Path(said).resolve())
    ask.add_argument("--venvs", type=Path, help="environments NAME/ to use and keep; made where they are missing")
    ask.add_argument("--write", type=Path, help="also write the table there, as Markdown")
    args = ask.parse_args()
    labels = [
        one
        for one in json.loads((args.corpus / "labels.json").read_text())
        if one["sources"].get("tensorboard") and not one.get("visibility")
    ]
    with tempfile.TemporaryDirectory() as folder:
        tools = [Peer("rlhealth", (), f"{sys.executable} -m rlhealth check {{path}} --format json", rlhealth)]
        tools += [tool for one in PEERS if (tool := installed(one, args.venvs or Path(folder))) is not None]
        tallies = {one.name: Tally() for one in tools}
        for label in labels:
            for tool in tools:  # by turns, so that all meet the same machine
                ask_about(tool, label, args.corpus / "runs", tallies[tool.name])
    table = "\n".join(
        [
            "| tool | answered | sick runs seen | right family | alarms on healthy | seconds a run |",
            "| --- | --- | --- | --- | --- | --- |",
        ]
    )
    table += "\n" + "\n".join(tally.row(name) for name, tally in tallies.items())
    print(table)
    if args.write:
        args.write.write_text(f"{PREFACE}\n{table}\n", encoding="utf-8")
    return 0


PREFACE = """# Beside other tools

Written by `python -m benchmarks.peers CORPUS --write docs/peers.md`, all tools in one run on one machine, by turns, on
labelled TensorBoard runs of TRL (legacy PPO, current PPO, GRPO old and new) and Stable-Baselines3 PPO.

*Sick runs seen*: any warning in a family that the label expects or accepts. *Right family*: expected families that were
named. *Alarms*: healthy runs with a warning that the label does not accept. The tools other than rldoctor judge the
loss of supervised training, and say so; they are here because people point them at these runs. rlprobe and rlwatch
record a run from inside and read no log afterwards; they are not in the table.
"""


def installed(peer: Peer, folder: Path) -> Peer | None:
    """The peer with its command in its own environment; None if it cannot be installed."""
    home = folder / peer.name
    program, *rest = shlex.split(peer.command)
    if not (home / "bin" / program).exists():
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        done = subprocess.run(
            [str(home / "bin" / "pip"), "install", "--quiet", *peer.install],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            print(f"{peer.name} cannot be installed here: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
            return None
    return Peer(
        peer.name,
        peer.install,
        shlex.join([str(home / "bin" / program), *rest]).replace("'{path}'", "{path}").replace("'{file}'", "{file}"),
        peer.read,
    )


def ask_about(tool: Peer, label: dict[str, object], runs: Path, tally: Tally) -> None:
    """Asks one tool about one run, and counts its answer."""
    sources = label["sources"]
    assert isinstance(sources, dict)
    said = sources["tensorboard"]
    paths = [said] if isinstance(said, str) else list(said)
    begun = time.perf_counter()
    families: Findings = None
    for path in paths:
        try:
            file = next(iter(sorted((runs / path).rglob("events.out.tfevents*"))), runs / path)
            command = [part.format(path=runs / path, file=file) for part in shlex.split(tool.command)]
            with tempfile.TemporaryDirectory() as elsewhere:  # some peers write beside themselves
                done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=elsewhere)
            answer = tool.read(done)
        except (subprocess.TimeoutExpired, ValueError, KeyError):
            continue
        families = families if answer is None else (families or set()) | answer
    tally.seconds += time.perf_counter() - begun
    tally.runs += 1
    tally.answered += families is not None
    expected, accepted = set(label["expected"]), set(label["expected"]) | set(label.get("acceptable") or ())  # type: ignore[call-overload]
    if label["verdict"] == "unhealthy":
        tally.sick += 1
        tally.expected += len(expected)
        tally.seen += bool((families or set()) & accepted)
        tally.right += len(expected & (families or set()))
    else:
        tally.well += 1
        tally.alarms += bool((families or set()) - accepted)


if __name__ == "__main__":
    sys.exit(main())
