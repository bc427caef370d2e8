"""What stands before every route: sizes, who asks, how much, and what an error looks like.

An ASGI middleware of its own, so that the live feed goes through it without being touched.
"""

import ipaddress
from collections.abc import Callable, Mapping
from http import HTTPStatus
from math import ceil
from typing import Final
from urllib.parse import quote, unquote

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from contextgauge.errors import ConfigError
from streams.edge.files.tokens import hashed
from streams.ports import Clock, Telemetry
from streams.serve.api.limits import Rates
from streams.serve.api.problems import Problem, away

Report = Callable[[str, BaseException], None]
"""Logs an error, told what was going on; never what the error says of a message."""

PROBES: Final = frozenset({"/healthz", "/readyz", "/metrics"})
"""For supervisors and Prometheus: no token, no rate, nothing of any session."""

STREAM: Final = "/v1/stream"

MAY_STILL_READ: Final = "contextgauge.may_still_read"
"""In the scope of a request with a token: tells whether that is known now. For answers without an
end."""

_PRIVATE: Final = ("/v1", "/api")
"""Where sessions are told of. What else there is, is the same for everybody."""

_WITH_IDS: Final = ("/v1/sessions/", "/api/agents/")

_TARGET_BYTES: Final = 8 * 1024
_HEADER_BYTES: Final = 32 * 1024
_BODY_BYTES: Final = 16 * 1024
"""Nothing here takes a body; what some clients send beside a GET is read and dropped."""

_UNDER_WAY: Final = 500
"""Requests answered at a time: each may take a connection to Redis, which has 10 000 for all."""

_SECURE: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)


class Guard:
    """Wraps an application.

    `readers` gives the names of readers by the hashes of their tokens; None: everybody may read.
    `only_here`: what is served is meant for this machine, so a name that somebody's DNS made point
    here, for a web page to read it by, is refused. `streams` tells how many listen to the feed.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        readers: Callable[[], Mapping[str, str]] | None,
        only_here: bool,
        rates: Rates,
        clock: Clock,
        telemetry: Telemetry,
        report: Report,
        streams: Callable[[], int],
    ) -> None:
        self._app = app
        self._streams = streams
        self._readers, self._only_here = readers, only_here
        self._rates, self._clock = rates, clock
        self._telemetry, self._report = telemetry, report
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began_s = self._clock.monotonic_s()
        # The feed never ends, so there is no head of it alone.
        is_head = scope["method"] == "HEAD" and scope["path"] != STREAM
        sending = _Sending(send, without_body=is_head)
        if sending.without_body:
            scope = {**scope, "method": "GET"}
        inner = dict(scope)
        self._under_way += 1
        try:
            self._admit(inner)
            inner["path"] = _with_whole_ids(inner)
            await self._app(inner, _bounded(receive), sending)
        except Problem as problem:
            await self._tell(problem, inner, receive, sending)
        except Exception as error:  # noqa: BLE001 -- the last one to hear of it
            self._report("answering a request", error)
            internal = Problem(
                HTTPStatus.INTERNAL_SERVER_ERROR,
                "An error in contextgauge itself: the server's log has more.",
                "internal",
            )
            await self._tell(internal, inner, receive, sending)
        finally:
            self._under_way -= 1
        route = getattr(inner.get("route"), "path", "none")
        self._telemetry.count("serve_requests", route=route, status=str(sending.status))
        if route != STREAM:
            self._telemetry.observe(
                "serve_request_seconds", self._clock.monotonic_s() - began_s, route=route
            )

    async def _tell(
        self, problem: Problem, scope: Scope, receive: Receive, sending: "_Sending"
    ) -> None:
        # Once an answer has begun it cannot be another one: the connection is closed.
        if not sending.status:
            await problem.response(scope["path"])(scope, receive, sending)

    def _admit(self, scope: Scope) -> None:
        """Raise Problem for a request that is not answered."""
        headers = Headers(scope=scope)
        _check_sizes(scope, headers)
        path: str = scope["path"]
        if path in PROBES:
            return
        if self._under_way - self._streams() > _UNDER_WAY:
            raise Problem(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "More is asked at once than this server answers: ask again in a moment.",
                "busy",
                {"Retry-After": "1"},
            )
        if self._readers is None and self._only_here:
            _check_host(headers.get("host", ""))
        name = self._name(headers)
        client = scope.get("client")
        wait_s = self._rates.wait_s(name or (client[0] if client else ""))
        if wait_s > 0:
            raise Problem(
                HTTPStatus.TOO_MANY_REQUESTS,
                "Too many requests: ask less often, with If-None-Match, or read /v1/stream.",
                "rate-limited",
                {"Retry-After": str(max(ceil(wait_s), 1))},
            )
        if self._readers is not None and name is None and is_private(path):
            raise _unauthorized(headers)
        if name is not None:
            scope[MAY_STILL_READ] = lambda: self._is_known(headers)

    def _is_known(self, headers: Headers) -> bool:
        try:
            return self._name(headers) is not None
        except Problem:
            return False  # who comes back is told that the tokens cannot be read

    def _name(self, headers: Headers) -> str | None:
        """Return the name of who asks, by the token; None without one that is known."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if self._readers is None or scheme.lower() != "bearer":
            return None
        try:
            names = self._readers()
        except ConfigError as error:
            self._report("reading the tokens", error)
            raise away("The server cannot read who may ask: its log says why.") from None
        return names.get(hashed(token.strip()))


class _Sending:
    """Sends an answer, and knows how it began."""

    def __init__(self, send: Send, *, without_body: bool) -> None:
        self._send = send
        self.without_body = without_body
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message = {**message, "headers": [*message.get("headers", ()), *_SECURE]}
        elif self.without_body and message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await self._send(message)


def _bounded(receive: Receive) -> Receive:
    """Return what receives a body no larger than any that is of use."""
    taken = 0

    async def bounded() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > _BODY_BYTES:
            raise _too_large()
        return message

    return bounded


def _check_sizes(scope: Scope, headers: Headers) -> None:
    target = len(scope.get("raw_path") or scope["path"].encode()) + len(scope["query_string"])
    if target > _TARGET_BYTES:
        raise Problem(
            HTTPStatus.REQUEST_URI_TOO_LONG,
            f"The address is longer than {_TARGET_BYTES} bytes.",
            "too-large",
        )
    if sum(len(name) + len(value) for name, value in headers.raw) > _HEADER_BYTES:
        raise Problem(
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
            f"The headers are longer than {_HEADER_BYTES} bytes.",
            "too-large",
        )
    length = headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > _BODY_BYTES:
        raise _too_large()


def _too_large() -> Problem:
    return Problem(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        f"No request here needs a body; one of more than {_BODY_BYTES} bytes is not read.",
        "too-large",
    )


def _check_host(host: str) -> None:
    name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
    name = name.strip("[]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return
    try:
        ipaddress.ip_address(name)
    except ValueError:
        raise Problem(
            HTTPStatus.MISDIRECTED_REQUEST,
            "This server answers for this machine only, as localhost or by its address: set "
            "CONTEXTGAUGE_SERVE_HOST, and CONTEXTGAUGE_SERVE_TOKENS_FILE, to serve others.",
            "wrong-host",
        ) from None


def _with_whole_ids(scope: Scope) -> str:
    """Return the path with its id as it was sent, for the route's convertor to decode.

    A slash within an id is `%2F`: decoded before the routes are looked at, an id that ends in
    `/events` would be a question about another session.
    """
    path: str = scope["path"]
    if not path.startswith(_WITH_IDS):
        return path
    _, first, second, *_ = path.split("/")
    sent = (scope.get("raw_path") or b"").decode("ascii", "replace").split("/")
    if [unquote(part) for part in sent[1:3]] != [first, second]:
        return quote(path, safe="/", errors="replace")
    return "/".join(["", first, second, *sent[3:]])


def is_private(path: str) -> bool:
    """Tell whether sessions are told of below this path, to readers with a token only."""
    return any(path == part or path.startswith(part + "/") for part in _PRIVATE)


def _unauthorized(headers: Headers) -> Problem:
    if "authorization" in headers:
        told = "This token is not known here: it may have been taken back."
        challenge = 'Bearer realm="contextgauge", error="invalid_token"'
    else:
        told = "Send a token as `Authorization: Bearer …`: who runs this server makes them."
        challenge = 'Bearer realm="contextgauge"'
    return Problem(HTTPStatus.UNAUTHORIZED, told, "unauthorized", {"WWW-Authenticate": challenge})
