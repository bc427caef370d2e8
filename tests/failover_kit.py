"""Two Redis servers, one the other's replica, behind one name that moves."""

from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from redis.asyncio import Redis

from streams.edge.local_stack.stack import LocalStack
from tests.chaos.wire import Wire
from tests.conftest import require
from tests.flow.derive_kit import until

_HOST: Final = "127.0.0.1"


async def replicate(primary: str, replica: str) -> None:
    """Make one server the replica of another, and wait until it has the other's data."""
    async with _client(primary) as source, _client(replica) as copy:
        await source.config_set("repl-diskless-sync-delay", 0)
        await copy.replicaof(_HOST, str(port_of(primary)))

        async def has_followed() -> bool:
            offset = (await source.info("replication"))["master_repl_offset"]
            state = await copy.info("replication")
            is_up = state.get("master_link_status") == "up"
            return is_up and bool(state["slave_repl_offset"] >= offset)

        await until(has_followed)


async def promote(replica: str, former: str, *, answers_reads: bool = True) -> None:
    """Make a replica the primary, and the former primary a replica that learns nothing more."""
    async with _client(replica) as promoted, _client(former) as demoted:
        stale = "yes" if answers_reads else "no"
        await demoted.config_set("replica-serve-stale-data", stale)
        await promoted.replicaof("NO", "ONE")
        await demoted.replicaof(_HOST, "1")


async def is_waited_at(server: str) -> None:
    """Wait until a client waits for data of a server."""
    async with _client(server) as client:

        async def is_blocking() -> bool:
            return bool((await client.info("clients"))["blocked_clients"])

        await until(is_blocking)


def port_of(address: str) -> int:
    """Return the port of a server."""
    return urlsplit(address).port or 0


class RedisPair:
    """A primary and its replica to be. Clients of `url` reach the one that the name leads to."""

    def __init__(self, folder: Path) -> None:
        self._stacks = [LocalStack(folder / name) for name in ("first", "second")]
        self.first, self.second = (require(partial(_started, stack)) for stack in self._stacks)
        self._name = Wire(0, port_of(self.first), is_kafka=False)
        self.url = f"redis://{_HOST}:{self._name.port}/0"

    def stop(self) -> None:
        """Stop both servers."""
        self._name.stop()
        for stack in self._stacks:
            stack.stop()

    async def fail_over(self, *, answers_reads: bool = True) -> None:
        """Promote the second server, once it has all data. The name stays where it is."""
        await replicate(self.first, self.second)
        await promote(self.second, self.first, answers_reads=answers_reads)

    def move_name(self) -> None:
        """Let the name lead to the second server, for connections made from now on."""
        self._name.server_port = port_of(self.second)


def _client(address: str) -> Any:
    return Redis.from_url(address)


def _started(stack: LocalStack) -> str:
    return stack.start(["redis"])["redis"].address
