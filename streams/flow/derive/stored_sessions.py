r"""The storage format of sessions, and the restored ones that were not used since.

These are held as the very bytes that the changelog has of them, so nothing has to be parsed to
restore a million of them, and the garbage collector has nothing to visit. A session is unpacked
when the first message comes for it, and belongs to the deriver from then on.

A key is the JSON array `[session, part]`, and `["position"]`. A part's value is a line of JSON, a
list that begins with its version, and after a `\n` the part's hashes as they are: as text they
would take a third more. In a session's own part the version is followed by when it was last
active: the hour, and the claim or null (`PartitionTime`). All other fields are the core's.
"""

import re
from collections.abc import Iterator, Sequence
from sys import intern
from typing import Final, NamedTuple

from contextgauge import json_codec
from contextgauge.errors import VersionError
from schemas.records import Json
from streams.core.derivation.state import Session
from streams.core.derivation.stored_state import (
    READABLE_VERSIONS,
    SESSION_PART,
    STATE_VERSION,
    StoredPart,
    pack,
    part_names,
    unpack,
)

POSITION_KEY: Final = json_codec.dumps(["position"])

_SLICE_SESSIONS: Final = 1_000
"""Sessions looked at in a row while restoring: a few milliseconds."""

_BEGINNINGS: Final = tuple(b"[%d," % version for version in READABLE_VERSIONS)
_ACTIVITY: Final = re.compile(rb"\[[0-9]+,(-?[0-9]+),(?:null|([0-9]+)),")


_ACTIVITY_FIELDS: Final = 2


class Activity(NamedTuple):
    """When a session was last active: the hour, and the claim of a later one at that time."""

    hour: int
    claim: int | None


class StoredSessions:
    """The changelog as it is read back: the last value of each key. `topic` is its name."""

    def __init__(self, topic: str) -> None:
        self.position: bytes | None = None
        self._topic = topic
        # Dictionaries of nothing but text and bytes: the garbage collector does not visit them.
        self._values: dict[str, dict[str, bytes]] = {}

    def __len__(self) -> int:
        """Return how many sessions are stored."""
        return len(self._values)

    def add(self, entries: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Take entries as they are read back. Raises VersionError for a key that is not ours."""
        sessions = self._values
        for key, value in entries:
            if key == POSITION_KEY:
                self.position = value
                continue
            session_id, name = self._split(key)
            if value is not None:
                values = sessions.get(session_id)
                if values is None:
                    values = sessions[session_id] = {}
                values[intern(name)] = value
            elif session_id in sessions:
                sessions[session_id].pop(name, None)
                if not sessions[session_id]:
                    del sessions[session_id]

    def activities(self) -> Iterator[list[tuple[str, Activity]]]:
        """Yield all sessions with their last activity, in slices, and look at all versions.

        Raises VersionError for a value of another version, and for a session without its own part.
        """
        known: dict[tuple[bytes, bytes | None], Activity] = {}
        page = []
        for session_id, values in self._values.items():
            for value in values.values():
                if not value.startswith(_BEGINNINGS):
                    raise _unreadable(session_id, value)
            match = _ACTIVITY.match(values.get(SESSION_PART, b""))
            if match is None:
                raise VersionError(
                    f"{_state_of(session_id)} cannot be read: its last activity is missing"
                )
            hour, claim = match.groups()
            activity = known.get((hour, claim))
            if activity is None:
                activity = Activity(int(hour), None if claim is None else int(claim))
                known[hour, claim] = activity
            page.append((session_id, activity))
            if len(page) == _SLICE_SESSIONS:
                yield page
                page = []
        yield page

    def take(self, session_id: str) -> Session | None:
        """Remove a session and return it, unpacked; None where there is none.

        Raises VersionError if it cannot be read.
        """
        values = self._values.pop(session_id, None)
        if values is None:
            return None
        try:
            parts = {name: _part(value) for name, value in values.items()}
        except ValueError as error:
            raise VersionError(f"{_state_of(session_id)} cannot be read: {error}") from error
        del parts[SESSION_PART].fields[:_ACTIVITY_FIELDS]
        return unpack(session_id, parts)

    def be_active(self, session_id: str, activity: Activity) -> dict[bytes, bytes | None]:
        """Take when a session was active that did not change otherwise; return the changes."""
        values = self._values[session_id]
        fields, data = _part(values[SESSION_PART])
        others = fields[_ACTIVITY_FIELDS:]
        values[SESSION_PART] = _value([STATE_VERSION, *activity, *others], data)
        return {_key(session_id, SESSION_PART): values[SESSION_PART]}

    def drop(self, session_id: str) -> dict[bytes, bytes | None]:
        """Forget a session; return the changes."""
        return {_key(session_id, name): None for name in self._values.pop(session_id, ())}

    def _split(self, key: bytes) -> tuple[str, str]:
        try:
            session_id, name = json_codec.loads(key)
        except ValueError:
            session_id = name = None
        if not isinstance(session_id, str) or not isinstance(name, str):
            raise VersionError(
                f"{self._topic} holds a key that this version of contextgauge does not know: "
                f"{key[:80]!r}. Upgrade contextgauge, or give it a topic of its own"
            )
        return session_id, name


def changes_of(
    session_id: str, before: Session | None, after: Session, activity: Activity
) -> dict[bytes, bytes | None]:
    """Return what is to be stored of a session's next state; `before` is what is stored."""
    changes: dict[bytes, bytes | None] = {}
    for name, part in pack(before, after).items():
        if part is None:
            changes[_key(session_id, name)] = None
        else:
            first = activity if name == SESSION_PART else ()
            fields: list[Json] = [STATE_VERSION, *first, *part.fields]
            changes[_key(session_id, name)] = _value(fields, part.data)
    return changes


def removal_of(session_id: str, stored: Session) -> dict[bytes, bytes | None]:
    """Return the changes that remove all that is stored of a session."""
    return {_key(session_id, name): None for name in part_names(stored)}


def _key(session_id: str, name: str) -> bytes:
    return json_codec.dumps([session_id, name])


def wrong_version(what: str, stored_version: object, version: int) -> VersionError:
    """Return the error for what another version stored."""
    known = stored_version if isinstance(stored_version, int | str) else None
    return VersionError(
        f"{what} was stored in version {known}; this build of contextgauge reads version "
        f"{version}: run the version that wrote it, or a newer one"
    )


def _value(fields: list[Json], data: bytes) -> bytes:
    head = json_codec.dumps(fields)
    return b"\n".join((head, data)) if data else head


def _part(value: bytes) -> StoredPart:
    """Return a stored part; its version was looked at when it was read back."""
    head, _, data = value.partition(b"\n")
    fields = json_codec.loads(head)
    del fields[0]
    return StoredPart(fields, data)


def _state_of(session_id: str) -> str:
    return f"the state of session {session_id!r}"


def _unreadable(session_id: str, value: bytes) -> VersionError:
    try:
        fields = json_codec.loads(value.partition(b"\n")[0])
    except ValueError:
        fields = None
    version = fields[0] if isinstance(fields, list) and fields else None
    if isinstance(fields, dict):  # as version 1 had it
        version = fields.get("v")
    return wrong_version(_state_of(session_id), version, STATE_VERSION)
