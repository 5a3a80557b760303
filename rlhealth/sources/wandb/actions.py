"""What rlhealth does to an online run at the user's request: stop it, send an alert for it, write into its summary."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlhealth.errors import RlhealthError
from rlhealth.sources.wandb.address import Address, parse
from rlhealth.sources.wandb.session import PATIENCE, session_for

_ALERT = """mutation NotifyScriptableRunAlert($entityName: String!, $projectName: String!, $runName: String!,
    $title: String!, $text: String!, $severity: AlertSeverity = INFO) {
    notifyScriptableRunAlert(input: {entityName: $entityName, projectName: $projectName, runName: $runName,
    title: $title, text: $text, severity: $severity}) { success } }"""
#: The SDK's own `update` sends the whole configuration back, which a run that continues may have changed.
_TAGS = """mutation UpsertBucket($id: String, $tags: [String!]) {
    upsertBucket(input: {id: $id, tags: $tags}) { bucket { id } } }"""


def stop_run(address: str, *, patience: float = PATIENCE) -> None:
    """Asks a run to stop, as the button of its web page does; the process that trains sees it at its next heartbeat.

    Raises:
        RlhealthError: if the address does not name one run, or the server does not do it.
    """
    named = _one(address)
    session = session_for(named, patience)
    hosted = session.run(named)
    if not hasattr(hosted, "stop"):
        raise RlhealthError(
            f"{named}: this version of wandb cannot stop a run", hint="pip install -U wandb", location=str(named)
        )
    session.once(lambda _: hosted.stop(), str(named))


def alert(address: str, title: str, text: str, level: str = "WARN", *, patience: float = PATIENCE) -> None:
    """Sends an alert for the run (by mail or Slack, as its owner has configured); `level` is INFO, WARN or ERROR.

    The SDK's own `alert` needs the process that logs; its transport does not.

    Raises:
        RlhealthError: if the address does not name one run, or the server does not take it.
    """
    named = _one(address)
    given = {
        "entityName": named.entity,
        "projectName": named.project,
        "runName": named.run,
        "title": title,
        "text": text,
        "severity": level if level in ("INFO", "WARN", "ERROR") else "WARN",
    }

    def send(api: Any) -> Any:
        return api.run(named.path)._service_api.execute_graphql(_ALERT, given)

    answer = session_for(named, patience).once(send, str(named))
    if not (answer.get("notifyScriptableRunAlert") or {}).get("success"):
        raise RlhealthError(
            f"{named}: the alert was not accepted",
            hint="check that alerts are switched on for the project",
            location=str(named),
        )


def write_back(address: str, facts: Mapping[str, object], tag: str, page: Path, *, patience: float = PATIENCE) -> None:
    """Writes facts into a run's summary, a tag and a file, as its owner could on its page; changes nothing else.

    The tag replaces others of its kind (`kind:…`).

    Raises:
        RlhealthError: if the address does not name one run, or the server does not take it.
    """
    named = _one(address)
    session = session_for(named, patience)
    hosted = session.run(named)
    kind = tag.partition(":")[0]
    others = [one for one in hosted.tags or [] if one.partition(":")[0] != kind]

    def send(_: Any) -> None:
        for name in [name for name in hosted.summary.keys() if name.startswith(f"{kind}/")]:  # noqa: SIM118 (no mapping)
            del hosted.summary[name]
        hosted.summary.update(dict(facts))
        hosted._service_api.execute_graphql(_TAGS, {"id": hosted.storage_id, "tags": [*others, tag]})
        hosted.upload_file(str(page), root=str(page.parent))

    session.once(send, str(named))


def _one(address: str) -> Address:
    named = parse(address)
    if named.run is None:
        raise RlhealthError(
            f"{address}: this is a project, not a run", hint=f"name one run: {named.of('RUN')}", location=address
        )
    return named
