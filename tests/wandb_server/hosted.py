"""A run as wandb's server keeps it: rows of history, settings, summary, exported files."""

from __future__ import annotations

import itertools
import json
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass
class HostedRun:
    """One run as the server keeps it. `rows` are what `wandb.log` sent, each with its `_step`; `exported` rows come
    as a parquet file instead.
    """

    id: str = "abc12345"
    name: str = "brisk-river-7"
    state: str = "running"
    config: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    parquet: list[bytes] = field(default_factory=list)
    parquet_rows: int = 0
    created: str = "2026-01-02T03:04:05Z"
    heartbeat: str | None = None
    stopped: bool = False
    alerts: list[dict[str, Any]] = field(default_factory=list)
    requirements: str = ""
    tags: list[str] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    #: whether pages of live history leave out the rows that were exported
    live_only: bool = False
    #: rows that the server counts beside those that it has
    more_counted: int = 0
    _counted: tuple[int, Counter[str]] = (-1, Counter())

    @property
    def last_step(self) -> int:
        return int(self.rows[-1]["_step"]) if self.rows else -1

    def log(self, **metrics: Any) -> None:
        """Adds one row at the next `_step`; `__` in a name stands for a slash."""
        row = {name.replace("__", "/"): value for name, value in metrics.items()}
        self.rows.append(
            {
                "_step": self.last_step + 1,
                "_timestamp": 1.7e9 + self.last_step + 1,
                "_runtime": float(self.last_step + 1),
                **row,
            }
        )

    def keys(self) -> dict[str, Any]:
        if self._counted[0] != len(self.rows):
            self._counted = (len(self.rows), Counter(itertools.chain.from_iterable(self.rows)))
        keys = {name: {"typeCounts": [{"type": "number", "count": count}]} for name, count in self._counted[1].items()}
        return {"keys": keys, "lastStep": self.last_step, "sets": []}

    def facts(self, project: str) -> dict[str, Any]:
        beat = self.heartbeat or time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1.7e9 + self.last_step + self.stopped))
        return {
            "id": f"UnVuOnYxOn{self.id}",
            "projectId": "77",
            "tags": self.tags,
            "name": self.id,
            "displayName": self.name,
            "sweepName": None,
            "state": self.state,
            "config": json.dumps({name: {"value": value} for name, value in self.config.items()}),
            "group": None,
            "jobType": None,
            "commit": None,
            "readOnly": False,
            "createdAt": self.created,
            "heartbeatAt": beat,
            "description": None,
            "notes": None,
            "systemMetrics": "{}",
            "summaryMetrics": json.dumps(self.summary),
            "historyLineCount": len(self.rows) + self.more_counted,
            "user": {"name": "Ada", "username": "ada"},
            "historyKeys": self.keys(),
        }
