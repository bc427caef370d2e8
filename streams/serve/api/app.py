"""The application that `contextgauge serve` runs: guard, routes, errors and the live feed.

It reads views. Where it may, it sends requests to the control plane, and writes nothing else.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from importlib.metadata import version
from typing import Any, Final

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware

from contextgauge.errors import FormerViewsError, RetryError, StopError
from streams.serve.api import answers, control, openapi, routes
from streams.serve.api.guard import PROBES, STREAM, Guard, is_private
from streams.serve.api.page import add_page
from streams.serve.api.parameters import none_unknown
from streams.serve.api.problems import Problem, away, bad_parameter
from streams.serve.api.reading import Reading
from streams.serve.api.serving import Serving
from streams.serve.feed.feed import Feed
from streams.serve.feed.stream import add_stream
from streams.serve.views.snapshot import ViewsGoneError

_GZIP_LEVEL: Final = 4
"""A fifth of the time of the highest level, for some per cent more bytes."""
_GZIP_BYTES: Final = 1_024

_LOOK_S: Final = 1.0
"""How often the server checks the views for its readiness."""

_SEE_LOG: Final = "see the server's log"
"""No details of an error: the readiness check needs no token."""

_DOCS_HEADERS: Final = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}


def create_app(serving: Serving) -> FastAPI:
    """Return the application."""
    reading = Reading(serving.reader, serving.clock, serving.points, serving.titles)
    feed = Feed(serving.reader, reading.snapshots, serving.clock, serving.telemetry, serving.report)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        watching = asyncio.create_task(_watch(serving, reading))
        yield
        await feed.stop()
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)

    app = FastAPI(
        title="contextgauge",
        version=version("contextgauge"),
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    router = APIRouter(dependencies=[Depends(none_unknown)])
    control.add_control(router, reading, serving)
    routes.add_routes(router, reading, serving.reading, serving.conversations)
    add_stream(router, feed, serving)
    app.routes.extend(router.routes)  # to include the router would build each of them once more
    _add_service(app, serving)
    _add_errors(app, serving)
    add_page(app)
    # The last one that is added comes first.
    app.add_middleware(GZipMiddleware, minimum_size=_GZIP_BYTES, compresslevel=_GZIP_LEVEL)
    app.add_middleware(Guard, serving=serving, streams=lambda: feed.listeners)
    if serving.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(serving.origins),
            allow_methods=["GET", "HEAD"],
            allow_headers=["Authorization", "If-None-Match", "Last-Event-ID"],
            expose_headers=["ETag", "Retry-After", "WWW-Authenticate", *answers.AGE_HEADERS],
        )
    app.state.feed = feed
    return app


def _add_service(app: FastAPI, serving: Serving) -> None:
    """Add probes, metrics and the description of the API."""

    async def probe(request: Request) -> Response:
        status, media_type, body = serving.probe(
            request.url.path, request.headers.get("accept", "")
        )
        headers = {"Cache-Control": "no-store", "Content-Type": media_type}
        return Response(body, status_code=status, headers=headers)

    for path in sorted(PROBES):
        app.add_api_route(path, probe, methods=["GET"], include_in_schema=False)

    @app.get("/openapi.json", include_in_schema=False)
    async def document() -> dict[str, Any]:
        return openapi.document(app)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        page = openapi.page(openapi.document(app))
        return Response(page, media_type="text/html", headers=_DOCS_HEADERS)


def _add_errors(app: FastAPI, serving: Serving) -> None:
    """Make every error a problem document; the guard handles unexpected ones."""

    @app.exception_handler(Problem)
    async def as_it_is(request: Request, error: Problem) -> Response:
        return error.response(request.url.path)

    @app.exception_handler(HTTPException)
    async def of_the_framework(request: Request, error: HTTPException) -> Response:
        details = {
            404: f"There is nothing at {request.url.path[:200]!r}: see /docs.",
            405: "There is no such method at this address: see /docs.",
        }
        if error.status_code == HTTPStatus.NOT_FOUND and _is_for_people(request):
            page = openapi.nothing_here(request.url.path)
            headers = {**_DOCS_HEADERS, "Cache-Control": "no-store", "Vary": "Accept"}
            return HTMLResponse(page, error.status_code, headers)
        headers = dict(error.headers or {})
        if headers.get("Allow") == "GET" and request.url.path != STREAM:
            headers["Allow"] = "GET, HEAD"
        return Problem(
            HTTPStatus(error.status_code),
            details.get(error.status_code, str(error.detail)),
            headers=headers,
        ).response(request.url.path)

    @app.exception_handler(RequestValidationError)
    async def of_parameters(request: Request, error: RequestValidationError) -> Response:
        # The second part of a location is the parameter's name, after query, path or header.
        # Of a body that is missing there is but the one.
        wrong = [(str(item["loc"][:2][-1]), str(item["msg"])) for item in error.errors()]
        return bad_parameter(*wrong).response(request.url.path)

    @app.exception_handler(RetryError)
    @app.exception_handler(StopError)
    @app.exception_handler(ViewsGoneError)
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
            serving.health.away(reporter, serving.service, _SEE_LOG)
            if not logged or (isinstance(error, StopError) and str(error) != logged):
                logged = str(error)
                serving.report("checking the views", error)
        else:
            serving.health.back(reporter)
            logged = ""
        await serving.clock.sleep(_LOOK_S)
