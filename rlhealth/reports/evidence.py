"""Evidence in words: what was measured, the limit, and how far beyond it that is."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rlhealth.reports import words
from rlhealth.verdict.evidence import Evidence
from rlhealth.verdict.findings import Finding

_ROUNDING = 1e-6  # a spread below a limit this small is none


def amount(one: Evidence, value: float | None) -> str:
    """A value or limit in what was measured: the metric's unit, a multiple (`17.7×`), the metric's noise (`5.5σ`) or a
    share."""
    sign = {"ratio": "×", "noise": "σ"}.get(one.measured, "") if value is not None and math.isfinite(value) else ""
    share = one.measured == "share" or (one.measured == "value" and one.unit == "fraction")
    return words.number(value, "fraction" if share else "") + sign


def value_of(one: Evidence) -> str:
    """What was measured: `4.2`, `17.7×`, `5.5σ`, `51 %`."""
    return amount(one, one.value)


def limit_of(one: Evidence) -> str:
    """The limit in the same unit; empty if there is none."""
    return "" if one.limit is None else amount(one, one.limit)


def found_and_limit(one: Evidence) -> tuple[str, str]:
    """The value and its limit; `constant`, without a limit, where both are no more than rounding."""
    if one.side == "below" and one.limit is not None and 0 <= one.limit <= _ROUNDING and one.value <= one.limit:
        return "constant", ""
    return value_of(one), "" if one.limit is None else f"limit {limit_of(one)}"


def line(one: Evidence) -> str:
    """One condition that held: `the fall of reward from its best so far: 8.2σ, 4.1 errors above 0 (limit 3.5)`."""
    spelled = words.measured(one.value, one.unit) if _has_unit(one) else value_of(one)
    return f"{one.measure}: {spelled}{_error(one)}, {_compared(one)}"


def _has_unit(one: Evidence) -> bool:
    """Whether the unit says more than the measure."""
    return one.measured == "value" and one.metric != "step" and not one.unit.startswith("fraction of ")


def _error(one: Evidence) -> str:
    return f" ± {amount(one, one.error)}" if one.error and one.sure <= 0 else ""  # else it is said in errors


def _compared(one: Evidence) -> str:
    """How the value compares with its limit: how many errors beyond it, or so near that it may be beyond it."""
    limit = "0" if not one.limit else limit_of(one)
    if one.side == "equals":
        return f"exactly {limit}"
    if one.sure > 0 and one.error:
        return f"{words.number(one.errors_beyond)} errors {one.side} {limit} (limit {words.number(one.sure)})"
    if one.sure < 0 and not one.is_beyond:
        return f"within {words.number(-one.sure)} errors of {limit}"
    return f"{one.side} {limit}"


def why_fired(cause: Finding, following: Sequence[Finding]) -> list[tuple[Finding, list[str]]]:
    """What made the rules of a story fire: each finding with a line for each condition that held.

    Of a cause, the findings that it explains; of a finding alone, itself. What is no measure of a metric, such
    as how a run ended, has none.
    """
    found = [(one, [line(part) for part in one.conditions if part.measure]) for one in following or [cause]]
    return [(one, lines) for one, lines in found if lines]
