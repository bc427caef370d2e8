"""The routes for supervisors and Prometheus, which every server has."""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from streams.serve.api.guard import PROBES
from streams.serve.api.routing import PlainRoute
from streams.serve.api.serving import ServerContext


def probe_routes(serving: ServerContext) -> Sequence[PlainRoute]:
    """Return the routes of metrics, health and readiness."""

    async def probe(request: Request) -> Response:
        status, media_type, body = serving.probe(
            request.url.path, request.headers.get("accept", "")
        )
        headers = {"Cache-Control": "no-store", "Content-Type": media_type}
        return Response(body, status_code=status, headers=headers)

    return [PlainRoute(path, probe) for path in sorted(PROBES)]
