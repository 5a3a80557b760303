"""What is asked about runs before their history, in one question: whether rows of them were exported, and the files
with the versions of their libraries.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple

from rlhealth.errors import RlhealthError
from rlhealth.sources.wandb.one_host import stopped
from rlhealth.sources.wandb.quiet import private_folder
from rlhealth.sources.wandb.session import Session
from rlhealth.system.threads import begun

_LARGEST = 1 << 20
_REQUIREMENT = re.compile(r"([A-Za-z0-9][\w.-]*)==(\S+)")
#: Of each run, as the SDK asks both, one after the other.
_ASKED = """{ parquetHistory(liveKeys: $liveKeys) { parquetUrls }
    files(names: $fileNames, first: 1) { edges { node {
    id name url directUrl sizeBytes mimetype updatedAt md5 } } } }"""


class FirstLook(NamedTuple):
    """What is known of a run before its history is read.

    Attributes:
        exported: whether rows of it lie in files that its server exported, which the SDK has to read.
        requirements: the SDK's object of its requirements.txt; None if it has none.
    """

    exported: bool
    requirements: Any


def look_at(session: Session, hosted: Any, runs: Sequence[str], place: str) -> list[FirstLook]:
    """Asks the one question about runs of the project that `hosted` belongs to, by their ids. Raises RlhealthError
    where the server does not answer it for each of them.
    """
    names = {f"run{number}": run for number, run in enumerate(runs)}
    given = {"entity": hosted.entity, "project": hosted.project, **names}
    declared = "".join(f", ${name}: String!" for name in names)
    question = " ".join(f"{name}: run(name: ${name}) {_ASKED}" for name in names)
    query = f"""query RunFirstLook($entity: String!, $project: String!, $liveKeys: [String!]!,
        $fileNames: [String]{declared}) {{ project(name: $project, entityName: $entity) {{ {question} }} }}"""

    def ask(api: Any) -> list[FirstLook]:
        from wandb.apis.public import File

        answer = api._service_api.execute_graphql(
            query, {**given, "liveKeys": ["_step"], "fileNames": ["requirements.txt"]}
        )
        found = []
        for run in map(answer["project"].__getitem__, names):
            exported = bool((run["parquetHistory"] or {}).get("parquetUrls"))
            files = [File(api._service_api, edge["node"]) for edge in (run.get("files") or {}).get("edges") or ()]
            found.append(FirstLook(exported and not session.asks_pages, files[0] if files else None))
        return found

    return session.once(ask, place)


def libraries(session: Session, file: Any, place: str) -> Future[dict[str, str]]:
    """Library -> version, of a requirements.txt; empty if it cannot be read, for example because it is on another host.
    Runs of a
    sweep mostly have the same versions; these are requested once.
    """
    digest = str(getattr(file, "md5", None) or "")
    with session.lock:
        known = session.libraries.get(digest)
        if known is None or (known.done() and (known.exception() or not known.result())):
            known = begun(lambda: _read(session, file, place))
            session.libraries |= {digest: known} if digest else {}
    return known


def _read(session: Session, file: Any, place: str) -> dict[str, str]:
    before = stopped(session.server)
    if session.files_elsewhere or not 0 < int(file.size or 0) < _LARGEST:
        return {}
    try:
        text = session.once(_fetch(file), place)
    except RlhealthError:
        session.files_elsewhere = stopped(session.server) > before
        return {}
    return {found[1].lower(): found[2] for line in text.splitlines() if (found := _REQUIREMENT.match(line))}


def _fetch(file: Any) -> Callable[[Any], str]:
    def fetch(api: Any) -> str:
        with tempfile.TemporaryDirectory(dir=private_folder()) as folder:
            file.download(root=folder, replace=True, api=api).close()
            with Path(folder, "requirements.txt").open("rb") as content:
                return content.read(_LARGEST).decode("utf-8", "replace")

    return fetch
