"""Which addresses and `Host` headers are this machine's own.

A server that listens on this machine only still answers a web page whose attacker let a DNS name
of his own point here (DNS rebinding); the `Host` header of such a request has that name.
"""

from collections.abc import Collection
from ipaddress import ip_address


def is_of_this_machine(host: str) -> bool:
    """Return whether only this machine reaches an address that is listened on."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def is_rebound(host: str, names: Collection[str] = ()) -> bool:
    """Return whether a `Host` header has a name other than `localhost` and these.

    Addresses are no names.
    """
    name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
    name = name.strip("[]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost") or name in names:
        return False
    try:
        ip_address(name)
    except ValueError:
        return True
    return False
