"""rlhealth: reads the logs a reinforcement-learning run has written and says whether it is healthy.

    import rlhealth

    verdict = rlhealth.check("runs/exp1")       # every run at and below a path or an address
    verdict.ok, verdict.frame(), verdict.save("health.html")    # passes?; findings as pandas; a report by its suffix
    verdict = rlhealth.compare("runs/exp2", ["runs/good-1", "runs/good-2"])     # against known-good runs
    for run in rlhealth.open_runs("runs"):      # the runs themselves, as numbers
        table = run.frame()                     # pandas: run, tag, step, time, value

What is public is listed in `__all__`; it is imported when first asked for, so that `import rlhealth` costs nothing.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlhealth.check import check
    from rlhealth.comparison.compare import compare
    from rlhealth.errors import RlhealthError
    from rlhealth.integrations.monitor import Monitor
    from rlhealth.run import Run
    from rlhealth.sources.discovery.opening import open_runs
    from rlhealth.verdict.evidence import Evidence
    from rlhealth.verdict.findings import Finding, Severity
    from rlhealth.verdict.gate import Gate
    from rlhealth.verdict.verdicts import RunVerdict, Verdict

__version__ = "0.1.0"
__all__ = [
    "Evidence",
    "Finding",
    "Gate",
    "Monitor",
    "RlhealthError",
    "Run",
    "RunVerdict",
    "Severity",
    "Verdict",
    "__version__",
    "check",
    "compare",
    "open_runs",
]

#: Public name -> the module that defines it.
_HOMES = {
    "check": "rlhealth.check",
    "compare": "rlhealth.comparison.compare",
    "open_runs": "rlhealth.sources.discovery.opening",
    "Run": "rlhealth.run",
    "Evidence": "rlhealth.verdict.evidence",
    "Finding": "rlhealth.verdict.findings",
    "Gate": "rlhealth.verdict.gate",
    "Monitor": "rlhealth.integrations.monitor",
    "RunVerdict": "rlhealth.verdict.verdicts",
    "Severity": "rlhealth.verdict.findings",
    "Verdict": "rlhealth.verdict.verdicts",
    "RlhealthError": "rlhealth.errors",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'rlhealth' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    """Keeps the function `check` where the import system would put the submodule of that name in its place."""

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(value, ModuleType) and _HOMES.get(name) == value.__name__:
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
