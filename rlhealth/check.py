"""The main path: where -> runs -> metrics -> rules -> verdict."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from rlhealth.engine.judge import Judge
from rlhealth.errors import RlhealthError
from rlhealth.metrics.aliases import check_aliases
from rlhealth.parallel.jobs import Examination, examined
from rlhealth.rules.loading import load_rules
from rlhealth.rules.model import Rule
from rlhealth.run import Run, unique_name
from rlhealth.sources.base.reader import Reader
from rlhealth.sources.discovery.opening import Tick
from rlhealth.sources.discovery.places import RunSelection, find_all
from rlhealth.system.process import seldom_collecting
from rlhealth.verdict.baseline import Baseline
from rlhealth.verdict.gate import Gate
from rlhealth.verdict.verdicts import RunVerdict, Verdict


@seldom_collecting()  # the series and the findings of all runs are kept until the verdict is made
def check(
    where: str | Path | Sequence[str | Path],
    *,
    source: str | None = None,
    choice: RunSelection | None = None,
    rules: Sequence[Rule] | None = None,
    gate: Gate | None = None,
    aliases: Mapping[str, str] | None = None,
    ignore: Mapping[str, str] | None = None,
    baseline: Baseline | None = None,
    ended: bool = False,
    jobs: int = 1,
    ray: str | None = None,
    completions: str | Path | None = None,
    tick: Tick | None = None,
) -> Verdict:
    """Reads every run at and below each place, and judges it.

    Args:
        where: a file, a folder, or an address such as `trackio://project/run`; or several of them.
        source: the tracker to read where a run was written by several (tensorboard, wandb, trackio, trainer_state, …).
        choice: more on which runs are read, and how; `source` is a short way to say the first of it.
        rules: what to judge by; the shipped rules if not given.
        gate: what makes the check fail; critical findings if not given.
        aliases: your own metric names, raw tag to canonical name.
        ignore: rule ids or families to leave out of the verdict, each with the reason; they are counted.
        baseline: findings that are known and accepted; they are counted too.
        ended: whether every run is over: one that did not reach its plan has then died or gone silent, however fresh
            its log.
        jobs: how many processes to read and judge in, where there is enough to do.
        ray: the address of a Ray cluster on which to do it instead ("auto": the one this machine belongs to).
        completions: where the completions of the run lie, a file or a folder, if not beside its logs; "" for those that
            its server keeps.
        tick: called with (done, total) after each run.

    Returns:
        the verdict, with an error for each place or run that could not be read: one never hides the others.

    Raises:
        RlhealthError: only for a rule, a source, a metric name, or a cluster, that cannot be used.
    """
    begun = time.perf_counter()
    check_aliases(aliases or {})
    rules = load_rules() if rules is None else rules
    named = [where] if isinstance(where, str | Path) else list(where)
    verdict = Verdict([], gate=gate or Gate(), asked=tuple(map(str, named)))
    names: set[str] = set()
    readers = find_all(named, choice or RunSelection(source), verdict.left_out)
    look = Examination(
        partial(judge, rules=rules, aliases=aliases, ignore=ignore, ended=ended), one_place(completions, readers)
    )
    if ray is not None:
        from rlhealth.parallel.cluster import over_ray  # late: few have a cluster

        answers = over_ray(readers, look, ray)
    else:
        answers = examined(readers, look, jobs)
    for done, found in enumerate(answers, 1):
        if tick:
            tick(done, len(readers))
        if isinstance(found, RlhealthError):
            verdict.errors.append(found)
            continue
        found.run.name = unique_name(found.run.name, names)
        names.add(found.run.name)
        found.too_short = verdict.gate.too_short(found.run.last_step) or found.too_short
        if baseline is not None:
            baseline.apply(found)
        verdict.runs.append(found)
    verdict.seconds = time.perf_counter() - begun
    return verdict


def one_place(completions: str | Path | None, readers: Sequence[Reader]) -> str | None:
    """The place of the completions that was named, which are those of one run. Raises RlhealthError if there are
    several runs."""
    if completions not in (None, "") and len(readers) != 1:
        said = f"--completions {completions}: the texts of one run, and there are {len(readers)} runs"
        raise RlhealthError(said, hint="name the run that they belong to")
    return None if completions is None else str(completions)


def judge(
    run: Run,
    rules: Sequence[Rule],
    aliases: Mapping[str, str] | None = None,
    ignore: Mapping[str, str] | None = None,
    now: float | None = None,
    ended: bool = False,
) -> RunVerdict:
    """Judges one run that has been read, at `now` (seconds since 1970; the clock's time if not given).

    `ended` where the user says that the run is over, whatever its log shows.
    """
    begun = time.perf_counter()
    judging = Judge(run, rules, aliases)
    judging.advance(last=True)
    found = judging.verdict(now, ignore, ended)
    found.seconds = time.perf_counter() - begun
    return found
