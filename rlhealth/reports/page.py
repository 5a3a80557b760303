"""A page of terminal text: lines with styles, wrapped by words, cut to columns, written with or without colour."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from rlhealth.reports import ReportOptions, words
from rlhealth.reports.glyphs import ASCII, UNICODE, Glyphs

MOST_TEXT = 100  # columns: longer lines of prose are hard to read


class Page:
    """Collects lines; `text()` gives them all. Whatever is added is made harmless here, so no report can forget it."""

    def __init__(self, look: ReportOptions) -> None:
        self.look = look
        self.width = max(20, look.width)
        self.glyphs: Glyphs = ASCII if look.ascii else UNICODE
        self._lines: list[Text] = []

    def safe(self, text: object) -> str:
        """Log text that cannot steer the terminal, in the alphabet that it can show."""
        return words.clean(text, ascii=self.look.ascii)

    def line(self, *parts: str | tuple[str, str], right: str = "") -> None:
        """One line, cut at the width; `right` stands at its end, or wrapped on lines of its own where there is no
        room.
        """
        text = self._joined(parts)
        tail = self.safe(right)
        room = min(self.width, MOST_TEXT) - cell_len(tail)
        if tail and text.cell_len + 2 <= room:
            text.append(" " * (room - text.cell_len))
            text.append(tail, "dim")
            tail = ""
        self._add(text)
        if tail:
            self.flow(right.split(f" {self.glyphs.dot} "), indent=3, style="dim")

    def flow(
        self, parts: Sequence[str], *, indent: int = 1, style: str = "", end: str = "", end_style: str = ""
    ) -> None:
        """Parts with dots between them, broken between parts where the line is full; `end` stands at the right of
        the last line.
        """
        width = min(self.width, MOST_TEXT)
        rows = [""]
        for part in map(self.safe, parts):
            dotted = f"{rows[-1]} {self.glyphs.dot} {part}" if rows[-1] else part
            if rows[-1] and indent + cell_len(dotted) > width:
                rows.append(part)
            else:
                rows[-1] = dotted
        if end and indent + cell_len(rows[-1]) + 2 + len(end) > width:
            rows.append("")
        for row in rows[:-1]:
            self._add(Text(" " * indent + row, style))
        last = Text(" " * indent + rows[-1], style)
        if end:
            last.append(" " * (width - last.cell_len - len(end)))
            last.append(end, end_style)
        self._add(last)

    def prose(
        self,
        label: str,
        body: str,
        *,
        indent: int = 3,
        hang: int = 6,
        bullet: str = "",
        style: str = "",
        label_style: str = "dim",
        most: int = 12,
    ) -> None:
        """A paragraph behind a label and a bullet, wrapped with a hanging indent; at most `most` lines where that is
        not 0.
        """
        start = " " * indent + (f"{label:<{hang - 1}} " if label else "") + bullet
        room = max(10, min(self.width, MOST_TEXT) - len(start))
        lines = list(Text(self.safe(body), style).wrap(Console(width=room, file=StringIO()), room, tab_size=1))
        if most and len(lines) > most:
            lines = lines[:most]
            more = f" {self.glyphs.ellipsis} (--all)"
            kept = _head(lines[-1].plain.rstrip(), room - len(more))
            lines[-1] = Text((kept.rpartition(" ")[0] or kept).rstrip(",;") + more, style)
        for number, one in enumerate(lines):
            text = Text()
            text.append(start if number == 0 else " " * len(start), label_style)
            one.rstrip()
            self._add(text.append_text(one))

    def extend(self, other: Page, start: int, end: int) -> None:
        """Adds some of another page's lines."""
        self._lines += other._lines[start:end]

    def gap(self) -> None:
        """An empty line, never two in a row."""
        if self._lines and self._lines[-1].plain:
            self._lines.append(Text())

    def fit(self, text: object, width: int, *, right: bool = False) -> str:
        """The text in exactly `width` columns: padded, or with its middle replaced by an ellipsis (both ends of a
        name distinguish runs).
        """
        shown = self.safe(text)
        mark = self.glyphs.ellipsis
        if cell_len(shown) > width:
            tail = max(0, (width - len(mark)) // 2)
            head = max(0, width - len(mark) - tail)
            shown = _head(shown, head) + mark[:width] + _head(shown[::-1], tail)[::-1]
        gap = " " * (width - cell_len(shown))
        return gap + shown if right else shown + gap

    def _joined(self, parts: tuple[str | tuple[str, str], ...]) -> Text:
        text = Text()
        for one in parts:
            body, style = (one, "") if isinstance(one, str) else one
            text.append(self.safe(body), style)
        return text

    def _add(self, text: Text) -> None:
        text.rstrip()
        if text.cell_len > self.width:
            text.truncate(self.width - len(self.glyphs.ellipsis))
            text.append(self.glyphs.ellipsis)
        text.rstrip()
        self._lines.append(text)

    def text(self) -> str:
        """Everything that was added, with escape sequences where the look allows them."""
        out = StringIO()
        console = Console(
            file=out,
            width=self.width,
            force_terminal=self.look.color,
            color_system="standard" if self.look.color else None,
            no_color=not self.look.color,
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
        )
        for line in self._lines:
            console.print(line, no_wrap=True, crop=False, overflow="ignore", soft_wrap=True)
        return out.getvalue().replace(words.NBSP, " ")  # it kept numbers and units together while lines were wrapped


def _head(text: str, width: int) -> str:
    """As much of the start as fits in `width` columns."""
    while text and cell_len(text) > width:
        text = text[: max(0, min(len(text) - 1, width))]
    return text
