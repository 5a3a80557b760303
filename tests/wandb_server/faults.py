"""The ways in which a server fails: error statuses, pages in place of JSON, half a body, none, one that drips."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.wandb_server.server import Exchange

Answer = Callable[["Exchange"], None]


@dataclass
class Fault:
    """What the server does in place of an answer, for the next `times` requests whose operation matches."""

    answer: Answer
    operation: str = ""
    times: int = 1_000_000


def status(code: int, message: str = "", headers: Mapping[str, str] | None = None) -> Answer:
    """An error status with a GraphQL error as its body."""
    return lambda exchange: exchange.reply(
        code, json.dumps({"errors": [{"message": message or f"status {code}"}]}), headers=headers
    )


def html(code: int = 200) -> Answer:
    """A page where JSON was expected: a proxy's login page, a captive portal."""
    return lambda exchange: exchange.reply(
        code, "<!DOCTYPE html><html><body>Please sign in</body></html>", kind="text/html"
    )


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
