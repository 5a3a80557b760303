"""A server on loopback that speaks wandb's GraphQL as the real SDK asks it, and fails in every way a server can."""

from tests.wandb_server.faults import drip, half_a_body, html, nothing_at_all, status
from tests.wandb_server.hosted import HostedRun
from tests.wandb_server.server import KEY, Exchange, WandbServer

__all__ = ["KEY", "Exchange", "HostedRun", "WandbServer", "drip", "half_a_body", "html", "nothing_at_all", "status"]
