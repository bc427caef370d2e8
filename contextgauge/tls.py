"""TLS for Kafka and Redis: what a failed handshake means."""

import asyncio
import contextlib
import ssl

from contextgauge.tls_files import TlsFiles, context_of

_HOSTNAME_MISMATCH = frozenset({62, 64})
"""OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH."""

_UNKNOWN_AUTHORITY = frozenset({18, 19, 20, 21})
"""OpenSSL's codes of a chain that ends at no known authority, or is its own."""

_PROBE_S = 3.0
"""A server that is there answers a handshake in milliseconds, over the world in one second."""

_ALERT_S = 0.5
"""With TLS 1.3 the client's certificate is refused after the handshake, a round trip later."""

_PASSING_ALERTS = ("CLOSE_NOTIFY", "INTERNAL_ERROR", "USER_CANCELLED")
"""Alerts of a server that is stopping or overloaded; all others refuse what we are."""


def refusal(error: BaseException | None, variables: str, host: str) -> str | None:
    """Return why TLS failed where waiting does not help; else None.

    Looks through the causes of an error; `host` is the name that was connected to.
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, ssl.SSLCertVerificationError):
            return _unverified(error, variables, host)
        if isinstance(error, ssl.SSLError):
            return _alerted(error.reason or "", variables)
        error = error.__cause__ or error.__context__
    return None


def _unverified(error: ssl.SSLCertVerificationError, variables: str, host: str) -> str:
    if error.verify_code in _HOSTNAME_MISMATCH:
        return (
            f"the server's certificate is not for {host}: connect by a name that is in it, or "
            f"have one made for this name; {variables}CHECK_HOSTNAME=false takes any server's "
            "that the same authority signed"
        )
    if error.verify_code in _UNKNOWN_AUTHORITY:
        return (
            f"the server's certificate is signed by no authority that is trusted here "
            f"({error.verify_message}): set {variables}CA_FILE to the PEM file of its authority"
        )
    return (
        f"the server's certificate is refused ({error.verify_message}): renew it, or set "
        f"{variables}CA_FILE to its authority's; is this machine's clock right?"
    )


def _alerted(reason: str, variables: str) -> str | None:
    if reason in {"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"}:
        return "the server speaks no TLS on this port"
    if "PROTOCOL" in reason or reason in {"NO_SHARED_CIPHER", "VERSION_TOO_LOW"}:
        return f"the server and this machine have no version of TLS in common ({reason})"
    if "ALERT_" in reason and not reason.endswith(_PASSING_ALERTS):
        return (
            f"the server refuses the connection ({reason.lower().replace('_', ' ')}): it asks for "
            f"a client's certificate that it trusts: set {variables}CERTIFICATE_FILE and "
            f"{variables}KEY_FILE"
        )
    return None


async def speaks_tls(host: str, port: int) -> bool:
    """Return whether anything on this port answers a TLS handshake."""
    anyone = ssl.create_default_context()
    anyone.check_hostname = False
    anyone.verify_mode = ssl.CERT_NONE
    try:
        async with asyncio.timeout(_PROBE_S):
            _, writer = await asyncio.open_connection(host, port, ssl=anyone)
    except ssl.SSLError as error:
        return "ALERT_" in (error.reason or "")
    except OSError:
        return False
    writer.close()
    return True


async def refused_by(host: str, port: int, files: TlsFiles) -> str | None:
    """Shake hands, send nothing and listen: return why the server refuses us, None if it does not.

    Who sends at once may get a reset connection instead of the server's reason.
    """
    try:
        async with asyncio.timeout(_PROBE_S):
            reader, writer = await asyncio.open_connection(host, port, ssl=context_of(files))
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_ALERT_S):
                    await reader.read(1)
        finally:
            writer.close()
    except OSError as error:
        return refusal(error, files.variables, host)
    return None
