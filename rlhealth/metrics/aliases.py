"""A user's own names: checks `--alias tag=metric` and reads a file of them."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path

import yaml

from rlhealth.errors import RlhealthError
from rlhealth.metrics.catalogue import meaning, meanings

LARGEST_FILE = 1 << 20  # bytes; a name has fifty


def check_aliases(aliases: Mapping[str, str], place: str = "--alias") -> None:
    """Checks that every alias names a canonical metric.

    Raises:
        RlhealthError: naming the nearest metrics, if one does not.
    """
    for tag, name in aliases.items():
        if meaning(name) is None:
            raise _unknown(name, f"{place} {tag}={name}")


def read_aliases(path: Path) -> dict[str, str]:
    """Reads a YAML file of `tag: metric` lines.

    Raises:
        RlhealthError: with file, line and column, if it cannot be read, is not such a mapping or names an unknown metric.
    """
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST_FILE).decode("utf-8")
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (OSError, UnicodeDecodeError) as error:
        raise RlhealthError(f"{path}: cannot be read: {error}", hint="give a YAML file with lines such as `my/kl: kl`", location=str(path)) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
        raise RlhealthError(f"{place}: {error.problem}", hint="quote a name that holds a colon or starts with a sign", location=str(path)) from error
    except (yaml.YAMLError, RecursionError) as error:
        raise RlhealthError(f"{path}: not YAML: {error}", hint="give lines such as `my/kl: kl`", location=str(path)) from error
    if root is None:
        return {}
    if not isinstance(root, yaml.MappingNode):
        raise RlhealthError(
            f"{_place(path, root)}: expected lines such as `my/kl: kl`", hint="one tag a line, then a colon, then the metric", location=str(path)
        )
    found: dict[str, str] = {}
    for key, value in root.value:
        if not isinstance(key, yaml.ScalarNode) or not isinstance(value, yaml.ScalarNode):
            raise RlhealthError(
                f"{_place(path, value)}: expected the name of one metric", hint="one tag a line, then a colon, then the metric", location=str(path)
            )
        if key.value in found:
            raise RlhealthError(f"{_place(path, key)}: {key.value} is named twice", hint="keep one of the two lines", location=str(path))
        if meaning(value.value) is None:
            raise _unknown(value.value, f"{_place(path, value)}: {key.value}")
        found[key.value] = value.value
    return found


def _unknown(name: str, place: str) -> RlhealthError:
    near = difflib.get_close_matches(name, meanings(), n=3, cutoff=0.5) or difflib.get_close_matches(name.rpartition("/")[2], meanings(), n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else "`rlhealth metrics WHERE` lists the metrics of a run"
    return RlhealthError(f"{place}: there is no metric {name!r}", hint=hint)


def _place(path: Path, node: yaml.Node) -> str:
    return f"{path}:{node.start_mark.line + 1}:{node.start_mark.column + 1}"
