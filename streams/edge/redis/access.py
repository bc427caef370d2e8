"""Redis credentials and TLS: users, passwords that may change, certificates."""

import asyncio
import functools
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import hiredis
from redis.asyncio import ConnectionPool, Redis, SSLConnection
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.connection import HiredisRespSerializer
from redis.credentials import CredentialProvider

from contextgauge.errors import ConfigError
from contextgauge.settings.secrets import read_secret
from contextgauge.tls import refused_by, speaks_tls
from contextgauge.tls_files import TlsFiles, context_of

_PORT = 6379
"""Redis's own, where the URL names none."""

INVALID_URL = (
    "CONTEXTGAUGE_REDIS_URL is not a valid Redis URL: write redis://host:port/database, "
    "rediss:// for TLS, or unix://path"
)

_PROBE_S = 3.0
"""As long as a handshake may take: Redis answers at once or not at all."""


@dataclass(frozen=True, slots=True)
class RedisAccess:
    """User, password and TLS, where the URL does not contain them."""

    username: str | None = None
    password: str | None = field(default=None, repr=False)
    password_file: Path | None = None
    """Read for every connection, so that a password can be changed at run time."""
    password_variable: str = "CONTEXTGAUGE_REDIS_PASSWORD_FILE"  # noqa: S105 -- a setting's name
    tls: TlsFiles | None = None

    def client(self, url: str, timeout_s: float, *, retries: int = 1) -> Any:  # noqa: ANN401 -- untyped for its replies: redis-py's types are unions of both its clients'
        """Return a client. Raises ConfigError for an invalid URL.

        Retries are at once: a connection of the pool may have ended since its last use.
        """
        options: dict[str, Any] = {
            # Who asks has a time limit; redis-py's own may swallow a cancellation, as it waits
            # by asyncio.wait_for, which did so before Python 3.12.
            "socket_timeout": None,
            "socket_connect_timeout": timeout_s,
            "retry": Retry(NoBackoff(), retries),
        }
        try:
            if self.password is not None or self.password_file is not None:
                url_user = unquote(urlsplit(url).username or "")
                options["credential_provider"] = _Credentials(self, url_user or self.username)
                url = _without_user(url)
            pool: ConnectionPool = ConnectionPool.from_url(url, **options)
        except ValueError:
            # The driver's message may quote a part of the password.
            raise ConfigError(INVALID_URL) from None
        kind = pool.connection_class
        if self.tls is not None:
            kind = _TlsConnection
            pool.connection_kwargs["made"] = functools.partial(context_of, self.tls)
        pool.connection_class = type(f"Packing{kind.__name__}", (_Packing, kind), {})
        return Redis.from_pool(pool)

    async def wrong(self, url: str) -> str | None:
        """Return which setting prevents connecting; None where Redis is just away."""
        parts = urlsplit(url)
        if parts.scheme == "unix":
            return None
        host, port = parts.hostname or "localhost", parts.port or _PORT
        if self.tls is None:
            if await speaks_tls(host, port):
                return f"{host}:{port} speaks TLS: write rediss:// in CONTEXTGAUGE_REDIS_URL"
            return None
        if await _answers_in_the_clear(host, port):
            return f"{host}:{port} does not speak TLS: write redis:// in CONTEXTGAUGE_REDIS_URL"
        return await refused_by(host, port, self.tls)


async def _answers_in_the_clear(host: str, port: int) -> bool:
    try:
        async with asyncio.timeout(_PROBE_S):
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(b"PING\r\n")
            answer = await reader.read(1)
            writer.close()
    except OSError:
        return False
    return answer in {b"+", b"-"}


NO_ACCESS = RedisAccess()
"""Nothing but what the URL contains."""


class _Credentials(CredentialProvider):
    """Provides user and password when connecting."""

    def __init__(self, access: RedisAccess, username: str | None) -> None:
        self._access, self._username = access, username

    def get_credentials(self) -> tuple[str] | tuple[str, str]:
        if self._access.password_file is not None:
            password = read_secret(self._access.password_file, self._access.password_variable)
        else:
            password = self._access.password or ""
        return (password,) if self._username is None else (self._username, password)

    async def get_credentials_async(self) -> tuple[str] | tuple[str, str]:
        return self.get_credentials()


class _Packing(AbstractConnection):
    """Packs commands as redis-py's blocking client does.

    Its asyncio client takes eight times as long for it, a tenth of a projector's work. A
    script's call has thousands of arguments, so their types are not examined first.
    """

    _serializer = HiredisRespSerializer()

    def pack_command(self, *args: Any) -> list[bytes]:  # noqa: ANN401 -- bytes, text, numbers
        if args[0] == "EVALSHA":
            return [hiredis.pack_command(args)]
        packed: list[bytes] = self._serializer.pack(*args)
        return packed


class _TlsConnection(SSLConnection):
    """Uses our own context: the driver's also trusts the system's authorities."""

    def __init__(self, *, made: Callable[[], ssl.SSLContext], **options: Any) -> None:  # noqa: ANN401 -- the driver's own
        super().__init__(**options)
        # Created for every connection, so that files may be renewed at run time.
        self.ssl_context.context = made()


def _without_user(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
