"""Comment lines above a table, the last of which may be its header, `# episode,score`: numpy's savetxt writes it so.
The mark that Git leaves above a conflict is one too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from rlhealth.sources.base.spelling import number

_SIGNS = ("#", "<<<<<<< ")
#: Comments and empty lines; gymnasium's monitor.csv begins with one.
COMMENTS = re.compile(rf"(?:(?:{'|'.join(_SIGNS)})[^\n]*+(?:\n|\Z)|[\r\n])*+".encode())
_NAME = re.compile(r"[A-Za-z_][^\n{}=:]{0,100}")


def last_comment(lines: Sequence[str]) -> str:
    """The last of the lines that is a comment; "" if none is."""
    return next((line for line in reversed(lines) if line.startswith("#")), "")


def header_in(comment: str, row: str) -> str:
    """The comment above a row, without its sign, if it names the cells of that row and these are numbers; "" if not."""
    named = comment.lstrip("# ").strip()
    comma = max(",\t;|", key=row.count)
    heads, cells = named.split(comma), row.split(comma)
    is_header = len(cells) > 1 and len(heads) == len(cells)
    is_header = is_header and all(_NAME.fullmatch(head.strip(' "')) for head in heads)
    return named if is_header and all(number(cell) is not None for cell in cells) else ""


def without_comments(lines: Sequence[str]) -> list[str]:
    """The lines without the comments and empty lines above them; a header among these stays, without its sign."""
    comments = list(takewhile(lambda line: not line.strip() or line.startswith(_SIGNS), lines))
    rest = list(lines[len(comments) :])
    header = header_in(last_comment(comments), rest[0]) if rest else ""
    return [header, *rest] if header else rest
