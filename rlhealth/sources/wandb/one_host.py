"""A proxy on loopback that lets the wandb SDK reach only the configured server: a redirect to another host gets no
request.

The SDK sends its requests from a separate process, which follows redirects and fetches any address that the server
names. All its requests go through this proxy. TLS passes through unread; a proxy of the user is used behind it.
"""

from __future__ import annotations

import base64
import contextlib
import os
import select
import socket
import threading
from functools import cached_property
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

LONGEST_HEAD = 64 << 10
LARGEST_ANSWER = 64 << 20
#: From this many bytes on, what the SDK sends at once is a request; HTTP/2's acknowledgements of an answer are shorter.
SHORTEST_REQUEST = 256
TOO_LARGE = "an answer of more than 64 MiB was cut off"
PATIENCE = 120.0  # seconds without a byte in either direction
_PORTS = {"http": 80, "https": 443}
_REFUSED = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_CLOSE = b"Connection: close"
_gates: dict[str, OneHost] = {}


def proxies_for(server: str) -> dict[str, str]:
    """The proxy settings with which the SDK reaches `server` alone, by scheme."""
    gate = _gates.get(server)
    if gate is None or gate.pid != os.getpid():  # threads do not survive a fork
        gate = _gates[server] = OneHost(server)
    return {"http": gate.url, "https": gate.url}


def unreached(server: str) -> str:
    """Why the last connection to the server could not be made, in the system's words, or was cut off; empty if it
    was not.

    The SDK only sees that this proxy closes its connection.
    """
    gate = _gates.get(server)
    return gate.fault if gate is not None else ""


def stopped(server: str) -> int:
    """How many requests to other hosts were refused, and answers of the server cut off, until now."""
    gate = _gates.get(server)
    return gate.stopped if gate is not None else 0


class OneHost:
    """Listens on loopback and passes on what is for one host and port.

    Attributes:
        url: the proxy's address.
        stopped: requests to other hosts that were refused, and answers that were cut off.
        fault: why the last connection to the server could not be made, or was cut off; empty if it was not.
    """

    def __init__(self, server: str) -> None:
        parts = urlsplit(server)
        self.allowed = ((parts.hostname or "").lower(), parts.port or _PORTS.get(parts.scheme, 443))
        self.scheme = parts.scheme
        self.pid = os.getpid()
        self.stopped = 0
        self.fault = ""
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True, name="wandb-one-host").start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._pass_on, args=(client,), daemon=True, name="wandb-one-host").start()

    def _pass_on(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError, ValueError):
            head, _, body = _read_head(client)
            method, target, version = head.partition(b"\r\n")[0].decode("latin-1").split(" ", 2)
            tunnel = method.upper() == "CONNECT"
            parts = urlsplit(f"//{target}" if tunnel else target)
            port = parts.port or _PORTS.get(parts.scheme, 443)
            if ((parts.hostname or "").lower(), port) != self.allowed or (not tunnel and parts.scheme != "http"):
                self.stopped += 1
                client.sendall(_REFUSED)
                return
            try:
                server, asks_proxy = self._connect(tunnel)
            except OSError as error:
                self.fault = str(error)
                return
            self.fault = ""
            with server:
                if tunnel:
                    client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                else:
                    path = target if asks_proxy else (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
                    lines = [
                        line
                        for line in head.split(b"\r\n")[1:]
                        if not line.lower().startswith((b"connection:", b"proxy-"))
                    ]
                    first = f"{method} {path} {version}".encode("latin-1")
                    server.sendall(b"\r\n".join([first, *lines, _CLOSE]) + b"\r\n\r\n")
                if body:
                    server.sendall(body)
                if not _relay(client, server, tunnel=tunnel):
                    self.stopped += 1
                    self.fault = TOO_LARGE

    @cached_property
    def _theirs(self) -> str | None:
        """The user's own proxy for the server, if there is one."""
        return None if proxy_bypass(self.allowed[0]) else getproxies().get(self.scheme)

    def _connect(self, tunnel: bool) -> tuple[socket.socket, bool]:
        """A connection to the server, and whether it ends at the user's own proxy, which wants the whole address."""
        host, port = self.allowed
        if not self._theirs:
            return socket.create_connection((host, port), timeout=PATIENCE), False
        parts = urlsplit(self._theirs if "://" in self._theirs else f"http://{self._theirs}")
        found = socket.create_connection((parts.hostname or "", parts.port or 80), timeout=PATIENCE)
        if not tunnel:
            return found, True
        known = ""
        if parts.username:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            known = f"Proxy-Authorization: Basic {base64.b64encode(pair.encode()).decode()}\r\n"
        found.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n{known}\r\n".encode("latin-1"))
        head, _, _ = _read_head(found)
        if b" 200" not in head.partition(b"\r\n")[0]:
            found.close()
            raise OSError("the proxy refuses the connection")
        return found, False


def _read_head(connection: socket.socket) -> tuple[bytes, bytes, bytes]:
    """The lines before the body, the separator, and the part of the body received so far."""
    connection.settimeout(PATIENCE)
    received = b""
    while b"\r\n\r\n" not in received:
        block = connection.recv(4096)
        if not block or len(received) > LONGEST_HEAD:
            raise OSError("no whole request")
        received += block
    return received.partition(b"\r\n\r\n")


def _relay(one: socket.socket, other: socket.socket, *, tunnel: bool) -> bool:
    """Passes bytes both ways until the server ends the connection, or nothing comes for `PATIENCE` seconds; False if
    an answer of the server is too large.

    Outside a tunnel the response is also marked as the last of its connection (`Connection: close`): else the SDK sends
    the next request on a connection that is about to close, and repeats it a second later.
    """
    open_ends = [one, other]
    answered, last = 0, tunnel
    while True:
        ready, _, _ = select.select(open_ends, [], [], PATIENCE)
        if not ready:
            return True
        for end in ready:
            block = end.recv(1 << 20)
            to = other if end is one else one
            if block:
                if end is other and not last:
                    last = True
                    block = block.replace(b"\r\n", b"\r\n" + _CLOSE + b"\r\n", 1)
                answered = answered + len(block) if end is other else answered * (len(block) < SHORTEST_REQUEST)
                if answered > LARGEST_ANSWER:
                    return False
                to.sendall(block)
            elif end is other:
                return True
            else:
                open_ends.remove(one)
                with contextlib.suppress(OSError):
                    other.shutdown(socket.SHUT_WR)
