"""Sessions as JSON documents: as the API has them, with what fills the window of a file's."""

from typing import TYPE_CHECKING, Final

from schemas.records import Json
from schemas.views import SessionView
from streams import codec
from streams.codec import view_codec
from streams.core.session_status import status_of
from streams.core.until_compaction import CompactionPoints

if TYPE_CHECKING:
    from streams.cli.filling import Filling
    from streams.cli.transcripts import ReplayedSession


def judged(view: SessionView, points: CompactionPoints, now_ms: int) -> dict[str, Json]:
    """Return a view with its status, as the API has it."""
    document: dict[str, Json] = codec.loads(view_codec.encode(view))
    return document | {"status": status_of(view, points).document(now_ms)}


_NEEDS_FILE: Final = "it needs the text of the session's file: `contextgauge status FILE`"


def filling_or_reason(view: SessionView, session: "ReplayedSession | None") -> "Filling | None":
    """Return what fills the window of a session, else why that is unknown.

    None where the runtime says it itself. `session` is that of a file.
    """
    if session is None:
        is_reported = any(chain.categories is not None for chain in view.chains.values())
        return None if is_reported else _NEEDS_FILE
    from streams.cli.filling import filling_of_session  # noqa: PLC0415 -- loads the engine

    return filling_of_session(session)


def filling_fields(filling: "Filling | None") -> dict[str, Json]:
    """Return what fills a window as members of a JSON document."""
    if filling is None or isinstance(filling, str):
        return {"filling": None, "filling_unknown": filling}
    parts: list[Json] = [
        {
            "kind": part.kind,
            "tokens": part.tokens,
            "tools": [{"name": each.name, "tokens": each.tokens} for each in part.tools],
        }
        for part in filling
    ]
    return {"filling": parts, "filling_unknown": None}
