"""Arrays of numbers as numpy saves them (.npy, and members of .npz): read in bounded memory; Python objects are never
unpickled."""

from __future__ import annotations

import io
import tokenize
import zipfile
import zlib
from typing import IO, Any

import numpy as np

from rlhealth.run import Floats

LARGEST = 64 << 20  # bytes of one array: 8 million numbers
#: What zipfile, zlib and numpy raise at a damaged file.
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    OSError,
    ValueError,
    TypeError,
    EOFError,
    LookupError,
    ArithmeticError,
    RuntimeError,
)
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def array_in(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Floats:
    """One array of an archive.

    Raises:
        ValueError, or another of `DAMAGE`: if it is damaged, too large, or holds no plain numbers.
    """
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{member.filename} is packed in a way that numpy does not use")
    with archive.open(member) as packed:
        return array_of(packed, member.filename)


def array_of(file: IO[bytes], name: str) -> Floats:
    """The array in a file, from its current position, with no more memory than its size in bytes.

    Raises:
        ValueError, or another of `DAMAGE`: if it is damaged, too large, or holds no plain numbers.
    """
    raw = file.read(LARGEST + 1)
    if len(raw) > LARGEST:
        raise ValueError(f"{name} is larger than {LARGEST >> 20} MiB")
    text = io.BytesIO(raw)
    read_header: Any = _HEADERS.get(np.lib.format.read_magic(text))
    if read_header is None:
        raise ValueError(f"{name} is of an unknown version")
    try:
        shape, is_fortran, dtype = read_header(text)
    except (tokenize.TokenError, SyntaxError, TypeError, AttributeError, MemoryError, RecursionError) as error:
        raise ValueError(f"{name} has a damaged header") from error
    if dtype.kind not in "iufb":
        raise ValueError(f"{name} holds {dtype}, no plain numbers")
    count = int(np.prod(shape, dtype=object)) if shape else 1
    if any(size < 0 for size in shape) or count * dtype.itemsize > len(raw) - text.tell():
        raise ValueError(f"{name} is shorter than it says")
    values = np.frombuffer(raw, dtype, count, text.tell()).astype(np.float64)
    return values.reshape(shape, order="F" if is_fortran else "C")
