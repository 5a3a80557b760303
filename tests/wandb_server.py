"""A server on loopback that speaks wandb's GraphQL as the real SDK asks it, and fails in every way a server can."""

from __future__ import annotations

import base64
import itertools
import json
import re
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

KEY = "0123456789abcdef" * 2 + "01234567"
_OPERATION = re.compile(r"\b(?:query|mutation)\s+(\w+)")
Answer = Callable[["Exchange"], None]


@dataclass
class HostedRun:
    """One run as the server keeps it. `rows` are what `wandb.log` sent, each with its `_step`; `exported` rows come as a parquet file instead."""

    id: str = "abc12345"
    name: str = "brisk-river-7"
    state: str = "running"
    config: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    parquet: list[bytes] = field(default_factory=list)
    parquet_rows: int = 0
    created: str = "2026-01-02T03:04:05Z"
    heartbeat: str | None = None
    stopped: bool = False
    alerts: list[dict[str, Any]] = field(default_factory=list)
    requirements: str = ""
    #: whether pages of live history leave out the rows that were exported
    live_only: bool = False
    #: rows that the server counts beside those that it has
    more_counted: int = 0
    _counted: tuple[int, Counter[str]] = (-1, Counter())

    @property
    def last_step(self) -> int:
        return int(self.rows[-1]["_step"]) if self.rows else -1

    def log(self, **metrics: Any) -> None:
        """Adds one row at the next `_step`; `__` in a name stands for a slash."""
        row = {name.replace("__", "/"): value for name, value in metrics.items()}
        self.rows.append({"_step": self.last_step + 1, "_timestamp": 1.7e9 + self.last_step + 1, "_runtime": float(self.last_step + 1), **row})

    def keys(self) -> dict[str, Any]:
        if self._counted[0] != len(self.rows):
            self._counted = (len(self.rows), Counter(itertools.chain.from_iterable(self.rows)))
        keys = {name: {"typeCounts": [{"type": "number", "count": count}]} for name, count in self._counted[1].items()}
        return {"keys": keys, "lastStep": self.last_step, "sets": []}

    def facts(self, project: str) -> dict[str, Any]:
        beat = self.heartbeat or time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1.7e9 + self.last_step + self.stopped))
        return {
            "id": f"UnVuOnYxOn{self.id}", "projectId": "77", "tags": [], "name": self.id, "displayName": self.name, "sweepName": None, "state": self.state,
            "config": json.dumps({name: {"value": value} for name, value in self.config.items()}), "group": None, "jobType": None, "commit": None,
            "readOnly": False, "createdAt": self.created, "heartbeatAt": beat, "description": None, "notes": None, "systemMetrics": "{}",
            "summaryMetrics": json.dumps(self.summary), "historyLineCount": len(self.rows) + self.more_counted, "user": {"name": "Ada", "username": "ada"},
            "historyKeys": self.keys(),
        }  # fmt: skip


@dataclass
class Fault:
    """What the server does in place of an answer, for the next `times` requests whose operation matches."""

    answer: Answer
    operation: str = ""
    times: int = 1_000_000


class WandbServer:
    """The projects it hosts, the faults to come, and what it was asked (operation, variables, seconds)."""

    def __init__(self, certificate: Path | None = None) -> None:
        self.projects: dict[tuple[str, str], dict[str, HostedRun]] = {}
        self.faults: list[Fault] = []
        self.asked: list[tuple[str, dict[str, Any], float]] = []
        self.rows_sent = 0
        self.key = KEY
        self.closed = False
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Exchange,), {"wandb": self}))
        self._http.daemon_threads = True
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._http.socket = context.wrap_socket(self._http.socket, server_side=True)
        self.url = f"{'https' if certificate else 'http'}://127.0.0.1:{self._http.server_port}"

    @contextmanager
    def serving(self) -> Iterator[WandbServer]:
        thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.closed = True
            self._http.shutdown()
            self._http.server_close()

    def host(self, run: HostedRun, entity: str = "ada", project: str = "grpo") -> HostedRun:
        self.projects.setdefault((entity, project), {})[run.id] = run
        return run

    def fail(self, answer: Answer, *, operation: str = "", times: int = 1_000_000) -> None:
        with self._lock:
            self.faults.append(Fault(answer, operation, times))

    def recover(self) -> None:
        with self._lock:
            self.faults.clear()

    def operations(self) -> list[str]:
        return [name for name, _, _ in self.asked]

    def fault_for(self, operation: str) -> Answer | None:
        with self._lock:
            for fault in self.faults:
                if fault.times > 0 and fault.operation in ("", operation):
                    fault.times -= 1
                    return fault.answer
        return None

    def answer(self, operation: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """The `data` of a GraphQL answer."""
        found = _ANSWERS.get(operation)
        return found(self, given) if found else {}

    def run_of(self, given: Mapping[str, Any]) -> HostedRun | None:
        entity = given.get("entity") or given.get("entityName")
        project = given.get("project") or given.get("projectName")
        name = given.get("run") or given.get("runName") or given.get("name")
        return self.projects.get((str(entity), str(project)), {}).get(str(name))


class Exchange(BaseHTTPRequestHandler):
    """One connection; HTTP/1.1, so that it is kept between requests as the real server's is."""

    wandb: WandbServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.wandb.closed:  # on a connection that was kept
            return nothing_at_all(self)
        if self.path != "/graphql":
            return self.reply(404, "not here")
        asked = json.loads(body)
        named = _OPERATION.search(asked.get("query", ""))
        operation = named[1] if named else "Viewer"  # older SDKs ask for the viewer without a name
        given = asked.get("variables") or {}
        self.wandb.asked.append((operation, given, time.monotonic()))
        fault = self.wandb.fault_for(operation)
        if fault is not None:
            return fault(self)
        if self.headers.get("Authorization") != "Basic " + base64.b64encode(f"api:{self.wandb.key}".encode()).decode():
            return self.reply(401, json.dumps({"errors": [{"message": "user is not logged in"}]}))
        self.reply(200, json.dumps({"data": self.wandb.answer(operation, given)}))

    def do_GET(self) -> None:
        self.send_file(with_body=True)

    def do_HEAD(self) -> None:
        self.send_file(with_body=False)

    def send_file(self, *, with_body: bool) -> None:
        """Exported history, `/parquet/<entity>/<project>/<run>/<part>`, and `/requirements/<entity>/<project>/<run>/0`."""
        parts = self.path.split("/")
        if len(parts) != 6 or parts[1] not in ("parquet", "requirements"):
            return self.reply(404, "not here")
        self.wandb.asked.append((f"GET {parts[1]}", {"path": self.path}, time.monotonic()))
        run = self.wandb.projects[parts[2], parts[3]][parts[4]]
        content = run.parquet[int(parts[5])] if parts[1] == "parquet" else run.requirements.encode()
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        start, end = (int(wanted[1]), int(wanted[2] or len(content) - 1)) if wanted else (0, len(content) - 1)
        part = content[start : end + 1]
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(part)))
        self.send_header("Accept-Ranges", "bytes")
        if wanted:
            self.send_header("Content-Range", f"bytes {start}-{end}/{len(content)}")
        self.end_headers()
        if with_body:
            self.wfile.write(part)

    def reply(self, status: int, text: str, *, kind: str = "application/json", headers: Mapping[str, str] | None = None, cut: int | None = None) -> None:
        """Sends one answer; with `cut`, so many bytes of it and then the connection is dropped."""
        body = text.encode()
        try:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body if cut is None else body[:cut])
            self.wfile.flush()
        except OSError:  # the client did not wait
            self.close_connection = True
        if cut is not None:
            self.close_connection = True


def status(code: int, message: str = "", headers: Mapping[str, str] | None = None) -> Answer:
    """An error status with a GraphQL error as its body."""
    return lambda exchange: exchange.reply(code, json.dumps({"errors": [{"message": message or f"status {code}"}]}), headers=headers)


def html(code: int = 200) -> Answer:
    """A page where JSON was expected: a proxy's login page, a captive portal."""
    return lambda exchange: exchange.reply(code, "<!DOCTYPE html><html><body>Please sign in</body></html>", kind="text/html")


def half_a_body(exchange: Exchange) -> None:
    """The connection is cut in the middle of an answer."""
    exchange.reply(200, json.dumps({"data": {"project": {"run": {"history": ["{}"] * 200}}}}), cut=40)


def nothing_at_all(exchange: Exchange) -> None:
    """The connection is cut before any answer."""
    exchange.close_connection = True


def drip(seconds: float) -> Answer:
    """An answer that comes byte by byte, for so long."""

    def answer(exchange: Exchange) -> None:
        exchange.send_response(200)
        exchange.send_header("Content-Type", "application/json")
        exchange.send_header("Content-Length", "100000")
        exchange.end_headers()
        until = time.monotonic() + seconds
        try:
            while time.monotonic() < until:
                exchange.wfile.write(b" ")
                exchange.wfile.flush()
                time.sleep(0.05)
        except OSError:
            pass
        exchange.close_connection = True

    return answer


def _run(server: WandbServer, given: Mapping[str, Any], inner: Callable[[HostedRun], Any]) -> dict[str, Any]:
    if (str(given.get("entity") or given.get("entityName")), str(given.get("project") or given.get("projectName"))) not in server.projects:
        return {"project": None}
    run = server.run_of(given)
    return {"project": {"run": None if run is None else inner(run)}}


def _parquet(server: WandbServer, given: Mapping[str, Any]) -> dict[str, Any]:
    def inner(run: HostedRun) -> dict[str, Any]:
        urls = [f"{server.url}/parquet/{given['entity']}/{given['project']}/{run.id}/{part}" for part in range(len(run.parquet))]
        return {"parquetHistory": {"parquetUrls": urls, "liveData": [{"_step": row["_step"]} for row in run.rows[run.parquet_rows :]]}}

    return _run(server, given, inner)


def _files(server: WandbServer, given: Mapping[str, Any]) -> dict[str, Any]:
    def inner(run: HostedRun) -> dict[str, Any]:
        url = f"{server.url}/requirements/{given['entity']}/{given['project']}/{run.id}/0"
        node = {
            "id": "RmlsZQ==", "name": "requirements.txt", "url": url, "directUrl": url, "sizeBytes": len(run.requirements), "mimetype": "text/plain",
            "updatedAt": run.created, "md5": "",
        }  # fmt: skip
        edges = [{"node": node, "cursor": "1"}] if run.requirements else []
        return {"fileCount": len(edges), "files": {"edges": edges, "pageInfo": {"endCursor": "1", "hasNextPage": False}}}

    return _run(server, given, inner)


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
        rows = [row for row in run.rows if spec["minStep"] <= row["_step"] <= spec["maxStep"] and all(key in row for key in spec["keys"])]
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
    edges = [{"node": run.facts(given["project"]), "cursor": str(start + i + 1)} for i, run in enumerate(runs[start : start + size])]
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


_VIEWER = {"id": "VXNlcjox", "entity": "ada", "username": "ada", "email": "ada@example.org", "admin": False, "flags": "{}", "teams": {"edges": []}}
_ANSWERS: dict[str, Callable[[WandbServer, Mapping[str, Any]], dict[str, Any]]] = {
    "Viewer": lambda server, given: {"viewer": _VIEWER},
    "GetViewer": lambda server, given: {"viewer": _VIEWER},
    "GetDefaultEntity": lambda server, given: {"viewer": _VIEWER},
    "Run": lambda server, given: _run(server, given, lambda run: run.facts(str(given["project"]))),
    "RunHistoryKeys": lambda server, given: _run(server, given, lambda run: {"historyKeys": run.keys()}),
    "RunParquetHistory": lambda server, given: _parquet(server, {**given, "run": given["runName"]}),
    "RunFiles": _files,
    "HistoryPage": _page,
    "SampledHistoryPage": _sampled,
    "Runs": _runs,
    "StopRun": _stop,
    "NotifyScriptableRunAlert": _alert,
}
