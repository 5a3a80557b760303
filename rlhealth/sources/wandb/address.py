"""Addresses of runs kept online by wandb: `wandb://entity/project/run`, `entity/project/run`, and the pages of the
web application.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

from rlhealth.errors import RlhealthError

FORMS = (
    "wandb://entity/project/run, wandb://entity/project for all its runs, or the address of "
    "the run's page (https://wandb.ai/entity/project/runs/id)"
)
#: Hosts under which wandb's own cloud is known; a key for one of them is meant for all.
CLOUD = frozenset(
    {"api.wandb.ai", "wandb.ai", "www.wandb.ai", "app.wandb.ai", "api.forge.coreweave.com", "forge.coreweave.com"}
)


@dataclass(frozen=True)
class Address:
    """A project, or one run of it.

    Attributes:
        run: the run's id (the last part of its address, not the name that is shown); None for the whole project.
        host: host and port of a web address; empty if the address names none.
        page: the web address up to the host and what stands before the entity ("https://wandb.ai"); empty if there
            is none.
    """

    entity: str
    project: str
    run: str | None = None
    host: str = ""
    page: str = ""

    @property
    def path(self) -> str:
        """`entity/project/run`, or `entity/project`."""
        return "/".join(part for part in (self.entity, self.project, self.run) if part)

    def of(self, run: str) -> Address:
        """The address of one run of the same project."""
        return Address(self.entity, self.project, run, self.host, self.page)

    def __str__(self) -> str:
        parts = [quote(part, safe="") for part in (self.entity, self.project)]
        if not self.page:
            return "wandb://" + "/".join([*parts, quote(self.run, safe="")] if self.run else parts)
        return "/".join([self.page, *parts, *(("runs", quote(self.run, safe="")) if self.run else ())])


def parse(address: str) -> Address:
    """Reads an address in any of the forms of `FORMS`; query strings, and what follows the run's id on its page, are
    ignored.

    Raises:
        RlhealthError: if it is none of them.
    """
    host = page = ""
    rest = address.strip()
    if rest.startswith(("http://", "https://")):
        url = urlsplit(rest)
        host = url.netloc.rpartition("@")[2].lower()
        page = f"{url.scheme}://{host}"
        rest = url.path
        if url.hostname and url.hostname.endswith("forge.coreweave.com") and rest.startswith("/wandb/"):
            page, rest = f"{page}/wandb", rest.removeprefix("/wandb")
    else:
        rest = rest.removeprefix("wandb://").partition("?")[0].partition("#")[0]
    parts = [unquote(part) for part in rest.strip("/").split("/") if part]
    if len(parts) > 2 and parts[2] in ("sweeps", "reports", "artifacts", "groups"):
        raise _no_form(address, f"this is the page of {parts[2]}, not of a run")
    if len(parts) > 2 and (parts[2] == "runs" or host):
        parts = [*parts[:2], *parts[3:4]] if parts[2] == "runs" else parts[:2]  # /workspace, /table, /overview
    if not 2 <= len(parts) <= 3 or not all(part.strip() for part in parts):
        raise _no_form(address, "this does not name a run")
    return Address(parts[0], parts[1], parts[2] if len(parts) == 3 else None, host, page)


def _no_form(address: str, why: str) -> RlhealthError:
    return RlhealthError(f"{address}: {why}", hint=f"name it as {FORMS}", location=address)
