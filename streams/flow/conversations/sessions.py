"""What one partition's messages change in what is kept of its sessions.

A message costs its own size: it is reduced to what reading needs, and appended. What it means is
found out when the conversation is read.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from contextgauge.compaction.reading.lines import (
    folder_of,
    names_beginning,
    own_edit,
    reduced,
)
from contextgauge.json_codec import decode
from contextgauge.normalise import session_of
from contextgauge.normalise.spellings import OWN_FIELD
from contextgauge.partitioner import key_bytes
from contextgauge.units import DAY_MS
from schemas.messages import AGENT_ID_HEADER, THREAD_ID_HEADER, DeadLetter
from schemas.records import Json
from streams.codec.conversations import (
    SessionEntry,
    fold_of,
    read_line,
    read_session_entry,
    write_gap,
    write_line,
    write_session_entry,
)
from streams.flow.conversations.config import ConversationsConfig
from streams.flow.conversations.trimming import exceeds, trim, without_until
from streams.ports import LogRecord
from streams.ports.conversations import LinesChange

_NEW_AFTER_MS: Final = 28 * DAY_MS
"""Where the log lost its beginning, a session that is silent for so long and then appears is a new
one: agent.messages keeps 30 days by default, and Claude Code its transcripts as long."""

_REMEMBERED_MS: Final = 90 * DAY_MS
"""So long it is known that a session existed whose text was kept."""

_UNDECIDED: Final = 100_000
"""Sessions that are known not to be kept: so many are remembered."""

_WITHOUT_TEXT: Final = frozenset({"system", "session_meta", "turn_context", "result", "progress"})

ReadLines = Callable[[bytes], Awaitable[Sequence[bytes]]]


@dataclass(slots=True)
class _Pending:
    """A session's changes that are not written yet; `lines` follow its `expected`."""

    expected: int
    lines: list[bytes] = field(default_factory=list)
    replaces: bool = False


class SessionKeeper:
    """The sessions of one partition: what is stored of them, and what is to be written."""

    def __init__(
        self,
        config: ConversationsConfig,
        entries: Mapping[bytes, bytes],
        since_ms: int | None,
        deleted: Mapping[bytes, int],
        read_lines: ReadLines,
    ) -> None:
        self._config, self._kept = config, config.kept
        self.entries = {session: read_session_entry(each) for session, each in entries.items()}
        self.since_ms = since_ms
        self._deleted, self._read_lines = deleted, read_lines
        self._agents: dict[bytes, tuple[str | None, str | None]] = {}
        """Agent and folder of sessions that are not kept, as far as they are known."""
        self._pending: dict[bytes, _Pending] = {}
        self.pending_bytes = 0
        self.messages = 0

    async def add(self, record: LogRecord) -> None:
        """Note what a message changes. Raises VersionError."""
        session, value = record.key, record.value
        if session is None or value is None:
            return
        entry = self.entries.get(session)
        if entry is None and not self._may_be_kept(session):
            return
        body = decode(value, self._config.limit_bytes)
        if isinstance(body, DeadLetter):
            await self._miss_line(session, record)
            return
        if not _is_of(body, session):
            return
        line = reduced(body)
        if line is None or any(header == THREAD_ID_HEADER for header, _ in record.headers):
            return  # a subagent's is no part of the session's own conversation
        agent, project = _agent_of(record), folder_of(line)
        if entry is None or entry.is_gone:
            known_agent, known_project = self._agents.get(session, (None, None))
            agent, project = agent or known_agent, project or known_project
            if not self._decide(session, record, line, agent, project):
                return
        elif not self._still_fits(session, entry, agent, project):
            self._agents[session] = (agent or entry.agent_id, project or entry.project)
            self._drop(session, entry)
            return
        if record.timestamp_ms <= self._deleted.get(session, -1):
            await self._leave_out(session, record, agent, project)
            return
        await self._append(session, record, line, agent, project)

    def _may_be_kept(self, session: bytes) -> bool:
        return self._kept.may_fit(_name_of(session))

    def _decide(
        self,
        session: bytes,
        record: LogRecord,
        line: dict[str, Json],
        agent: str | None,
        project: str | None,
    ) -> bool:
        """Return whether a session that is not kept yet is one to keep, by all that is known.

        One that has to be decided later is not whole then: its text was let go.
        """
        if self._kept.fit(_name_of(session), agent, project):
            self._agents.pop(session, None)
            return True
        if len(self._agents) >= _UNDECIDED:
            del self._agents[next(iter(self._agents))]
        self._agents[session] = (agent, project)
        if _has_text(line):
            self._let_go(session, record)
        return False

    def _let_go(self, session: bytes, record: LogRecord) -> None:
        """Remember that a session that is not kept, and may be later, was there before that."""
        if session not in self.entries:
            self._put(session, replace(self._begin(record, is_whole=False), is_gone=True))

    async def _miss_line(self, session: bytes, record: LogRecord) -> None:
        """Note a message that cannot be read: what the model sees may have it."""
        entry = self.entries.get(session)
        if entry is None or entry.is_gone:
            self._let_go(session, record)
        elif record.timestamp_ms > self._deleted.get(session, -1):
            gap = write_gap(record.offset, record.timestamp_ms)
            await self._add_line(session, entry, gap)

    def _begin(self, record: LogRecord, *, is_whole: bool) -> SessionEntry:
        return SessionEntry(
            agent_id=None,
            project=None,
            first_offset=record.offset,
            last_ms=record.timestamp_ms,
            is_whole=is_whole,
        )

    async def _leave_out(
        self, session: bytes, record: LogRecord, agent: str | None, project: str | None
    ) -> None:
        """Note a message whose text was deleted: the session is there, its text is not."""
        before = self.entries.get(session)
        entry = replace(
            before or self._begin(record, is_whole=False),
            is_whole=False,
            deleted_ms=self._deleted[session],
        )
        entry = replace(entry, agent_id=agent or entry.agent_id, project=project or entry.project)
        if entry.lines:
            # It came late: the gap is where it is, whatever its own time.
            await self._add_line(session, entry, write_gap(record.offset, entry.last_ms))
        else:
            self._put(session, entry)

    async def _append(
        self,
        session: bytes,
        record: LogRecord,
        line: dict[str, Json],
        agent: str | None,
        project: str | None,
    ) -> None:
        entry = self.entries.get(session)
        if entry is None:
            entry = self._begin(record, is_whole=self._is_first(session, record, line))
        if entry.deleted_ms is not None:
            line = await self._without_deleted(session, entry, record.offset, line)
        written = write_line(record.offset, record.timestamp_ms, line)
        entry = replace(
            entry,
            agent_id=agent or entry.agent_id,
            project=project or entry.project,
            last_ms=max(entry.last_ms, record.timestamp_ms),
            is_gone=False,
        )
        await self._add_line(session, entry, written)
        self.messages += 1

    async def _without_deleted(
        self, session: bytes, entry: SessionEntry, offset: int, line: dict[str, Json]
    ) -> dict[str, Json]:
        """Return a line of the service's compaction, without its text if it has no effect.

        One that was under way at a deletion is published after it, with a summary of what is gone.
        """
        is_own = own_edit(line) is not None
        if not is_own and line.get("isCompactSummary") is not True:
            return line
        fold = fold_of(entry, map(read_line, await self._all_lines(session)))
        begun, known = fold.compactions, len(fold.history.everything)
        fold.add(line, offset)
        if fold.compactions != begun or len(fold.history.everything) != known:
            return line
        if is_own:
            return {**line, "compact_metadata": {OWN_FIELD: {}}}
        return {**line, "message": {"role": "user", "content": ""}}

    async def _add_line(self, session: bytes, entry: SessionEntry, line: bytes) -> None:
        entry = replace(entry, lines=entry.lines + 1, size=entry.size + len(line))
        self._put(session, entry, line)
        if exceeds(entry, self._kept):
            trimmed = trim(entry, await self._all_lines(session), self._kept)
            self._replace(session, trimmed.entry, trimmed.lines)

    def _is_first(self, session: bytes, record: LogRecord, line: dict[str, Json]) -> bool:
        """Whether a session's first message here is the first that it had."""
        if session in self._deleted:
            return False
        return (
            self.since_ms is None
            or names_beginning(line)
            or record.timestamp_ms - self.since_ms >= _NEW_AFTER_MS
        )

    async def _all_lines(self, session: bytes) -> list[bytes]:
        pending = self._pending.get(session)
        if pending is None:
            return list(await self._read_lines(session))
        stored = () if pending.replaces else await self._read_lines(session)
        return [*stored, *pending.lines]

    def _put(self, session: bytes, entry: SessionEntry, *lines: bytes) -> None:
        before = self.entries.get(session)
        pending = self._pending.get(session)
        if pending is None:
            pending = self._pending[session] = _Pending(0 if before is None else before.lines)
        self.entries[session] = entry
        pending.lines += lines
        self.pending_bytes += sum(map(len, lines))

    def _replace(self, session: bytes, entry: SessionEntry, lines: Sequence[bytes]) -> None:
        self._put(session, entry)
        pending = self._pending[session]
        self.pending_bytes += sum(map(len, lines)) - sum(map(len, pending.lines))
        pending.lines, pending.replaces = list(lines), True

    async def delete_text(self, session: bytes, until_ms: int) -> None:
        """Delete a session's text that was published until a time. Raises VersionError."""
        entry = self.entries.get(session)
        if entry is None or (entry.deleted_ms or -1) >= until_ms:
            return
        lines = await self._all_lines(session)
        left = without_until(entry, lines, until_ms)
        self._replace(session, left.entry, left.lines)

    async def sweep(self, now_ms: int) -> int:
        """Drop the text of sessions that are idle, or no longer to be kept; return how many."""
        dropped = 0
        for session, entry in list(self.entries.items()):
            idle_ms = now_ms - entry.last_ms
            if entry.is_gone and idle_ms > _REMEMBERED_MS:
                self._remove(session)
            elif not entry.is_gone and (
                idle_ms > self._kept.idle_ms or not self._still_fits(session, entry)
            ):
                self._drop(session, entry)
                dropped += 1
        return dropped

    def _drop(self, session: bytes, entry: SessionEntry) -> None:
        gone = replace(entry, lines=0, size=0, is_whole=False, is_too_large=False, is_gone=True)
        self._replace(session, gone, ())

    def _still_fits(
        self,
        session: bytes,
        entry: SessionEntry,
        agent: str | None = None,
        project: str | None = None,
    ) -> bool:
        """Whether a session is one to keep, by its entry and what a message says of it."""
        return self._kept.fit(_name_of(session), agent or entry.agent_id, project or entry.project)

    def _remove(self, session: bytes) -> None:
        entry = self.entries[session]
        self._put(session, entry)
        del self.entries[session]

    def take_changes(self) -> dict[bytes, LinesChange]:
        """Return what is to be written, once."""
        pending, self._pending, self.pending_bytes = self._pending, {}, 0
        return {
            session: LinesChange(self._written(session), each.expected, each.lines, each.replaces)
            for session, each in pending.items()
        }

    def _written(self, session: bytes) -> bytes | None:
        entry = self.entries.get(session)
        return None if entry is None else write_session_entry(entry)


def _name_of(session: bytes) -> str:
    try:
        return session.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return session.decode("utf-8", "replace")


def _has_text(line: dict[str, Json]) -> bool:
    return line.get("type") not in _WITHOUT_TEXT


def _is_of(body: Mapping[str, Json], session: bytes) -> bool:
    """Whether a message is of the session that its key names; another one is a dead letter."""
    own = session_of(dict(body), None)
    return own is None or key_bytes(own) == session


def _agent_of(record: LogRecord) -> str | None:
    for name, value in record.headers:
        if name == AGENT_ID_HEADER and value:
            return value.decode("utf-8", "replace") or None
    return None
