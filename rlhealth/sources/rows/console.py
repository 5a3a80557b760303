"""Console logs: what a trainer printed while it ran, with whatever else was printed between."""

from __future__ import annotations

from pathlib import Path
from typing import IO

from rlhealth.sources.rows.printed import Printed
from rlhealth.sources.rows.textlog import TextLog


class ConsoleLog(TextLog):
    """Rows among the lines of a console: dicts, boxed tables, verl's lines, notebook tables; every other line is passed over in silence."""

    kind = "console"

    def __init__(self, path: Path, file: IO[bytes] | None = None) -> None:
        super().__init__(path, file)
        self._printed = Printed()

    def start_again(self) -> None:
        """The file was rewritten."""
        super().start_again()
        self._printed = Printed()

    def read(self) -> bool:
        """Takes the rows that the new lines hold; the last line counts if its dict is closed."""
        before = self.text.offset
        for _, line in self.text.lines():
            self.rows.take(self._printed.rows(line.decode("utf-8", "replace").rstrip("\n")))
        if self.text.rest.rstrip().endswith(b"}"):
            self.rows.take(self._printed.rows(self.text.take_rest().decode("utf-8", "replace")))
        if self.text.offset == before or not self.rows.chosen:
            self.rows.take(self._printed.end())
        return self.text.offset > before

    def problems(self) -> list[str]:
        """What was lost in reading, as sentences."""
        cut = self._printed.cut
        return [
            *super().problems(),
            *([f"{self.path.name}: {cut} printed rows are cut and were passed over"] if cut else []),
        ]
