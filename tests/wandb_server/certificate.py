"""A certificate for loopback that nobody has signed: trusted only where SSL_CERT_FILE names it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest


def certificate(path: Path) -> Path:
    """Makes one, with its key, as one file that a server can show and a client can trust; the test is skipped where
    openssl is not installed.
    """
    key, cert = path.with_suffix(".key"), path.with_suffix(".crt")
    wanted = [
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        str(key),
        "-out",
        str(cert),
        "-days",
        "2",
        "-subj",
        "/CN=127.0.0.1",
    ]
    try:
        subprocess.run(
            ["openssl", "req", "-x509", *wanted, "-addext", "subjectAltName=IP:127.0.0.1"],
            check=True,
            capture_output=True,
        )
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
    path.write_text(key.read_text() + cert.read_text())
    return path
