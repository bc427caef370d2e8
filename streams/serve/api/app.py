"""The application that `contextgauge serve` runs: guard, routes, errors, and what runs beside.

It reads the views and nothing else: no Kafka, no derivation, no writing.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from importlib.metadata import version
from typing import Any, Final

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware

from contextgauge.errors import RetryError, StopError
from streams.ports import Clock, Health, Telemetry, ViewReader
from streams.serve.api import answers, openapi, routes
from streams.serve.api.guard import PROBES, STREAM, Guard, Report, is_private
from streams.serve.api.limits import Rates
from streams.serve.api.page import add_page
from streams.serve.api.parameters import none_unknown
from streams.serve.api.problems import Problem, away, bad_parameter
from streams.serve.api.reading import Reading
from streams.serve.api.sessions import ViewsGoneError
from streams.serve.api.summaries import PartitionOf
from streams.serve.feed.feed import Feed
from streams.serve.feed.stream import add_stream

_GZIP_LEVEL: Final = 4
"""A fifth of the time of the highest level, for some per cent more bytes."""
_GZIP_BYTES: Final = 1_024

_LOOK_S: Final = 1.0
"""How often the server looks whether Redis is there, for who asks whether it is ready."""

_LOOK_AT_LOG: Final = "the server's log says why"
"""All that is told of an error: whoever reaches the port may ask whether the server is ready."""

_DOCS_HEADERS: Final = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}

Probe = Callable[[str, str], tuple[int, str, bytes]]
"""Answers `/metrics`, `/healthz` and `/readyz`: status, media type and body, from the path and
the header Accept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """What the application is given, and what it is told to do.

    `readers` gives the names of readers by the hashes of their tokens; None: everybody may read.
    `only_here`: it is meant for this machine. `requests_per_s` of one reader, 0: any number;
    `streams` of the live feed at a time. `origins` of pages that may read from a browser.
    """

    reader: ViewReader
    partition_of: PartitionOf
    clock: Clock
    telemetry: Telemetry
    health: Health
    probe: Probe
    report: Report
    readers: Callable[[], Mapping[str, str]] | None = None
    only_here: bool = True
    requests_per_s: int = 0
    streams: int = 2_000
    origins: Sequence[str] = ()


def create_app(serving: Serving) -> FastAPI:
    """Return the application."""
    reader, clock, telemetry = serving.reader, serving.clock, serving.telemetry
    reading = Reading(reader, serving.partition_of, clock)
    feed = Feed(reader, reading.moments, clock, telemetry, serving.report)

    @asynccontextmanager
    async def beside(_app: FastAPI) -> AsyncIterator[None]:
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
        lifespan=beside,
    )
    router = APIRouter(dependencies=[Depends(none_unknown)])
    routes.add_routes(router, reading)
    add_stream(router, reading, feed, reader, clock, telemetry, serving.streams)
    app.include_router(router)
    _add_service(app, serving)
    _add_errors(app, serving)
    add_page(app)
    # The last one that is added comes first.
    app.add_middleware(GZipMiddleware, minimum_size=_GZIP_BYTES, compresslevel=_GZIP_LEVEL)
    app.add_middleware(
        Guard,
        readers=serving.readers,
        only_here=serving.only_here,
        rates=Rates(serving.requests_per_s, serving.clock),
        clock=serving.clock,
        telemetry=serving.telemetry,
        report=serving.report,
        streams=lambda: feed.listeners,
    )
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
    """Add what tells of the server itself."""

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
    """Make every error a problem document; what nobody foresaw is the guard's."""

    async def as_it_is(request: Request, error: Exception) -> Response:
        assert isinstance(error, Problem)  # noqa: S101 -- registered for it below
        return error.response(request.url.path)

    async def of_the_framework(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101
        told = {
            404: f"There is nothing at {request.url.path[:200]!r}: see /docs.",
            405: "Nothing is written here: GET and HEAD are all that there is.",
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
            told.get(error.status_code, str(error.detail)),
            headers=headers,
        ).response(request.url.path)

    async def of_parameters(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)  # noqa: S101
        # The second part of a place is the parameter's name, behind query, path or header.
        found = [(str(item["loc"][1]), str(item["msg"])) for item in error.errors()]
        return bad_parameter(*found).response(request.url.path)

    async def of_redis(request: Request, error: Exception) -> Response:
        if isinstance(error, ViewsGoneError):
            told = "The views are gone from Redis: a project worker builds them anew from the log."
        elif isinstance(error, RetryError):
            told = "Redis does not answer: ask again in a moment."
        else:
            serving.report("reading the views", error)
            told = "The views cannot be read as they are: the server's log says why."
        return away(told).response(request.url.path)

    app.add_exception_handler(Problem, as_it_is)
    app.add_exception_handler(HTTPException, of_the_framework)
    app.add_exception_handler(RequestValidationError, of_parameters)
    for kind in (RetryError, StopError, ViewsGoneError):
        app.add_exception_handler(kind, of_redis)


def _is_for_people(request: Request) -> bool:
    """Tell whether a browser's address led here, and no program that reads problems."""
    asked = request.headers.get("accept", "")
    return "text/html" in asked and not is_private(request.url.path)


async def _watch(serving: Serving, reading: Reading) -> None:
    """Note whether Redis is there, for as long as the application runs."""
    asker = object()
    told = ""
    while True:
        try:
            await reading.moments.now()
        except (RetryError, ViewsGoneError) as error:
            serving.health.away(asker, "redis", _LOOK_AT_LOG)
            if not told:
                told = str(error)
                serving.report("looking at the views", error)
        except StopError as error:
            # It refuses us, or what it has is of another version: that may be mended meanwhile.
            serving.health.away(asker, "redis", _LOOK_AT_LOG)
            if str(error) != told:
                told = str(error)
                serving.report("looking at the views", error)
        else:
            serving.health.back(asker)
            told = ""
        await serving.clock.sleep(_LOOK_S)
