"""The route of the live feed, as server-sent events."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from http import HTTPStatus
from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Query, Response
from sse_starlette.event import ServerSentEvent
from sse_starlette.sse import EventSourceResponse, SendTimeoutError
from starlette.types import Receive, Scope, Send

from contextgauge.errors import RetryError, StopError
from streams.ports import Clock, Telemetry, ViewReader
from streams.serve.api.guard import MAY_STILL_READ, STREAM
from streams.serve.api.openapi import problems_of
from streams.serve.api.problems import Problem
from streams.serve.api.reading import Reading
from streams.serve.api.sessions import ViewsGoneError
from streams.serve.feed.feed import Feed, Place, because, parse_place
from streams.serve.feed.listening import Listener

HEARTBEAT_S: Final = 15
"""Often enough for proxies, which drop what is silent for a minute or half of one."""

_SEND_S: Final = 20
"""A listener whose connection takes nothing for so long is cut off."""

_MOST_PLACE: Final = 4_000
"""Characters of a place: 200 partitions and more."""

_FEED: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "Events until either side ends: `record` with a LiveEntry, `reset` where "
        "events were missed, `cut_off` before a slow reader is sent away; comments as heartbeats.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}


def add_stream(  # noqa: PLR0917 -- what it reads and is told
    router: APIRouter,
    reading: Reading,
    feed: Feed,
    reader: ViewReader,
    clock: Clock,
    telemetry: Telemetry,
    most: int,
) -> None:
    """Add the route; `most` listeners at a time."""

    @router.get(
        STREAM,
        response_class=Response,
        responses=_FEED | problems_of(400, 422),
        summary="Listen to the live feed",
        operation_id="listen",
        tags=["feed"],
    )
    async def stream(
        session: Annotated[
            str | None, Query(max_length=1_000, description="The only session to hear of.")
        ] = None,
        last_event_id: Annotated[
            str | None,
            Header(
                max_length=_MOST_PLACE,
                description="The id of the last event, or `as_of.feed` of an answer: what came "
                "after it is told first.",
            ),
        ] = None,
    ) -> Response:
        """Hear of every record as its views are written: whose it is, and the size after it.

        An id is a place: it is good after a break, for another server, and for a new generation.
        """
        since: Place | None = None
        if last_event_id:
            since = parse_place(last_event_id)
            if since is None:
                raise Problem(
                    HTTPStatus.BAD_REQUEST,
                    "This Last-Event-ID is none that this feed gave: leave it out to begin now.",
                    "bad-place",
                )
        await feed.start()
        # Nothing is waited for between this and counting the listener.
        if feed.listeners >= most:
            telemetry.count("serve_stream_cut_off", reason="full")
            raise Problem(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"{most} readers listen already, as many as CONTEXTGAUGE_SERVE_STREAMS lets.",
                "too-many-streams",
                {"Retry-After": "10"},
            )
        listener = Listener(feed, reader, reading.moments, clock, telemetry, since, session)
        response = _Events(
            _told(listener),
            headers={"Cache-Control": "no-store"},
            ping=HEARTBEAT_S,
            ping_message_factory=_heartbeat,
            send_timeout=_SEND_S,
        )
        feed.listeners += 1
        telemetry.gauge("serve_stream_readers", feed.listeners)
        response.feed, response.telemetry = feed, telemetry
        return response


class _TakenBackError(Exception):
    """The token that a listener came with is no longer known."""


class _Events(EventSourceResponse):
    """Events that end without a word where a listener takes nothing for too long.

    And with one where its token was taken back, which is looked at with each heartbeat.
    """

    feed: Feed
    telemetry: Telemetry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        may_still_read: Callable[[], bool] | None = scope.get(MAY_STILL_READ)

        async def look_again() -> None:
            while may_still_read is not None:
                await asyncio.sleep(HEARTBEAT_S)
                if not may_still_read():
                    raise _TakenBackError

        self.data_sender_callable = look_again
        try:
            await super().__call__(scope, receive, send)
        except SendTimeoutError:
            self.telemetry.count("serve_stream_cut_off", reason="stuck")
        except _TakenBackError:
            self.telemetry.count("serve_stream_cut_off", reason="token")
            reason = because("this token is no longer known: it was taken back")
            last = b"event: cut_off\ndata: %s\n\n" % reason
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_SEND_S):
                    await send({"type": "http.response.body", "body": last})
        finally:
            self.feed.listeners -= 1
            self.telemetry.gauge("serve_stream_readers", self.feed.listeners)


def _heartbeat() -> ServerSentEvent:
    return ServerSentEvent(comment="heartbeat")


async def _told(listener: Listener) -> AsyncGenerator[bytes, None]:
    try:
        async for chunk in listener.chunks():
            yield chunk
    except (RetryError, StopError, ViewsGoneError):
        # While it was being brought up to date: it has its place, and comes back with it.
        reason = because("Redis does not answer: come back with the last id")
        yield b"event: cut_off\ndata: %s\n\n" % reason
