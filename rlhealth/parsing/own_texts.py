"""rlhealth's own files of names and words, every scalar as text, parsed once and kept for later processes."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from rlhealth.system.cache import cached, read_bytes

#: What parses YAML: what is kept was made by it.
PARSER = Path(__file__).with_name("strict_yaml.py")


def read_texts(file: Path) -> Any:
    """A YAML file of rlhealth's own, every scalar as text."""
    raw = file.read_bytes()

    def parse() -> Any:
        from rlhealth.parsing.strict_yaml import texts_in  # late: a YAML parser takes a twentieth of a small check

        return texts_in(raw.decode("utf-8"), str(file))[0]

    sources = {"file": raw, "parser": parser()}
    return cached(f"{file.parent.name}-{file.stem}", sources, parse)


@lru_cache(maxsize=1)
def parser() -> bytes:
    """The source code of the parser."""
    return read_bytes(str(PARSER))
