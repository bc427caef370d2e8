"""Why a server cannot be reached, in our own words: an error's text may show its address."""

import errno
import socket
import ssl

import aiohttp

_REASONS = {
    errno.ECONNREFUSED: "the connection was refused",
    errno.ECONNRESET: "it closed the connection",
    errno.EPIPE: "it closed the connection",
    errno.ETIMEDOUT: "it timed out",
    errno.EHOSTUNREACH: "no route to it",
    errno.ENETUNREACH: "no route to it",
    errno.ENOENT: "its socket does not exist",
}
_CERTIFICATES = {10: "has expired", 62: "is another name's", 64: "is another address's"}
"""By OpenSSL's X509_V_ERR_ codes."""


def why_unreachable(error: Exception) -> str:
    """Return why a server cannot be reached, without the error's own text."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        code = getattr(error.certificate_error, "verify_code", 0)
        return f"TLS: its certificate {_CERTIFICATES.get(code, 'is of no trusted authority')}"
    if isinstance(error, ssl.SSLError):
        return "TLS: no agreement with it"
    name = "its name is not found"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return name
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    number = (cause.errno if isinstance(cause, OSError) else None) or 0
    why = name if isinstance(cause, socket.gaierror) else _REASONS.get(number)
    if why is None and isinstance(error, aiohttp.ServerDisconnectedError):
        why = "it closed the connection"
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return f"the proxy: {why or type(error).__name__}"
    return why or type(error).__name__
