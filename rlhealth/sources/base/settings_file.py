"""A small YAML file of settings that a tracker keeps beside its log: a mapping, or nothing if it is missing,
damaged or hostile.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from rlhealth.errors import RlhealthError
from rlhealth.sources.base.growing import open_regular

LARGEST = 1 << 20  # bytes
_ALIAS = re.compile(r"(?:^|[\s,\[{:-])\*\S", re.MULTILINE)
DEEPEST = 32  # levels; trackers nest two


def settings_file(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file; empty if there is none that can be read."""
    try:
        with open_regular(path) as file:
            return yaml_mapping(file.read(LARGEST).decode("utf-8", "replace"))
    except (RlhealthError, OSError):
        return {}


def yaml_mapping(text: str) -> dict[str, Any]:
    """The mapping in a YAML text; empty if it holds none, is nested very deeply, or has aliases, which no tracker
    writes.
    """
    if not text or _ALIAS.search(text):  # with aliases a small file can unfold into gigabytes
        return {}
    import yaml  # late: 20 ms, and most runs leave no such file

    loader, depth = getattr(yaml, "CSafeLoader", yaml.SafeLoader), 0
    try:
        for event in yaml.parse(text, loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST:  # PyYAML takes minutes for what is nested very deeply
                return {}
        found = yaml.load(text, loader)  # noqa: S506 (both are safe)
    except (yaml.YAMLError, RecursionError, ValueError, AttributeError, LookupError, TypeError, ArithmeticError):
        return {}  # PyYAML's constructors trust a tag: `!!timestamp x` is an AttributeError, `!!bool x` a KeyError
    return {str(key): value for key, value in found.items()} if isinstance(found, dict) else {}
