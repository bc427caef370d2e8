"""The application that `contextgauge ingest` runs: guard, routes, errors, and its readiness."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response

from streams.ingest.context import Ingesting
from streams.ingest.messages import PATH, add_messages
from streams.ingest.otlp.routes import otlp_routes
from streams.ingest.publishing import Publishing
from streams.serve.api.doc_pages import document_routes
from streams.serve.api.guard import BodyLimits, Guard
from streams.serve.api.probes import probe_routes
from streams.serve.api.problems import Problem
from streams.serve.api.routing import ApiRoute, Router

_LOOK_S: Final = 0.5
"""How often the connection is checked for the server's readiness."""

_BODY_S: Final = 60.0
"""For a large body over a slow line."""


def create_ingest_app(ingesting: Ingesting) -> Starlette:
    """Return the application, which starts and stops the intake."""

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        ingesting.intake.start()
        _look(ingesting)
        watching = asyncio.create_task(_watch(ingesting))
        yield
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        await ingesting.intake.stop()

    router = Router(_as_it_is)
    publishing = Publishing(ingesting)
    add_messages(router, publishing, ingesting)
    bodies = BodyLimits(ingesting.body_limit_bytes, _BODY_S, may_be_chunked=True)
    app = Starlette(
        routes=[
            *router.routes,
            *otlp_routes(publishing, ingesting),
            *probe_routes(ingesting),
            *document_routes(lambda: api_document(app)),
        ],
        middleware=[Middleware(Guard, serving=ingesting, bodies=bodies)],
        exception_handlers={Problem: _problem, HTTPException: _of_the_framework},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    return app


def api_document(app: Starlette) -> dict[str, Any]:
    """Return the OpenAPI document of the application."""
    from streams.ingest import openapi  # noqa: PLC0415 -- as in `streams.serve.api.app`

    return openapi.ingested([route for route in app.routes if isinstance(route, ApiRoute)])


async def _as_it_is(part: str) -> str:
    return part  # no route has a session in its address


async def _problem(request: Request, error: Exception) -> Response:
    if not isinstance(error, Problem):
        raise TypeError("the handler is for problems")
    return error.response(request.url.path)


async def _of_the_framework(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise TypeError("the handler is for Starlette's own errors")
    problem = Problem(
        HTTPStatus(error.status_code),
        f"There is no such address or method: POST messages to {PATH}, OTLP to /v1/logs and "
        "/v1/traces; see /docs.",
        headers=dict(error.headers or {}),
    )
    return problem.response(request.url.path)


async def _watch(ingesting: Ingesting) -> None:
    """Keep the readiness and the figure of what waits up to date."""
    while True:
        await ingesting.clock.sleep(_LOOK_S)
        _look(ingesting)


def _look(ingesting: Ingesting) -> None:
    intake = ingesting.intake
    if intake.is_connected:
        ingesting.health.back(intake)
    else:
        ingesting.health.away(intake, "kafka", "see the server's log")
    ingesting.telemetry.gauge("ingest_waiting_bytes", intake.waiting_bytes)
