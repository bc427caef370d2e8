"""`contextgauge serve` as a process of its own, over a real Redis: breaks, signals, tokens."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx
import pytest

from contextgauge.clock import SystemClock
from contextgauge.errors import VersionError
from contextgauge.partitioner import partition_of
from schemas.records import Record
from streams.cli.serve import server
from streams.cli.serve.running import Report
from streams.edge.local_stack.stack import LocalStack
from streams.edge.telemetry.server import listening, port_of
from tests.commands import Command
from tests.failover_kit import RedisPair
from tests.patience import PATIENCE_S
from tests.secure.documented import redis_acl
from tests.serve.redis_kit import PARTITIONS, Projection, Served, become, listen, until


@pytest.fixture
def port() -> int:
    """A port that nobody has."""
    listener = listening("127.0.0.1", 0)
    with listener:
        return port_of(listener)


@pytest.fixture
async def projection(redis_url: str, key_prefix: str) -> AsyncIterator[Projection]:
    """A projection of the test's own."""
    projection = Projection(redis_url, key_prefix)
    yield projection
    await projection.store.stop()


@pytest.fixture
def served(command: Command, port: int, redis_url: str, key_prefix: str) -> Served:
    """A server over it, not started yet."""
    return Served(command, port, REDIS_URL=redis_url, KEY_PREFIX=key_prefix)


def _by_partition(ids: list[tuple[str, str]]) -> list[list[str]]:
    parts: list[list[str]] = [[] for _ in range(PARTITIONS)]
    for session, name in ids:
        parts[partition_of(session, PARTITIONS)].append(name)
    return parts


@pytest.mark.extended
async def test_a_killed_server_loses_and_repeats_nothing_of_the_feed(
    projection: Projection, served: Served, records: list[Record]
) -> None:
    await projection.start()
    await projection.add(*records[:20])
    await served.start()
    seen: list[tuple[str, str]] = []
    kinds: set[str] = set()
    place: str | None = None

    async def hear(enough: int) -> None:
        nonlocal place
        async with asyncio.timeout(PATIENCE_S):
            async for kind, event_place, document in listen(served.url, place):
                place = event_place or place
                kinds.add(kind)
                if kind == "record":
                    seen.append((document["session_id"], document["record_id"]))
                    if len(seen) >= enough:
                        return

    hearing = asyncio.create_task(hear(len(records)))
    await become(lambda: place is not None)
    await projection.add(*records[20:120])
    await become(lambda: len(seen) >= 50)
    served.end(signal.SIGKILL)
    await hearing
    await projection.add(*records[120:200])
    # The next generation is built from the same records, and takes the place of the first.
    await projection.start(2)
    await projection.add(*records[:200])
    await served.start()
    hearing = asyncio.create_task(hear(len(records) - 20))
    await projection.add(*records[200:])
    await hearing
    expected = [(record.data.session_id, record.id) for record in records[20:]]
    assert _by_partition(seen) == _by_partition(expected)
    assert kinds == {"", "record"}
    assert served.end(signal.SIGTERM) == 0


@pytest.mark.extended
async def test_a_stopping_server_disconnects_its_listeners(
    projection: Projection, served: Served, records: list[Record]
) -> None:
    await projection.start()
    await projection.add(*records[:5])
    await served.start()
    listeners = [listen(served.url) for _ in range(3)]
    for events in listeners:
        await anext(events)
    ending = [asyncio.create_task(_rest(events)) for events in listeners]
    assert await asyncio.to_thread(served.end, signal.SIGTERM) == 0
    assert await asyncio.gather(*ending) == [[], [], []]


async def _rest(events: AsyncIterator[tuple[str, str, object]]) -> list[object]:
    return [event async for event in events]


@pytest.mark.extended
async def test_the_number_of_listeners_is_limited(
    projection: Projection, served: Served, records: list[Record]
) -> None:
    await projection.start()
    await projection.add(*records[:5])
    served.settings["SERVE_STREAMS"] = "1"
    await served.start()
    first = listen(served.url)
    await anext(first)
    async with httpx.AsyncClient(base_url=served.url) as client:
        full = await client.get("/v1/stream")
        assert full.status_code == 503
        assert full.json()["type"].endswith("too-many-streams")
        wrong = await client.get("/v1/stream", headers={"Last-Event-ID": "yesterday"})
        assert wrong.status_code == 400
        assert (await client.head("/v1/stream")).status_code == 405
    await first.aclose()
    # Its place is free again once the server has seen it go.
    async with asyncio.timeout(PATIENCE_S):
        while await _status(served.url) != 200:  # noqa: ASYNC110 -- it is the server that knows
            await asyncio.sleep(0.1)


async def _status(url: str) -> int:
    client = httpx.AsyncClient(base_url=url, timeout=PATIENCE_S)
    async with client, client.stream("GET", "/v1/stream") as answer:
        return answer.status_code


@pytest.mark.extended
async def test_a_redis_outage_is_reported_and_recovered_from(
    command: Command, port: int, own_stack: Callable[..., LocalStack], records: list[Record]
) -> None:
    stack = own_stack("redis")
    url = stack.services()["redis"].address
    projection = Projection(url, "cg")
    await projection.start()
    await projection.add(*records[:50])
    await projection.store.stop()
    served = Served(command, port, REDIS_URL=url)
    await served.start()
    await until(served.url, "/readyz", 200)
    before = (await until(served.url, "/v1/sessions", 200)).json()
    stack.kill("redis")
    away = await until(served.url, "/v1/sessions", 503)
    assert away.headers["content-type"] == "application/problem+json"
    assert away.headers["retry-after"]
    assert "redis is away" in (await until(served.url, "/readyz", 503)).text
    assert (await until(served.url, "/healthz", 200)).json()["live"]
    stack.start(["redis"])
    again = (await until(served.url, "/v1/sessions", 200)).json()
    assert again["sessions"] == before["sessions"]
    await until(served.url, "/readyz", 200)
    assert served.end(signal.SIGINT) == 0


@pytest.mark.extended
async def test_a_failover_of_redis_is_followed_and_a_wrong_server_for_long_is_not_live(
    command: Command, port: int, tmp_path: Path, records: list[Record]
) -> None:
    pair = RedisPair(tmp_path)
    try:
        projection = Projection(pair.url, "cg")
        await projection.start()
        await projection.add(*records[:50])
        await projection.store.stop()
        served = Served(command, port, REDIS_URL=pair.url, STUCK_AFTER_S="5")
        await served.start()
        await until(served.url, "/readyz", 200)
        before = (await until(served.url, "/v1/sessions", 200)).json()
        await pair.fail_over(answers_reads=False)
        await until(served.url, "/readyz", 503)
        assert (await until(served.url, "/healthz", 200)).json()["live"]
        restart = await until(served.url, "/healthz", 503)
        assert "redis has been the wrong server, or not ready" in restart.text
        pair.move_name()
        again = (await until(served.url, "/v1/sessions", 200)).json()
        assert again["sessions"] == before["sessions"]
        await until(served.url, "/healthz", 200)
        assert served.end(signal.SIGINT) == 0
    finally:
        pair.stop()


@pytest.mark.extended
async def test_a_server_starts_before_redis_does(command: Command, port: int) -> None:
    served = Served(command, port)
    await served.start()
    await until(served.url, "/readyz", 503)
    await until(served.url, "/v1/sessions", 503)
    assert served.end(signal.SIGTERM) == 0


@pytest.mark.extended
async def test_a_reader_with_the_documented_rights_is_enough(
    projection: Projection, served: Served, key_prefix: str, records: list[Record]
) -> None:
    await projection.start()
    await projection.add(*records[:60])
    name, password = f"reader-of-{key_prefix}", "of-this-test"
    rules = redis_acl("reader", key_prefix, password)
    await projection.store._redis.execute_command("ACL", "SETUSER", name, "reset", *rules)  # noqa: SLF001 -- the same server
    served.settings |= {"REDIS_USERNAME": name, "REDIS_PASSWORD": password}
    await served.start()
    session = records[0].data.session_id
    for path in (
        "/v1/sessions?sort=pressure",
        f"/v1/sessions/{session}",
        f"/v1/sessions/{session}/events",
        f"/v1/sessions/{session}/readings",
        f"/v1/sessions/{session}/compactions",
        f"/api/agents/{session}/events",
        "/v1/stats",
        "/v1/projection",
    ):
        await until(served.url, path, 200)
    events = listen(served.url, "1:0,0")
    async with asyncio.timeout(PATIENCE_S):
        documents = [document async for _, _, document in _first(events, 61)]
    assert len([document for document in documents if document]) == 60


async def _first(
    events: AsyncIterator[tuple[str, str, object]], count: int
) -> AsyncIterator[tuple[str, str, object]]:
    for _ in range(count):
        yield await anext(events)


@pytest.mark.extended
async def test_tokens_are_created_stored_and_revoked(
    projection: Projection, served: Served, command: Command, tmp_path: Path
) -> None:
    await projection.start()
    file = tmp_path / "readers"
    made = command("token", "ann")
    assert made.returncode == 0
    token = next(line for line in made.stderr.splitlines() if line.startswith("cg_"))
    assert token not in made.stdout
    file.write_text(made.stdout)
    served.settings["SERVE_TOKENS_FILE"] = str(file)
    await served.start()
    await until(served.url, "/v1/sessions", 401)
    await until(served.url, "/readyz", 200)
    async with httpx.AsyncClient(
        base_url=served.url, headers={"Authorization": f"Bearer {token}"}
    ) as client:
        assert (await client.get("/v1/sessions")).status_code == 200
        file.write_text(command("token", "bob").stdout)
        assert (await client.get("/v1/sessions")).status_code == 401
    assert served.end(signal.SIGTERM) == 0
    assert token not in json.dumps(command("token", "ann").stdout)


@pytest.mark.extended
@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"SERVE_HOST": "192.0.2.1"}, "CONTEXTGAUGE_SERVE_HOST=192.0.2.1"),
        ({"SERVE_PORT": "70000"}, "CONTEXTGAUGE_SERVE_PORT"),
        ({"SERVE_TOKENS_FILE": "none-here"}, "CONTEXTGAUGE_SERVE_TOKENS_FILE"),
        ({"SERVE_ORIGINS": "board.example"}, "CONTEXTGAUGE_SERVE_ORIGINS"),
    ],
)
def test_wrong_settings_are_named(command: Command, settings: dict[str, str], said: str) -> None:
    done = command("serve", **settings)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_the_same_error_is_logged_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, str]] = []
    monkeypatch.setattr(
        server.logger, "error", lambda event, **more: seen.append((event, str(more)))
    )
    clock = Later()
    report = Report(clock, server.log_problem)
    for _ in range(3):
        report("answering", KeyError("text of a message"))
        report("answering", VersionError("of format 1"))
    assert [event for event, _ in seen] == ["internal error", "cannot answer"]
    clock.now_s += 61
    report("answering", VersionError("of format 1"))
    assert len(seen) == 3
    assert "text of a message" not in str(seen)


class Later(SystemClock):
    """A clock that is set by hand."""

    now_s = 0.0

    def monotonic_s(self) -> float:
        return self.now_s


def test_a_taken_port_is_reported(command: Command) -> None:
    listener = listening("127.0.0.1", 0)
    with listener:
        done = command("serve", SERVE_PORT=str(port_of(listener)))
    assert done.returncode == 2
    assert "CONTEXTGAUGE_SERVE_PORT" in done.stderr


def test_an_invalid_reader_name_gives_no_token(command: Command) -> None:
    done = command("token", "ann and bob")
    assert done.returncode == 2
    assert "valid reader name" in done.stderr
