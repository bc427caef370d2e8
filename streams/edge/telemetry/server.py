"""HTTP of a worker: `/metrics`, `/healthz` and `/readyz`, on one port.

Served from threads of their own, so that they answer while the event loop stands still.
"""

import socket
import sys
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, TypeAlias

from prometheus_client.exposition import choose_encoder

from schemas.records import Json
from streams import codec
from streams.edge.hosts import is_of_this_machine, is_rebound
from streams.edge.telemetry.metrics import PrometheusTelemetry
from streams.ports import Health

METRICS, LIVE, READY = "/metrics", "/healthz", "/readyz"
_PATHS = f"{METRICS}\n{LIVE}\n{READY}\n".encode()
_PLAIN = "text/plain; charset=utf-8"
_WRONG_HOST = (
    b"This worker answers on this machine only, as localhost or by its address: set "
    b"CONTEXTGAUGE_METRICS_HOST to serve others.\n"
)
_SILENCE_S = 10
"""A client that is silent for so long is dropped: it holds a thread."""


class StatusResponse(NamedTuple):
    """What is answered to a request."""

    status: HTTPStatus
    content_type: str
    body: bytes


StatusHandler: TypeAlias = Callable[[str, str], StatusResponse]
"""What gives the answer, from a path and the header `Accept`."""


def answers(telemetry: PrometheusTelemetry, health: Health) -> StatusHandler:
    """Return what answers for a worker."""

    def answer(path: str, accept: str) -> StatusResponse:
        if path == METRICS:
            encode, content_type = choose_encoder(accept)
            return StatusResponse(HTTPStatus.OK, content_type, encode(telemetry.registry))
        if path == LIVE:
            return verdict(*health.live())
        if path == READY:
            return verdict(*health.ready())
        return not_a_path(path)

    return answer


def verdict(ok: bool, document: dict[str, Json]) -> StatusResponse:  # noqa: FBT001 -- a Verdict's parts
    """Return the answer to a probe."""
    status = HTTPStatus.OK if ok else HTTPStatus.SERVICE_UNAVAILABLE
    return StatusResponse(status, "application/json", codec.dumps(document) + b"\n")


def not_a_path(path: str) -> StatusResponse:
    """Return the answer to any other path: those that there are."""
    return StatusResponse(HTTPStatus.OK if path == "/" else HTTPStatus.NOT_FOUND, _PLAIN, _PATHS)


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that takes connections. Port 0 is any free one.

    Raises OSError where the port cannot be had.
    """
    family, *_, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    dual = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
    return socket.create_server(address, family=family, dualstack_ipv6=dual)


def port_of(listener: socket.socket) -> int:
    """Return the port of a socket that takes connections."""
    return int(listener.getsockname()[1])


class StatusServer(ThreadingHTTPServer):
    """Serves what comes to `listener`, which it closes in the end, from `start` to `stop`."""

    def __init__(self, listener: socket.socket, answer: StatusHandler) -> None:
        address = listener.getsockname()
        handler = _handler(answer, only_here=is_of_this_machine(str(address[0])))
        super().__init__(address, handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener

    def start(self) -> None:
        """Begin to serve."""
        threading.Thread(target=self.serve_forever, name="status", daemon=True).start()

    def stop(self) -> None:
        """End what `start` began; requests under way are cut off with the process."""
        self.shutdown()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 -- the base's
        """Ignore a client that is gone: a prober may lose patience."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


def _handler(answer: StatusHandler, *, only_here: bool) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _SILENCE_S
        server_version = "contextgauge"
        sys_version = ""

        def do_GET(self) -> None:
            self._respond(with_body=True)

        def do_HEAD(self) -> None:
            self._respond(with_body=False)

        def _respond(self, *, with_body: bool) -> None:
            if only_here and is_rebound(self.headers.get("Host", "localhost")):
                response = StatusResponse(HTTPStatus.MISDIRECTED_REQUEST, _PLAIN, _WRONG_HOST)
            else:
                response = answer(self.path.partition("?")[0], self.headers.get("Accept", ""))
            self.send_response(response.status)
            self.send_header("Content-Type", response.content_type)
            self.send_header("Content-Length", str(len(response.body)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            if with_body:
                self.wfile.write(response.body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the base's name
            """Log nothing: probes come every few seconds."""

    return Handler
