"""The application that `contextgauge serve` runs: guard, routes, errors and the live feed.

It reads views. Where it may, it sends requests to the control plane, and writes nothing else.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, Final, TypeAlias

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from contextgauge.errors import FormerViewsError, RetryError, StopError, WrongServerError
from streams.serve.api import answers, control, doc_pages, routes
from streams.serve.api.doc_pages import document_routes
from streams.serve.api.guard import STREAM, Guard, is_private
from streams.serve.api.page import page_routes
from streams.serve.api.probes import probe_routes
from streams.serve.api.problems import Problem, away
from streams.serve.api.reading import Reading
from streams.serve.api.routing import ApiRoute, Router
from streams.serve.api.serving import Serving
from streams.serve.feed.feed import Feed
from streams.serve.feed.stream import add_stream
from streams.serve.views.snapshot import ViewsGoneError

_GZIP_LEVEL: Final = 4
"""A fifth of the time of the highest level, for some per cent more bytes."""
_GZIP_BYTES: Final = 1_024
"""A smaller answer is one packet either way."""

_LOOK_S: Final = 1.0
"""How often the server checks the views for its readiness."""

_SEE_LOG: Final = "see the server's log"
"""No details of an error: the readiness check needs no token."""


def create_app(serving: Serving) -> Starlette:
    """Return the application."""
    reading = Reading(
        serving.reader, serving.clock, serving.points, serving.titles, serving.runtime_settings
    )
    feed = Feed(serving.reader, reading.snapshots, serving.clock, serving.telemetry, serving.report)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        watching = asyncio.create_task(_watch(serving, reading))
        yield
        await feed.stop()
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)

    router = Router(reading.addressed)
    control.add_control(router, reading, serving)
    routes.add_routes(router, reading, serving)
    add_stream(router, feed, serving)
    app = Starlette(
        routes=[
            *router.routes,
            *probe_routes(serving),
            *document_routes(lambda: api_document(app)),
            *page_routes(),
        ],
        middleware=_middleware(serving, feed),
        exception_handlers=_error_handlers(serving),
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    app.state.feed = feed
    return app


def _middleware(serving: Serving, feed: Feed) -> list[Middleware]:
    """Return what wraps the routes, from outside to inside."""
    inner = [
        Middleware(Guard, serving=serving, streams=lambda: feed.listeners),
        Middleware(GZipMiddleware, minimum_size=_GZIP_BYTES, compresslevel=_GZIP_LEVEL),
    ]
    if not serving.origins:
        return inner
    of_browsers = Middleware(
        CORSMiddleware,
        allow_origins=list(serving.origins),
        allow_methods=["GET", "HEAD"],
        allow_headers=["Authorization", "If-None-Match", "Last-Event-ID"],
        expose_headers=["ETag", "Retry-After", "WWW-Authenticate", *answers.AGE_HEADERS],
    )
    return [of_browsers, *inner]


def api_document(app: Starlette) -> dict[str, Any]:
    """Return the OpenAPI document of the application."""
    from streams.serve.api import openapi  # noqa: PLC0415 -- its shapes take 15 ms to import

    return openapi.served([route for route in app.routes if isinstance(route, ApiRoute)])


_ErrorHandlers: TypeAlias = dict[Any, Callable[[Request, Any], Awaitable[Response]]]


def _error_handlers(serving: Serving) -> _ErrorHandlers:
    """Return what makes every error a problem document; the guard handles unexpected ones."""

    async def as_it_is(request: Request, error: Problem) -> Response:
        return error.response(request.url.path)

    async def of_the_framework(request: Request, error: HTTPException) -> Response:
        details = {
            404: f"There is nothing at {request.url.path[:200]!r}: see /docs.",
            405: "There is no such method at this address: see /docs.",
        }
        if error.status_code == HTTPStatus.NOT_FOUND and _is_for_people(request):
            page = doc_pages.nothing_here(request.url.path)
            headers = {**doc_pages.HEADERS, "Cache-Control": "no-store", "Vary": "Accept"}
            return HTMLResponse(page, error.status_code, headers)
        headers = dict(error.headers or {})
        if headers.get("Allow") == "GET" and request.url.path != STREAM:
            headers["Allow"] = "GET, HEAD"
        return Problem(
            HTTPStatus(error.status_code),
            details.get(error.status_code, str(error.detail)),
            headers=headers,
        ).response(request.url.path)

    async def of_views(request: Request, error: Exception) -> Response:
        if isinstance(error, ViewsGoneError):
            detail = "The views are gone from Redis: a project worker rebuilds them from the log."
        elif isinstance(error, RetryError):
            service = serving.service.capitalize()
            detail = f"{service} does not answer: try again in a moment."
        elif isinstance(error, FormerViewsError):
            detail = "The views are of a former build: a project worker rebuilds them from the log."
        else:
            serving.report("reading the views", error)
            detail = "The stored views cannot be read: see the server's log."
        return away(detail).response(request.url.path)

    return {
        Problem: as_it_is,
        HTTPException: of_the_framework,
        RetryError: of_views,
        StopError: of_views,
        ViewsGoneError: of_views,
    }


def _is_for_people(request: Request) -> bool:
    """Return whether a person's browser asks, rather than a program that reads problems."""
    accepted = request.headers.get("accept", "")
    return "text/html" in accepted and not is_private(request.url.path)


async def _watch(serving: Serving, reading: Reading) -> None:
    """Keep the readiness up to date while the application runs."""
    reporter = object()
    logged = ""
    while True:
        try:
            await reading.snapshots.now()
        except (RetryError, StopError, ViewsGoneError) as error:
            # A StopError too may be fixed: Redis refuses access, or has views of another version.
            is_wrong = isinstance(error, WrongServerError)
            serving.health.away(reporter, serving.service, _SEE_LOG, is_wrong_server=is_wrong)
            if not logged or (isinstance(error, StopError) and str(error) != logged):
                logged = str(error)
                serving.report("checking the views", error)
        else:
            serving.health.back(reporter)
            logged = ""
        await serving.clock.sleep(_LOOK_S)
