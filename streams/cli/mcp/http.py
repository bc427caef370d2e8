"""Streamable HTTP, to this machine only: over a network, `--url` reads what `serve` has."""

import asyncio
from typing import Any, Final

import uvicorn
from mcp.server.mcpserver import MCPServer

from contextgauge.errors import ConfigError
from streams.cli.screen.output import out, say
from streams.cli.serve.running import ServerWithoutSignals
from streams.edge.signals import heeded_signals
from streams.edge.telemetry.server import listening, port_of

_HERE: Final = "127.0.0.1"
_ENDING_S: Final = 2


def serve_http(server: MCPServer[Any], port: int) -> None:
    """Serve until a signal. Raises ConfigError where the port cannot be had."""
    try:
        listener = listening(_HERE, port)
    except OSError as error:
        raise ConfigError(
            f"port {port} of {_HERE} cannot be had ({error.strerror}): name another with --port"
        ) from error
    # Pages of other origins and other host names are refused by the SDK, as `_HERE` is loopback.
    config = uvicorn.Config(
        server.streamable_http_app(host=_HERE),
        log_config=None,
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=_ENDING_S,
        ws="none",
    )
    running = ServerWithoutSignals(config)

    async def run() -> None:
        loop = asyncio.get_running_loop()
        for number in heeded_signals():
            loop.add_signal_handler(number, setattr, running, "should_exit", True)  # noqa: FBT003 -- of setattr
        say(f"MCP is served at http://{_HERE}:{port_of(listener)}/mcp (Ctrl-C to stop)", to=out)
        await running.serve([listener])

    asyncio.run(run())
