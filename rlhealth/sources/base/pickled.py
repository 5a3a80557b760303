"""Reads numbers, texts, lists and dicts from a pickle, and numpy arrays as lists. Anything else that a pickle wants to
create or call is refused, so that no code in it runs."""

from __future__ import annotations

import io
import pickle
import pickletools
import re
from collections import deque
from collections.abc import Callable
from typing import IO, Any

import numpy as np

LARGEST = 8 << 20  # bytes of a pickle: a million numbers
DEEPEST = 6  # levels of nested lists and dicts
MOST_VALUES = 4_000_000  # in all, each as often as it is made or referred to
_TYPE = re.compile(r"[<>=|]?(?:[fiub][1248]|\?)")
_OBJECTS = re.compile(r"[|]?O8?")
#: Their arguments are indices in the memo, for which C's pickle allocates memory up to the highest.
_PLACES = frozenset({"PUT", "BINPUT", "LONG_BINPUT", "GET", "BINGET", "LONG_BINGET"})


class ForeignObjectError(ValueError):
    """An intact pickle that contains something other than plain values."""


def plain_value(raw: bytes) -> Any:
    """The content of a pickle of only plain values.

    Raises:
        ForeignObjectError: if it contains anything else, or more than `MOST_VALUES`.
        ValueError: if it is damaged, or longer than `LARGEST`.
    """
    if len(raw) > LARGEST:
        raise ValueError(f"it is larger than {LARGEST >> 20} MiB")
    try:
        _refuse_far_places(raw)
        found = _Plain(io.BytesIO(raw), encoding="latin1").load()
    except ForeignObjectError:
        raise
    except Exception as error:  # the allowed constructors may raise anything at wrong arguments
        raise ValueError(f"damaged: {str(error).partition(chr(10))[0][:80] or type(error).__name__}") from error
    return _copied(found, _Allowance())


def _refuse_far_places(raw: bytes) -> None:
    highest = count = 0
    for code, arg, _ in pickletools.genops(raw):
        count += 1
        if code.name in _PLACES and isinstance(arg, int):
            highest = max(highest, arg)
    if highest > count:
        raise ValueError("it refers to more than it holds")


class _Allowance:
    """How many values may still be created: a few bytes of references can stand for billions of values."""

    def __init__(self) -> None:
        self._left = MOST_VALUES

    def take(self, count: int) -> None:
        """Uses up `count` values. Raises ForeignObjectError if fewer are left."""
        self._left -= count
        if self._left < 0:
            raise ForeignObjectError(f"it holds more than {MOST_VALUES:,} values")


class _Maker:
    """A stand-in for a class or a function: it can be called, but neither changed nor replaced."""

    __slots__ = ("_make",)
    _make: Callable[..., object]

    def __init__(self, make: Callable[..., object]) -> None:
        object.__setattr__(self, "_make", make)

    def __call__(self, *args: object) -> object:
        return self._make(*args)

    def __setattr__(self, name: str, value: object) -> None:
        raise ValueError("it would change what makes its values")

    def __setstate__(self, state: object) -> None:
        raise ValueError("it would change what makes its values")


class _Type:
    """A dtype of plain numbers, or of Python's objects."""

    __slots__ = ("dtype", "is_of_objects")

    def __init__(self, code: str, *_: object) -> None:
        self.is_of_objects = _OBJECTS.fullmatch(code) is not None
        if not self.is_of_objects and not _TYPE.fullmatch(code):
            raise ForeignObjectError(f"it holds an array of {code[:20]}, no plain numbers")
        self.dtype = np.dtype(object if self.is_of_objects else code)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        if not self.is_of_objects and state[1] in ("<", ">"):
            self.dtype = self.dtype.newbyteorder(state[1])


class _Array(list[Any]):
    """An array of numpy as lists; empty until its state is known."""

    def __init__(self, making: _Making) -> None:
        super().__init__()
        self._making = making

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, made, is_fortran, held = state
        self[:] = self._making.array(held, made, shape, "F" if is_fortran else "C")


class _Making:
    """Creates the values that are no literals of a pickle, up to the allowed number."""

    def __init__(self) -> None:
        self._allowance = _Allowance()
        self.known: dict[tuple[str, str], _Maker] = {
            ("collections", "OrderedDict"): _Maker(lambda items=(): dict(self._counted(items))),
            ("collections", "defaultdict"): _Maker(lambda *_: {}),
            ("collections", "deque"): _Maker(lambda held=(), most=None: deque(self._counted(held), most)),
            ("builtins", "list"): _Maker(lambda: []),
            ("builtins", "float"): _Maker(lambda: 0.0),
            ("builtins", "int"): _Maker(lambda: 0),
            ("_codecs", "encode"): _Maker(lambda text, _: self._bytes(text)),
            ("numpy", "ndarray"): _Maker(lambda *_: _Array(self)),
            ("numpy", "dtype"): _Maker(_Type),
            ("numpy.core.multiarray", "_reconstruct"): _Maker(lambda *_: _Array(self)),
            ("numpy.core.multiarray", "scalar"): _Maker(self._scalar),
            ("numpy.core.numeric", "_frombuffer"): _Maker(self.array),
        }

    def array(self, held: Any, made: _Type, shape: tuple[int, ...], order: Any) -> list[Any]:
        """The numbers of an array from its bytes, of any shape but that of a lone number, or its objects."""
        if made.is_of_objects:
            return list(self._counted(held))
        values = np.frombuffer(self._bytes(held), made.dtype)
        self._allowance.take(len(values))
        listed: list[Any] = np.atleast_1d(values.reshape(shape, order=order)).tolist() if len(values) else []
        return listed

    def _scalar(self, made: _Type, held: Any) -> Any:
        return held if made.is_of_objects else np.frombuffer(self._bytes(held), made.dtype, 1)[0].item()

    def _counted(self, held: Any) -> Any:
        if not isinstance(held, list | tuple | dict | deque):
            raise ValueError("it makes a list of what is none")
        self._allowance.take(len(held))
        return held

    def _bytes(self, held: Any) -> bytes:
        if not isinstance(held, str | bytes | bytearray):
            raise ValueError("it makes bytes of what is none")
        self._allowance.take(len(held) // 64)
        return held.encode("latin1") if isinstance(held, str) else bytes(held)


class _Plain(pickle.Unpickler):
    def __init__(self, file: IO[bytes], *, encoding: str) -> None:
        super().__init__(file, encoding=encoding)
        self._known = _Making().known

    def find_class(self, module: str, name: str) -> _Maker:
        """The stand-in that creates the values of a class or a function of that name.

        Raises:
            ForeignObjectError: if they are no plain values.
        """
        of_now = module.replace("numpy._core", "numpy.core").replace("__builtin__", "builtins")
        if (of_now, name) not in self._known:
            raise ForeignObjectError(f"it holds {module[:60]}.{name[:60]}, which is not read")
        return self._known[of_now, name]

    def persistent_load(self, pid: object) -> object:
        """Raises ForeignObjectError: objects outside of the pickle are never loaded."""
        raise ForeignObjectError("it refers to what lies elsewhere")


def _copied(value: object, allowance: _Allowance, depth: int = 0) -> Any:
    """A value in lists, dicts, texts and numbers of its own, each as often as it is referred to. Raises
    ForeignObjectError at any other, and at more than is allowed.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if not isinstance(value, list | tuple | dict | deque):
        raise ForeignObjectError(f"it holds {type(value).__name__}, no plain value")
    allowance.take(1 + len(value))
    if depth >= DEEPEST:
        raise ForeignObjectError(f"it holds more than {DEEPEST} lists in each other")
    if isinstance(value, dict):
        return {str(_copied(key, allowance, DEEPEST)): _copied(one, allowance, depth + 1) for key, one in value.items()}
    return [_copied(one, allowance, depth + 1) for one in value]
