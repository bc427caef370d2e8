r"""The storage format of sessions, and those that rest: restored ones, and those that are cold.

These are held as the very bytes that the changelog has of them, so nothing has to be parsed to
restore a million of them, and the garbage collector has nothing to visit; a `ValueStore` holds
them, which need not be memory. A session is unpacked when the next message comes for it, and
belongs to the deriver until it is cold.

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
from streams.core.derivation.rules_config import STATE_VERSION
from streams.core.derivation.state import Session
from streams.core.derivation.stored_state import (
    SESSION_PART,
    StoredPart,
    pack,
    part_names,
    unpack,
)
from streams.flow.derive.memory_values import MemoryValues
from streams.ports import ValueStore

POSITION_KEY: Final = json_codec.dumps(["position"])

_SLICE_SESSIONS: Final = 1_000
"""Sessions looked at in a row while restoring: a few milliseconds."""

_BEGINNING: Final = b"[%d," % STATE_VERSION
_ACTIVITY: Final = re.compile(rb"\[[0-9]+,(-?[0-9]+),(?:null|([0-9]+)),")


_ACTIVITY_FIELDS: Final = 2


class Activity(NamedTuple):
    """When a session was last active: the hour, and the claim of a later one at that time."""

    hour: int
    claim: int | None


class StoredSessions:
    """The sessions that rest, as the changelog has them: its last value of each key.

    `topic` is its name, for errors.
    """

    def __init__(self, topic: str, values: ValueStore | None = None) -> None:
        self.position: bytes | None = None
        self._topic = topic
        self._values: ValueStore = MemoryValues() if values is None else values
        # Dictionaries of nothing but text and numbers: the garbage collector does not visit them.
        self._numbers: dict[str, dict[str, int]] = {}
        self._last_number = 0
        # What `activities` tells, and the values of a version that cannot be read.
        self._activities: dict[str, Activity] = {}
        self._known: dict[tuple[bytes, bytes | None], Activity] = {}
        self._unreadable: dict[tuple[str, str], bytes] = {}

    def __len__(self) -> int:
        """Return how many sessions are stored."""
        return len(self._numbers)

    def __contains__(self, session_id: str) -> bool:
        """Return whether a session is stored."""
        return session_id in self._numbers

    def add(self, entries: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Take entries as they are read back.

        Raises VersionError for a key that is not ours, StopError where there is no room for values.
        """
        sessions, new, gone = self._numbers, list[tuple[int, bytes]](), list[int]()
        for key, value in entries:
            if key == POSITION_KEY:
                self.position = value
                continue
            session_id, name = self._split(key)
            numbers = sessions.get(session_id)
            if numbers is None:
                if value is None:
                    continue
                numbers = sessions[session_id] = {}
            former = numbers.pop(name, None)
            if former is not None:
                gone.append(former)
            if value is not None:
                numbers[intern(name)] = number = self._next_number()
                new.append((number, value))
            elif not numbers:
                del sessions[session_id]
            self._look_at(session_id, name, value)
        self._values.put(new)
        self._values.delete(gone)

    def _look_at(self, session_id: str, name: str, value: bytes | None) -> None:
        """Note what `activities` tells of a value that was read back; None: of no value."""
        if value is not None and not value.startswith(_BEGINNING):
            self._unreadable[session_id, name] = value.partition(b"\n")[0]
        elif self._unreadable:
            self._unreadable.pop((session_id, name), None)
        if name != SESSION_PART:
            return
        match = None if value is None else _ACTIVITY.match(value)
        if match is None:
            self._activities.pop(session_id, None)
            return
        hour, claim = match.groups()
        activity = self._known.get((hour, claim))
        if activity is None:
            activity = Activity(int(hour), None if claim is None else int(claim))
            self._known[hour, claim] = activity
        self._activities[session_id] = activity

    def activities(self) -> Iterator[list[tuple[str, Activity]]]:
        """Yield all sessions that were added with their last activity, in slices. Once only.

        Raises VersionError for a value of another version, and for a session without its own part.
        """
        for (session_id, _), value in self._unreadable.items():
            raise _unreadable(session_id, value)
        activities, self._activities, self._known = self._activities, {}, {}
        page = []
        for session_id in self._numbers:
            activity = activities.get(session_id)
            if activity is None:
                raise VersionError(
                    f"{_state_of(session_id)} cannot be read: its last activity is missing"
                )
            page.append((session_id, activity))
            if len(page) == _SLICE_SESSIONS:
                yield page
                page = []
        yield page

    def take(self, session_id: str) -> Session | None:
        """Remove a session and return it, unpacked; None where there is none.

        Raises VersionError if it cannot be read.
        """
        numbers = self._numbers.pop(session_id, None)
        if numbers is None:
            return None
        values = self._values.get(numbers.values())
        self._values.delete(numbers.values())
        parts = {
            name: _part(session_id, value) for name, value in zip(numbers, values, strict=True)
        }
        del parts[SESSION_PART].fields[:_ACTIVITY_FIELDS]
        return unpack(session_id, parts)

    def keep(self, session_id: str, session: Session, activity: Activity) -> None:
        """Take a session that rests, in the storage format."""
        numbers = self._numbers[session_id] = {}
        new = []
        for name, part in pack(None, session).items():
            if part is not None:
                numbers[intern(name)] = number = self._next_number()
                new.append((number, _stored(name, part, activity)))
        self._values.put(new)

    def be_active(self, session_id: str, activity: Activity) -> dict[bytes, bytes | None]:
        """Take when a session was active that did not change otherwise; return the changes.

        Raises VersionError if it cannot be read.
        """
        numbers = self._numbers[session_id]
        former = numbers[SESSION_PART]
        fields, data = _part(session_id, *self._values.get([former]))
        others = fields[_ACTIVITY_FIELDS:]
        value = _value([STATE_VERSION, *activity, *others], data)
        numbers[SESSION_PART] = number = self._next_number()
        self._values.put([(number, value)])
        self._values.delete([former])
        return {_key(session_id, SESSION_PART): value}

    def drop(self, session_id: str) -> dict[bytes, bytes | None]:
        """Forget a session; return the changes."""
        numbers = self._numbers.pop(session_id, {})
        self._values.delete(numbers.values())
        return {_key(session_id, name): None for name in numbers}

    def _next_number(self) -> int:
        self._last_number += 1
        return self._last_number

    def _split(self, key: bytes) -> tuple[str, str]:
        try:
            match json_codec.loads(key):
                case [str(session_id), str(name)]:
                    return session_id, name
        except ValueError:
            pass
        raise VersionError(
            f"{self._topic} holds a key that this version of contextgauge does not know: "
            f"{key[:80]!r}. Upgrade contextgauge, or give it a topic of its own"
        )


def changes_of(
    session_id: str, before: Session | None, after: Session, activity: Activity
) -> dict[bytes, bytes | None]:
    """Return what is to be stored of a session's next state; `before` is what is stored."""
    changes: dict[bytes, bytes | None] = {}
    for name, part in pack(before, after).items():
        if part is None:
            changes[_key(session_id, name)] = None
        else:
            changes[_key(session_id, name)] = _stored(name, part, activity)
    return changes


def removal_of(session_id: str, stored: Session) -> dict[bytes, bytes | None]:
    """Return the changes that remove all that is stored of a session."""
    return {_key(session_id, name): None for name in part_names(stored)}


def _key(session_id: str, name: str) -> bytes:
    return json_codec.dumps([session_id, name])


def wrong_version(what: str, stored_version: object, readable: int) -> VersionError:
    """Return the error for what another version stored."""
    known = stored_version if isinstance(stored_version, int | str) else None
    return VersionError(
        f"{what} was stored in version {known}; this build of contextgauge reads version "
        f"{readable}: run the version that wrote it, or a newer one"
    )


def _stored(name: str, part: StoredPart, activity: Activity) -> bytes:
    """Return the value of a session's part."""
    first = activity if name == SESSION_PART else ()
    return _value([STATE_VERSION, *first, *part.fields], part.data)


def _value(fields: list[Json], data: bytes) -> bytes:
    head = json_codec.dumps(fields)
    return b"\n".join((head, data)) if data else head


def _part(session_id: str, value: bytes) -> StoredPart:
    """Return a stored part; its version was looked at when it was read back."""
    head, _, data = value.partition(b"\n")
    try:
        fields = json_codec.loads(head)
    except ValueError as error:
        raise VersionError(f"{_state_of(session_id)} cannot be read: {error}") from error
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
    return wrong_version(_state_of(session_id), version, STATE_VERSION)
