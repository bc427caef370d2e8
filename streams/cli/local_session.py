"""One session of this machine's transcripts, by its id or the beginning of one."""

import os
from collections.abc import Iterable
from typing import NamedTuple

from contextgauge.errors import StopError
from streams import wiring
from streams.cli.inputs import is_path
from streams.cli.only_session import only_id
from streams.cli.screen.figures import safe
from streams.edge.files.runtime_folders import transcript_folders
from streams.edge.files.session_files import SessionFiles, SessionPlace


def local_session(name: str) -> SessionPlace | None:
    """Return a session of this machine, None where none begins so. Raises StopError for several."""
    return only_one(name, SessionFiles(transcript_folders(os.environ)).beginning_with(name))


class SessionFile(NamedTuple):
    """The file that a session is read from, and its id where the file has several."""

    path: str
    session_id: str | None


def file_of(session: str, one: str | None) -> SessionFile | None:
    """Return where a session is read from; None: from the views.

    `session` is a path, in which `one` names a session, or an id or the beginning of one: this is
    looked for in the views where Redis is configured, else on this machine. Raises StopError where
    there is none here, or there are several.
    """
    if is_path(session):
        return SessionFile(session, one)
    if wiring.settings().redis_url is not None:
        return None
    place = needed_session(session)
    return SessionFile(str(place.path), one or (place.session_id if place.is_one_of_many else None))


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
