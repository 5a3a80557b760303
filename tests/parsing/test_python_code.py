"""Somebody else's Python is read without a word to whoever checks a run."""

from __future__ import annotations

import ast
import warnings

import pytest

from rlhealth.parsing.python_code import tree_of


@pytest.mark.parametrize("code", ["pattern = '\\d+'", "x = 1if y else 2", "assert (x, 'always')", "x is 'text'"])
def test_what_the_compiler_warns_an_author_of_is_not_reported(code: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(tree_of(code).body[0], ast.stmt)


def test_what_is_no_python_is_an_error() -> None:
    with pytest.raises(SyntaxError):
        tree_of("for x in")
