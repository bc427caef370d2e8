"""The middleware before every route: size limits, authentication, rate limits, last-resort errors.

It is plain ASGI, so that the live feed streams through it.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from http import HTTPStatus
from math import ceil
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from contextgauge.errors import ConfigError
from streams.edge.files.tokens import hashed
from streams.edge.hosts import is_rebound
from streams.ports import Clock
from streams.serve.api.problems import Problem, away
from streams.serve.api.serving import ServerContext

PROBES: Final = frozenset({"/healthz", "/readyz", "/metrics"})
"""For supervisors and Prometheus: no token, no rate, nothing of any session."""

STREAM: Final = "/v1/stream"

MAY_STILL_READ: Final = "contextgauge.may_still_read"
"""In the scope of a request with a token: returns whether it is still valid, for the feed."""

READER: Final = "contextgauge.reader"
"""In the scope of a request: the reader's name, None without a token."""

_PRIVATE: Final = ("/v1", "/api")
"""Paths with data of sessions. All others are the same for everybody."""

_WITH_IDS: Final = ("/v1/sessions/", "/v1/agents/", "/v1/projects/", "/api/agents/")

_TARGET_BYTES: Final = 8 * 1024
_HEADER_BYTES: Final = 32 * 1024


class BodyLimits(NamedTuple):
    """How large a body may be, in how much time it comes, and whether in chunks too."""

    size: int
    seconds: float
    may_be_chunked: bool


SMALL_BODIES: Final = BodyLimits(16 * 1024, 10.0, may_be_chunked=False)
"""Bodies of the API are a few settings and a text for a summariser, and some clients send one with
a GET. Clients send it at once: others would keep places from readers."""

_UNDER_WAY: Final = 500
"""Requests answered at a time: each may take a connection to Redis, which has 10 000 for all."""

_SECURE: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)


_BURST_S: Final = 10
"""Seconds' worth of requests at once: a page that opens makes many, and then few."""

_LIMITED_READERS: Final = 10_000
"""Token buckets in memory; the least recently used is full again, or one of very many."""


class RateLimits:
    """A token bucket for each reader: `per_s` requests on average; 0: no limit."""

    def __init__(self, per_s: int, clock: Clock) -> None:
        self._per_s, self._clock = per_s, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_s(self, reader: str) -> float:
        """Take one request; return 0, or for how long the reader has to wait."""
        if not self._per_s:
            return 0.0
        most, now_s = float(self._per_s * _BURST_S), self._clock.monotonic_s()
        left, at_s = self._buckets.pop(reader, (most, now_s))
        left = min(left + (now_s - at_s) * self._per_s, most)
        wait_s = 0.0 if left >= 1 else (1 - left) / self._per_s
        self._buckets[reader] = (left - 1 if left >= 1 else left, now_s)
        if len(self._buckets) > _LIMITED_READERS:
            self._buckets.popitem(last=False)
        return wait_s


class Guard:
    """Wraps an application. `streams` counts listeners to the feed."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        serving: ServerContext,
        streams: Callable[[], int] = lambda: 0,
        bodies: BodyLimits | None = None,
    ) -> None:
        self._app, self._serving, self._streams = app, serving, streams
        self._bodies = bodies or SMALL_BODIES
        self._rates = RateLimits(serving.requests_per_s, serving.clock)
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        serving = self._serving
        began_s = serving.clock.monotonic_s()
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
            await self._app(inner, _Receiving(receive, self._bodies), sending)
        except Exception as error:  # noqa: BLE001 -- nothing above would handle it
            problem = error if isinstance(error, Problem) else _internal(serving, error)
            # An answer that has begun cannot be replaced: the connection is closed.
            if not sending.status:
                await problem.response(inner["path"])(inner, receive, sending)
        finally:
            self._under_way -= 1
        route = getattr(inner.get("route"), "path", "none")
        status = str(sending.status)
        serving.telemetry.count(serving.requests_metric, route=route, status=status)
        if route != STREAM:
            took_s = serving.clock.monotonic_s() - began_s
            serving.telemetry.observe(serving.seconds_metric, took_s, route=route)

    def _admit(self, scope: Scope) -> None:
        """Raise Problem for a request that is refused."""
        headers = Headers(scope=scope)
        _check_sizes(scope, headers, self._bodies)
        has_readers = self._serving.readers is not None
        checks_name = self._serving.only_here or bool(self._serving.names)
        if checks_name and not has_readers:
            # Else an attacker's DNS name that points here would let a web page read the answers.
            _check_host(headers.get("host", ""), self._serving)
        path: str = scope["path"]
        if path in PROBES:
            return
        if self._under_way - self._streams() > _UNDER_WAY:
            raise Problem(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "Too many concurrent requests: try again in a moment.",
                "busy",
                {"Retry-After": "1"},
            )
        name = self._name(headers)
        client = scope.get("client")
        wait_s = self._rates.wait_s(name or (client[0] if client else ""))
        if wait_s > 0:
            raise Problem(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"Too many requests: {self._serving.rate_hint}.",
                "rate-limited",
                {"Retry-After": str(max(ceil(wait_s), 1))},
            )
        if has_readers and name is None and is_private(path):
            raise _unauthorized(headers)
        scope[READER] = name
        if name is not None:
            scope[MAY_STILL_READ] = lambda: self._is_known(headers)

    def _is_known(self, headers: Headers) -> bool:
        try:
            return self._name(headers) is not None
        except Problem:
            return False  # the next request is answered with the reason

    def _name(self, headers: Headers) -> str | None:
        """Return the reader's name, by the token; None without a valid one."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if self._serving.readers is None or scheme.lower() != "bearer":
            return None
        try:
            names = self._serving.readers()
        except ConfigError as error:
            self._serving.report("reading the tokens", error)
            raise away("The server cannot read its tokens: see the server's log.") from None
        return names.get(hashed(token.strip()))


def _internal(serving: ServerContext, error: Exception) -> Problem:
    serving.report("answering a request", error)
    detail = "Internal error: see the server's log."
    return Problem(HTTPStatus.INTERNAL_SERVER_ERROR, detail, "internal")


class _Receiving:
    """Receives a request; its body within some seconds, and of at most so many bytes."""

    def __init__(self, receive: Receive, limits: BodyLimits) -> None:
        self._receive, self._limits = receive, limits
        self._is_whole = False
        self._received = 0
        self._until_s = asyncio.get_running_loop().time() + limits.seconds

    async def __call__(self) -> Message:
        if self._is_whole:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._until_s):
                message = await self._receive()
        except TimeoutError:
            raise Problem(
                HTTPStatus.REQUEST_TIMEOUT,
                f"The body did not come within {self._limits.seconds:.0f} seconds.",
                "timeout",
            ) from None
        self._received += len(message.get("body", b""))
        if self._received > self._limits.size:
            raise _too_large(self._limits)
        self._is_whole = not message.get("more_body", False)
        return message


class _Sending:
    """Sends an answer and remembers its status."""

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


def _check_sizes(scope: Scope, headers: Headers, bodies: BodyLimits) -> None:
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
    is_refused = "transfer-encoding" in headers and not bodies.may_be_chunked
    if is_refused or not length.isdecimal() or int(length) > bodies.size:
        raise _too_large(bodies)


def _too_large(bodies: BodyLimits) -> Problem:
    length = "" if bodies.may_be_chunked else ", and it needs a Content-Length"
    detail = f"The limit of a body is {bodies.size} bytes{length}."
    return Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, detail, "too-large")


def _check_host(host: str, serving: ServerContext) -> None:
    if is_rebound(host, serving.names):
        raise Problem(
            HTTPStatus.MISDIRECTED_REQUEST,
            "This server answers as localhost, by its address, and by the names of "
            f"{serving.settings}_NAMES only: set {serving.host_setting} and "
            f"{serving.settings}_TOKENS_FILE to serve others.",
            "wrong-host",
        )


def _with_whole_ids(scope: Scope) -> str:
    """Return the path with its id still encoded, for the route's convertor to decode.

    A slash within an id is `%2F`: if it were decoded before routing, an id that ends in `/events`
    would name another session's records.
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
    """Return whether a path has data of sessions, for readers with a token only."""
    return any(path == part or path.startswith(part + "/") for part in _PRIVATE)


def _unauthorized(headers: Headers) -> Problem:
    if "authorization" in headers:
        detail = (
            "Unknown token: it may have been revoked, or be for another server: tokens of "
            "`contextgauge token NAME` read, those of `contextgauge token NAME --publish` publish."
        )
        challenge = 'Bearer realm="contextgauge", error="invalid_token"'
    else:
        detail = "Send a token as `Authorization: Bearer …`; the server's operator issues them."
        challenge = 'Bearer realm="contextgauge"'
    return Problem(HTTPStatus.UNAUTHORIZED, detail, "unauthorized", {"WWW-Authenticate": challenge})
