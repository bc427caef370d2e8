"""Redis credentials and TLS: users, passwords that may change, certificates."""

import asyncio
import functools
import re
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import hiredis
from redis._parsers import _AsyncHiredisParser
from redis.asyncio import ConnectionPool, Redis, SSLConnection
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.connection import HiredisRespSerializer
from redis.credentials import CredentialProvider

from contextgauge.errors import ConfigError, RetryError
from contextgauge.settings.secrets import read_secret
from contextgauge.tls import refused_by, speaks_tls
from contextgauge.tls_files import TlsFiles, context_of
from streams.edge.redis.errors import OTHER_SERVER, OtherServerReply, replied

_PORT = 6379
"""Redis's own, where the URL names none."""

INVALID_URL = (
    "CONTEXTGAUGE_REDIS_URL is not a valid Redis URL: write redis://host:port/database, "
    "rediss:// for TLS, or unix://path"
)

_QUOTING = re.compile(
    r"ERR Error running script .*?: -(?=[A-Z]+ )|EXECABORT Transaction discarded because of: "
)
"""What stands before the reply to a command in those to what it is part of: in Redis 6 a script's,
and a transaction's."""

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

        Retries are at once, with a new connection: one of the pool may have ended since its last
        use, or lead to a server that is no longer the right one. Without retries, the client sees
        each reply as it is.
        """
        options: dict[str, Any] = {
            # Who asks has a time limit; redis-py's own may swallow a cancellation, as it waits
            # by asyncio.wait_for, which did so before Python 3.12.
            "socket_timeout": None,
            "socket_connect_timeout": timeout_s,
            "retry": Retry(NoBackoff(), retries),
        }
        if retries:
            options["parser_class"] = _Parser
        try:
            if self.password is not None or self.password_file is not None:
                url_user = unquote(urlsplit(url).username or "")
                options["credential_provider"] = _Credentials(self, url_user or self.username)
                url = _without_user(url)
            pool = _Pool.from_url(url, **options)
        except ValueError:
            # The driver's message may quote a part of the password.
            raise ConfigError(INVALID_URL) from None
        kind = pool.connection_class
        if self.tls is not None:
            kind = _TlsConnection
            pool.connection_kwargs["made"] = functools.partial(context_of, self.tls)
        made = type(f"Pooled{kind.__name__}", (_PooledConnection, kind), {"pool": pool})
        pool.connection_class = made
        return Redis.from_pool(pool)

    async def connect(self, redis: Redis, url: str) -> None:
        """Connect. Raises RetryError while Redis is away, ConfigError where it refuses us."""
        try:
            await replied("connecting", redis.ping())
        except RetryError as error:
            wrong = await self._wrong(url)
            if wrong is not None:
                raise ConfigError(f"connecting to Redis: {wrong}") from error
            raise

    async def _wrong(self, url: str) -> str | None:
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


class _Parser(_AsyncHiredisParser):
    """Makes errors of replies: of one from a wrong server, as if the connection had broken.

    The driver has no public name for its parser, but takes another one, and looks its errors up.
    """

    EXCEPTION_CLASSES = _AsyncHiredisParser.EXCEPTION_CLASSES | dict.fromkeys(
        OTHER_SERVER, OtherServerReply
    )

    @classmethod
    def parse_error(cls, response: str) -> Any:  # noqa: ANN401 -- the driver's
        return super().parse_error(_QUOTING.sub("", response))  # type: ignore[no-untyped-call]  # redis-py


class _Pool(ConnectionPool):
    """Gives out no connection that is older than the last reply of a wrong server."""

    renewals = 0
    """How often all connections were given up."""

    async def ensure_connection(self, connection: AbstractConnection) -> None:
        if isinstance(connection, _PooledConnection) and connection.renewals != self.renewals:
            await connection.disconnect(nowait=True)
            connection.renewals = self.renewals
        await super().ensure_connection(connection)


class _PooledConnection(AbstractConnection):
    """A connection of a pool.

    It packs commands as redis-py's blocking client does: its asyncio client takes eight times as
    long for it, a tenth of a projector's work. A script's call has thousands of arguments, so
    their types are not examined first.
    """

    pool: _Pool
    renewals = 0
    """Those of the pool when it was last given out."""

    _serializer = HiredisRespSerializer()

    async def read_response(self, *args: Any, **options: Any) -> Any:  # noqa: ANN401 -- the driver's
        try:
            return await super().read_response(*args, **options)
        except OtherServerReply:
            if self.renewals == self.pool.renewals:  # else it is an older one itself
                self.pool.renewals += 1
            self.renewals = self.pool.renewals
            raise

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
