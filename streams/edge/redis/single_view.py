"""Reads one session's view from Redis within milliseconds, for the status line.

Three or four round trips over a socket, with hiredis for the protocol: importing redis-py takes
longer than the whole status line may (docs/adr/0032-fast-status-line-startup.md). Keys and their
contents are those of `streams/edge/redis/keys.py`, which a test compares.
"""

import socket
import threading
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, NamedTuple
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from hiredis import Reader, ReplyError, pack_command

from contextgauge.partitioner import partition_of_key
from streams.core.session_ids import WHOLE_ID, several_begin_with
from streams.edge.files.plain_settings import StatusLineSettings

FORMAT_VERSION = b"5"
"""The supported format of the keys, `FORMAT_VERSION` of `schemas/views.py`."""

_PORT = 6379
_READ_BYTES = 65_536
_INCOMPLETE = object()


class StoredView(NamedTuple):
    """A session's view as it is stored, and the fields of each partition's aggregates asked for."""

    document: bytes
    aggregates: list[bytes]


class ViewUnavailableError(Exception):
    """The view cannot be read; the message says why and never contains a secret."""


class SeveralSessionsError(ViewUnavailableError):
    """Several sessions' ids begin so; the message names them."""


def read_view(
    settings: StatusLineSettings,
    url: str,
    session_id: str,
    limit_s: float,
    field_of: Callable[[bytes], bytes | None] = lambda _: None,
) -> StoredView:
    """Return the view of a session, or of the only one whose id begins so, as it is stored.

    `field_of` returns which field of the aggregates to read with a view. Raises
    ViewUnavailableError. It returns within the limit, whatever hangs: name resolution, or a host
    that does not answer.
    """
    results: list[StoredView | Exception] = []

    def read() -> None:
        try:
            deadline_s = monotonic() + limit_s
            results.append(_read(settings, urlsplit(url), session_id, deadline_s, field_of))
        except Exception as error:  # noqa: BLE001 -- raised by the thread that waits
            results.append(error)

    # A thread, because name resolution has no timeout; it ends with the process.
    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    thread.join(limit_s)
    # A socket that waits as long gives up in the same moment.
    result = results[0] if results else TimeoutError()
    if isinstance(result, TimeoutError):
        raise ViewUnavailableError(f"Redis did not answer within {limit_s * 1_000:.0f} ms")
    if isinstance(result, ViewUnavailableError):
        raise result
    if isinstance(result, Exception):
        # Only the type: the message of a parsing error may quote the URL and its password.
        raise ViewUnavailableError(f"Redis cannot be read: {type(result).__name__}") from result
    return result


def _read(
    settings: StatusLineSettings,
    url: SplitResult,
    session_id: str,
    deadline_s: float,
    field_of: Callable[[bytes], bytes | None],
) -> StoredView:
    session = session_id.encode("utf-8", "surrogatepass")
    prefix = settings.key_prefix.encode()
    with _connect(settings, url, deadline_s) as connection:
        active = _ask(connection, *_greeting(settings, url), (b"GET", prefix + b":active"))
        if not isinstance(active, bytes):
            raise ViewUnavailableError("there is no projection in Redis yet")
        base = prefix + b":{" + active + b":"
        fields = _ask(connection, (b"HGETALL", base + b"0}:pos"))
        position = dict(zip(fields[::2], fields[1::2], strict=True))
        if position.get(b"format") != FORMAT_VERSION:
            raise ViewUnavailableError("the projection is gone, or of another version")
        partitions = int(position[b"partitions"])
        view_key = base + b"%d}:s:" % partition_of_key(session, partitions) + session
        view = _ask(connection, (b"GET", view_key))
        if not isinstance(view, bytes) and len(session) < WHOLE_ID:
            view = _beginning_with(connection, session, base, partitions)
        if not isinstance(view, bytes):
            raise ViewUnavailableError("Redis has no such session")
        field, aggregates = field_of(view), []
        if field is not None:
            keys = [base + b"%d}:stats" % partition for partition in range(partitions)]
            aggregates = _ask_all(connection, [(b"HGET", key, field) for key in keys])
        return StoredView(view, [stored for stored in aggregates if isinstance(stored, bytes)])


def _beginning_with(
    connection: socket.socket, prefix: bytes, base: bytes, partitions: int
) -> bytes | None:
    """Return the view of the only session whose id begins so; None where there is none."""
    fitting = [
        (session, base + b"%d}:s:" % partition + session)
        for partition in range(partitions)
        for session in _ask(connection, (b"ZRANGE", base + b"%d}:recent" % partition, b"0", b"-1"))
        if session.startswith(prefix)
    ]
    if len(fitting) > 1:
        names = [session.decode("utf-8", "surrogatepass") for session, _ in fitting]
        beginning = prefix.decode("utf-8", "surrogatepass")
        raise SeveralSessionsError(several_begin_with(beginning, names))
    view = _ask(connection, (b"GET", fitting[0][1])) if fitting else None
    return view if isinstance(view, bytes) else None


def _ask(connection: socket.socket, *commands: tuple[bytes, ...]) -> Any:  # noqa: ANN401 -- a reply
    """Return the reply to the last command; those before it must succeed."""
    return _ask_all(connection, commands)[-1]


def _ask_all(connection: socket.socket, commands: Sequence[tuple[bytes, ...]]) -> list[Any]:
    """Return the replies to commands, which must all succeed."""
    # hiredis declares commands of one word only.
    packed = [pack_command(command) for command in commands]  # type: ignore[arg-type]
    connection.sendall(b"".join(packed))
    reader, replies = Reader(notEnoughData=_INCOMPLETE), []
    for _ in commands:
        while (reply := reader.gets()) is _INCOMPLETE:
            part = connection.recv(_READ_BYTES)
            if not part:
                raise ViewUnavailableError("Redis closed the connection")
            reader.feed(part)
        if isinstance(reply, ReplyError):
            # The first word is the kind of error, such as NOAUTH; the rest may name keys.
            raise ViewUnavailableError(f"Redis refuses: {str(reply).partition(' ')[0]}")
        replies.append(reply)
    return replies


def _greeting(settings: StatusLineSettings, url: SplitResult) -> list[tuple[bytes, ...]]:
    """Return the commands that open a connection: credentials and database."""
    user = unquote(url.username or "") or settings.redis_username
    password = unquote(url.password or "") or settings.redis_password
    if settings.redis_password_file is not None:
        password = _secret(settings.redis_password_file)
    commands: list[tuple[bytes, ...]] = []
    if password:
        commands.append((b"AUTH", *([user.encode()] if user else []), password.encode()))
    database = parse_qs(url.query).get("db", [""])[-1]
    if url.scheme != "unix" and not database:
        database = url.path.strip("/")
    if database.isdecimal() and int(database):
        commands.append((b"SELECT", database.encode()))
    return commands


def _connect(settings: StatusLineSettings, url: SplitResult, deadline_s: float) -> socket.socket:
    limit_s = max(deadline_s - monotonic(), 0.001)
    if url.scheme == "unix":
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(limit_s)
        try:
            connection.connect(unquote(url.path))
        except OSError:
            connection.close()
            raise
        return connection
    host = url.hostname or "localhost"
    connection = socket.create_connection((host, url.port or _PORT), limit_s)
    if url.scheme == "rediss":
        return _encrypted(connection, settings, host)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _encrypted(connection: socket.socket, settings: StatusLineSettings, host: str) -> socket.socket:
    """Return the connection over TLS."""
    from contextgauge.tls_files import TlsFiles, context_of  # noqa: PLC0415

    key_password = settings.redis_key_password
    if settings.redis_key_password_file is not None:
        key_password = _secret(settings.redis_key_password_file)
    files = TlsFiles(
        variables="CONTEXTGAUGE_REDIS_",
        ca_file=settings.redis_ca_file,
        certificate_file=settings.redis_certificate_file,
        key_file=settings.redis_key_file,
        key_password=key_password,
        check_hostname=settings.redis_check_hostname,
    )
    return context_of(files).wrap_socket(connection, server_hostname=host)


def _secret(file_name: str) -> str:
    from pathlib import Path  # noqa: PLC0415 -- most have no such file

    from contextgauge.settings.secrets import read_secret  # noqa: PLC0415

    return read_secret(Path(file_name), "CONTEXTGAUGE_REDIS_PASSWORD_FILE")
