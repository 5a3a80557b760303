"""What the server answers to each operation of the SDK."""

from __future__ import annotations

import base64
import fnmatch
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tests.wandb_server.hosted import HostedRun

if TYPE_CHECKING:
    from tests.wandb_server.server import WandbServer


def _run(server: WandbServer, given: Mapping[str, Any], inner: Callable[[HostedRun], Any]) -> dict[str, Any]:
    if (
        str(given.get("entity") or given.get("entityName")),
        str(given.get("project") or given.get("projectName")),
    ) not in server.projects:
        return {"project": None}
    run = server.run_of(given)
    return {"project": {"run": None if run is None else inner(run)}}


def _parquet(server: WandbServer, given: Mapping[str, Any]) -> dict[str, Any]:
    def inner(run: HostedRun) -> dict[str, Any]:
        urls = [
            f"{server.exports_at or server.url}/parquet/{given['entity']}/{given['project']}/{run.id}/{part}"
            for part in range(len(run.parquet))
        ]
        return {
            "parquetHistory": {
                "parquetUrls": urls,
                "liveData": [{"_step": row["_step"]} for row in run.rows[run.parquet_rows :]],
            }
        }

    return _run(server, given, inner)


def _first_look(server: WandbServer, given: Mapping[str, Any]) -> dict[str, Any]:
    """The exports and the files of runs, which the SDK asks for one after the other, each under its own alias."""
    found: dict[str, Any] = {}
    for alias in (name for name in given if re.fullmatch(r"run\d+", name)):
        asked = {**given, "run": given[alias]}
        exports, files = _parquet(server, asked)["project"], _files(server, asked)["project"]
        if not exports:
            return {"project": None}
        found[alias] = exports["run"] and {**exports["run"], **files["run"]}
    return {"project": found}


def _files(server: WandbServer, given: Mapping[str, Any]) -> dict[str, Any]:
    """The files of a run: those of the names or the pattern that are asked for."""

    def inner(run: HostedRun) -> dict[str, Any]:
        held = {"requirements.txt": run.requirements.encode()} if run.requirements else {}
        held |= run.files
        if given.get("fileNames"):
            held = {name: held[name] for name in given["fileNames"] if name in held}
        if given.get("pattern"):
            held = {
                name: one for name, one in held.items() if fnmatch.fnmatchcase(name, given["pattern"].replace("%", "*"))
            }
        edges = []
        for number, (name, content) in enumerate(held.items()):
            kind = "requirements" if name == "requirements.txt" else "files"
            last = "0" if kind == "requirements" else name
            url = f"{server.files_at or server.url}/{kind}/{given['entity']}/{given['project']}/{run.id}/{last}"
            node = {
                "id": f"RmlsZQ{number}==",
                "name": name,
                "url": url,
                "directUrl": url,
                "sizeBytes": len(content),
                "mimetype": "text/plain",
                "updatedAt": run.created,
                "md5": base64.b64encode(hashlib.md5(content).digest()).decode(),
            }
            edges.append({"node": node, "cursor": str(number + 1)})
        return {
            "fileCount": len(edges),
            "files": {"edges": edges, "pageInfo": {"endCursor": str(len(edges)), "hasNextPage": False}},
        }

    return _run(server, given, inner)


def _upsert(server: WandbServer, given: Mapping[str, Any]) -> dict[str, Any]:
    """What is given is changed, what is not stays, as on the real server."""
    for project in server.projects.values():
        for run in project.values():
            if given["id"] == f"UnVuOnYxOn{run.id}":
                run.summary = json.loads(given["summaryMetrics"]) if "summaryMetrics" in given else run.summary
                run.tags = given.get("tags", run.tags)
                return {"upsertBucket": {"bucket": {"id": given["id"]}}}
    return {"upsertBucket": None}


def _create_files(server: WandbServer, given: Mapping[str, Any]) -> dict[str, Any]:
    run = server.run_of(given)
    files = [
        {"name": name, "uploadUrl": f"{server.url}/upload/{given['entity']}/{given['project']}/{given['run']}/{name}"}
        for name in given["files"]
    ]
    return {"createRunFiles": {"runID": run and run.id, "uploadHeaders": [], "files": files}}


def _page(server: WandbServer, given: Mapping[str, Any]) -> dict[str, Any]:
    def inner(run: HostedRun) -> dict[str, Any]:
        kept = run.rows[run.parquet_rows :] if run.live_only else run.rows
        rows = [row for row in kept if given["minStep"] <= row["_step"] < given["maxStep"]][: given["pageSize"]]
        server.rows_sent += len(rows)
        return {"history": [json.dumps(row) for row in rows]}

    return _run(server, given, inner)


def _sampled(server: WandbServer, given: Mapping[str, Any]) -> dict[str, Any]:
    spec = json.loads(given["spec"])

    def inner(run: HostedRun) -> dict[str, Any]:
        rows = [
            row
            for row in run.rows
            if spec["minStep"] <= row["_step"] <= spec["maxStep"] and all(key in row for key in spec["keys"])
        ]
        server.rows_sent += len(rows)
        return {"sampledHistory": [[{key: row[key] for key in spec["keys"]} for row in rows[: spec["samples"]]]]}

    return _run(server, given, inner)


def _runs(server: WandbServer, given: Mapping[str, Any]) -> dict[str, Any]:
    found = server.projects.get((given["entity"], given["project"]))
    if found is None:
        return {"project": None}
    filters = json.loads(given.get("filters") or "{}")
    runs = [run for run in found.values() if "state" not in filters or run.state == filters["state"]]
    runs.sort(key=lambda run: run.created, reverse=str(given.get("order", "")).startswith("-"))
    start, size = int(given.get("cursor") or 0), int(given.get("perPage") or 50)
    edges = [
        {"node": run.facts(given["project"]), "cursor": str(start + i + 1)}
        for i, run in enumerate(runs[start : start + size])
    ]
    more = start + size < len(runs)
    page = {"edges": edges, "pageInfo": {"endCursor": str(start + len(edges)), "hasNextPage": more}}
    return {"project": {"internalId": "77", "runCount": len(runs), "readOnly": False, "runs": page}}


def _stop(server: WandbServer, given: Mapping[str, Any]) -> dict[str, Any]:
    for project in server.projects.values():
        for run in project.values():
            if given["id"] == f"UnVuOnYxOn{run.id}":
                run.stopped = True
    return {"stopRun": {"success": True, "clientMutationId": ""}}


def _alert(server: WandbServer, given: Mapping[str, Any]) -> dict[str, Any]:
    run = server.run_of(given)
    if run is not None:
        run.alerts.append(dict(given))
    return {"notifyScriptableRunAlert": {"success": run is not None}}


_VIEWER = {
    "id": "VXNlcjox",
    "entity": "ada",
    "username": "ada",
    "email": "ada@example.org",
    "admin": False,
    "flags": "{}",
    "teams": {"edges": []},
}
ANSWERS: dict[str, Callable[[WandbServer, Mapping[str, Any]], dict[str, Any]]] = {
    "Viewer": lambda server, given: {"viewer": _VIEWER},
    "GetViewer": lambda server, given: {"viewer": _VIEWER},
    "GetDefaultEntity": lambda server, given: {"viewer": _VIEWER},
    "Run": lambda server, given: _run(server, given, lambda run: run.facts(str(given["project"]))),
    "RunHistoryKeys": lambda server, given: _run(server, given, lambda run: {"historyKeys": run.keys()}),
    "RunParquetHistory": lambda server, given: _parquet(server, {**given, "run": given["runName"]}),
    "RunFirstLook": _first_look,
    "RunFiles": _files,
    "HistoryPage": _page,
    "SampledHistoryPage": _sampled,
    "UpsertBucket": _upsert,
    "CreateRunFiles": _create_files,
    "Runs": _runs,
    "StopRun": _stop,
    "NotifyScriptableRunAlert": _alert,
}
