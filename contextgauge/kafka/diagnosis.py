"""Why a connection to Kafka failed: a setting, which retrying does not fix, or an outage.

aiokafka logs why it cannot connect, and raises the same error for a broker that is away as for a
wrong password. So after a failure one connection is tried here, and its error is reported.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import errors
from aiokafka.conn import collect_hosts, create_conn
from aiokafka.protocol.admin import SaslHandShakeRequest
from aiokafka.protocol.api import Request
from aiokafka.protocol.metadata import MetadataRequest

from contextgauge.errors import ConfigError, RetryError
from contextgauge.kafka.options import KafkaOptions, translated
from contextgauge.kafka.security import KafkaSecurity
from contextgauge.tls import refusal, speaks_tls

_PROBE_MS = 3_000
"""A broker that is there answers in milliseconds, over the world in one second."""

_LIMIT_S = 10.0
"""For all brokers together: finding the reason must not add to the outage."""

_PATIENCE_S = 5.0
"""What takes longer may be waiting for something that is no broker."""

_VARIABLES = "CONTEXTGAUGE_KAFKA_"
_PROTOCOL = f"{_VARIABLES}SECURITY_PROTOCOL"

_NO_ANSWER = (OSError, errors.KafkaError, ValueError)
"""What a probe may fail with: no connection, no Kafka, or an answer that makes no sense."""


class _SilenceError(RetryError):
    """No port answers: nothing else is to be found out."""


@asynccontextmanager
async def connecting(options: KafkaOptions, action: str) -> AsyncIterator[None]:
    """Raise Kafka's errors as this project's; ConfigError where a setting keeps us out.

    Raises RetryError after some seconds where no broker's port answers as Kafka does.
    """
    try:
        async with _ended_by_silence(options, action):
            with translated(action):
                yield
    except _SilenceError:
        raise
    except RetryError as error:
        unknown: list[str] = []
        wrong = None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LIMIT_S):
                wrong = await _diagnose(options, unknown)
        if wrong is not None:
            raise ConfigError(f"{action}: {wrong}") from error
        if unknown:
            raise RetryError(f"{error}; no such host: {', '.join(unknown)}") from error
        raise


@asynccontextmanager
async def _ended_by_silence(options: KafkaOptions, action: str) -> AsyncIterator[None]:
    """End what takes long once a probe shows that its requests get no answer.

    The client itself waits for each for as long as a busy broker may take.
    """
    async with asyncio.timeout(None) as limit:
        watching = asyncio.create_task(_watch(options, limit))
        try:
            yield
        except asyncio.CancelledError:
            if watching.done() and not watching.cancelled() and (ports := watching.result()):
                raise _SilenceError(
                    f"{action}: no answer from {ports}, where something listens: is this the port "
                    "of a Kafka broker?"
                ) from None
            raise
        finally:
            watching.cancel()


async def _watch(options: KafkaOptions, limit: asyncio.Timeout) -> str:
    """Return the ports that take connections and do not answer, if all do so, and end the rest."""
    await asyncio.sleep(_PATIENCE_S)
    known = [(host, port) for host, port, _ in collect_hosts(options.bootstrap_servers)]
    silent = await asyncio.gather(*(_is_silent(options.security, *each) for each in known))
    if not all(silent):
        return ""
    limit.reschedule(asyncio.get_running_loop().time())
    return ", ".join(f"{host}:{port}" for host, port in known)


async def _is_silent(security: KafkaSecurity, host: str, port: int) -> bool:
    try:
        await _ask(MetadataRequest([]), security, host, port)
    except TimeoutError:
        return True
    except _NO_ANSWER:
        return False
    return False


async def _diagnose(options: KafkaOptions, unknown: list[str]) -> str | None:
    """Return which setting prevents the connection; None where the brokers are just away.

    Hosts whose names lead nowhere are added to `unknown`: a name may come back, as in a cluster
    that starts, so that is no wrong setting.
    """
    known = [(host, port) for host, port, _ in collect_hosts(options.bootstrap_servers)]
    advertised: list[tuple[str, int]] = []
    for host, port in known:
        wrong = await _try(options.security, host, port, advertised, unknown)
        if wrong is not None:
            return wrong if len(known) == 1 else f"{host}:{port}: {wrong}"
    for host, port in dict.fromkeys(advertised):
        if (host, port) not in known:
            wrong = await _try(options.security, host, port, [], unknown)
            if wrong is not None:
                return f"{host}:{port} (as its brokers call themselves): {wrong}"
    return None


async def _try(
    security: KafkaSecurity,
    host: str,
    port: int,
    advertised: list[tuple[str, int]],
    unknown: list[str],
) -> str | None:
    """Connect as all clients do and ask for the brokers; return what a setting did wrong."""
    try:
        answer = await _ask(MetadataRequest([]), security, host, port)
    except socket.gaierror:
        unknown.append(host)
        return None
    except _NO_ANSWER as error:
        return await _explain(error, security, host, port)
    advertised += [(broker[1], broker[2]) for broker in answer.brokers]
    return None


async def _ask(request: Request | None, security: KafkaSecurity, host: str, port: int) -> Any:  # noqa: ANN401 -- aiokafka has no types
    """Connect, and return the answer to a request, if there is one."""
    connection = await create_conn(
        host,
        port,
        client_id="contextgauge-check",
        request_timeout_ms=_PROBE_MS,
        **security.arguments(),
    )
    try:
        return None if request is None else await connection.send(request)
    finally:
        connection.close()


async def _explain(
    error: BaseException, security: KafkaSecurity, host: str, port: int
) -> str | None:
    refused = refusal(error, _VARIABLES, host)
    if refused is not None:
        return refused
    if isinstance(error, ConnectionRefusedError):
        return None
    if isinstance(error, errors.SaslAuthenticationFailed | errors.AuthenticationFailedError):
        return (
            f"the user {security.username} is refused ({_broker_reason(error)}): correct "
            f"{_VARIABLES}USERNAME, {_VARIABLES}PASSWORD (or what its file holds) or "
            f"{_VARIABLES}SASL_MECHANISM"
        )
    if isinstance(error, errors.IllegalSaslStateError):
        return (
            f"this listener asks for no user: set {_PROTOCOL} to "
            f"{security.protocol.removeprefix('sasl_')}, or name the port of one that does"
        )
    if security.asks_for_user and type(error) is ValueError:
        # What a broker proves by SCRAM is wrong: it does not know the password, and is another.
        return f"the broker does not prove to know the password of {security.username}: {error}"
    if security.encrypts != await speaks_tls(host, port):
        return await _other_encryption(security, host, port)
    mechanisms = await _mechanisms(security, host, port)
    if mechanisms and not security.asks_for_user:
        needed = "sasl_ssl" if security.encrypts else "sasl_plaintext"
        return (
            f"this listener asks for a user: set {_PROTOCOL}={needed}, "
            f"{_VARIABLES}SASL_MECHANISM (it has {', '.join(mechanisms)}), "
            f"{_VARIABLES}USERNAME and {_VARIABLES}PASSWORD"
        )
    if mechanisms and security.mechanism not in mechanisms:
        return (
            f"{_VARIABLES}SASL_MECHANISM={security.mechanism} is not one of this listener's: set "
            f"it to one of {', '.join(mechanisms)}"
        )
    return None


def _broker_reason(error: BaseException) -> str:
    """Return a broker's own words without the error's name and number in front."""
    return str(error).rpartition(f"{type(error).__name__}: ")[2].rstrip(".") or "no reason given"


async def _other_encryption(security: KafkaSecurity, host: str, port: int) -> str | None:
    if not security.encrypts:
        needed = "sasl_ssl" if security.asks_for_user else "ssl"
        return f"this listener speaks TLS: set {_PROTOCOL}={needed}"
    try:
        await _ask(None, KafkaSecurity(), host, port)
    except _NO_ANSWER:
        return None  # neither with TLS nor without: it is away, or no Kafka
    needed = "sasl_plaintext" if security.asks_for_user else "plaintext"
    return (
        f"this listener speaks no TLS: set {_PROTOCOL}={needed}, or name the port of one that does"
    )


async def _mechanisms(security: KafkaSecurity, host: str, port: int) -> list[str]:
    """Return how users may prove who they are; none where no one has to."""
    anonymous = KafkaSecurity("ssl" if security.encrypts else "plaintext", security.ssl_context)
    try:
        request = SaslHandShakeRequest(security.mechanism or "none")
        answer = await _ask(request, anonymous, host, port)
    except _NO_ANSWER:
        return []
    return sorted(answer.enabled_mechanisms or [])
