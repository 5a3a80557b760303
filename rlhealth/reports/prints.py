"""Fingerprints and addresses for code-scanning formats: the same finding of the same run is the same alert next
time.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path, PurePath
from urllib.parse import quote

from rlhealth.verdict.findings import Finding
from rlhealth.verdict.verdicts import RunVerdict

_LONGEST = 1000


def fingerprint(run: RunVerdict | str, one: Finding | str) -> str:
    """64 hexadecimal digits of the run's name, the rule and the metric: never of a step or a value, which change
    while a run continues.
    """
    name = run if isinstance(run, str) else run.name
    what = one if isinstance(one, str) else f"{one.rule}\n{one.metric}"
    return hashlib.sha256(f"rlhealth\n{name}\n{what}".encode("utf-8", "surrogatepass")).hexdigest()


def address(location: str) -> str:
    """A location as a relative URI reference, percent-encoded: what code-scanning services take for a file's name.

    A file in the repository is named from the repository's top, wherever rlhealth was called and however it was named.
    """
    text = location.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    path = _from_top(text) if "://" not in text else text.replace("://", "/", 1)
    encoded = quote(path.removeprefix("./"), safe="/~")[:_LONGEST]
    return encoded.removesuffix("%").lstrip("/") or "run"


def _from_top(text: str) -> str:
    """A path as seen from the top of the repository it lies in; as it is where it lies in none."""
    try:
        here = Path.cwd()
        bare = text.partition("#")[0]  # a file of several runs names the run behind it
        named = bare if bare and not os.path.lexists(here / text) and os.path.lexists(here / bare) else text
        for top in _tops(here):
            for place, root in ((os.path.abspath(here / named), top), (os.path.realpath(here / named), top.resolve())):  # noqa: PTH100
                if Path(place) != root and Path(place).is_relative_to(root):
                    return Path(place).relative_to(root).as_posix()
    except (OSError, ValueError):  # no working folder, or a name that no file can have
        pass
    return PurePath(text).as_posix()


def _tops(here: Path) -> list[Path]:
    """Where the repository begins, as GitHub Actions, GitLab and git say it."""
    said = [Path(one) for name in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR") if (one := os.environ.get(name))]
    return said + [one for one in (here, *here.parents) if os.path.lexists(one / ".git")][:1]
