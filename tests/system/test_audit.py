"""The audit of the dependencies, through pip-audit itself: it fails over a known hole, and says so where nobody can
be asked.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.conftest import ROOT

pytest.importorskip("pip_audit")
ADVISORY = {
    "schema_version": "1.6.0",
    "id": "PYSEC-0000-1",
    "summary": "Made up for this test",
    "affected": [
        {
            "package": {"ecosystem": "PyPI", "name": "numpy"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "99.1"}]}],
        }
    ],
}


@contextmanager
def service(advisories: dict[str, object]) -> Iterator[str]:
    """The address of a service that speaks OSV's protocol and knows these advisories, package -> advisory."""

    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["package"]["name"]
            said = json.dumps({"vulns": [advisories[asked]]} if asked in advisories else {}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/query"
    finally:
        server.shutdown()
        server.server_close()


def audited(address: str) -> tuple[int, str]:
    known = {
        **os.environ,
        "PIP_AUDIT_VULNERABILITY_SERVICE": "osv",
        "PIP_AUDIT_OSV_URL": address,
        "NO_PROXY": "127.0.0.1",
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.audit"], cwd=ROOT, env=known, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    return done.returncode, done.stdout


def test_a_known_hole_fails_the_audit_and_is_named_with_the_version_that_mends_it() -> None:
    with service({"numpy": ADVISORY}) as address:
        code, said = audited(address)
    assert code == 1
    assert said.startswith("numpy ") and ": PYSEC-0000-1, mended in 99.1\n" in said


def test_without_one_it_says_how_many_packages_were_audited() -> None:
    with service({}) as address:
        code, said = audited(address)
    assert code == 0
    assert said.endswith(" packages audited\n") and not said.startswith("0 ")


def test_where_nobody_answers_nothing_is_said_to_be_audited() -> None:
    with service({}) as address:
        pass
    assert audited(address) == (0, "not audited: the service that knows them did not answer\n")
