"""The wandb SDK without side effects: it never prompts for a key, waits for a bounded time, and writes only to private
folders.
"""

from __future__ import annotations

import configparser
import logging
import math
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from rlhealth.errors import RlhealthError
from rlhealth.sources.base.temporary import temporary_folder
from rlhealth.sources.wandb.faults import LOG_IN, scrub
from rlhealth.system.threads import begun

T = TypeVar("T")
_NOWHERE = logging.NullHandler()
_LOCK = threading.Lock()
_elsewhere: list[tempfile.TemporaryDirectory[str]] = []
_inside: list[int] = []
_before: dict[str, str | None] = {}
_CLOUD = "https://api.wandb.ai"


def private_folder() -> str:
    """A folder for what the SDK caches and logs, gone when this process ends."""
    with _LOCK:
        if not _elsewhere:
            _elsewhere.append(temporary_folder("wandb", "rlhealth-wandb-"))
        return _elsewhere[0].name


def load_settings() -> Any:
    """wandb's settings, of the user's own file and environment alone.

    The SDK also reads `wandb/settings` below the working folder, which may be the run folder of an untrusted person:
    the key would be sent to that server, through that proxy. So the settings are loaded once, from an empty folder; a
    process that has already loaded them keeps its own.
    """
    import wandb

    setup = wandb.setup
    try:
        from wandb.sdk import wandb_setup

        loaded = wandb_setup.singleton().settings_if_loaded is not None
    except (ImportError, AttributeError):
        loaded = False
    if loaded:
        return setup().settings
    with _LOCK:
        before = os.open(".", os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)) if hasattr(os, "fchdir") else None
        place = Path.cwd() if before is None else None
        try:
            os.chdir(_elsewhere[0].name)
            return setup().settings
        except Exception as error:
            said = scrub(str(error)).replace("\n", " ")[:200]
            raise RlhealthError(f"the settings of wandb cannot be used: {said}", hint=LOG_IN) from None
        finally:
            if before is not None:
                os.fchdir(before)
                os.close(before)
            elif place is not None:
                os.chdir(place)


def user_setting(name: str) -> str | None:
    """A setting of the user's own settings file, in `WANDB_CONFIG_DIR` or ~/.config/wandb; None if it is not set
    there.
    """
    folder = Path(os.environ.get("WANDB_CONFIG_DIR") or "~/.config/wandb").expanduser()
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read(folder / "settings", encoding="utf-8")
        return parser.get("default", name, fallback=None)
    except (configparser.Error, OSError, UnicodeDecodeError):
        return None


def server_of_user() -> str:
    """The base URL of the server that the user has configured: by the environment, or in the user's own settings
    file, or wandb's cloud.
    """
    return (os.environ.get("WANDB_BASE_URL") or user_setting("base_url") or _CLOUD).rstrip("/")


def key_for(server: str) -> str | None:
    """The key for the server from the environment, wandb's settings or .netrc; "" for a token file; None if there is
    none. Never asks.

    Raises:
        RlhealthError: if there is one that cannot be used.
    """
    try:
        load_settings()
        found = os.environ.get("WANDB_API_KEY") or (user_setting("api_key") if server_of_user() == server else None)
        if not found and os.environ.get("WANDB_IDENTITY_TOKEN_FILE"):
            return ""
        return found or _key_in_netrc(server)
    except Exception as error:
        raise RlhealthError(
            f"{server}: the key of wandb cannot be used: {scrub(str(error))}", hint=LOG_IN, location=server
        ) from None


def _key_in_netrc(server: str) -> str | None:
    try:
        from wandb.sdk.lib.wbauth import wbnetrc
    except ImportError:  # an older wandb
        import wandb

        return wandb.api.api_key or None
    found: str | None = wbnetrc.read_netrc_auth(host=server)
    return found


@contextmanager
def bounded(wandb: Any, patience: float) -> Iterator[None]:
    """Limits the SDK's own waiting for the session created inside this context, and for no other one in this process.

    The SDK repeats a request after 1, 2, 4 … seconds, or when a `Retry-After` says; a third of the patience is left to
    that (0 would mean 20 times).
    """
    settings = load_settings()
    wanted = {
        "x_graphql_retry_max": max(1, int(math.log2(patience / 3 + 1))),
        "x_graphql_retry_wait_min_seconds": 1.0,
        "x_graphql_retry_wait_max_seconds": max(1.0, patience / 6),
        "x_graphql_timeout_seconds": max(1.0, min(20.0, patience / 2)),
        "x_file_transfer_retry_max": 1,  # refused exports are read in another way
        "x_file_transfer_retry_wait_max_seconds": 1.0,
        # without compression an answer is as large as its bytes on the wire, which are counted
        "x_extra_http_headers": {**(settings.x_extra_http_headers or {}), "Accept-Encoding": "identity"},
    }
    before = {name: getattr(settings, name) for name in wanted if hasattr(settings, name)}
    try:
        for name in before:
            setattr(settings, name, wanted[name])
        yield
    finally:
        for name, value in before.items():
            setattr(settings, name, value)


@contextmanager
def private_folders() -> Iterator[None]:
    """Makes the SDK create its folders in the private one; the environment is restored when the last user of this
    context exits.
    """
    folder = private_folder()
    logging.getLogger("wandb").addHandler(_NOWHERE)  # else Python prints its errors if no one has set up logging
    with _LOCK:
        if not _inside:
            wanted = {"WANDB_DIR": folder, "WANDB_CACHE_DIR": folder, "WANDB_ERROR_REPORTING": "false"}
            _before.update({name: os.environ.get(name) for name in wanted})
            os.environ.update(wanted)
        _inside.append(1)
    try:
        yield
    finally:
        with _LOCK:
            _inside.pop()
            if not _inside:
                for name, value in _before.items():
                    if value is None:
                        os.environ.pop(name, None)
                    else:
                        os.environ[name] = value


def within(seconds: float, ask: Callable[[], T]) -> T:
    """The result of `ask`, which runs in a separate thread: some calls of the SDK have no time-out.

    Raises:
        TimeoutError: if there was none within that many seconds; the thread is abandoned.
    """
    answer = begun(ask)
    try:
        return answer.result(seconds)
    except TimeoutError:
        if answer.done():
            raise
        raise TimeoutError(f"no answer within {seconds:.0f} seconds") from None
