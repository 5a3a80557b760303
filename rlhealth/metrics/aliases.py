"""A user's own names: checks `--alias tag=metric` and reads a file of them."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path

from rlhealth.errors import RlhealthError
from rlhealth.metrics.catalogue import meaning, meanings

#: An alias cannot name the step column: steps are read with the log, before names are translated.
STEPS = "step"
LARGEST_FILE = 1 << 20  # bytes; a name has about fifty


def check_aliases(aliases: Mapping[str, str], place: str = "--alias") -> None:
    """Checks that every alias names a canonical metric.

    Raises:
        RlhealthError: naming the nearest metrics, if one does not; or what to do instead, if one names the steps.
    """
    for tag, name in aliases.items():
        check_alias(name, f"{place} {tag}={name}")


def check_alias(name: str, place: str, location: str = "") -> None:
    """Checks that one alias, given at `place`, names a canonical metric.

    Raises:
        RlhealthError: as `check_aliases` does.
    """
    if meaning(name) is None:
        raise _unknown(name, place)
    if name == STEPS:
        raise RlhealthError(
            f"{place}: an alias names a metric, and the steps are none",
            hint="rename the column that counts the steps to `step` in the log, or log it under that name",
            location=location,
        )


def as_flag(tag: str, metric: str) -> str:
    """The flag that names a tag, as a shell takes it."""
    import shlex  # for hints alone

    return f"--alias {shlex.quote(f'{tag}={metric}')}"


def read_aliases(path: Path) -> dict[str, str]:
    """Reads a YAML file of `tag: metric` lines.

    Raises:
        RlhealthError: with file, line and column, if it cannot be read, is not such a mapping or names an unknown
            metric.
    """
    from rlhealth.parsing.strict_yaml import texts_in  # late: few have such a file

    try:
        with path.open("rb") as file:
            text = file.read(LARGEST_FILE).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RlhealthError(
            f"{path}: cannot be read: {error}",
            hint="give a YAML file with lines such as `my/kl: kl`",
            location=str(path),
        ) from error
    said, marks = texts_in(text, str(path))
    if said is not None and not isinstance(said, dict):
        raise _wrong(path, marks[()], "expected lines such as `my/kl: kl`")
    for tag, name in (said or {}).items():
        if not isinstance(name, str):
            raise _wrong(path, marks[tag,], "expected the name of one metric")
        check_alias(name, f"{path}:{marks[tag,][0]}:{marks[tag,][1]}: {tag}", str(path))
    return dict(said or {})


def _wrong(path: Path, place: tuple[int, int], said: str) -> RlhealthError:
    return RlhealthError(
        f"{path}:{place[0]}:{place[1]}: {said}",
        hint="one tag a line, then a colon, then the metric",
        location=str(path),
    )


def _unknown(name: str, place: str) -> RlhealthError:
    near = difflib.get_close_matches(name, meanings(), n=3, cutoff=0.5) or difflib.get_close_matches(
        name.rpartition("/")[2], meanings(), n=3, cutoff=0.5
    )
    hint = f"did you mean {' or '.join(near)}?" if near else "`rlhealth metrics WHERE` lists the metrics of a run"
    return RlhealthError(f"{place}: there is no metric {name!r}", hint=hint)
