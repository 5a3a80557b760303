"""Python that somebody else wrote, as a syntax tree: it is read and never run."""

from __future__ import annotations

import ast
import warnings


def tree_of(code: str) -> ast.Module:
    """The syntax tree of Python code, without what the compiler warns its author of: `"\\d"` and `1if x` are not ours.

    Raises SyntaxError where it is no Python, and ValueError, RecursionError or MemoryError where it cannot be read.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(code)
