"""`contextgauge ingest` as a process, over a real Kafka that is killed and comes back."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from streams.edge.local_stack.stack import LocalStack
from streams.edge.telemetry.server import listening, port_of
from tests.commands import Command
from tests.e2e.test_publisher import create, first_numbers, written
from tests.ingest.kit import message
from tests.patience import PATIENCE_S
from tests.serve.redis_kit import Served, become, until

pytestmark = pytest.mark.service


@pytest.fixture
def port() -> int:
    """A port that nobody has."""
    listener = listening("127.0.0.1", 0)
    with listener:
        return port_of(listener)


@pytest.fixture
async def ingest(
    command: Command, port: int, killable_kafka: LocalStack, prefix: str
) -> AsyncIterator[Served]:
    """A server over a Kafka that the test may kill, ready."""
    kafka = killable_kafka.services()["kafka"].address
    await create(kafka, prefix)
    served = Served(command, port, "ingest", BOOTSTRAP_SERVERS=kafka, TOPIC_PREFIX=prefix)
    await served.start()
    await until(served.url, "/readyz", 200)
    yield served
    killable_kafka.start(["kafka"])


class Publishing:
    """Publishes a session's messages one by one, and sends again what is not answered with 202."""

    def __init__(self, url: str, session: str) -> None:
        self._url, self._session = url, session
        self.accepted = 0
        self.statuses: list[int] = []

    async def run(self, count: int) -> None:
        """Publish until so many are accepted."""
        while self.accepted < count:
            status = await self._post()
            self.statuses.append(status)
            if status == 202:
                self.accepted += 1
            else:
                await asyncio.sleep(0.1)

    async def _post(self) -> int:
        body = message(self.accepted, self._session)
        async with httpx.AsyncClient(base_url=self._url, timeout=PATIENCE_S) as client:
            try:
                return (await client.post("/v1/messages", json=body)).status_code
            except httpx.TransportError:
                return 0


@pytest.mark.extended
async def test_a_broker_killed_before_it_acknowledges_loses_nothing_that_was_accepted(
    ingest: Served, killable_kafka: LocalStack, prefix: str
) -> None:
    broker = killable_kafka.services()["kafka"]
    os.kill(broker.process.pid, signal.SIGSTOP)
    clients = [Publishing(ingest.url, f"s{number}") for number in range(8)]
    running = [asyncio.create_task(client.run(3)) for client in clients]
    async with httpx.AsyncClient(base_url=ingest.url) as http, asyncio.timeout(PATIENCE_S):
        # The server has read the messages, and the broker cannot answer.
        while "ingest_waiting_bytes 0.0" in (await http.get("/metrics")).text:  # noqa: ASYNC110 -- it is the server that knows
            await asyncio.sleep(0.05)
    assert not any(client.statuses for client in clients)
    killable_kafka.kill("kafka")
    await asyncio.to_thread(killable_kafka.start, ["kafka"])
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(*running)
    records = await written(broker.address, prefix)
    for number, client in enumerate(clients):
        assert client.accepted == 3
        assert first_numbers(records, f"s{number}") == [0, 1, 2]
    assert ingest.end(signal.SIGTERM) == 0


@pytest.mark.extended
async def test_killed_servers_and_brokers_under_load_lose_nothing_that_was_accepted(
    ingest: Served, killable_kafka: LocalStack, prefix: str
) -> None:
    address = killable_kafka.services()["kafka"].address
    clients = [Publishing(ingest.url, f"s{number}") for number in range(4)]
    running = [asyncio.create_task(client.run(60)) for client in clients]
    await become(lambda: all(client.accepted > 10 for client in clients))
    killable_kafka.kill("kafka")
    await become(lambda: all(client.statuses[-1] != 202 for client in clients))
    await asyncio.to_thread(killable_kafka.start, ["kafka"])
    await become(lambda: all(client.accepted > 30 for client in clients))
    ingest.end(signal.SIGKILL)
    await ingest.start()
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(*running)
    records = await written(address, prefix)
    for number in range(len(clients)):
        assert first_numbers(records, f"s{number}") == list(range(60))
    assert ingest.end(signal.SIGINT) == 0


@pytest.mark.extended
async def test_a_publisher_with_a_token_publishes_what_curl_would_send(
    command: Command, port: int, kafka: str, prefix: str, tmp_path: Path
) -> None:
    await create(kafka, prefix)
    made = command("token", "pat", "--publish")
    assert made.returncode == 0
    assert "CONTEXTGAUGE_INGEST_TOKENS_FILE" in made.stderr
    file = tmp_path / "tokens"
    file.write_text(made.stdout)
    token = next(line for line in made.stderr.splitlines() if line.startswith("cg_"))
    settings = {"BOOTSTRAP_SERVERS": kafka, "TOPIC_PREFIX": prefix}
    served = Served(command, port, "ingest", **settings, INGEST_TOKENS_FILE=str(file))
    await served.start()
    await until(served.url, "/readyz", 200)
    async with httpx.AsyncClient(base_url=served.url, timeout=PATIENCE_S) as client:
        assert (await client.post("/v1/messages", json=message(1))).status_code == 401
        headers = {"authorization": f"Bearer {token}"}
        answer = await client.post("/v1/messages", json=[message(1), message(2)], headers=headers)
    assert (answer.status_code, answer.json()["accepted"]) == (202, 2)
    assert first_numbers(await written(kafka, prefix)) == [1, 2]
    assert served.end(signal.SIGTERM) == 0


def test_a_token_reads_or_publishes(command: Command) -> None:
    both = command("token", "pat", "--publish", "--write")
    assert both.returncode == 2
    assert "make two tokens" in both.stderr
    wrong = command("token", "pat and ann", "--publish")
    assert wrong.returncode == 2
    assert "not a valid publisher name" in wrong.stderr


@pytest.mark.extended
@pytest.mark.parametrize(
    ("settings", "explained"),
    [
        ({"INGEST_TOKENS_FILE": "none-here"}, "CONTEXTGAUGE_INGEST_TOKENS_FILE"),
        ({"INGEST_HOST": "192.0.2.1"}, "CONTEXTGAUGE_INGEST_HOST=192.0.2.1"),
        ({"INGEST_WAITING_BYTES": "70000"}, "CONTEXTGAUGE_INGEST_BODY_LIMIT_BYTES"),
    ],
)
def test_wrong_settings_are_named(
    command: Command, settings: dict[str, str], explained: str
) -> None:
    done = command("ingest", **settings)
    assert done.returncode == 2
    assert explained in done.stderr
    assert "Traceback" not in done.stderr
