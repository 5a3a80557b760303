"""What is asked about a run before its history, in one question: whether rows of it were exported, and the file with
the versions of its libraries.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from rlhealth.errors import RlhealthError
from rlhealth.sources.wandb.one_host import stopped
from rlhealth.sources.wandb.quiet import private_folder
from rlhealth.sources.wandb.session import Session

_LARGEST = 1 << 20
_REQUIREMENT = re.compile(r"([A-Za-z0-9][\w.-]*)==(\S+)")
#: As the SDK asks both, one after the other.
_LOOK = """query RunFirstLook($entity: String!, $project: String!, $runName: String!, $liveKeys: [String!]!,
    $fileNames: [String]) { project(name: $project, entityName: $entity) { run(name: $runName) {
    parquetHistory(liveKeys: $liveKeys) { parquetUrls }
    files(names: $fileNames, first: 1) { edges { node { id name url directUrl sizeBytes mimetype updatedAt md5 } } }
    } } }"""


class FirstLook(NamedTuple):
    """What is known of a run before its history is read.

    Attributes:
        exported: whether rows of it lie in files that its server exported, which the SDK has to read.
        requirements: the SDK's object of its requirements.txt; None if it has none.
    """

    exported: bool
    requirements: Any


def look_at(session: Session, hosted: Any, place: str) -> FirstLook:
    """Asks the one question. Raises RlhealthError where the server does not answer it."""
    given = {"entity": hosted.entity, "project": hosted.project, "runName": hosted.id}

    def ask(api: Any) -> FirstLook:
        from wandb.apis.public import File

        answer = api._service_api.execute_graphql(
            _LOOK, {**given, "liveKeys": ["_step"], "fileNames": ["requirements.txt"]}
        )
        run = answer["project"]["run"]
        exported = bool((run["parquetHistory"] or {}).get("parquetUrls"))
        files = [File(api._service_api, edge["node"], hosted) for edge in (run.get("files") or {}).get("edges") or ()]
        return FirstLook(exported and not session.asks_pages, files[0] if files else None)

    return session.once(ask, place)


def libraries(session: Session, file: Any, place: str) -> dict[str, str]:
    """Library -> version, of a requirements.txt; empty if it cannot be had, as where it lies on another host."""
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
