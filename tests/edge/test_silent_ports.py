"""A port that takes connections and never answers: what waits for it ends, and says so."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from contextgauge.errors import RetryError
from contextgauge.kafka import diagnosis
from contextgauge.kafka.diagnosis import connecting
from contextgauge.kafka.options import KafkaOptions


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "_PATIENCE_S", 0.05)
    monkeypatch.setattr(diagnosis, "_PROBE_MS", 200)


@pytest.fixture
async def silent() -> AsyncIterator[str]:
    """The address of something that is no broker."""
    gone = asyncio.Event()

    async def hold(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await gone.wait()
        writer.close()

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    yield f"{host}:{port}"
    gone.set()
    server.close()
    await server.wait_closed()


async def test_what_waits_for_a_port_that_never_answers_ends(silent: str) -> None:
    with pytest.raises(RetryError, match=f"connecting: no answer from {silent}, where something"):
        async with connecting(KafkaOptions(bootstrap_servers=silent), "connecting"):
            await asyncio.Event().wait()


async def test_a_broker_that_is_away_or_one_silent_port_of_several_ends_nothing(
    silent: str, unused_tcp_port: int
) -> None:
    servers = f"{silent},127.0.0.1:{unused_tcp_port}"
    async with connecting(KafkaOptions(bootstrap_servers=servers), "connecting"):
        _, pending = await asyncio.wait(
            [task for task in asyncio.all_tasks() if task.get_coro().__name__ == "_watch"]  # type: ignore[union-attr]
        )
        assert not pending


async def test_what_is_cancelled_meanwhile_is_cancelled(silent: str) -> None:
    async def wait() -> None:
        async with connecting(KafkaOptions(bootstrap_servers=silent), "connecting"):
            await asyncio.Event().wait()

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
