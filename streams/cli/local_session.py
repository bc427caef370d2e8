"""One session of this machine's transcripts, by its id or the beginning of one."""

import os
from collections.abc import Iterable

from contextgauge.errors import StopError
from streams.cli.only_session import only_id
from streams.cli.screen.figures import safe
from streams.edge.files.runtime_folders import transcript_folders
from streams.edge.files.session_files import SessionFiles, SessionPlace


def local_session(name: str) -> SessionPlace | None:
    """Return a session of this machine, None where none begins so. Raises StopError for several."""
    return only_one(name, SessionFiles(transcript_folders(os.environ)).beginning_with(name))


def needed_session(name: str) -> SessionPlace:
    """Return a session of this machine. Raises StopError where there is none, or several are."""
    place = local_session(name)
    if place is None:
        raise StopError(
            f"no session on this machine begins with {safe(name)!r}: `contextgauge sessions` lists "
            "them; or name a transcript, or set CONTEXTGAUGE_REDIS_URL for the sessions of a "
            "pipeline"
        )
    return place


def only_one(name: str, places: Iterable[SessionPlace]) -> SessionPlace | None:
    """Return the session with an id, else the one that begins so. Raises StopError for several."""
    by_id = {each.session_id: each for each in places}
    session = only_id(name, by_id)
    return None if session is None else by_id[session]
