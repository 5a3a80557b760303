"""Candidates: files of a folder that look like logs but are not read; each is reported with its reason, and other
files are not mentioned.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from rlhealth.errors import RlhealthError
from rlhealth.run import UnreadFile
from rlhealth.sources.base.growing import open_regular
from rlhealth.sources.base.packed import UnpackedFile, encoding_of, is_packed
from rlhealth.sources.base.walk import PACKED, ROTATED, kind_of

HEAD = 64 << 10  # bytes read
#: Suffixes of files that are no logs: pictures, sounds, code, pages, settings. All other files are read, even weights,
#: because a name can be misleading.
_NEVER = re.compile(
    r"\.(?:png|jpe?g|gif|svg|webp|bmp|tiff?|ico|mp4|avi|mov|webm|wav|mp3|flac|ogg|pdf|ttf|otf|woff2?"
    r"|py|pyi|pyc|pyo|ipynb|sh|bash|zsh|c|cc|cpp|cu|cuh|h|hpp|rs|go|js|ts|jsx|tsx|java|rb|pl|lua|sql|css|scss|html?|xml|xsl|tex|bib"
    r"|md|rst|ya?ml|toml|ini|cfg|conf|env|lock|so|a|o|dll|dylib|exe|whl|egg|jar|patch|diff|pid|sock)$",
    re.IGNORECASE,
)
#: Files of a checkpoint. In a folder they are read; from an object store they would have to be fetched.
_WEIGHTS = re.compile(
    r"\.(?:safetensors|pt|pth|bin|ckpt|gguf|ggml|onnx|distcp|msgpack|model|tflite|pb|engine|metadata)(?:\.index)?$",
    re.IGNORECASE,
)
#: Tables and archives that cannot be read: they count by their names.
_TABLES = re.compile(r"\.(?:parquet|feather|arrow|pkl|pickle|npz|npy|h5|hdf5|xlsx?|mat|avro|orc)$", re.IGNORECASE)
_LOG_NAME = re.compile(
    r"(?:^|[._\- ])(?:logs?|metrics?|histor(?:y|ies)|progress|monitor|trainer_state|training|train_log|evaluations?"
    r"|results?|curves?|scalars?|runs?)(?=[._\- ]|\d|$)",
    re.IGNORECASE,
)
#: Words in the metric names of every trainer.
_SIGN = (
    r"(?:loss|reward|kl|entropy|grad_?norm|advantages?|returns?|clip_?frac\w*|clip_?ratio|ratio|explained_var\w*"
    r"|accuracy|learning_rate|lr|length)"
)
_NUMBER = r"-?(?:\d[\d.]*(?:e[-+]?\d+)?|nan|inf(?:inity)?)"
_LOGGED = re.compile(
    rf"([\w./-]{{0,60}}?{_SIGN}[\w./-]{{0,40}})[\"'`]?\s{{0,4}}[:=|]{{1,2}}\s{{0,8}}[\"']?{_NUMBER}", re.IGNORECASE
)
_NAMED = re.compile(rf"(?:^|[^a-z]){_SIGN}(?:$|[^a-z])", re.IGNORECASE)
_TABLE_ROW = re.compile(rf"[ \t]*{_NUMBER}(?:[ \t,;|]{{1,40}}{_NUMBER}){{1,200}}[ \t,;|\r]*", re.IGNORECASE)
_TABLE_HEAD = re.compile(r"[ \t#]*[\"'\w./()-]{1,100}(?:[ \t,;|]{1,40}[\"'\w./()-]{1,100}){1,200}[ \t,;|\r]*")
#: ML-Agents' training_status.json: a checkpoint's reward is null where no episode ended since the one before.
_CHECKPOINTS = re.compile(r'\{\s*"[^"\n]{1,200}":\s*\{\s*"checkpoints":\s*\[\s*\{\s*"steps":\s*\d+,\s*"file_path":')
#: A metric of MLflow's: milliseconds since 1970, a value and a step.
_MLFLOW = re.compile(rb"1\d{12} [-+.\w]{1,30} -?\d{1,18}\r?\n")
#: Texts about runs: what rows they hold may be examples.
NOTES = (".md", ".markdown", ".rst")
_PASTED_ROW = re.compile(rf"\w\s*[:=|]\s*{_NUMBER}(?!\w)|\A[\s|+=-]+\Z", re.IGNORECASE)
_PASTED_LINES = 60
_PASTED_SHARE = 2 / 3
_TIMES = 3  # how often one name must stand with a number: settings say each once
_MAGIC = ((b":W&B", "wandb"), (b":SWL", "swanlab"), (b"SQLite format 3\0", "trackio"))
_MOST_MEMBERS = 10_000
_LARGEST_FOOTER = 16 << 20


def tracked_kind(head: bytes) -> str | None:
    """The tracker whose files begin with these bytes, whatever the file's name."""
    if b"brain.Event:" in head[:64]:
        return "tensorboard"
    if _MLFLOW.match(head):
        return "mlflow"
    return next((kind for magic, kind in _MAGIC if head.startswith(magic)), None)


def kind_by_bytes(path: Path) -> str | None:
    """The tracker whose file this is, though its name does not say so. Raises RlhealthError if it cannot be opened."""
    if is_wandb_export(path):
        return "wandb_export"
    with open_regular(path) as file:
        return tracked_kind(file.read(64))


def is_wandb_export(path: Path) -> bool:
    """Whether a file is Parquet with the columns that wandb gives to a run's history, by the names in its footer."""
    if path.suffix.lower() != ".parquet":
        return False
    try:
        with open_regular(path) as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - 8))
            length, mark = int.from_bytes(file.read(4), "little"), file.read(4)
            file.seek(max(0, size - 8 - min(length, _LARGEST_FOOTER)))
            footer = file.read(min(length, _LARGEST_FOOTER))
    except (RlhealthError, OSError):
        return False
    return mark == b"PAR1" and b"\x05_step" in footer and b"\x0a_timestamp" in footer


def is_never_a_log(name: str) -> bool:
    """Whether a name is one of pictures, code, pages, settings or weights."""
    return bool(_NEVER.search(name) or _WEIGHTS.search(name))


def lists_checkpoints(text: str) -> bool:
    """Whether a text is the list of checkpoints that ML-Agents keeps beside its event files."""
    return _CHECKPOINTS.match(text) is not None


def others(paths: Iterable[Path]) -> tuple[dict[str, list[Path]], list[Path], list[UnreadFile]]:
    """Sorts files whose names show no kind: trackers' files by kind, texts that may be logs, and files that are left
    out.
    """
    tracked: dict[str, list[Path]] = {}
    texts: list[Path] = []
    left: list[UnreadFile] = []
    for path in paths:
        if _NEVER.search(path.name):
            if is_pasted_log(path):
                texts.append(path)
            continue
        if is_wandb_export(path):
            tracked.setdefault("wandb_export", []).append(path)
            continue
        if reason := _packed_or_table(path):
            left.append(UnreadFile(str(path), reason))
            continue
        head = _head(path)
        kind = tracked_kind(head)
        if kind == "trackio" and not path.name.endswith((".db", ".sqlite", ".sqlite3")):
            left.append(
                UnreadFile(str(path), "a SQLite database under an unusual name: name the file itself to read it")
            )
        elif kind is not None:
            tracked.setdefault(kind, []).append(path)
        elif _is_text(head):
            texts.append(path)
    return tracked, texts, left


def is_pasted_log(path: Path) -> bool:
    """Whether a note is a log that was pasted into a file and given a title: sixty lines or more, two thirds of which
    are rows. In a README rows are examples, however many."""
    if path.suffix.lower() not in NOTES or path.stem.lower() == "readme":
        return False
    head, _ = _ends(path)
    lines = [line for line in head.decode(encoding_of(head) or "utf-8", "replace").splitlines() if line.strip()]
    rows = sum(len(line) < 4096 and _PASTED_ROW.search(line) is not None for line in lines)
    return len(lines) >= _PASTED_LINES and rows >= _PASTED_SHARE * len(lines)


def why_unread(path: Path) -> str:
    """Why a text without a reader looks like a log nevertheless; empty if it does not."""
    head, tail = _ends(path)
    if path.suffix == ".json" and lists_checkpoints(head.decode("utf-8", "replace")):
        return ""
    for part in (head, tail):
        text = part.decode(encoding_of(part) or "utf-8", "replace")
        if reason := _logged(text):
            return reason
    return ""


def _logged(text: str) -> str:
    names = Counter(found[1].lower().strip("./-") for found in _LOGGED.finditer(text))
    often = [name for name, times in names.items() if times >= _TIMES]
    if often:
        shown = ", ".join(sorted(often)[:3])
        return f"numbers named {shown} in a form that is not read as a log: name the file itself to try"
    lines = text.splitlines()
    for place, line in enumerate(lines[:2000]):
        if len(line) < 4096 and _NAMED.search(line) and _TABLE_HEAD.fullmatch(line):
            rows = sum(bool(_TABLE_ROW.fullmatch(one)) for one in lines[place + 1 : place + 6] if len(one) < 4096)
            if rows >= 2:
                return "a table of numbers of which no column is known to count the steps: name the file itself to try"
    return ""


def _packed_or_table(path: Path) -> str:
    packed = PACKED.search(path.name)
    bare = ROTATED.sub("", path.name[: packed.start()] if packed else path.name)
    if packed is None:
        return "a table in a binary format, which is not read" if _TABLES.search(bare) and _is_log_name(bare) else ""
    if packed[1].lower() == "zip":
        return "an archive with logs in it: unpack it" if _zip_has_logs(path) else ""
    if kind_of(bare) in ("tensorboard", "wandb", "trackio"):
        return f"a packed log ({packed[1]}) of a kind that is read unpacked only: unpack it"
    named = kind_of(bare) is not None or _is_log_name(bare)
    return f"packed as {packed[1]}: unpack it" if named else ""


def _is_log_name(name: str) -> bool:
    return bool(_LOG_NAME.search(name))


def _zip_has_logs(path: Path) -> bool:
    import zipfile  # late: few have any

    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            members = archive.infolist()[:_MOST_MEMBERS]
    except (zipfile.BadZipFile, OSError, RlhealthError, ValueError, NotImplementedError):
        return _is_log_name(path.stem)
    strong = ("tensorboard", "wandb", "trainer_state", "jsonl", "csv")
    return any((kind := kind_of(Path(one.filename).name)) in strong or kind == "console" for one in members)


def _head(path: Path) -> bytes:
    try:
        with open_regular(path) as file:
            return file.read(4096)
    except (RlhealthError, OSError):
        return b""


def _ends(path: Path) -> tuple[bytes, bytes]:
    """The first and the last bytes of a file, uncompressed."""
    try:
        with open_regular(path) as file:
            head = file.read(HEAD)
            if is_packed(head):
                return UnpackedFile(file, path).read(HEAD), b""
            size = file.seek(0, 2)
            if size <= HEAD:
                return head, b""
            file.seek(max(HEAD, size - HEAD) // 4 * 4)
            tail = file.read(HEAD)
    except (RlhealthError, OSError):
        return b"", b""
    return head, tail


def _is_text(head: bytes) -> bool:
    if not head.strip(b"\0 \r\n\t"):
        return False
    if is_packed(head) or encoding_of(head):
        return True
    return b"\0" not in head and sum(one < 9 or 13 < one < 27 or 27 < one < 32 for one in head) * 50 < len(head)
