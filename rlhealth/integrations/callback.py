"""HealthCallback: the same rules inside any transformers or TRL trainer.

from rlhealth.callback import HealthCallback

trainer.add_callback(HealthCallback(stop_on="critical"))
"""

from __future__ import annotations

import functools
import importlib
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlhealth.errors import RlhealthError
from rlhealth.integrations.monitor import Monitor
from rlhealth.rules.loading import load_rules
from rlhealth.rules.model import Rule
from rlhealth.verdict.findings import Finding, Severity
from rlhealth.watch.changes import Change

if TYPE_CHECKING:
    from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

log = logging.getLogger("rlhealth")
Event = Callable[..., None]
_LIBRARIES = ("transformers", "trl", "torch", "accelerate", "peft")


def never_raising(event: Event) -> Event:
    """Keeps an error inside from ever reaching the trainer: it is logged once, and from then on nothing is done."""

    @functools.wraps(event)
    def guarded(self: Health, *args: Any, **kwargs: Any) -> None:
        if self.broken:
            return
        try:
            event(self, *args, **kwargs)
        except Exception:
            self.broken = True
            log.exception("rlhealth: internal error; training continues without it")

    return guarded


class Health:
    """What the callback does at each event of a trainer. Use `HealthCallback`, which is this as a
    `transformers.TrainerCallback`.

    Args:
        stop_on: "critical" or "warning": ends training, in good order, at the first such finding that has not ended;
            None never does. A run that is resumed is not stopped by what was found before its checkpoint.
        rules: what to judge by; the shipped rules if not given.
        report: whether rlhealth.json and rlhealth.md are left in the trainer's output folder at the end.
        aliases: your own metric names, raw tag to canonical name.
        ignore: rule ids or families to leave out.
        write_back: whether the verdict is written into the trackers that the trainer reports to, when training ends.

    Raises:
        RlhealthError: for a severity that there is not, or a rule that cannot be used.
    """

    def __init__(
        self,
        stop_on: str | None = None,
        rules: Sequence[Rule] | None = None,
        report: bool = True,
        *,
        aliases: Mapping[str, str] | None = None,
        ignore: Sequence[str] = (),
        write_back: bool = False,
    ) -> None:
        if stop_on not in (None, "warning", "critical"):
            raise RlhealthError(
                f"HealthCallback(stop_on={stop_on!r}): no such severity", hint="critical, warning or None"
            )
        self.stop_on = Severity.of(stop_on) if stop_on else None
        self.rules = load_rules() if rules is None else rules
        self.report = report
        self.aliases = aliases
        self.ignore = dict.fromkeys(ignore, "HealthCallback")
        self.write_back = write_back
        self.monitor: Monitor | None = None
        self.stopped_by: Finding | None = None
        self.broken = False
        self.cannot_ask = False
        self.resumed_at = -1

    @never_raising
    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Takes in the trainer's settings; of a run that is resumed, what it logged up to its checkpoint too."""
        self.monitor = None
        self.stopped_by = None
        self.resumed_at = int(state.global_step) or -1
        if state.is_world_process_zero:
            self.monitor = self._begun(args, state, kwargs.get("model"))
            _take_in(self.monitor, state)

    @never_raising
    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Judges what was logged; on the main process only."""
        if not state.is_world_process_zero:
            return
        if self.monitor is None:
            self.monitor = self._begun(args, state)
        for change in self.monitor.log(state.global_step, logs or {}):
            self._log_change(change)
        if self.stop_on is not None and self.stopped_by is None:
            # not by what is reported: a finding that becomes critical within an incident need not be reported again
            self.stopped_by = self.monitor.worst(self.stop_on, after=self.resumed_at)
            if self.stopped_by is not None:
                log.error("rlhealth: stops training at step %d: %s", state.global_step, self.stopped_by.rule)
                self._write(args)
        if self.stopped_by is not None and not _is_spread(args):
            control.should_training_stop = True

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """With several processes, all of them stop at the same step, or those that continue would wait for the others
        forever.

        For the same reason a process asks the others even when this callback has broken in it.
        """
        if self.stop_on is None or self.cannot_ask or not _is_spread(args):
            return
        try:
            if _any_process(self.stopped_by is not None, args.device):
                control.should_training_stop = True
        except Exception:
            self.cannot_ask = True
            log.exception("rlhealth: cannot ask the other processes; training continues and will not be stopped")

    @never_raising
    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Leaves the report."""
        if self.monitor is not None and state.is_world_process_zero:
            self.monitor.finish()
            for change in self.monitor.log(state.global_step, {}):
                self._log_change(change)
            self._write(args)
            if self.write_back and args.output_dir:
                self._publish(self.monitor, args)

    def _publish(self, monitor: Monitor, args: TrainingArguments) -> None:
        """Writes the verdict into the trackers; where that fails, the log says why."""
        from rlhealth.publishing.training import publish_here  # late: only by the flag

        reporting = [args.report_to] if isinstance(args.report_to, str) else list(args.report_to or ())
        project = str(getattr(args, "project", None) or os.environ.get("TRACKIO_PROJECT") or "huggingface")
        try:
            for place in publish_here(
                monitor.verdict(), Path(args.output_dir or "."), reporting, project, str(args.run_name or "")
            ):
                log.info("rlhealth: the verdict was written to %s", place)
        except RlhealthError as error:
            log.warning("rlhealth: %s", error.message)

    def _begun(self, args: TrainingArguments, state: TrainerState, model: Any = None) -> Monitor:
        versions = {
            name: str(sys.modules[name].__version__)
            for name in _LIBRARIES
            if hasattr(sys.modules.get(name), "__version__")
        }
        name = Path(str(args.output_dir or "run")).name
        planned = int(state.max_steps) if state.max_steps and state.max_steps > 0 else None
        return Monitor(
            name,
            config={**args.to_dict(), **_model_config(model)},
            versions=versions,
            planned_steps=planned,
            rules=self.rules,
            aliases=self.aliases,
            ignore=self.ignore,
        )

    def _log_change(self, change: Change) -> None:
        level = (
            logging.ERROR
            if change.kind != "cleared" and change.finding.severity is Severity.CRITICAL
            else logging.WARNING
        )
        log.log(
            logging.INFO if change.finding.severity is Severity.INFO or change.kind == "cleared" else level,
            "rlhealth: %s",
            change,
        )

    def _write(self, args: TrainingArguments) -> None:
        if self.report and self.monitor is not None and args.output_dir:
            self.monitor.report(args.output_dir)


def _take_in(monitor: Monitor, state: TrainerState) -> None:
    """Gives a monitor what a resumed run logged before its checkpoint: its baselines lie there."""
    for row in state.log_history if state.global_step else ():
        step = row.get("step")
        if isinstance(step, int) and step <= state.global_step:
            monitor.log(step, {tag: value for tag, value in row.items() if tag != "step"})


def _model_config(model: Any) -> dict[str, Any]:
    """The model's own config, under the name that transformers' trackers log it by; empty where there is none."""
    try:
        return {"model_config": dict(model.config.to_dict())}
    except (AttributeError, TypeError, ValueError):
        return {}


def _is_spread(args: TrainingArguments) -> bool:
    """Whether several processes train together."""
    return int(getattr(args, "world_size", 1) or 1) > 1


def _any_process(wanted: bool, device: Any) -> bool:
    """Whether any of the processes wants it; every process has to ask at the same point."""
    torch: Any = importlib.import_module("torch")  # late, and only where several processes train
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return wanted
    flag = torch.tensor([int(wanted)], device=device)
    torch.distributed.all_reduce(flag, op=torch.distributed.ReduceOp.MAX)
    return bool(flag.item())


if TYPE_CHECKING:

    class HealthCallback(Health, TrainerCallback):  # type: ignore[misc]
        """Judges the run while it is trained."""


def __getattr__(name: str) -> Any:
    """Makes `HealthCallback` when it is first asked for: this module can be imported without transformers."""
    if name != "HealthCallback":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from transformers import TrainerCallback
    except ImportError:
        raise RlhealthError(
            "rlhealth.callback.HealthCallback needs transformers, which is not installed",
            hint='pip install "rlhealth[callback]"',
        ) from None
    made = type("HealthCallback", (Health, TrainerCallback), {"__doc__": Health.__doc__, "__module__": __name__})
    globals()[name] = made
    return made
