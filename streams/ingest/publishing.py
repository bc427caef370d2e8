"""What all routes share: a body is received, read, and its messages are published."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Final, NamedTuple, TypeVar

from starlette.requests import Request

from contextgauge.errors import RecordError, RetryError
from streams.ingest.bodies import Room, Share, content_of, no_room
from streams.ingest.context import Ingesting
from streams.ingest.intake import NoRoomError
from streams.ingest.reading import BodyMessages
from streams.serve.api.problems import Problem, away

_AT_ONCE_BYTES: Final = 256 * 1024
"""A larger body is read in a thread: others are answered meanwhile.

Only one at a time: while JSON is parsed it takes a hundred times its size.
"""

_Result = TypeVar("_Result")


class Taken(NamedTuple):
    """What became of a request's messages: Kafka has them, or they mean nothing to anyone."""

    accepted: int
    ignored: int


class ReceivedBody(NamedTuple):
    """A request's body, decompressed, and what the request takes of the room."""

    content: bytes
    share: Share


class Publishing:
    """Receives bodies, within the room that there is, and publishes what is in them."""

    def __init__(self, ingesting: Ingesting) -> None:
        self._ingesting = ingesting
        self._room = Room(ingesting.waiting_bytes)
        self._thread = asyncio.Semaphore(1)

    @asynccontextmanager
    async def body(self, request: Request) -> AsyncIterator[ReceivedBody]:
        """Give a request's body; it takes room until the end. Raises Problem."""
        with self._room.share() as share:
            content = await content_of(request, self._ingesting.body_limit_bytes, share)
            yield ReceivedBody(content, share)

    async def in_turn(self, size: int, work: Callable[[], _Result]) -> _Result:
        """Return what the work does with so many bytes: in the one thread where these are many."""
        if size <= _AT_ONCE_BYTES:
            return work()
        async with self._thread:
            return await asyncio.to_thread(work)

    async def publish(self, reading: BodyMessages) -> Taken:
        """Publish what is ready. Raises Problem where Kafka does not have all of it."""
        ingesting, ready = self._ingesting, reading.ready
        try:
            await ingesting.intake.publish(ready)
        except NoRoomError:
            raise no_room() from None
        except RetryError as error:
            ingesting.report("publishing", error)
            raise away(
                "Kafka has not acknowledged the messages: send them again, none is counted twice."
            ) from None
        except RecordError as error:
            ingesting.report("publishing", error)
            raise Problem(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                "Kafka refuses a message as too large for its topic: see the server's log.",
                "refused",
            ) from None
        self.count(accepted=len(ready), ignored=reading.ignored)
        return Taken(len(ready), reading.ignored)

    def count(self, **outcomes: int) -> None:
        """Count messages by what became of them."""
        for outcome, messages in outcomes.items():
            if messages:
                self._ingesting.telemetry.count("ingest_messages", messages, outcome=outcome)
