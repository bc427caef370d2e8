"""Errors as RFC 9457 problem documents: one shape for every error that a client may get.

`docs/API.md` has the table of the types. A detail never quotes an exception: that is logged, and
may reveal more than the client asked for.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

from starlette.responses import Response

from schemas.records import Json
from streams import codec

MEDIA_TYPE: Final = "application/problem+json"

_TYPE: Final = "urn:contextgauge:problem:"

_PART_OF_ID: Final = 100
"""Characters of a possible part of an id: longer ones are whole ids."""

AWAY_RETRY_S: Final = 2
"""Seconds after which a retry makes sense while Redis is unavailable."""


class Problem(Exception):  # noqa: N818 -- what RFC 9457 calls it
    """An answer that is an error. `name` is the last part of its type; None: `about:blank`."""

    def __init__(
        self,
        status: HTTPStatus,
        detail: str,
        name: str | None = None,
        headers: Mapping[str, str] | None = None,
        more: Mapping[str, Json] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.name = status, detail, name
        self.headers, self.more = dict(headers or {}), dict(more or {})

    def response(self, instance: str) -> Response:
        """Return the answer; `instance` is the request's path."""
        body = {
            "type": "about:blank" if self.name is None else _TYPE + self.name,
            "title": self.status.phrase,
            "status": int(self.status),
            "detail": self.detail,
            "instance": instance,
            **self.more,
        }
        return Response(
            codec.dumps(body),
            status_code=self.status,
            media_type=MEDIA_TYPE,
            headers={"Cache-Control": "no-store", **self.headers},
        )


def no_session(session_id: str) -> Problem:
    """Return the problem of an unknown session id."""
    detail = f"There is no session {session_id[:200]!r}: GET /v1/sessions lists all sessions."
    if 0 < len(session_id) <= _PART_OF_ID:
        part = quote(session_id, safe="", errors="replace")
        detail += f" The whole id is needed: GET /v1/sessions?q={part} searches by a part of it."
    return Problem(HTTPStatus.NOT_FOUND, detail, "no-session")


def bad_cursor() -> Problem:
    """Return the problem of a cursor that is invalid, or of another list."""
    return Problem(
        HTTPStatus.BAD_REQUEST,
        "Invalid cursor: use `next` of an answer unchanged, with the same parameters, or leave it "
        "out to start over.",
        "bad-cursor",
    )


def bad_parameter(*wrong: tuple[str, str]) -> Problem:
    """Return the problem of invalid parameters: the name and error of each."""
    errors: list[Json] = [{"parameter": name, "message": message} for name, message in wrong]
    return Problem(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "; ".join(f"{name}: {message}" for name, message in wrong),
        "bad-parameter",
        more={"errors": errors},
    )


def away(detail: str) -> Problem:
    """Return the problem of a server that cannot answer at the moment."""
    return Problem(
        HTTPStatus.SERVICE_UNAVAILABLE,
        detail,
        "unavailable",
        {"Retry-After": str(AWAY_RETRY_S)},
    )
