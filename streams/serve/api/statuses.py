"""The judgement of sessions, as answers carry it: verdicts, and the instants at which they change.

A view goes out as it is stored, with its `status` as one more member. What a status says of the
time is true when the answer is given; a reader that keeps the answer compares its own clock with
the instants. An entity tag ends with the first of them, so no client gets «unchanged» beyond it.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from schemas.records import Json
from schemas.views import SessionView
from streams import codec
from streams.codec import views as view_codec
from streams.core.session_status import THRESHOLDS, Status, status_of
from streams.serve.api.answers import Raw

_REMEMBERED: Final = 2_000
"""Documents whose judgement is remembered, about 5 MB: most polls find the same ones."""

THRESHOLDS_JSON: Final = Raw(codec.dumps(THRESHOLDS._asdict()))


class Judged(NamedTuple):
    """Views with their statuses, and when the first of these verdicts changes; None: never."""

    views: list[bytes]
    change_ms: int | None


def judged(documents: Iterable[bytes], now_ms: int) -> Judged:
    """Return views with their statuses. Raises VersionError."""
    views, changes = [], []
    for document in documents:
        status = status_of_document(document)
        views.append(document[:-1] + b',"status":' + codec.dumps(served(status, now_ms)) + b"}")
        change_ms = status.next_change_ms(now_ms)
        if change_ms is not None:
            changes.append(change_ms)
    return Judged(views, min(changes, default=None))


def served(status: Status, now_ms: int) -> dict[str, Json]:
    """Return a status as a document."""
    members = status._asdict()
    del members["settled"]
    members["state"] = status.state(now_ms)
    members["thrashing"] = status.is_thrashing(now_ms)
    members["thrash"] = status.thrash and status.thrash._asdict()
    return members


@lru_cache(maxsize=_REMEMBERED)
def status_of_document(document: bytes) -> Status:
    """Return the judgement of a session's view. Raises VersionError."""
    return status_of(view_codec.decode(SessionView, document))
