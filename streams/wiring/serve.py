"""What the server needs besides its adapters: who may read, and from where."""

from collections.abc import Callable, Mapping
from ipaddress import ip_address

from contextgauge.settings.forms import PREFIX
from streams.edge.files.tokens import TokenFile
from streams.settings import Settings


def readers(settings: Settings) -> Callable[[], Mapping[str, str]] | None:
    """Return a function that gives readers' names by token hash; None: anyone may read.

    Raises ConfigError for a file that cannot be read.
    """
    if settings.serve_tokens_file is None:
        return None
    file = TokenFile(settings.serve_tokens_file, f"{PREFIX}SERVE_TOKENS_FILE")
    file.read()
    return file.read


def is_of_this_machine(host: str) -> bool:
    """Return whether only this machine reaches an address that is listened on."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
