"""What the rounds share: brokers and a Redis, each behind a wire."""

import asyncio
import contextlib
import itertools
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from redis.asyncio import Redis

from contextgauge.kafka.options import KafkaOptions
from streams.edge.local_stack.stack import LocalStack
from tests.chaos.brokers import PASSWORD, USER, Brokers
from tests.chaos.wire import Wire

_FIRST_PORT: Final = 21_000
_LAST_PORT: Final = 32_000
"""Below those that systems give to outgoing connections."""

_USUAL: Final = {
    "maxmemory": "0",
    "save": "",
    "stop-writes-on-bgsave-error": "yes",
    "appendfsync": "everysec",
}


class Services:
    """A Redis of the rounds' own, and either three brokers or one that is only used."""

    def __init__(self, folder: Path, kafka: str | None = None) -> None:
        self._ports = _free_ports()
        self._kafka = kafka
        self._cluster: Brokers | None = None
        self.folder = folder
        self.stack = LocalStack(folder)
        self._wire: Wire | None = None

    @property
    def brokers(self) -> Brokers:
        """The three brokers."""
        if self._cluster is None:
            raise RuntimeError("this fault needs three brokers")
        return self._cluster

    @property
    def has_brokers(self) -> bool:
        """Whether there are three."""
        return self._kafka is None

    @property
    def wire(self) -> Wire:
        """The wire before Redis."""
        if self._wire is None:
            raise RuntimeError("not started")
        return self._wire

    async def start(self) -> None:
        """Start everything."""
        service = self.stack.start(["redis"])["redis"]
        self._wire = Wire(next(self._ports), _port(service.address), is_kafka=False)
        if self._kafka is None:
            self._cluster = Brokers(self.folder, list(itertools.islice(self._ports, 12)))
            await self._cluster.start()

    @property
    def options(self) -> KafkaOptions:
        """How the test connects to Kafka."""
        return KafkaOptions(self._kafka or self.brokers.direct)

    @property
    def redis_url(self) -> str:
        """Where the test connects to Redis."""
        return self.stack.services()["redis"].address

    @property
    def redis_data(self) -> Path:
        """Where Redis keeps its files."""
        return self.folder / "redis"

    @contextlib.asynccontextmanager
    async def redis(self) -> Any:
        """Give a client."""
        client: Any = Redis.from_url(self.redis_url)
        try:
            yield client
        finally:
            await client.aclose()

    def environment(self) -> dict[str, str]:
        """Return the settings with which workers connect."""
        variables = {"CONTEXTGAUGE_REDIS_URL": f"redis://127.0.0.1:{self.wire.port}/0"}
        if self._kafka is not None:
            return variables | {"CONTEXTGAUGE_BOOTSTRAP_SERVERS": self._kafka}
        return variables | {
            "CONTEXTGAUGE_BOOTSTRAP_SERVERS": self.brokers.wired,
            "CONTEXTGAUGE_KAFKA_SECURITY_PROTOCOL": "sasl_plaintext",
            "CONTEXTGAUGE_KAFKA_SASL_MECHANISM": "PLAIN",
            "CONTEXTGAUGE_KAFKA_USERNAME": USER,
            "CONTEXTGAUGE_KAFKA_PASSWORD": PASSWORD,
        }

    def kill_redis(self) -> None:
        """Crash Redis."""
        self.stack.kill("redis")

    async def start_redis(self) -> None:
        """Start it where it was."""
        await asyncio.to_thread(self.stack.start, ["redis"])

    def signal_redis(self, number: signal.Signals) -> None:
        """Send it a signal."""
        os.kill(self.stack.services()["redis"].process.pid, number)

    async def heal(self) -> None:
        """Bring everything back, and forget all views."""
        await self.start_redis()
        self.signal_redis(signal.SIGCONT)
        self.wire.clear()
        async with self.redis() as client:
            for name, value in _USUAL.items():
                await client.config_set(name, value)
            await client.execute_command("ACL", "SETUSER", "default", "+@all")
            await client.flushall()
        if self._cluster is not None:
            await self._cluster.heal()

    def stop(self) -> None:
        """End everything."""
        with contextlib.suppress(KeyError, ProcessLookupError):
            self.signal_redis(signal.SIGCONT)
        self.stack.stop()
        if self._wire is not None:
            self._wire.stop()
        if self._cluster is not None:
            self._cluster.stop()


def _port(address: str) -> int:
    return int(address.rpartition(":")[2].partition("/")[0])


def _free_ports() -> Iterator[int]:
    """Yield ports that are free, from a place of this process's own on."""
    span = _LAST_PORT - _FIRST_PORT
    for step in range(span):
        port = _FIRST_PORT + (os.getpid() * 97 + step) % span
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        yield port
