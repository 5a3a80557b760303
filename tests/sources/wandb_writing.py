"""Writes `.wandb` files as the SDK does: its own protobuf messages, framed as LevelDB frames them."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from wandb.proto import wandb_internal_pb2 as pb

from tests.fuzz.framing import BLOCK
from tests.fuzz.framing import WANDB_HEADER as HEADER
from tests.fuzz.framing import wandb_frames as frame


def unframe(log: bytes) -> list[bytes]:
    """The records of an undamaged log, the plain way."""
    records, parts, at = [], b"", len(HEADER)
    while at + 7 <= len(log):
        room = BLOCK - at % BLOCK
        if room < 7:
            at += room
            continue
        _, length, kind = struct.unpack_from("<IHB", log, at)
        if at + 7 + length > len(log):
            break
        parts += log[at + 7 : at + 7 + length]
        if kind in (1, 4):
            records.append(parts)
            parts = b""
        at += 7 + length
    return records


def history(row: Mapping[str, Any], number: int, *, flat_keys: bool = False) -> bytes:
    """One row; a dict in it becomes nested keys, as wandb's core flattens them, or stays JSON, as the older Python
    service left it.
    """
    record = pb.Record(num=number)
    for key, value in row.items():
        if isinstance(value, dict) and not flat_keys:
            for inner, one in value.items():
                record.history.item.add(nested_key=[key, inner], value_json=json.dumps(one))
        elif flat_keys:
            record.history.item.add(key=key, value_json=json.dumps(value))
        else:
            record.history.item.add(nested_key=[key], value_json=json.dumps(value))
    return record.SerializeToString()


def config(settings: Mapping[str, Any], number: int = 2) -> bytes:
    record = pb.Record(num=number)
    for key, value in settings.items():
        record.config.update.add(key=key, value_json=json.dumps(value))
    return record.SerializeToString()


def run_record(run_id: str, started: int = 1_700_000_000, name: str = "", **others: str) -> bytes:
    record = pb.Record(num=1, run=pb.RunRecord(run_id=run_id, display_name=name, **others))
    record.run.start_time.seconds = started
    return record.SerializeToString()


def exit_record(code: int, number: int) -> bytes:
    return pb.Record(num=number, exit=pb.RunExitRecord(exit_code=code)).SerializeToString()


def write(path: Path, records: Iterable[bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(HEADER + frame(records))
    return path


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]], *, flat_keys: bool = False) -> Path:
    return write(
        path, [run_record("made"), *(history(row, 10 + index, flat_keys=flat_keys) for index, row in enumerate(rows))]
    )
