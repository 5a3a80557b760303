"""Whether a store's host can be reached at all: its library tries for a minute to find out."""

from __future__ import annotations

import os
import socket
import urllib.request

from rlhealth.errors import Unavailable

#: Kinds of address whose library retries for a minute without a network, the host that it asks, and the variables that
#: name another one.
_HOSTS = {
    "gs": ("storage.googleapis.com", ("STORAGE_EMULATOR_HOST", "FSSPEC_GS_ENDPOINT_URL", "FSSPEC_GCS_ENDPOINT_URL")),
    "gcs": ("storage.googleapis.com", ("STORAGE_EMULATOR_HOST", "FSSPEC_GS_ENDPOINT_URL", "FSSPEC_GCS_ENDPOINT_URL")),
}
PATIENCE = 5.0  # seconds for a connection
PORT = 443


def check_reachable(where: str) -> None:
    """Raises Unavailable where the host of an address cannot be reached; behind a proxy that is left to the library."""
    kind = where.partition("://")[0]
    if kind not in _HOSTS:
        return
    host, elsewhere = _HOSTS[kind]
    if any(os.environ.get(name) for name in elsewhere) or urllib.request.getproxies().get("https"):
        return
    try:
        socket.create_connection((host, PORT), PATIENCE).close()
    except OSError as error:
        said = str(error.strerror or error).lower()
        raise Unavailable(
            f"{where}: cannot be read now: there is no way to {host} ({said})",
            hint="check the network",
            location=where,
            reason=f"no way to {host}",
        ) from None
