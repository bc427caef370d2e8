"""Opens the web page in the user's browser."""

import os
import socket
import sys
import threading
import webbrowser

from streams.cli.screen.output import say
from streams.cli.workers.addresses import url_of

_ANY_HOST = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 -- not listened on
"""Addresses that stand for all of this machine's; a browser needs one of them."""

_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "WSL_DISTRO_NAME")
"""Variables of which one is set where Linux can show a browser outside of the terminal."""


def page_address(host: str, listener: socket.socket) -> str:
    """Return the page's address for a browser on this machine."""
    return f"{url_of(_ANY_HOST.get(host, host), listener)}/"


def show_page(address: str) -> threading.Thread:
    """Open an address in the browser; where there is none, ask the user to.

    In a thread that keeps no process alive: a text browser runs until its user leaves it.
    """
    thread = threading.Thread(target=_show_page, args=(address,), name="browser", daemon=True)
    thread.start()
    return thread


def _show_page(address: str) -> None:
    if not (_has_screen() and webbrowser.open(address)):
        say(f"no browser to open on this machine: the page is at {address}")


def _has_screen() -> bool:
    """Return whether a browser would open a window: a text browser would take the terminal."""
    if not sys.platform.startswith("linux"):
        return True
    return any(os.environ.get(name) for name in _DISPLAYS)
