"""The inventory for a reader: a table of what was logged, what is not recognised, what cannot be judged without a
metric; lines of fields where it is piped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len

from rlhealth.completions.reading import HOW_TO_LOG
from rlhealth.engine.inventory import Inventory, Wanted
from rlhealth.errors import RlhealthError
from rlhealth.metrics import Metric
from rlhealth.metrics.aliases import as_flag
from rlhealth.metrics.proposals import proposals
from rlhealth.reports import ReportOptions, words
from rlhealth.reports.sparkline import sparkline
from rlhealth.reports.stories import logarithmic

if TYPE_CHECKING:
    from rlhealth.reports.page import Page

COLUMNS = ("run", "kind", "name", "tag", "unit", "points", "first", "last", "note")
_MOST_TAGS = 12


def render(found: Sequence[Inventory], errors: Sequence[RlhealthError], look: ReportOptions) -> str:
    """What each run holds; the last line counts."""
    if look.piped:
        return _piped(found, errors, look)
    from rlhealth.reports.page import Page

    page = Page(look)
    for one in found if not look.quiet else ():
        page.gap()
        _run(page, one)
    for error in errors:
        page.gap()
        page.prose(page.glyphs.unknown, error.message, indent=1, hang=2)
        page.prose("try", error.hint, indent=3, hang=6)
    page.gap()
    first, *others = _closing(found, errors)
    page.flow([first, *others])
    return page.text()


def _run(page: Page, one: Inventory) -> None:
    run = one.judged
    span = words.span_of(run)
    steps = "" if span is None else words.plural(span[1], "step")
    title = run.translation.title if run.translation.framework != "unknown" else "trainer not recognised"
    facts = (title, words.tracker(run.run.place.kind), steps)
    page.line(" ", (page.safe(run.name), "bold"), right=f" {page.glyphs.dot} ".join(part for part in facts if part))
    for said in (*run.translation.assumed, *run.run.problems):
        page.prose(page.glyphs.dot, said, indent=3, hang=2, style="dim")
    page.gap()
    _table(page, one.metrics, span)
    if one.unrecognised:
        page.gap()
        shown = one.unrecognised if page.look.show_all else one.unrecognised[:_MOST_TAGS]
        more = f" … and {len(one.unrecognised) - len(shown)} more (--all)" if len(shown) < len(one.unrecognised) else ""
        page.line(
            " ",
            (f"Not recognised: {words.plural(len(one.unrecognised), 'tag')}", "bold"),
            ("   (--alias TAG=METRIC names one)", "dim"),
        )
        page.prose("", ", ".join(shown) + more)
        for may in proposals(run.run, run.translation)[:_MOST_TAGS]:
            values = f"{words.plural(may.points, 'value')} from {may.low:.4g} to {may.high:.4g}"
            page.prose(page.glyphs.dot, f"perhaps {as_flag(may.tag, may.metric)}: {values}", indent=3, hang=2)
    if one.dropped:
        page.gap()
        page.line(" ", (f"Known and not used: {words.plural(len(one.dropped), 'tag')}", "bold"))
        for tag, reason in one.dropped.items():
            page.prose("", f"{tag}: {reason}")
    _missing(page, one)
    _others(page, one)


def _table(page: Page, metrics: Sequence[Metric], span: tuple[int, int] | None) -> None:
    """A row per metric; where the page is too narrow for a column of tags, a tag that is not its metric's name stands
    below it."""
    if not metrics:
        page.line("   no metric that a rule knows was logged")
        return
    drawn = 8 if page.width < 100 else 16
    rows = [["metric", "tag", "unit", "points", "first", " " * drawn, "last"]]
    for one in metrics:
        spark = sparkline(one.steps, one.values, drawn, span=span, ascii=page.look.ascii, log=logarithmic(one))
        first, last = (words.number(float(one.values[place]), one.unit) for place in (0, -1))
        rows.append([one.name, one.tag, one.unit, words.grouped(len(one)), first, spark, last])
    widths = _widths(page, rows)
    prefix = _prefix(metrics)
    for row in rows:
        _row(page, row, widths, head=row is rows[0])
        if not widths[1] and row is not rows[0] and row[1] not in (row[0], prefix + row[0]):
            page.line("     ", (f"{page.glyphs.last_branch} {row[1]}", "dim"))
    if prefix and not widths[1]:
        page.line(
            "   ",
            (
                f"{prefix} stands before each of these names in the log"
                + (", but for the tags below them" if _odd(metrics, prefix) else ""),
                "dim",
            ),
        )


def _prefix(metrics: Sequence[Metric]) -> str:
    """What stands before the metric's name in most tags that end with it."""
    found = [one.tag.removesuffix(one.name) for one in metrics if one.tag.endswith(one.name)]
    return max(found, key=found.count) if found else ""


def _odd(metrics: Sequence[Metric], prefix: str) -> bool:
    return any(one.tag not in (one.name, prefix + one.name) for one in metrics)


def _widths(page: Page, rows: list[list[str]]) -> list[int]:
    """Columns that fit: numbers whole; the tags where there is room for all of them; the names take what is left."""
    wanted = [max(cell_len(page.safe(row[place])) for row in rows) for place in range(7)]
    if 2 + sum(wanted) + 2 * 6 > page.width:
        wanted[1] = 0
    if page.width < 64:
        wanted[2] = wanted[5] = 0
    rest = 3 + sum(wanted[1:]) + 2 * sum(width > 0 for width in wanted[1:])
    wanted[0] = max(8, min(wanted[0], page.width - rest))
    return wanted


def _row(page: Page, row: list[str], widths: list[int], *, head: bool) -> None:
    name = page.safe(row[0])
    if cell_len(name) > widths[0]:  # metric names differ at the end
        name = page.glyphs.ellipsis + name[len(page.glyphs.ellipsis) - widths[0] :]
    parts: list[tuple[str, str]] = [("   ", ""), (page.fit(name, widths[0]), "dim" if head else "bold")]
    for place in range(1, 7):
        style = "dim" if head or place == 1 else "blue" if place == 5 else ""
        parts += (
            [("  ", ""), (page.fit(row[place], widths[place], right=place in (3, 4, 6)), style)]
            if widths[place]
            else []
        )
    page.line(*parts)


def _missing(page: Page, one: Inventory) -> None:
    spelled = [wanted for wanted in one.wanted if wanted.spellings]
    measured = [rule for wanted in one.wanted if wanted.is_measured for rule in wanted.rules]
    foreign = [wanted for wanted in one.wanted if not wanted.spellings and not wanted.is_measured]
    title = one.judged.translation.title
    if spelled:
        page.gap()
        page.line(" ", ("To let more rules run", "bold"))
        page.prose("", f"{title} can log these, under these names:", style="dim")
        for wanted in spelled:
            page.prose(
                page.glyphs.bullet,
                f"{_or(name.tag for name in wanted.spellings)}: {', '.join(wanted.rules)}",
                indent=3,
                hang=2,
            )
            for note in dict.fromkeys(name.note for name in wanted.spellings if name.note):
                page.prose("", note, indent=5, style="dim")
            _alike(page, wanted)
    if measured:
        page.gap()
        page.line(" ", ("With the texts of completions", "bold"))
        page.prose("", f"rlhealth measures them; {HOW_TO_LOG}:", style="dim")
        page.prose(page.glyphs.bullet, ", ".join(measured), indent=3, hang=2)
    if foreign:
        page.gap()
        known = one.judged.translation.framework not in ("unknown", "generic")
        page.line(" ", (f"Not among the metrics of {title}" if known else "Not logged", "bold"))
        page.prose("", "log your own where it makes sense, and name it with --alias TAG=METRIC:", style="dim")
        for wanted in foreign:
            page.prose(page.glyphs.bullet, f"{_or(wanted.metrics)}: {', '.join(wanted.rules)}", indent=3, hang=2)
            _alike(page, wanted)


def _alike(page: Page, wanted: Wanted) -> None:
    for tag in wanted.alike[:3]:
        page.prose("", f"if {tag} is this: {as_flag(tag, wanted.metrics[0])}", indent=5, style="cyan")


def _others(page: Page, one: Inventory) -> None:
    reasons: dict[str, list[str]] = {}
    for skipped in one.others:
        reasons.setdefault(skipped.reason, []).append(skipped.rule)
    if reasons:
        page.gap()
        page.line(" ", ("Not for this run", "bold"))
        for reason, rules in reasons.items():
            page.prose(page.glyphs.bullet, f"{', '.join(rules)}: {reason}", indent=3, hang=2, style="dim")


def _or(names: Iterable[str]) -> str:
    return " or ".join(dict.fromkeys(names))


def _closing(found: Sequence[Inventory], errors: Sequence[RlhealthError]) -> list[str]:
    rules = max((one.rules for one in found), default=0)
    blind = len({skipped.rule for one in found for skipped in one.judged.skipped})
    parts = [words.plural(len(found), "run"), words.plural(sum(len(one.metrics) for one in found), "metric")]
    parts += (
        [f"{words.plural(sum(len(one.unrecognised) for one in found), 'tag')} not recognised"]
        if any(one.unrecognised for one in found)
        else []
    )
    parts += [f"{blind} of {rules} rules could not run"] if blind else []
    return parts + ([f"{len(errors)} unreadable"] if errors else [])


def _piped(found: Sequence[Inventory], errors: Sequence[RlhealthError], look: ReportOptions) -> str:
    """One line per item, fields separated by tabs; the first line names them. With `quiet`, only the closing line."""
    if look.quiet:
        return words.clean("; ".join(_closing(found, errors)), ascii=look.ascii) + "\n"
    rows: list[tuple[object, ...]] = [COLUMNS]
    for one in found:
        name = one.judged.name
        rows += [
            (name, "metric", metric.name, metric.tag, metric.unit, len(metric), *_exact(metric), metric.note)
            for metric in one.metrics
        ]
        rows += [(name, "unrecognised", "", tag, "", "", "", "", "") for tag in one.unrecognised]
        rows += [(name, "dropped", "", tag, "", "", "", "", reason) for tag, reason in one.dropped.items()]
        rows += [
            (
                name,
                "missing",
                "|".join(wanted.metrics),
                "|".join(one.tag for one in wanted.spellings),
                "",
                "",
                "",
                "",
                f"for {', '.join(wanted.rules)}",
            )
            for wanted in one.wanted
        ]
        rows += [(name, "skipped", skipped.rule, "", "", "", "", "", skipped.reason) for skipped in one.others]
    rows += [(error.location, "unreadable", "", "", "", "", "", "", error.message) for error in errors]
    return "".join("\t".join(words.clean(cell, ascii=look.ascii) for cell in row) + "\n" for row in rows)


def _exact(metric: Metric) -> tuple[str, str]:
    return f"{metric.values[0]:.9g}", f"{metric.values[-1]:.9g}"
