"""What every client of a service has in common: it is started and stopped."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol, TypeVar


class _Startable(Protocol):
    async def start(self) -> None: ...

    async def stop(self) -> None: ...


_S = TypeVar("_S", bound=_Startable)


@asynccontextmanager
async def started(client: _S) -> AsyncIterator[_S]:
    """Start a client of Kafka or Redis, and stop it at the end."""
    try:
        await client.start()
        yield client
    finally:
        await client.stop()
