"""Answers in JSON: documents go out as they are stored, and what did not change is not sent twice.

An entity tag is made of positions, so it is there before any document is read: a reader that polls
with `If-None-Match` costs one look at the positions. It is weak (RFC 9110, 8.8.1): the age that
an answer tells of itself grows, and its documents are the same.
"""

import hashlib
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from contextgauge.errors import VersionError
from schemas.records import Json
from schemas.views import VIEW_VERSION
from streams import codec
from streams.serve.api.snapshot import NOTHING_YET, Moment

MEDIA_TYPE: Final = "application/json"

AGE_HEADERS: Final = ("Contextgauge-Stale", "Contextgauge-Silent-Ms", "Contextgauge-Lag-Records")
"""Headers that tell of an answer's age."""

_MOST_DIGITS: Final = 16
"""Of an instant in ms: more are not of a tag that was given here."""

_VERSION: Final = b'{"version":%d,' % VIEW_VERSION
"""How every document of the views begins that this build can read."""


class Raw:
    """A document or several that are JSON already."""

    __slots__ = ("document",)

    def __init__(self, document: bytes) -> None:
        self.document = document

    @classmethod
    def of(cls, documents: Iterable[bytes]) -> "Raw":
        """Return a list of documents."""
        return cls(b"[" + b",".join(documents) + b"]")


def documents(found: Iterable[bytes]) -> Raw:
    """Return a list of the views' documents as they are stored. Raises VersionError."""
    kept = list(found)
    for document in kept:
        _check(document)
    return Raw.of(kept)


def records(found: Iterable[bytes]) -> Raw:
    """Return a list of records as they are stored."""
    return Raw.of(found)


def _check(found: bytes) -> None:
    if not found.startswith(_VERSION):
        raise VersionError(f"a view is of another version than {VIEW_VERSION}")


def tag(*parts: object) -> str:
    """Return the entity tag of an answer that is a function of these."""
    told = repr(parts).encode("utf-8", "surrogatepass")
    return f'W/"{hashlib.blake2b(told, digest_size=12).hexdigest()}"'


def until(found: str, change_ms: int | None) -> str:
    """Return an entity tag that is good until an instant; None: until the entity changes."""
    return f'{found[:-1]}-{change_ms or ""}"'


def unchanged(
    request: Request, found: str, moment: Moment | None, now_ms: int | None = None
) -> Response | None:
    """Return the answer to a reader that has this entity already; None where it has not.

    `now_ms` is given for answers whose tags are good `until` an instant.
    """
    asked = request.headers.get("if-none-match")
    if asked is None:
        return None
    for part in asked.split(","):
        known = part.strip()
        # Weak comparison: what stands before the opaque part does not count.
        if known == "*" or known.removeprefix("W/") == found.removeprefix("W/"):
            break
        if now_ms is not None and _is_good(known, found, now_ms):
            found = known
            break
    else:
        return None
    return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=_headers(found, moment))


def _is_good(known: str, found: str, now_ms: int) -> bool:
    """Return whether a tag is that of this entity, and its instant is not reached."""
    head, _, change_ms = known.removeprefix("W/").removesuffix('"').rpartition("-")
    if head != found.removeprefix("W/").removesuffix('"'):
        return False
    return not change_ms or (change_ms.isdecimal() and now_ms < int(change_ms[:_MOST_DIGITS]))


def answer(moment: Moment | None, found: str, members: Mapping[str, Json | Raw]) -> Response:
    """Return an answer: the generation, its age, and these members."""
    whole: dict[str, Json | Raw] = {
        "generation": None if moment is None else moment.generation,
        "as_of": NOTHING_YET if moment is None else moment.as_of(),
        **members,
    }
    return Response(written(whole), media_type=MEDIA_TYPE, headers=_headers(found, moment))


def bare(body: bytes, found: str, moment: Moment | None) -> Response:
    """Return an answer whose shape is another's: its age is told by headers alone."""
    return Response(body, media_type=MEDIA_TYPE, headers=_headers(found, moment))


def written(members: Mapping[str, Json | Raw]) -> bytes:
    """Write an object; what is JSON already goes in as it is."""
    parts = [
        codec.dumps(name)
        + b":"
        + (value.document if isinstance(value, Raw) else codec.dumps(value))
        for name, value in members.items()
    ]
    return b"{" + b",".join(parts) + b"}"


def _headers(found: str, moment: Moment | None) -> dict[str, str]:
    # The age is told of a 304 too, which has no body: else a stalled projector would look fresh.
    told = NOTHING_YET if moment is None else moment.as_of()
    headers = {
        "ETag": found,
        "Cache-Control": "private, no-cache",
        "Contextgauge-Stale": "true" if told["stale"] else "false",
    }
    for name, member in (("Silent-Ms", "silent_ms"), ("Lag-Records", "lag_records")):
        if told[member] is not None:
            headers[f"Contextgauge-{name}"] = str(told[member])
    return headers
