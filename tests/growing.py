"""Replays a real log into a file that grows, in pieces of any size, as a trainer would have written it: `python -m
tests.growing SOURCE TARGET SECONDS`.
"""

from __future__ import annotations

import sqlite3
import sys
import time
from pathlib import Path
from random import Random


class GrowingFile:
    """A copy of a file that grows by so many bytes at a time; a piece may end anywhere, also inside a record."""

    def __init__(self, source: Path, target: Path) -> None:
        self.source = source.read_bytes()
        self.target = target
        self.at = 0
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(b"")

    @property
    def done(self) -> bool:
        return self.at >= len(self.source)

    def grow_records(self, share: float) -> None:
        """Appends whole records of an event file, up to about that share of it."""
        end = self.at
        while end < min(len(self.source), share * len(self.source)):
            end += int.from_bytes(self.source[end : end + 8], "little") + 16
        self.grow(end - self.at)

    def grow(self, size: int) -> None:
        """Appends the next `size` bytes."""
        with self.target.open("ab") as file:
            file.write(self.source[self.at : self.at + size])
        self.at += size


class GrowingTrackio:
    """A copy of a Trackio database into which the rows come a few at a time."""

    TABLES = ("metrics",)

    def __init__(self, source: Path, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        old = sqlite3.connect(f"file:{source}?mode=ro&immutable=1", uri=True)
        self.target = sqlite3.connect(target)
        self.target.execute("PRAGMA journal_mode=WAL")
        self.rows: list[tuple[object, ...]] = []
        for name, statement in old.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        ).fetchall():
            self.target.execute(statement)
            rows = old.execute(f'SELECT * FROM "{name}"').fetchall()
            if name == "metrics":
                self.rows = rows
            elif rows:
                self.target.executemany(f'INSERT INTO "{name}" VALUES ({",".join("?" * len(rows[0]))})', rows)
        self.target.commit()
        old.close()
        self.at = 0

    @property
    def done(self) -> bool:
        return self.at >= len(self.rows)

    def grow(self, size: int) -> None:
        """Inserts the next `size` rows, as one transaction."""
        rows = self.rows[self.at : self.at + size]
        if rows:
            self.target.executemany(f"INSERT INTO metrics VALUES ({','.join('?' * len(rows[0]))})", rows)
        self.target.commit()
        self.at += size

    def close(self) -> None:
        self.target.close()


def sizes(random: Random, total: int, pieces: int) -> list[int]:
    """Sizes of pieces, uneven, that add up to the total."""
    cuts = sorted(random.randrange(total + 1) for _ in range(pieces - 1))
    return [end - start for start, end in zip([0, *cuts], [*cuts, total], strict=True)]


def main() -> None:
    source, target, seconds = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])
    growing = GrowingFile(source, target)
    for size in sizes(Random(1), len(growing.source), max(1, int(seconds * 4))):
        growing.grow(size)
        time.sleep(0.25)


if __name__ == "__main__":
    main()
