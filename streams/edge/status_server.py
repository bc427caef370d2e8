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

from streams.edge import codec
from streams.edge.health import HealthBoard, Verdict
from streams.edge.metrics import PrometheusTelemetry

METRICS, LIVE, READY = "/metrics", "/healthz", "/readyz"
_PATHS = f"{METRICS}\n{LIVE}\n{READY}\n".encode()
_PLAIN = "text/plain; charset=utf-8"
_SILENCE_S = 10
"""A client that is silent for so long is dropped: it holds a thread."""


class Answer(NamedTuple):
    """What is answered to a request."""

    status: HTTPStatus
    content_type: str
    body: bytes


Answers: TypeAlias = Callable[[str, str], Answer]
"""What gives the answer, from a path and the header `Accept`."""


def answers(telemetry: PrometheusTelemetry, health: HealthBoard) -> Answers:
    """Return what answers for a worker."""

    def answer(path: str, accept: str) -> Answer:
        if path == METRICS:
            encode, content_type = choose_encoder(accept)
            return Answer(HTTPStatus.OK, content_type, encode(telemetry.registry))
        if path == LIVE:
            return _verdict(health.live())
        if path == READY:
            return _verdict(health.ready())
        status = HTTPStatus.OK if path == "/" else HTTPStatus.NOT_FOUND
        return Answer(status, _PLAIN, _PATHS)

    return answer


def _verdict(verdict: Verdict) -> Answer:
    status = HTTPStatus.OK if verdict.ok else HTTPStatus.SERVICE_UNAVAILABLE
    return Answer(status, "application/json", codec.dumps(verdict.document) + b"\n")


class _Server(ThreadingHTTPServer):
    """Takes it as a matter of course that a prober loses patience and goes away."""

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 -- the base's
        """Say nothing of a client that is gone."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class StatusServer:
    """Serves from `start` to `stop`. Port 0 is any free one."""

    def __init__(self, host: str, port: int, answer: Answers) -> None:
        self._host, self._port, self._answer = host, port, answer
        self._server: ThreadingHTTPServer | None = None

    def start(self) -> int:
        """Begin to serve; return the port. Raises OSError where it cannot be had."""
        family, *_, address = socket.getaddrinfo(
            self._host, self._port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        server_class = type("_Family", (_Server,), {"address_family": family})
        server = self._server = server_class(address[:2], _handler(self._answer))
        threading.Thread(target=server.serve_forever, name="status", daemon=True).start()
        return int(server.server_address[1])

    def stop(self) -> None:
        """End; requests under way are cut off with the process."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()


def _handler(answer: Answers) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _SILENCE_S
        server_version = "contextgauge"
        sys_version = ""

        def do_GET(self) -> None:
            self._respond(with_body=True)

        def do_HEAD(self) -> None:
            self._respond(with_body=False)

        def _respond(self, *, with_body: bool) -> None:
            found = answer(self.path.partition("?")[0], self.headers.get("Accept", ""))
            self.send_response(found.status)
            self.send_header("Content-Type", found.content_type)
            self.send_header("Content-Length", str(len(found.body)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            if with_body:
                self.wfile.write(found.body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the base's name
            """Say nothing: probes come every few seconds."""

    return Handler
