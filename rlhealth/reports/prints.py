"""Fingerprints and addresses for code-scanning formats: the same finding of the same run is the same alert next
time.
"""

from __future__ import annotations

import hashlib
from pathlib import PurePath
from urllib.parse import quote

from rlhealth.verdict.findings import Finding, RunVerdict

_LONGEST = 1000


def fingerprint(run: RunVerdict | str, one: Finding | str) -> str:
    """64 hexadecimal digits of the run's name, the rule and the metric: never of a step or a value, which change
    while a run goes on.
    """
    name = run if isinstance(run, str) else run.name
    what = one if isinstance(one, str) else f"{one.rule}\n{one.metric}"
    return hashlib.sha256(f"rlhealth\n{name}\n{what}".encode("utf-8", "surrogatepass")).hexdigest()


def address(location: str) -> str:
    """A location as a relative URI reference, percent-encoded: what code-scanning services take for a file's name."""
    text = location.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    path = PurePath(text).as_posix() if "://" not in text else text.replace("://", "/", 1)
    encoded = quote(path.removeprefix("./"), safe="/~")[:_LONGEST]
    return encoded.removesuffix("%").lstrip("/") or "run"
