"""Connections of the server: what a client may make it hold before anything is asked.

The guard answers for requests; it sees one once its head is there. Until then uvicorn keeps all
that comes, for as long as it comes, so both are bounded here.
"""

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_HEAD_BYTES: Final = 128 * 1024
"""Of a request beside its body: the guard says no to far less, with a reason; this is for what it
never comes to see: a head without an end, trailers, the lengths of a body's chunks."""

HEAD_S: Final = 30.0
"""For so long a connection may be open, or a request under way, without a whole head."""

_REFUSED: Final = (
    b"HTTP/1.1 %d %s\r\n"
    b"content-type: text/plain; charset=utf-8\r\n"
    b"content-length: %d\r\n"
    b"connection: close\r\n\r\n%s"
)


class BoundedProtocol(HttpToolsProtocol):
    """A connection. `most_connections` at a time, None: any number."""

    most_connections: int | None = None

    _spent = 0
    _began = 0
    _body = 0
    _in_head = False
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take the connection, or send it away where there are too many."""
        super().connection_made(transport)
        most = self.most_connections
        if most is not None and len(self.connections) > most:
            self._refuse(503, b"Service Unavailable", b"Too many connections: come back later.\n")
            return
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of it."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what came, unless it is too much for one head."""
        if self.transport.is_closing():
            return
        began, body = self._began, self._body
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._began == began:
            # Where a head began in this piece, the piece is small enough as it is.
            self._spent += len(data) - (self._body - body)
            if self._spent > MOST_HEAD_BYTES:
                told = b"The headers are longer than %d bytes.\n" % MOST_HEAD_BYTES
                self._refuse(431, b"Request Header Fields Too Large", told)
                return
        if not self._is_answering():
            self._wait()

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self._began += 1
        self._spent = 0
        self._in_head = True
        # A browser opens connections ahead of what it asks: a request has its own time.
        self._stop_waiting()
        self._wait()

    def on_headers_complete(self) -> None:
        """Begin to answer."""
        self._in_head = False
        self._stop_waiting()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of a body."""
        self._body += len(body)
        super().on_body(body)

    def _is_answering(self) -> bool:
        # There is no cycle before the first head.
        return not getattr(self.cycle, "response_complete", True)

    def _wait(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_S, self._too_slow)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _too_slow(self) -> None:
        self._head_timer = None
        if self._is_answering():
            self._wait()  # the next request may wait for this answer
        elif self._in_head:
            self._refuse(408, b"Request Timeout", b"The request did not come to its end.\n")
        else:
            self.transport.close()

    def _refuse(self, status: int, title: bytes, told: bytes) -> None:
        self._stop_waiting()
        if not self._is_answering():
            self.transport.write(_REFUSED % (status, title, len(told), told))
        self.transport.close()


def bounded(most_connections: int | None) -> type[BoundedProtocol]:
    """Return the protocol of a server that takes so many connections at a time."""
    members: dict[str, Any] = {"most_connections": most_connections}
    return type("Bounded", (BoundedProtocol,), members)
