"""Limits on connections: what a client may send, and how long, before its request is complete.

The guard limits requests, but sees one only when its head is complete. Until then uvicorn buffers
without limits of size or time.
"""

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_HEAD_BYTES: Final = 128 * 1024
"""Of a request without its body. The guard rejects far less, with a reason; this limits what it
never sees: an endless head, trailers, chunk headers."""

HEAD_S: Final = 30.0
"""How long a connection may be open, or a request in progress, without a complete head."""

_REFUSED: Final = (
    b"HTTP/1.1 %d %s\r\n"
    b"content-type: text/plain; charset=utf-8\r\n"
    b"content-length: %d\r\n"
    b"connection: close\r\n\r\n%s"
)


class BoundedProtocol(HttpToolsProtocol):
    """A connection. `most_connections` limits their number; None: unlimited."""

    most_connections: int | None = None

    _spent = 0
    _began = 0
    _body = 0
    _in_head = False
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept the connection, or reject it if there are too many."""
        super().connection_made(transport)
        most = self.most_connections
        if most is not None and len(self.connections) > most:
            self._refuse(503, b"Service Unavailable", b"Too many connections: retry later.\n")
            return
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Process the data, unless the head gets too long."""
        if self.transport.is_closing():
            return
        began, body = self._began, self._body
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._began == began:
            # If a head began in this data, the data is short enough.
            self._spent += len(data) - (self._body - body)
            if self._spent > MOST_HEAD_BYTES:
                text = b"The headers are longer than %d bytes.\n" % MOST_HEAD_BYTES
                self._refuse(431, b"Request Header Fields Too Large", text)
                return
        if not self._is_answering():
            self._wait()

    def on_message_begin(self) -> None:
        """Start the timer of a request."""
        super().on_message_begin()
        self._began += 1
        self._spent = 0
        self._in_head = True
        # Browsers open connections in advance: each request has the full time.
        self._stop_waiting()
        self._wait()

    def on_headers_complete(self) -> None:
        """Stop the timer: the head is complete."""
        self._in_head = False
        self._stop_waiting()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Count a part of a body."""
        self._body += len(body)
        super().on_body(body)

    def _is_answering(self) -> bool:
        # There is no cycle before the first head is complete.
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
            self._wait()  # the next request waits for this response
        elif self._in_head:
            self._refuse(408, b"Request Timeout", b"The request was not completed in time.\n")
        else:
            self.transport.close()

    def _refuse(self, status: int, title: bytes, text: bytes) -> None:
        self._stop_waiting()
        if not self._is_answering():
            self.transport.write(_REFUSED % (status, title, len(text), text))
        self.transport.close()


def bounded(most_connections: int | None) -> type[BoundedProtocol]:
    """Return the protocol of a server that accepts so many connections at a time."""
    members: dict[str, Any] = {"most_connections": most_connections}
    return type("Bounded", (BoundedProtocol,), members)
