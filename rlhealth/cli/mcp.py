"""The `mcp` command: an MCP server for agents, on stdin and stdout. `cli` registers it."""

from __future__ import annotations

import sys


def mcp() -> None:
    """Serve agents over MCP on stdin and stdout.

    Tools: list_runs, check, vitals, advise, explain, compare, series. Needs the extra: pip install 'rlhealth[mcp]'.
    """
    from rlhealth.integrations.mcp_server import server

    made = server()
    if sys.stdin.isatty():
        sys.stderr.write("rlhealth: an MCP server waits for a client on standard input; Ctrl-C ends it\n")
    made.run("stdio")
