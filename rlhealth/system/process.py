"""How rlhealth settles into a process of its own; where it is imported as a library, none of this is done."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager

#: Variable that is read when numpy or pydantic is imported -> what it is set to, and the variables by which the user
#: may have said something else.
_SETTINGS = {
    "OPENBLAS_NUM_THREADS": (
        "1",
        ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS"),
    ),  # no measure needs BLAS; its idle threads spin
    "PYDANTIC_DISABLE_PLUGINS": (
        "__all__",
        ("PYDANTIC_DISABLE_PLUGINS",),
    ),  # to find out that there are none takes a look at every installed package
}
_OBJECTS = (
    100_000  # new ones, before the collector looks for garbage; most of those that a check makes are there to stay
)

_set_here: set[str] = set()


@contextmanager
def settled() -> Iterator[None]:
    """Makes the process, and the worker processes that it begins, spend time on nothing but the answer. What the
    user has set stays as it is.
    """
    _set_here.update(name for name, (_, said) in _SETTINGS.items() if not any(one in os.environ for one in said))
    os.environ.update({name: _SETTINGS[name][0] for name in _set_here})
    with seldom_collecting():
        try:
            yield
        finally:
            gc.freeze()  # the process ends here: nobody has to look for garbage in what it leaves
            for name in _set_here:
                os.environ.pop(name, None)
            _set_here.clear()


@contextmanager
def seldom_collecting() -> Iterator[None]:
    """Has the collector look for garbage seldom while many objects are made that are there to stay."""
    before = gc.get_threshold()
    if 0 < before[0] < _OBJECTS:  # 0: it is switched off
        gc.set_threshold(_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def users_environment() -> dict[str, str]:
    """The environment without what was set here: for commands that the user asked to be run."""
    return {name: value for name, value in os.environ.items() if name not in _set_here}
