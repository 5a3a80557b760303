"""Many runs at once: the same answer in the same order, whatever does the work; and an interrupt ends all of it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from rlhealth.check import check
from rlhealth.errors import RlhealthError
from rlhealth.parallel import jobs, workers
from rlhealth.system.progress import Progress
from rlhealth.verdict.verdicts import Verdict

FIXTURES = Path(__file__).parents[2] / "fixtures"
PLACES = [str(FIXTURES / kind) for kind in ("tensorboard", "trainer_state", "wandb", "runs")]


def everything(verdict: Verdict) -> list[str]:
    """All that a verdict says but the time it took, spelled out."""
    runs = [
        repr(
            (
                one.name,
                one.state,
                one.findings,
                one.skipped,
                one.quiet,
                one.families,
                one.translation.framework,
                one.run.last_step,
            )
        )
        for one in verdict.runs
    ]
    return [*runs, *map(str, verdict.errors), str(verdict.exit_code)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Real runs of several trackers, and one that cannot be read in the midst of them."""
    for number, run in enumerate(sorted(one for place in PLACES for one in Path(place).iterdir() if one.is_dir())):
        shutil.copytree(run, tmp_path / f"{number:02d}-{run.name}")
    (tmp_path / "05-broken").mkdir()
    (tmp_path / "05-broken" / "broken.wandb").write_bytes(b"not wandb at all" * 10)
    return tmp_path


def test_two_processes_say_what_one_says_in_the_same_order(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "PATIENCE", 0.0)
    monkeypatch.setattr(workers, "PIECE", 2)
    alone = check(folder)
    assert len(alone.runs) > 8 and alone.errors
    ticks: list[tuple[int, int]] = []
    assert everything(check(folder, jobs=2, tick=lambda done, total: ticks.append((done, total)))) == everything(alone)
    assert [done for done, _ in ticks] == list(range(1, ticks[0][1] + 1))


def test_what_cannot_leave_this_process_is_judged_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "PATIENCE", -1.0)
    readers = jobs_of(4)
    readers[2].held = Path(os.devnull).open()  # noqa: SIM115 (what a file that is open looks like to pickle)
    assert [one.name for one in jobs.examined(readers, examine_here, jobs=2)] == [one.run.name for one in readers]
    readers[2].held.close()


def test_other_processes_do_their_part_and_what_a_dying_one_had_is_done_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "PATIENCE", -1.0)
    here, readers = os.getpid(), jobs_of(4) * 5
    for name in ("work", "death"):
        (tmp_path / name).mkdir()
    assert len(set(jobs.examined(readers, partial(where_all_meet, tmp_path / "work"), jobs=3))) == 3
    assert list(jobs.examined(readers, partial(where_others_die, tmp_path / "death", here), jobs=3)) == [here] * len(
        readers
    )
    assert len(list((tmp_path / "death").iterdir())) == 4, "three workers that died, and this process"
    assert set(jobs.examined(readers, lambda reader: os.getpid(), jobs=3)) == {here}, (
        "what to do with them cannot be sent to another process"
    )


def test_a_script_without_a_guard_may_use_several_processes(folder: Path) -> None:
    """Whoever calls the library need not know that it begins processes."""
    code = (
        "import rlhealth\nfrom rlhealth.parallel import jobs\njobs.PATIENCE = "
        f"-1.0\nprint(len(rlhealth.check({str(folder)!r}, jobs=2).runs))\n"
    )
    (folder.parent / "script.py").write_text(code)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, folder.parent / "script.py"], capture_output=True, text=True, env=environment, check=False
    )
    assert (done.returncode, done.stderr) == (0, "") and int(done.stdout) > 8


def where_all_meet(folder: Path, reader) -> int:
    """The process that examines, once three have come."""
    (folder / str(os.getpid())).touch()
    deadline = time.monotonic() + 60
    while len(list(folder.iterdir())) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    return os.getpid()


def where_others_die(folder: Path, here: int, reader) -> int:
    if where_all_meet(folder, reader) != here:
        os._exit(1)
    return here


def jobs_of(count: int) -> list:
    from rlhealth.sources.discovery.places import find_all

    return find_all(PLACES)[:count]


def examine_here(reader):
    from rlhealth.check import judge

    return jobs.Examination(partial(judge, rules=[]))(reader)


def test_an_interrupt_ends_every_process(folder: Path) -> None:
    """A check that lasts, of many runs over many processes, is interrupted: it leaves with 130, says so, and nothing
    of it is left.
    """
    for number in range(30):
        shutil.copytree(folder, folder.parent / "many" / f"{number}")
    # a shell that runs tests in the background has them ignore interrupts, and so would what they begin
    heeding = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    script = (
        "import sys\nfrom rlhealth.parallel import jobs\njobs.PATIENCE = 0.0\nfrom rlhealth.cli.app "
        "import main\nif __name__ == '__main__':\n    main()\n"
    )
    main = folder.parent / "main.py"
    main.write_text(heeding + script)
    command = [sys.executable, str(main), "check", str(folder.parent / "many"), "--jobs", "3"]
    running = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd=Path(__file__).parents[2],
    )
    deadline = time.monotonic() + 30
    while len(alive(running.pid)) < 3 and time.monotonic() < deadline and running.poll() is None:
        time.sleep(0.02)
    os.killpg(running.pid, signal.SIGINT)
    out, said = running.communicate(timeout=30)
    assert (running.returncode, out, said) == (130, "", "interrupted\n")
    while alive(running.pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not alive(running.pid)


def alive(session: int) -> list[str]:
    """Processes that are alive in a session: the first, and those that it began."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[3] == str(session) and fields[0] != "Z":
            found.append(stat.parent.name)
    return found


def test_ray_that_is_not_installed_is_said_with_the_line_that_installs_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(RlhealthError) as error:
        check(folder, ray="auto")
    assert error.value.hint == "pip install 'rlhealth[ray]'"


def test_a_cluster_says_what_one_process_says(folder: Path) -> None:
    """A local Ray cluster is begun for real."""
    pytest.importorskip("ray", reason="needs Ray: pip install 'rlhealth[ray]'")
    assert everything(check(folder, ray="local")) == everything(check(folder))


def test_a_cluster_that_is_not_there_is_said() -> None:
    pytest.importorskip("ray", reason="needs Ray: pip install 'rlhealth[ray]'")
    with pytest.raises(RlhealthError, match="no Ray cluster answers"):
        check(PLACES[0], ray="auto")


def test_no_progress_is_shown_where_nobody_looks(capfd: pytest.CaptureFixture[str]) -> None:
    with Progress("judging") as progress:
        progress.tick(1, 2)
    assert capfd.readouterr() == ("", "")
