"""The body of a request: received and decompressed within bounds, and what it takes counted."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final

from starlette.requests import ClientDisconnect, Request

from streams.edge.content_encoding import (
    ENCODINGS,
    DecodedTooLargeError,
    UndecodableError,
    decoded,
)
from streams.ingest.reading import MOST_MESSAGES
from streams.serve.api.problems import Problem

RETRY_S: Final = "1"
"""Seconds after which there is room again, unless Kafka is away."""

_AT_ONCE_BYTES: Final = 16 * 1024
"""A larger body is decompressed in a thread: others are answered meanwhile."""


class Room:
    """The bytes of all requests under way, of which there are at most `limit`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.used = 0

    @contextmanager
    def share(self) -> Iterator["Share"]:
        """Return what one request takes; it is free again at the end."""
        share = Share(self)
        try:
            yield share
        finally:
            self.used -= share.size

    def check(self, size: int, has: int) -> None:
        """Raise Problem where a request that has some cannot take so many bytes more."""
        if has + size > self._limit:
            raise Problem(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"The request takes more than the {self._limit} bytes that there are for all: send "
                "it in several requests.",
                "too-large",
            )
        if self.used + size > self._limit:
            raise no_room()


class Share:
    """What one request takes of the room."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self.size = 0

    def take(self, size: int) -> None:
        """Take so many bytes more. Raises Problem where there is no room."""
        self.check(size)
        self._room.used += size
        self.size += size

    def check(self, size: int) -> None:
        """Raise Problem where there is no room for so many bytes more; a thread may call it."""
        self._room.check(size, self.size)


def no_room() -> Problem:
    """Return the answer to a request for which there is no room at the moment."""
    return Problem(
        HTTPStatus.TOO_MANY_REQUESTS,
        "Too much waits for Kafka: nothing of this request was taken. Send it again later.",
        "under-pressure",
        {"Retry-After": RETRY_S},
    )


def too_many() -> Problem:
    """Return the answer to a request with more than `MOST_MESSAGES` messages or items."""
    return Problem(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        f"A request has at most {MOST_MESSAGES:,} messages: send them in several requests.",
        "too-large",
    )


def encoding_of(request: Request) -> str | None:
    """Return how the body is compressed; None where it is not. Raises Problem."""
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding == "identity":
        return None
    if encoding not in ENCODINGS:
        raise Problem(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            f"Send the body plain, or with `Content-Encoding: {' or '.join(ENCODINGS)}`.",
            "unknown-encoding",
            {"Accept-Encoding": ", ".join(ENCODINGS)},
        )
    return encoding


async def content_of(request: Request, most: int, share: Share) -> bytes:
    """Return a request's body, decompressed. Raises Problem.

    The guard bounds what comes; `most` bounds what that unpacks to.
    """
    encoding = encoding_of(request)
    pieces = []
    try:
        async for piece in request.stream():
            share.take(len(piece))
            pieces.append(piece)
    except ClientDisconnect:
        raise Problem(HTTPStatus.BAD_REQUEST, "The body has not come whole.") from None
    body = b"".join(pieces)
    if encoding is None:
        return body
    try:
        if len(body) <= _AT_ONCE_BYTES:
            content = decoded(encoding, body, most)
        else:
            content = await asyncio.to_thread(decoded, encoding, body, most)
    except DecodedTooLargeError:
        raise Problem(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"The body decompresses to more than {most} bytes: send it in several requests.",
            "too-large",
        ) from None
    except UndecodableError:
        raise Problem(
            HTTPStatus.BAD_REQUEST,
            f"The body is not {encoding}: compress it again, or leave out Content-Encoding.",
            "bad-encoding",
        ) from None
    share.take(len(content))
    return content
