"""The route of the live feed, as server-sent events."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from http import HTTPStatus
from typing import Annotated, Any, Final

from pydantic import Field
from sse_starlette.event import ServerSentEvent
from sse_starlette.sse import EventSourceResponse, SendTimeoutError
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from contextgauge.errors import RetryError, StopError
from streams.serve.api.guard import MAY_STILL_READ, STREAM
from streams.serve.api.problems import Problem
from streams.serve.api.routing import Addressed, Described, Header, Router, problems_of
from streams.serve.api.serving import Serving
from streams.serve.feed.feed import Feed, FeedPosition, cut_off, parse_position
from streams.serve.feed.listener import Listener
from streams.serve.views.snapshot import ViewsGoneError

HEARTBEAT_S: Final = 15
"""Often enough for proxies, which drop connections that are silent for 30 to 60 seconds."""

_SEND_S: Final = 20
"""A listener whose connection accepts nothing for this long is cut off."""

_ID_CHARACTERS: Final = 4_000
"""Of an event id: more than 200 partitions."""

_FEED: Final[dict[int, dict[str, Any]]] = {
    200: {
        "description": "Events until either side ends: `record` with a LiveEntry, `reset` where "
        "events were missed, `cut_off` before a reader is disconnected; comments as heartbeats.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}


def add_stream(router: Router, feed: Feed, serving: Serving) -> None:
    """Add the route."""

    @router.add(
        "GET",
        STREAM,
        Described(
            "listen",
            "feed",
            "Listen to the live feed",
            responses=_FEED | problems_of(400, 422),
        ),
    )
    async def stream(
        session: Annotated[
            str | None,
            Addressed(),
            Field(description="Only events of this session, by its whole id or `address`."),
        ] = None,
        last_event_id: Annotated[
            str | None,
            Header(),
            Field(
                max_length=_ID_CHARACTERS,
                description="The id of the last event, or `as_of.feed` of an answer: the events "
                "after it come first.",
            ),
        ] = None,
    ) -> Response:
        """Receive every record as its views are written: its session, and the size after it.

        An id is a position: it is valid after a break, for another server and a new generation.
        """
        since: FeedPosition | None = None
        if last_event_id:
            since = parse_position(last_event_id)
            if since is None:
                raise Problem(
                    HTTPStatus.BAD_REQUEST,
                    "This Last-Event-ID is not from this feed: leave it out to start now.",
                    "bad-place",
                )
        await feed.start()
        # There is no await between this check and counting the listener.
        if feed.listeners >= serving.streams:
            feed.telemetry.count("serve_stream_cut_off", reason="full")
            raise Problem(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"The limit of {serving.streams} concurrent streams is reached "
                "(CONTEXTGAUGE_SERVE_STREAMS).",
                "too-many-streams",
                {"Retry-After": "10"},
            )
        response = _Events(
            _chunks(Listener(feed, since, session), serving.service.capitalize()),
            headers={"Cache-Control": "no-store"},
            ping=HEARTBEAT_S,
            ping_message_factory=lambda: ServerSentEvent(comment="heartbeat"),
            send_timeout=_SEND_S,
        )
        feed.listeners += 1
        feed.telemetry.gauge("serve_stream_readers", feed.listeners)
        response.feed = feed
        return response


class _RevokedError(Exception):
    """A listener's token is no longer valid."""


class _Events(EventSourceResponse):
    """Events that end silently where a listener accepts nothing for too long.

    They end with a reason where its token was revoked, which is checked with each heartbeat.
    """

    feed: Feed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        may_still_read: Callable[[], bool] | None = scope.get(MAY_STILL_READ)

        async def check_token() -> None:
            while may_still_read is not None:
                await asyncio.sleep(HEARTBEAT_S)
                if not may_still_read():
                    raise _RevokedError

        self.data_sender_callable = check_token
        try:
            await super().__call__(scope, receive, send)
        except SendTimeoutError:
            self.feed.telemetry.count("serve_stream_cut_off", reason="stuck")
        except _RevokedError:
            self.feed.telemetry.count("serve_stream_cut_off", reason="token")
            last = cut_off("this token is no longer valid: it was revoked")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_SEND_S):
                    await send({"type": "http.response.body", "body": last})
        finally:
            self.feed.listeners -= 1
            self.feed.telemetry.gauge("serve_stream_readers", self.feed.listeners)


async def _chunks(listener: Listener, service: str) -> AsyncGenerator[bytes, None]:
    try:
        async for chunk in listener.chunks():
            yield chunk
    except (RetryError, StopError, ViewsGoneError):
        # While it was catching up: it has its position to reconnect with.
        yield cut_off(f"{service} does not answer: reconnect with the last id")
