"""Trains what it is asked to, one set-up a line on standard input: runs in the Python of a trainer's era, beside the
lab's own files.

    LAB=FOLDER PYTHON trainer.py LAB_CODE ERA

Answers each line with {"folder": …, "codes": […], "seconds": …}. It knows nothing of rlhealth.
"""

import json
import os
import sys
from pathlib import Path


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what trainers print is no answer
    sys.path.insert(0, sys.argv[1])
    import batch

    for folder in (batch.STATE, batch.LOGS, batch.RUNS):
        folder.mkdir(parents=True, exist_ok=True)
    __import__(batch.MODULE[sys.argv[2]]).preload()
    for line in sys.stdin:
        spec = json.loads(line)
        codes, seconds = batch.run(spec)
        folder = Path(batch.RUNS) / spec["id"]
        print(json.dumps({"folder": str(folder), "codes": codes, "seconds": seconds}), file=answers, flush=True)


if __name__ == "__main__":
    main()
