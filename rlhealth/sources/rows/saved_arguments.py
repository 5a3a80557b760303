"""The trainer that a training_args.bin names: transformers' Trainer saves its arguments beside its state.

Their class is at the start of a pickle, which is read as text and never unpickled.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from pathlib import Path

from rlhealth.errors import RlhealthError
from rlhealth.sources.base.growing import open_regular

NAME = "training_args.bin"
HEAD = 256  # bytes of the pickle; the class of what was pickled is its first word
_CLASS = re.compile(rb"\A\x80.c[\w.]{1,200}\n(\w{1,80})Config\n", re.DOTALL)


def saved_trainer(*folders: Path) -> str:
    """The trainer's class by the arguments saved in the first of these folders that has them, such as "RLOOTrainer" for
    an RLOOConfig; empty if no folder has them, or if the file was not written by `torch.save`.
    """
    for folder in folders:
        try:
            with open_regular(folder / NAME) as file, zipfile.ZipFile(file) as saved:
                pickles = [one for one in saved.namelist()[:16] if one.endswith("/data.pkl")]
                if not pickles:
                    return ""
                with saved.open(pickles[0]) as pickled:
                    found = _CLASS.match(pickled.read(HEAD))
        except (RlhealthError, OSError):
            continue
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError):  # damaged
            return ""
        return f"{found[1].decode()}Trainer" if found else ""
    return ""
