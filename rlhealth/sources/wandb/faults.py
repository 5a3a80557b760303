"""What goes wrong between here and a wandb server, in plain words: from the SDK's exceptions to RlhealthError and
Unavailable.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from rlhealth.errors import RlhealthError, Unavailable

LOG_IN = "run `wandb login`, or set WANDB_API_KEY"
LIMITED = "it limits the rate of requests (429)"
TRY_AGAIN = "try again; `rlhealth watch` keeps trying"
#: What the SDK's texts say -> kind of fault, what is reported, what to try. The first match counts.
FAULTS: tuple[tuple[str, str, str, str], ...] = (
    (
        r"an answer of more than 64 MiB was cut off",
        "large",
        "an answer of more than 64 MiB was cut off",
        "is it wandb's server, and no other one? check WANDB_BASE_URL",
    ),
    (
        r"service process is not running|corenotavailable|failed to start",
        "service",
        "wandb's own background process is not running",
        "start rlhealth again",
    ),
    (
        r"x509|certificate|\btls: ",
        "tls",
        "its TLS certificate is not trusted here",
        "behind a company's proxy, point SSL_CERT_FILE to its certificate; check WANDB_BASE_URL",
    ),
    (
        r"no such host|server misbehaving|name resolution|name or service not known|no address associated|getaddrinfo",
        "away",
        "the host's name is not known (no network, or a wrong name)",
        "check the network, and WANDB_BASE_URL if you set it",
    ),
    (
        r"connection refused",
        "away",
        "nothing answers there (connection refused)",
        "check WANDB_BASE_URL, and whether the server is up",
    ),
    (
        r"no route to host|network is unreachable|proxyconnect",
        "away",
        "there is no way to it from here",
        "check the network and the proxy settings",
    ),
    (
        r"\b(?:http|error|status|code)\W{0,3}429\b|rate limit|too many requests",
        "server",
        LIMITED,
        TRY_AGAIN,
    ),
    (
        r"\b(?:http|error|status|code)\W{0,3}401\b|not logged in|relogin|invalid "
        r"api key|api key invalid|api key must|unauthorized",
        "denied",
        "the key is not accepted (401)",
        LOG_IN,
    ),
    (
        r"\b(?:http|error|status|code)\W{0,3}403\b|permission denied|forbidden",
        "denied",
        "the key has no access (403)",
        f"ask for access to the project, or use another key: {LOG_IN}",
    ),
    (
        r"\b(?:http|error|status|code)\W{0,3}404\b|could not find|not found|no (?:parquet )?history found",
        "missing",
        "there is no such entity, project or run, or the key has no access to it",
        "",
    ),
    (
        r"\b(?:http|error|status|code)\W{0,3}5\d\d\b|internal server error|bad gateway",
        "server",
        "server error ({found})",
        TRY_AGAIN,
    ),
    (
        r"invalid character|unexpected end of json|cannot unmarshal|jsondecode|expecting "
        r"value|keyerror|typeerror|attributeerror|validation error|nonetype",
        "nonsense",
        "it does not answer as wandb does (a login page or a proxy in between?)",
        "check WANDB_BASE_URL, and that the network needs no sign-in",
    ),
    (
        r"deadline exceeded|client\.timeout|did not respond|timed? ?out|no answer",
        "network",
        "no response in time (the server is slow, or asks to wait)",
        TRY_AGAIN,
    ),
    (
        r"\beof\b|connection reset|broken pipe|connection aborted|closed network",
        "network",
        "the connection was cut",
        TRY_AGAIN,
    ),
    (r"giving up after", "server", "it fails again and again", TRY_AGAIN),
)
#: Reasons that hold for every run of the server.
AWAY = frozenset(why for _, kind, why, _ in FAULTS if kind == "away")
#: Kinds that waiting does not fix; all others are Unavailable.
LASTING = frozenset({"tls", "denied", "missing"})
_SECRETS = re.compile(r"wandb_v\d_\w+|\b[0-9a-zA-Z]{40,}\b|(?<=://)[^/\s@]+@|(?<=[Bb]asic )\S+|(?<=[Bb]earer )\S+")
_LONGEST = 200


class NotFound(RlhealthError):
    """There is no such entity, project or run, or the key has no access to it."""


def scrub(text: str, secrets: Iterable[str] = ()) -> str:
    """The text on one line, at most 200 characters, without keys or anything that looks like one."""
    for secret in (*secrets, os.environ.get("WANDB_API_KEY", "")):
        if len(secret) > 5:
            text = text.replace(secret, "…")
    text = " ".join(_SECRETS.sub("…", text).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def kind_of(error: BaseException, unreached: str = "") -> tuple[str, str, str]:
    """The kind of fault ("network", "denied", …), why in a few words, and what to try.

    Args:
        unreached: why the server could not be reached, if known from elsewhere.
    """
    said = " ".join([*_texts(error), unreached])
    for pattern, kind, why, hint in FAULTS:
        found = re.search(pattern, said, re.IGNORECASE)
        if found:
            return kind, why.replace("{found}", found[0]), hint
    return "unknown", scrub(said) or type(error).__name__, TRY_AGAIN


def as_rlhealth_error(
    error: BaseException, place: str, secrets: Iterable[str] = (), unreached: str = ""
) -> RlhealthError:
    """What to raise for an exception of the SDK: Unavailable where waiting may help, else an RlhealthError; never with
    a key in it.
    """
    if isinstance(error, RlhealthError):
        return error
    kind, why, hint = kind_of(error, unreached)
    message = scrub(f"{place}: {why}", secrets)
    if kind in LASTING:
        return (NotFound if kind == "missing" else RlhealthError)(message, hint=hint, location=place)
    return Unavailable(message, hint=hint, location=place, reason=scrub(why, secrets))


def _texts(error: BaseException) -> Iterator[str]:
    """What an exception and its causes say, and the HTTP status that some of them carry."""
    seen: BaseException | None = error
    for _ in range(5):
        if seen is None:
            return
        yield f"{type(seen).__name__}: {seen}"
        status = getattr(getattr(seen, "response", None), "http_status", None)
        if status:
            yield f"HTTP {status}"
        inner = getattr(seen, "exc", None)
        seen = seen.__cause__ or (inner if isinstance(inner, BaseException) else None)
