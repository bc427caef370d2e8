"""`contextgauge mcp`: an MCP server by which an agent sees its own context."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from contextgauge.errors import ConfigError
from contextgauge.user_folders import expanded
from streams.cli.api_client import ApiClient, TokenFile
from streams.cli.extras import needs

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

_PORT: Final = 8_644
"""Next to those of the page and of messages."""

_SDK: Final = frozenset(("mcp", "mcp_types"))


def mcp(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATH]…",
            help="Transcripts: files, sessions' folders, projects folders. By default, those of "
            "the runtimes on this machine.",
        ),
    ] = None,
    *,
    url: Annotated[
        str | None,
        typer.Option(
            "--url",
            metavar="URL",
            help="Ask `contextgauge serve` at this address, not the transcripts on this machine.",
        ),
    ] = None,
    token_file: TokenFile = None,
    write: Annotated[
        bool,
        typer.Option(
            "--write",
            help="Let the agent request compactions: with --url, where the server and the token "
            "allow it.",
        ),
    ] = False,
    http: Annotated[
        bool,
        typer.Option(
            "--http",
            help="Serve streamable HTTP to this machine, not standard input and output.",
        ),
    ] = False,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            min=0,
            max=65_535,
            show_default=False,
            help=f"Port of --http. Default: {_PORT}; 0 is any free one.",
        ),
    ] = None,
) -> None:
    """Serve an agent its own context: how full it is, its compactions, and what left it.

    A server of the Model Context Protocol, which an agent's runtime starts and ends: `contextgauge
    install` adds it there. Its tools are `context`, `sessions`, `compactions` and `recall`, and
    `compact` with --write. Without a session they are about the last active one of the folder in
    which it was started.
    """
    _check(paths, url, token_file, write=write, http=http, port=port)
    folder = None if http else os.getcwd()  # noqa: PTH109 -- as a text
    server = _server(paths or (), url, token_file, folder, write=write)
    _run(server, _PORT if port is None else port, http=http)


def _check(
    paths: list[str] | None,
    url: str | None,
    token_file: Path | None,
    *,
    write: bool,
    http: bool,
    port: int | None,
) -> None:
    """Raise ConfigError for options that do not fit together."""
    if paths and url is not None:
        raise ConfigError("PATH and --url exclude each other: transcripts, or a server")
    if token_file is not None and url is None:
        raise ConfigError("--token-file is for --url")
    if write and url is None:
        raise ConfigError(
            "--write needs --url: only the service compacts, `contextgauge control` does it"
        )
    if port is not None and not http:
        raise ConfigError("--port is for --http")


def _server(
    paths: Sequence[str],
    url: str | None,
    token_file: Path | None,
    folder: str | None,
    *,
    write: bool,
) -> "MCPServer[Any]":
    """Return the server of transcripts, or of a service. Raises ConfigError without the SDK."""
    with needs("mcp", "mcp", _SDK):
        from streams.cli.mcp.server import make_server  # noqa: PLC0415 -- the extra
    if url is not None:
        from streams.cli.mcp.service_sessions import ServiceAgentSessions  # noqa: PLC0415 -- as below

        service = ServiceAgentSessions(ApiClient(url, token_file))
        return make_server(service, service if write else None, folder)
    from streams.cli.mcp.local_sessions import LocalAgentSessions  # noqa: PLC0415 -- derives

    local = LocalAgentSessions([expanded(each) for each in paths])
    return make_server(local, None, folder)


def _run(server: "MCPServer[Any]", port: int, *, http: bool) -> None:
    if not http:
        server.run("stdio")
        return
    from streams.cli.mcp.http import serve_http  # noqa: PLC0415 -- imports uvicorn

    serve_http(server, port)
