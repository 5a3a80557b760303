"""Are there known holes in what rlhealth depends on? `python -m tests.audit`: 1 where one is, 0 where none is known
or nobody can be asked.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys

ASK = (
    "-m",
    "pip_audit",
    "--local",
    "--skip-editable",
    "--progress-spinner",
    "off",
    "--timeout",
    "10",
    "--format",
    "json",
)


def main() -> int:
    if importlib.util.find_spec("pip_audit") is None:
        print("not audited: pip-audit is not installed")
        return 0
    try:
        done = subprocess.run([sys.executable, *ASK], capture_output=True, text=True, timeout=180, check=False)
        found = json.loads(done.stdout)["dependencies"]
    except (subprocess.TimeoutExpired, ValueError, KeyError):
        print("not audited: the service that knows them did not answer")
        return 0
    asked = [one for one in found if "vulns" in one]
    for one in asked:
        for hole in one["vulns"]:
            print(
                f"{one['name']} {one['version']}: {hole['id']}, mended in "
                f"{', '.join(hole['fix_versions']) or 'no version yet'}"
            )
    print(
        f"{len(asked)} of {len(found)} packages audited"
        if asked
        else "not audited: the service knows none of the packages"
    )
    return int(any(one["vulns"] for one in asked))


if __name__ == "__main__":
    raise SystemExit(main())
