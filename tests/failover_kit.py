"""Two Redis servers, one the other's replica, behind one name that moves."""

from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from redis.asyncio import Redis

from streams.edge.local_stack.stack import LocalStack
from tests.chaos.wire import Wire
from tests.conftest import require
from tests.flow.derive_kit import until


class RedisPair:
    """A primary and its replica. Clients of `url` reach the one that the name leads to."""

    def __init__(self, folder: Path) -> None:
        self._stacks = [LocalStack(folder / name) for name in ("first", "second")]
        self.addresses = [require(partial(_started, stack)) for stack in self._stacks]
        self._ports = [urlsplit(address).port or 0 for address in self.addresses]
        self._name = Wire(0, self._ports[0], is_kafka=False)
        self.url = f"redis://127.0.0.1:{self._name.port}/0"

    def stop(self) -> None:
        """Stop both servers."""
        self._name.stop()
        for stack in self._stacks:
            stack.stop()

    async def replicate(self) -> None:
        """Make the second server the first one's replica, and wait until it has its data."""
        first, second = self._clients()
        async with first, second:
            await first.config_set("repl-diskless-sync-delay", 0)
            await second.replicaof("127.0.0.1", str(self._ports[0]))

            async def is_followed() -> bool:
                ours, theirs = await first.info("replication"), await second.info("replication")
                if theirs.get("master_link_status") != "up":
                    return False
                return bool(theirs["slave_repl_offset"] == ours["master_repl_offset"])

            await until(is_followed)

    async def promote(self, *, answers_reads: bool = True) -> None:
        """Make the second server the primary, and the first one a replica that learns no more."""
        first, second = self._clients()
        async with first, second:
            stale = "yes" if answers_reads else "no"
            await first.config_set("replica-serve-stale-data", stale)
            await second.replicaof("NO", "ONE")
            await first.replicaof("127.0.0.1", "1")

    async def is_waited_at(self) -> None:
        """Wait until a client waits for data of the first server."""
        first, _ = self._clients()
        async with first:

            async def is_blocking() -> bool:
                return bool((await first.info("clients"))["blocked_clients"])

            await until(is_blocking)

    def move_name(self) -> None:
        """Let the name lead to the second server, for connections made from now on."""
        self._name.server_port = self._ports[1]

    def _clients(self) -> list[Any]:
        return [Redis.from_url(address) for address in self.addresses]


def _started(stack: LocalStack) -> str:
    return stack.start(["redis"])["redis"].address
