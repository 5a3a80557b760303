"""How often the first cause named is the right one, on labelled runs: `python -m benchmarks.causes CORPUS [FOLDER
...]`."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import yaml

from rlhealth import check
from rlhealth.reports.stories import stories
from rlhealth.verdict.findings import Finding, Severity
from rlhealth.verdict.verdicts import RunVerdict

TABLE = Path(__file__).with_name("causes.yaml")


def first_cause(run: RunVerdict) -> Finding | None:
    """The first root cause that reports show: a diagnosis, else the first finding at or above warning."""
    loud = [one for cause, following in stories(run) for one in (cause, *following) if one.severity > Severity.INFO]
    return next((one for one in loud if one.family == "diagnosis"), loud[0] if loud else None)


def labelled(folder: Path) -> list[tuple[str, str, Path, list[str]]]:
    """The labelled runs of a corpus (labels.json) or of single logs (index.json): id, fault, path and acceptable
    causes."""
    if (folder / "labels.json").exists():
        table = yaml.safe_load(TABLE.read_text())
        rows = [row for row in json.loads((folder / "labels.json").read_text()) if row["verdict"] != "healthy"]
        rows = [row for row in rows if not row.get("visibility")]
        places = [next(place for place in row["sources"].values() if place) for row in rows]
        return [
            (
                row["run"],
                row["fault"],
                folder / "runs" / (place if isinstance(place, str) else place[0]),
                table[row["fault"]],
            )
            for row, place in zip(rows, places, strict=True)
        ]
    rows = [row for row in json.loads((folder / "index.json").read_text()) if row.get("cause") and not row.get("soft")]
    return [(row["id"], "labelled", folder / "logs" / row["id"], row["cause"]) for row in rows]


def main() -> None:
    """Prints a line for each run whose first cause is another, and the figures of each folder; "no cause" counts
    half."""
    for folder in map(Path, sys.argv[1:]):
        rows = [row for row in labelled(folder) if row[2].exists()]
        points, confused = 0.0, Counter[tuple[str, str]]()
        for name, fault, path, accepted in rows:
            verdicts = check(path).runs
            found = first_cause(max(verdicts, key=lambda run: run.sick)) if verdicts else None
            right = found is not None and (found.rule in accepted or found.family in accepted)
            silent = not right and (found is None or found.family != "diagnosis")
            points += 1.0 if right else 0.5 if silent else 0.0
            if not right:
                said = found.rule if found else "-"
                confused[fault, said] += 1
                print(
                    f"{name}: {fault}: {said}{' (a symptom)' if silent else ''}; right would be {', '.join(accepted)}"
                )
        print(f"{folder.name}: {points:g} of {len(rows)} ({points / max(len(rows), 1):.1%})")
        for (fault, said), count in confused.most_common():
            print(f"  {fault} -> {said}: {count}")


if __name__ == "__main__":
    main()
