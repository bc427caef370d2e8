"""A look at one view in a real Redis, and whatever keeps it from coming."""

import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import pytest
from redis import Redis

from contextgauge.partitioner import partition_of
from contextgauge.settings.local_stack import STATE_FILE
from schemas.topics import MIB
from schemas.views import FORMAT_VERSION, VIEW_VERSION
from streams.cli.statusline import figures as statusline
from streams.core.derivation.rules_config import DEFAULT_WINDOW
from streams.core.until_compaction import Threshold
from streams.edge.files import plain_settings
from streams.edge.files.plain_settings import StatusLineSettings, read_settings
from streams.edge.local_stack.stack import LocalStack
from streams.edge.redis import single_view
from streams.edge.redis.keys import RedisKeys
from streams.edge.redis.single_view import SeveralSessionsError, ViewUnavailableError, read_view
from streams.settings import Settings
from tests.conftest import require

LIMIT_S = 5.0
"""Not what a prompt waits, but what a busy machine may take."""

PARTITIONS = 5


@pytest.fixture
def stored(redis_url: str, key_prefix: str) -> Iterator[Callable[[str, bytes], None]]:
    """Store a session's view in generation 7, where the projector would."""
    client = Redis.from_url(redis_url)
    keys = RedisKeys(key_prefix)
    client.set(keys.active, 7)
    for partition in range(PARTITIONS):
        fields = ["offset", "1", "format", str(FORMAT_VERSION), "partitions", str(PARTITIONS)]
        client.hset(keys.of(7, partition).position.decode(), items=fields)

    def store(session_id: str, document: bytes) -> None:
        key = session_id.encode("utf-8", "surrogatepass")
        of_partition = keys.of(7, partition_of(session_id, PARTITIONS))
        client.set(of_partition.view(key), document)
        client.zadd(of_partition.ranking("recent"), {key: 1.0})

    yield store
    client.close()


@pytest.mark.parametrize("session_id", ["s", "0e26ec2f-937e-482c-b889-bc126f996913", "ä \ud800:{}"])
@pytest.mark.parametrize("size", [2, 300_000])
def test_a_view_is_found_where_the_projector_writes_it(
    redis_url: str,
    key_prefix: str,
    stored: Callable[[str, bytes], None],
    session_id: str,
    size: int,
) -> None:
    document = b"\r\n" * (size // 2)
    stored(session_id, document)
    settings = StatusLineSettings(key_prefix=key_prefix)
    assert read_view(settings, redis_url, session_id, LIMIT_S).document == document
    with pytest.raises(ViewUnavailableError, match="no such session"):
        read_view(settings, redis_url, "another", LIMIT_S)


def test_a_field_of_the_aggregates_is_read_with_the_view(
    redis_url: str, key_prefix: str, stored: Callable[[str, bytes], None]
) -> None:
    stored("s", b"{}")
    client = Redis.from_url(redis_url)
    keys = RedisKeys(key_prefix)
    for partition in (1, 4):
        client.hset(keys.of(7, partition).stats.decode(), mapping={"model:m": f"of {partition}"})
    client.close()
    settings = StatusLineSettings(key_prefix=key_prefix)
    found = read_view(settings, redis_url, "s", LIMIT_S, lambda _: b"model:m")
    assert found == (b"{}", [b"of 1", b"of 4"])
    assert read_view(settings, redis_url, "s", LIMIT_S, lambda _: b"model:x").aggregates == []
    assert read_view(settings, redis_url, "s", LIMIT_S).aggregates == []


def test_a_session_is_found_by_a_unique_prefix_of_its_id(
    redis_url: str, key_prefix: str, stored: Callable[[str, bytes], None]
) -> None:
    ids = [f"0e26ec2{number}-937e-482c-b889-bc126f996913" for number in range(8)]
    for number, session_id in enumerate(ids):
        stored(session_id, b"%d" % number)
    settings = StatusLineSettings(key_prefix=key_prefix)
    for number, session_id in enumerate(ids):
        assert read_view(settings, redis_url, session_id[:8], LIMIT_S).document == b"%d" % number
    with pytest.raises(SeveralSessionsError, match="8 sessions begin with '0e26'"):
        read_view(settings, redis_url, "0e26", LIMIT_S)
    with pytest.raises(ViewUnavailableError, match="no such session"):
        read_view(settings, redis_url, "0f", LIMIT_S)


def test_without_a_projection_there_is_no_view(redis_url: str, key_prefix: str) -> None:
    settings = StatusLineSettings(key_prefix=key_prefix)
    with pytest.raises(ViewUnavailableError, match="no projection in Redis yet"):
        read_view(settings, redis_url, "s", LIMIT_S)
    client = Redis.from_url(redis_url)
    client.set(f"{key_prefix}:active", 3)
    with pytest.raises(ViewUnavailableError, match="gone, or of another version"):
        read_view(settings, redis_url, "s", LIMIT_S)
    client.hset(f"{key_prefix}:{{3:0}}:pos", mapping={"format": 99, "partitions": 1})
    with pytest.raises(ViewUnavailableError, match="gone, or of another version"):
        read_view(settings, redis_url, "s", LIMIT_S)
    client.close()


def test_a_user_a_password_and_a_database(
    redis_url: str,
    key_prefix: str,
    stored: Callable[[str, bytes], None],
    tmp_path: Path,
) -> None:
    stored("s", b"{}")
    client = Redis.from_url(redis_url)
    name, password = f"status-line-{key_prefix}", "p:w/d ä"
    client.acl_setuser(
        name,
        enabled=True,
        passwords=[f"+{password}"],
        keys=[f"{key_prefix}:*"],
        commands=["+get", "+hgetall"],
    )
    try:
        with_user = redis_url.replace("://", f"://{name}:{quote(password, safe='')}@")
        settings = StatusLineSettings(key_prefix=key_prefix)
        assert read_view(settings, with_user, "s", LIMIT_S).document == b"{}"
        apart = settings._replace(redis_username=name, redis_password=password)
        assert read_view(apart, redis_url, "s", LIMIT_S).document == b"{}"
        secret = tmp_path / "password"
        secret.write_text(f"{password}\n")
        from_file = settings._replace(redis_username=name, redis_password_file=str(secret))
        assert read_view(from_file, redis_url, "s", LIMIT_S).document == b"{}"
        wrong = apart._replace(redis_password=f"wrong-{password}")
        with pytest.raises(ViewUnavailableError, match="refuses: WRONGPASS") as refused:
            read_view(wrong, redis_url, "s", LIMIT_S)
        assert password not in str(refused.value)
        with pytest.raises(ViewUnavailableError, match="refuses: NOPERM"):
            read_view(apart, re.sub(r"/0$", "/1", redis_url), "s", LIMIT_S)
    finally:
        client.acl_deluser(name)
    other = re.sub(r"/0$", "/1", redis_url)
    with pytest.raises(ViewUnavailableError, match="no projection"):
        read_view(StatusLineSettings(key_prefix=key_prefix), other, "s", LIMIT_S)
    client.close()


@contextmanager
def _server(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """Listen on a port of the loopback, and do this with the first connection."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                answer(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"redis://user:{'secret-word'}@127.0.0.1:{listening.getsockname()[1]}/0"
        thread.join()


def _says(text: bytes) -> Callable[[socket.socket], None]:
    def answer(connection: socket.socket) -> None:
        # Who has read enough to refuse the answer hangs up before the rest of it is sent.
        with suppress(ConnectionError):
            connection.recv(1_024)
            connection.sendall(text)

    return answer


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"+OK\r\n$5\r\nab",
        b"+OK\r\n$x\r\n",
        b"+OK\r\n*3\r\n",
        b"-ERR unknown command 'AUTH', with args beginning with: 'secret-word'\r\n",
        b"+OK\r\n" + b"x" * MIB,
    ],
)
def test_a_server_other_than_redis_gives_no_view_and_leaks_no_secret(text: bytes) -> None:
    with _server(_says(text)) as url, pytest.raises(ViewUnavailableError) as refused:
        read_view(StatusLineSettings(), url, "s", LIMIT_S)
    assert "secret" not in str(refused.value)


def test_an_unresponsive_server_times_out() -> None:
    refused = threading.Event()

    def never(_: socket.socket) -> None:
        refused.wait(2.0)

    with _server(never) as url, pytest.raises(ViewUnavailableError, match="within 50 ms"):
        read_view(StatusLineSettings(), url, "s", 0.05)
    refused.set()


@pytest.mark.parametrize(
    "url", ["redis://127.0.0.1:1/0", "redis://[::1", "redis://h:port/0", "unix:///nowhere", "x"]
)
def test_an_unreachable_url_gives_no_view(url: str) -> None:
    with pytest.raises(ViewUnavailableError):
        read_view(StatusLineSettings(), url, "s", LIMIT_S)


def test_names_and_versions_are_those_of_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(StatusLineSettings._fields) <= Settings.model_fields.keys()
    monkeypatch.setattr(plain_settings, "stack_folder", lambda: "/nowhere")
    plain, wrong = read_settings({})
    assert wrong == []
    for name, value in plain._asdict().items():
        assert value == (Settings.model_fields[name].get_default(call_default_factory=True)), name
    assert plain.default_window == DEFAULT_WINDOW
    assert int(single_view.FORMAT_VERSION) == FORMAT_VERSION
    assert statusline.VIEW_VERSION == VIEW_VERSION


def test_settings_are_read_as_the_other_commands_read_them() -> None:
    found, wrong = read_settings(
        {
            "CONTEXTGAUGE_REDIS_URL": "redis://h/0",
            "CONTEXTGAUGE_REDIS_CHECK_HOSTNAME": "False",
            "CONTEXTGAUGE_WINDOWS": '{"my-model": 128000}',
            "CONTEXTGAUGE_COMPACTION_THRESHOLDS": '{"a": 100000, "b": "80 %"}',
            "CONTEXTGAUGE_DEFAULT_WINDOW": "64000",
            "CONTEXTGAUGE_KEY_PREFIX": "mine",
            "CONTEXTGAUGE_REDIS_USERNAME": "",
            "CONTEXTGAUGE_BATCH_MESSAGES": "7",
        }
    )
    assert wrong == []
    assert found == StatusLineSettings(
        redis_url="redis://h/0",
        redis_check_hostname=False,
        windows={"my-model": 128_000},
        compaction_thresholds={"a": Threshold(tokens=100_000), "b": Threshold(percent=80.0)},
        default_window=64_000,
        key_prefix="mine",
    )
    for bad in ("nonsense", "[]", '{"m": "1"}', '{"m": 0}', '{"": 5}', '{"m": true}'):
        found, wrong = read_settings({"CONTEXTGAUGE_WINDOWS": bad})
        assert (found.windows, len(wrong)) == ({}, 1)
    for bad in ("nonsense", "[]", '{"m": "1"}', '{"m": 0}', '{"": 5}', '{"m": "0%"}'):
        found, wrong = read_settings({"CONTEXTGAUGE_COMPACTION_THRESHOLDS": bad})
        assert (found.compaction_thresholds, len(wrong)) == ({}, 1)


def test_the_stack_of_this_project_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / STATE_FILE
    monkeypatch.setattr(plain_settings, "stack_folder", lambda: str(tmp_path))
    for text in ("", "[]", "{}", '{"redis": []}', '{"redis": {"address": 5}}'):
        file.write_text(text)
        assert read_settings({})[0].redis_url is None
    file.unlink()
    stack = LocalStack(tmp_path)
    try:
        address = require(lambda: stack.start(["redis"])["redis"].address)
        assert read_settings({})[0].redis_url == address
    finally:
        stack.stop()
