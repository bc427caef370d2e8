"""`contextgauge view`: the page of the sessions on this machine, without a broker."""

import errno
import socket
from functools import partial
from typing import Annotated

import typer

from contextgauge.errors import ConfigError
from streams import wiring
from streams.cli.machine import collect_young_garbage, cores
from streams.cli.screen.output import out, say
from streams.cli.serve.browser import page_address, show_page
from streams.edge.hosts import is_of_this_machine
from streams.edge.sqlite.database import NO_PAGE, InUseError
from streams.edge.telemetry.server import listening
from streams.settings.serving import ServingSettings
from streams.wiring import view as parts

_HERE = "127.0.0.1"
_PORT: int = ServingSettings.model_fields["serve_port"].default


def view(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATH]…",
            help="Transcripts: files, sessions' folders, projects folders. By default, all of "
            "the runtimes that `contextgauge runtimes` lists.",
        ),
    ] = None,
    *,
    host: Annotated[
        str,
        typer.Option("--host", metavar="ADDRESS", help="Address to serve the page at."),
    ] = _HERE,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            min=0,
            max=65_535,
            show_default=False,
            help=f"Port to serve the page at. Default: {_PORT}, or a free one if it is taken.",
        ),
    ] = None,
    titles: Annotated[
        bool,
        typer.Option(
            "--titles",
            help="Show each session's first prompt, to this machine only: not with another --host.",
        ),
    ] = False,
    open_page: Annotated[
        bool, typer.Option("--open", help="Open the page in the browser.")
    ] = False,
) -> None:
    """Show the sessions on this machine in the browser, live.

    Needs no broker and no set-up. Reads the transcripts, the newest first, and follows them until
    Ctrl-C. What has been read is stored, so that the next start takes a moment.
    """
    if titles and not is_of_this_machine(host):
        raise ConfigError(
            "--titles shows prompts, on this machine only: leave out --host, or --titles"
        )
    settings = wiring.settings()
    checked = parts.checked_paths(paths or ())
    collect_young_garbage()
    with parts.other_processes(settings, cores(), say) as others:  # a fork would hold the lock too
        try:
            file = parts.take_file(settings, checked)
        except InUseError as error:
            if error.address != NO_PAGE:
                _show_other(error.address, open_page=open_page)
                return
            file = parts.take_file_copy(settings, checked)
        listener = _listener(host, port)
        try:
            address = page_address(host, listener)
            local = parts.local_view(settings, file.path, checked, say, others)
            file.announce(address)
            # Half of what is imported, which the other processes do without.
            from streams.cli.serve.local import serve_local  # noqa: PLC0415

            ready = partial(_show_own, address, open_page=open_page)
            serve_local(settings, host, local, listener, ready, titles=titles)
        finally:
            listener.close()
            file.release()


def _show_own(address: str, *, open_page: bool) -> None:
    """Show where the page is served."""
    say(f"The page is at {address} (Ctrl-C to stop)", to=out)
    if open_page:
        show_page(address)


def _show_other(address: str, *, open_page: bool) -> None:
    """Show where the page of these transcripts is already served."""
    if not address:
        raise ConfigError(
            "another `contextgauge view` of these transcripts is starting or stopping: try again"
        )
    say(f"Another `contextgauge view` serves these transcripts already, at {address}", to=out)
    if open_page:
        show_page(address).join()


def _listener(host: str, port: int | None) -> socket.socket:
    """Return what listens at the address; without a port at the default one or at any."""
    if not host:
        raise ConfigError("--host is empty: name an address, such as 127.0.0.1")
    try:
        try:
            return listening(host, _PORT if port is None else port)
        except OSError as error:
            if port is not None or error.errno != errno.EADDRINUSE:
                raise
            return listening(host, 0)
    except OSError as error:
        raise ConfigError(
            f"the page cannot be served at {host}, port {port or 'any'} ({error.strerror}): name "
            "another --host or --port"
        ) from error
