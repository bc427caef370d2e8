"""What is kept of a conversation as bytes, and the conversation of it.

A session has an entry, and lines: messages as they were published, reduced to what reading them
needs. The first may be a base: what was active when older lines were dropped.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from pydantic import TypeAdapter, ValidationError

from contextgauge.compaction.reading.session_conversation import SessionConversation
from contextgauge.errors import ConfigError, VersionError
from contextgauge.json_codec import dumps, loads
from schemas.records import Json
from streams.core.conversation.fold import ConversationFold

FORMAT_VERSION: Final = 1
"""Of what is kept; a later build with another one reads the log again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEntry:
    """What is kept about a session besides its lines.

    `size` is the lines' in bytes. `is_whole`: the first line is the session's first message.
    `deleted_ms`: text until this Kafka time was deleted. `is_gone`: it was idle for too long, and
    only the fact that it existed is kept.
    """

    agent_id: str | None
    project: str | None
    first_offset: int
    last_ms: int
    lines: int = 0
    size: int = 0
    is_whole: bool = True
    is_too_large: bool = False
    is_gone: bool = False
    deleted_ms: int | None = None


class StoredLine(NamedTuple):
    """A line with its place in the log.

    `value` is None where `base` stands for all before it; both are where a message is missing.
    """

    offset: int
    time_ms: int
    value: Mapping[str, Json] | None
    base: Mapping[str, Json] | None = None


class KeptPosition(NamedTuple):
    """Up to where a partition is kept, and of which topic.

    `end` is the log's, as the worker reported it at `reported_ms`.
    """

    position: int
    topic_id: str = ""
    end: int | None = None
    reported_ms: int | None = None


_ENTRY: Final = TypeAdapter(SessionEntry)


def write_session_entry(entry: SessionEntry) -> bytes:
    """Return an entry as JSON."""
    return dumps(entry)


def read_session_entry(value: bytes) -> SessionEntry:
    """Read an entry. Raises VersionError."""
    try:
        return _ENTRY.validate_json(value)
    except ValidationError as error:
        raise VersionError("an entry of a conversation is of another build: upgrade") from error


def write_line(offset: int, time_ms: int, value: Mapping[str, Json]) -> bytes:
    """Return a line as JSON."""
    return dumps({"o": offset, "t": time_ms, "l": value})


def write_gap(offset: int, time_ms: int) -> bytes:
    """Return a line that stands for a message that could not be read."""
    return dumps({"o": offset, "t": time_ms})


def write_base(line: StoredLine) -> bytes:
    """Return a base as JSON."""
    return dumps({"o": line.offset, "t": line.time_ms, "b": line.base})


def read_line(value: bytes) -> StoredLine:
    """Read a line or a base. Raises VersionError."""
    try:
        fields = loads(value)
        places, parts = (fields["o"], fields["t"]), (fields.get("l"), fields.get("b"))
        is_line = all(isinstance(each, int) for each in places)
        is_line = is_line and all(isinstance(each, dict | None) for each in parts)
    except (ValueError, KeyError, TypeError) as error:
        raise VersionError("a line of a conversation cannot be read: upgrade") from error
    if not is_line:
        raise VersionError("a line of a conversation cannot be read: upgrade")
    return StoredLine(*places, *parts)


def fold_of(entry: SessionEntry, lines: Iterable[StoredLine]) -> ConversationFold:
    """Return the fold of a session's lines. Raises VersionError."""
    fold = ConversationFold.of_session(entry.agent_id, entry.project, entry.first_offset)
    if entry.is_too_large:
        fold.outgrow()
    elif not entry.is_whole:
        fold.miss()
    for line in lines:
        add_line(fold, line)
    return fold


def add_line(fold: ConversationFold, line: StoredLine) -> None:
    """Add a stored line to a fold. Raises VersionError."""
    if line.base is not None:
        try:
            fold.begin_with(line.base, line.offset)
        except ConfigError as error:
            raise VersionError(f"the base of a conversation cannot be read: {error}") from error
    elif line.value is not None:
        fold.add(line.value, line.offset)
    else:
        fold.miss()


def conversation_of(
    entry: bytes, lines: Sequence[bytes], at: KeptPosition
) -> SessionConversation | None:
    """Return the conversation of what is kept; one that lost lines is never whole.

    Raises VersionError.
    """
    own = read_session_entry(entry)
    if own.is_gone:
        return None
    times: dict[str, int] = {}
    fold = fold_of(own, ())
    for line in map(read_line, lines):
        known = len(fold.history.everything)
        add_line(fold, line)
        for each in fold.history.everything[known:]:
            times[each.id] = line.time_ms
    if len(lines) != own.lines:
        fold.miss()
    active = fold.history.active
    oldest_ms = times.get(active[0].id) if active else None
    return fold.result._replace(
        position=at.position,
        oldest_ms=oldest_ms,
        behind=None if at.end is None else max(at.end - at.position, 0),
        reported_ms=at.reported_ms,
        topic_id=at.topic_id,
    )
