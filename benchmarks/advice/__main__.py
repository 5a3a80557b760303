"""Does the advice heal? Trains sick set-ups of a lab, applies what `rlhealth advise` says, and trains again.

    python -m benchmarks.advice LAB --runs FOLDER --python trl-grpo=PYTHON [--python trl-ppo-exp=PYTHON:FOLDER]
                                [--seeds 3] [--only GRPO…] [--cached] [--write docs/advice.md]

LAB is a folder with `batch.py`, `manifest.json` and one module for each era of a trainer, which trains a tiny model in
seconds. FOLDER keeps the runs: what was trained once is not trained again. A PYTHON has the era's libraries; a folder
after a colon goes before its packages. One run trains at a time.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from benchmarks.advice import live_page, page
from benchmarks.advice.training import Lab
from benchmarks.advice.trial import LiveOutcome, Outcome, tried, tried_live
from rlhealth.parsing.strict_yaml import read_yaml

TRIALS = Path(__file__).with_name("trials.yaml")


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("lab", type=Path)
    ask.add_argument("--runs", type=Path, required=True, help="where runs are kept")
    ask.add_argument("--python", action="append", default=[], metavar="ERA=PYTHON[:FOLDER]")
    ask.add_argument("--seeds", type=int, default=3)
    ask.add_argument("--only", nargs="+", default=[], help="eras to try")
    ask.add_argument("--cached", action="store_true", help="train nothing: only what was trained before")
    ask.add_argument("--write", type=Path, help="write the page to this file")
    args = ask.parse_args()
    pythons = {era: (python, before) for era, python, before in map(_python, args.python)}
    lab = Lab(args.lab, args.runs, {} if args.cached else pythons)
    trials = read_yaml(TRIALS.read_text(encoding="utf-8"), str(TRIALS))[0]
    for trial in trials:
        trial.setdefault("era", lab.setups[trial["run"]]["era"])
    trials = [one for one in trials if not args.only or one["era"] in args.only]
    found: list[tuple[dict[str, Any], list[Outcome]]] = [(trial, []) for trial in trials]
    live: list[tuple[dict[str, Any], list[LiveOutcome]]] = [(one, []) for one in trials if one.get("live")]
    for seed in range(args.seeds):
        for trial, outcomes in found:
            outcome = tried(trial, seed, lab)
            if outcome is not None:
                outcomes.append(outcome)
                print(page.line(trial, seed, outcome), flush=True)
        for trial, lived in live:
            live_outcome = tried_live(trial, seed, lab)
            if live_outcome is not None:
                lived.append(live_outcome)
                print(live_page.line(trial, seed, live_outcome), flush=True)
    lab.close()
    if args.write:
        args.write.write_text(page.written(found) + live_page.written(live), encoding="utf-8")
    print(page.summary(found))


def _python(said: str) -> tuple[str, str, str]:
    era, _, rest = said.partition("=")
    python, _, before = rest.partition(":")
    return era, python, before


if __name__ == "__main__":
    main()
