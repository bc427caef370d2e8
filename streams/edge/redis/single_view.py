"""One look at a session's view in Redis, within milliseconds, or none.

It speaks Redis's protocol itself: three round trips of reading commands. The driver takes several
times longer to import than the whole status line may take (docs/adr/0032-fast-status-line-
startup.md). Keys and what they hold are those of `streams/edge/redis/keys.py`; a test holds both
together.
"""

import socket
import threading
from collections.abc import Sequence
from io import BufferedReader
from time import monotonic
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from contextgauge.partitioner import partition_of_key
from streams.edge.files.plain_settings import GlanceSettings

FORMAT_VERSION = b"3"
"""The keys' format that this reads, `FORMAT_VERSION` of `schemas/views.py`."""

_PORT = 6379
_READ_BYTES = 65_536


class NoGlanceError(Exception):
    """There is no view to be had; the message says why, and never what a secret is."""


def glance(settings: GlanceSettings, url: str, session_id: str, limit_s: float) -> bytes:
    """Return a session's view, the document as it is stored. Raises NoGlanceError.

    Whatever hangs (a name that is not resolved, a host that does not answer), it comes back within
    the limit.
    """
    found: list[bytes | Exception] = []

    def ask() -> None:
        try:
            found.append(_ask(settings, urlsplit(url), session_id, monotonic() + limit_s))
        except Exception as error:  # noqa: BLE001 -- told by the thread that waits
            found.append(error)

    # A thread, as resolving a name knows no limit; it ends with the process.
    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(limit_s)
    if not found:
        raise NoGlanceError(f"Redis did not answer within {limit_s * 1_000:.0f} ms")
    if isinstance(found[0], NoGlanceError):
        raise found[0]
    if isinstance(found[0], Exception):
        # Only the kind: an error of parsing may quote the URL, and a password with it.
        raise NoGlanceError(f"Redis cannot be read: {type(found[0]).__name__}") from found[0]
    return found[0]


def _ask(settings: GlanceSettings, url: SplitResult, session_id: str, deadline_s: float) -> bytes:
    session = session_id.encode("utf-8", "surrogatepass")
    prefix = settings.key_prefix.encode()
    with _connect(settings, url, deadline_s) as connection, connection.makefile("rb") as reader:
        talk = _Talk(connection, reader)
        active = talk.ask(b"GET", prefix + b":active", first=_greeting(settings, url))
        if not isinstance(active, bytes):
            raise NoGlanceError("there is no projection in Redis yet")
        base = prefix + b":{" + active + b":"
        told = talk.ask(b"HGETALL", base + b"0}:pos")
        position = dict(zip(told[::2], told[1::2], strict=True)) if isinstance(told, list) else {}
        if position.get(b"format") != FORMAT_VERSION:
            raise NoGlanceError("the projection is gone, or of another version")
        partition = partition_of_key(session, int(position[b"partitions"]))
        view = talk.ask(b"GET", base + b"%d}:s:" % partition + session)
        if not isinstance(view, bytes):
            raise NoGlanceError("Redis has no such session")
        return view


class _Talk:
    """Commands and replies over one connection."""

    def __init__(self, connection: socket.socket, reader: BufferedReader) -> None:
        self._connection, self._reader = connection, reader

    def ask(self, *command: bytes, first: Sequence[Sequence[bytes]] = ()) -> object:
        """Return a command's reply; `first` are commands sent in front, which must succeed."""
        self._connection.sendall(b"".join(map(_encoded, (*first, command))))
        for _ in first:
            self._reply()
        return self._reply()

    def _reply(self) -> object:
        line = self._reader.readline(_READ_BYTES)
        if not line.endswith(b"\r\n"):
            raise NoGlanceError("Redis closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            # The first word is the kind of error, as NOAUTH; the rest may name keys.
            raise NoGlanceError(f"Redis refuses: {rest.split(b' ')[0].decode('ascii', 'replace')}")
        if kind == b"$":
            size = int(rest)
            return None if size < 0 else self._reader.read(size + 2)[:size]
        if kind == b"*":
            return [self._reply() for _ in range(int(rest))]
        return rest


def _encoded(command: Sequence[bytes]) -> bytes:
    parts = [b"*%d\r\n" % len(command)]
    parts += [b"$%d\r\n%b\r\n" % (len(word), word) for word in command]
    return b"".join(parts)


def _greeting(settings: GlanceSettings, url: SplitResult) -> list[list[bytes]]:
    """Return the commands that a connection begins with: who we are, and which database."""
    user = unquote(url.username or "") or settings.redis_username
    password = unquote(url.password or "") or settings.redis_password
    if settings.redis_password_file is not None:
        password = _secret(settings.redis_password_file)
    commands: list[list[bytes]] = []
    if password:
        words = [b"AUTH", *([user.encode()] if user else []), password.encode()]
        commands.append(words)
    database = parse_qs(url.query).get("db", [""])[-1]
    if url.scheme != "unix" and not database:
        database = url.path.strip("/")
    if database.isdecimal() and int(database):
        commands.append([b"SELECT", database.encode()])
    return commands


def _connect(settings: GlanceSettings, url: SplitResult, deadline_s: float) -> socket.socket:
    limit_s = max(deadline_s - monotonic(), 0.001)
    if url.scheme == "unix":
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(limit_s)
        connection.connect(unquote(url.path))
        return connection
    host = url.hostname or "localhost"
    connection = socket.create_connection((host, url.port or _PORT), limit_s)
    if url.scheme == "rediss":
        return _encrypted(connection, settings, host)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _encrypted(connection: socket.socket, settings: GlanceSettings, host: str) -> socket.socket:
    """Return the connection over TLS; what that needs is imported by those who use it."""
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
