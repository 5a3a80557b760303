"""The server itself: who may ask, what is asked, and which fault comes in place of an answer."""

from __future__ import annotations

import base64
import json
import re
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tests.wandb_server.answers import ANSWERS
from tests.wandb_server.faults import Answer, Fault, nothing_at_all
from tests.wandb_server.hosted import HostedRun

KEY = "0123456789abcdef" * 2 + "01234567"
_OPERATION = re.compile(r"\b(?:query|mutation)\s+(\w+)")


class WandbServer:
    """The projects it hosts, the faults to come, and what it was asked (operation, variables, seconds)."""

    def __init__(self, certificate: Path | None = None, address: str = "127.0.0.1") -> None:
        self.projects: dict[tuple[str, str], dict[str, HostedRun]] = {}
        self.faults: list[Fault] = []
        self.asked: list[tuple[str, dict[str, Any], float]] = []
        self.rows_sent = 0
        self.key = KEY
        self.times_here = 0
        self.files_at = ""  # another host that it names for its files
        self.exports_at = ""  # and for exported history
        self.encodings: set[str] = set()  # that were asked for
        self.delay = 0.0  # seconds before each answer
        self.under_way = self.most_at_once = 0  # requests, now and until now
        self._lock = threading.Lock()
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) if certificate else None
        if certificate is not None:
            self.show(certificate)
        self._address = address
        self._http = self._listen(0)
        self.url = f"{'https' if certificate else 'http'}://{address}:{self._http.server_port}"

    @contextmanager
    def serving(self) -> Iterator[WandbServer]:
        self.come_back()
        try:
            yield self
        finally:
            self.leave()

    def leave(self) -> None:
        """Nothing answers at its address any more, and connections that were kept are cut."""
        self.times_here += 1
        self._http.shutdown()
        self._http.server_close()

    def come_back(self) -> None:
        """Answers again, at the same address."""
        if self._http.socket.fileno() < 0:
            self._http = self._listen(self._http.server_port)
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def show(self, certificate: Path) -> None:
        """Has this certificate from now on, for whoever connects anew; connections that were kept are cut."""
        assert self._context is not None
        self._context.load_cert_chain(certificate)
        self.times_here += 1

    def _listen(self, port: int) -> ThreadingHTTPServer:
        http = Listening((self._address, port), type("Bound", (Exchange,), {"wandb": self}))
        if self._context is not None:
            http.socket = self._context.wrap_socket(http.socket, server_side=True)
        return http

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

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """An answer takes its time; counts how many are under way."""
        with self._lock:
            self.under_way += 1
            self.most_at_once = max(self.most_at_once, self.under_way)
        try:
            time.sleep(self.delay)
            yield
        finally:
            with self._lock:
                self.under_way -= 1

    def answer(self, operation: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """The `data` of a GraphQL answer."""
        found = ANSWERS.get(operation)
        return found(self, given) if found else {}

    def body(self, operation: str, given: Mapping[str, Any]) -> str:
        """The whole GraphQL answer, as it is sent."""
        return json.dumps({"data": self.answer(operation, given)})

    def run_of(self, given: Mapping[str, Any]) -> HostedRun | None:
        entity = given.get("entity") or given.get("entityName")
        project = given.get("project") or given.get("projectName")
        name = given.get("run") or given.get("runName") or given.get("name")
        return self.projects.get((str(entity), str(project)), {}).get(str(name))


class Listening(ThreadingHTTPServer):
    """Takes as many connections at once as a real server does."""

    request_queue_size = 128
    daemon_threads = True


class Exchange(BaseHTTPRequestHandler):
    """One connection; HTTP/1.1, so that it is kept between requests as the real server's is."""

    wandb: WandbServer
    given: dict[str, Any]  # with the question
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self) -> None:
        self.came = self.wandb.times_here
        super().setup()

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.came != self.wandb.times_here:  # on a connection that was kept
            return nothing_at_all(self)
        if self.path != "/graphql":
            return self.reply(404, "not here")
        asked = json.loads(body)
        named = _OPERATION.search(asked.get("query", ""))
        operation = named[1] if named else "Viewer"  # older SDKs ask for the viewer without a name
        given = self.given = asked.get("variables") or {}
        self.wandb.asked.append((operation, given, time.monotonic()))
        self.wandb.encodings.add(self.headers.get("Accept-Encoding") or "")
        fault = self.wandb.fault_for(operation)
        with self.wandb.waiting():
            if fault is not None:
                return fault(self)
        self.answer(operation)  # who has the answer may ask again: it is not under way any more

    def answer(self, operation: str) -> None:
        if self.headers.get("Authorization") != "Basic " + base64.b64encode(f"api:{self.wandb.key}".encode()).decode():
            return self.reply(401, json.dumps({"errors": [{"message": "user is not logged in"}]}))
        self.reply(200, self.wandb.body(operation, self.given))

    def do_PUT(self) -> None:
        """A file of a run, `/upload/<entity>/<project>/<run>/<name>`."""
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        _, verb, entity, project, run, name = unquote(self.path).split("/", 5)
        self.wandb.asked.append((f"PUT {verb}", {"path": self.path}, time.monotonic()))
        fault = self.wandb.fault_for(f"PUT {verb}")
        if fault is not None:
            return fault(self)
        self.wandb.projects[entity, project][run].files[name] = content
        self.reply(200, "")

    def do_GET(self) -> None:
        self.send_file(with_body=True)

    def do_HEAD(self) -> None:
        self.send_file(with_body=False)

    def send_file(self, *, with_body: bool) -> None:
        """Exported history, `/parquet/<entity>/<project>/<run>/<part>`, and
        `/requirements/<entity>/<project>/<run>/0`.
        """
        parts = unquote(self.path).split("/", 5)
        if len(parts) != 6 or parts[1] not in ("parquet", "requirements", "files"):
            return self.reply(404, "not here")
        self.wandb.asked.append((f"GET {parts[1]}", {"path": self.path}, time.monotonic()))
        with self.wandb.waiting():
            pass
        run = self.wandb.projects[parts[2], parts[3]][parts[4]]
        if parts[1] == "files" and parts[5] not in run.files:
            return self.reply(404, "not here")
        content = {
            "parquet": lambda: run.parquet[int(parts[5])],
            "requirements": run.requirements.encode,
            "files": lambda: run.files[parts[5]],
        }[parts[1]]()
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

    def reply(
        self,
        status: int,
        text: str,
        *,
        kind: str = "application/json",
        headers: Mapping[str, str] | None = None,
        cut: int | None = None,
    ) -> None:
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
