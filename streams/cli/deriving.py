"""Transcripts derived block after block, in this process or in several: the same parts, in order.

Much is derived in tasks: the files of a session, or of some. After each its sessions rest in a
temporary file, so that memory hardly grows with them. Several processes take a task at a time, and
begin each time without any session. Where a session turns out to have been in earlier files too, as
one that was resumed in another file, its files are derived once more here, from where the earlier
ones left it.
"""

import os
import stat
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cached_property
from itertools import groupby
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from contextgauge.containers import Line
from contextgauge.normalise import session_of as session_named_by
from contextgauge.normalise.unread_lines import UnreadKind
from schemas.messages import DeadLetter
from schemas.records import Record
from schemas.topics import MIB
from streams import codec, wiring
from streams.core.derivation.outside_windows import OutsideWindows, with_windows
from streams.core.derivation.rules_config import Rules
from streams.core.derivation.state import Session
from streams.edge.files import reading as files
from streams.edge.files.names import group_of
from streams.edge.files.opening import expected_bytes
from streams.edge.files.watch import InputSource
from streams.flow.derive.deriver import Deriver
from streams.flow.derive.stored_sessions import Activity, StoredSessions, changes_of
from streams.flow.replay.hook_lines import HookLines
from streams.flow.replay.replay import replay as replay_lines
from streams.flow.replay.unread_lines import UnreadLines
from streams.ports import HookedBy

_TASK_BYTES = 4 * MIB
"""Of files that a process takes at a time: a tenth of a second's work."""

_FORK_BYTES = 16 * MIB
"""Of all files: fewer are read before other processes would save anything, with little memory."""

_NO_ACTIVITY = Activity(0, None)

_Entries: TypeAlias = Sequence[tuple[bytes, bytes | None]]

Made = TypeVar("Made")


class DerivedBlock(NamedTuple, Generic[Made]):
    """What a block of lines gave. `made` is made of its records, `lines` are without blank ones.

    `sessions` are those that this block was the first one to name, `states` of the last
    part of a process's task: how it left its sessions. `partly_read` are files that could not be
    read to their ends, with the reasons, `unread` lines of whole files whose figures are not read.
    """

    lines: int
    needs_fallback: bool
    dead: list[tuple[Line, DeadLetter]]
    made: Sequence[Made]
    sessions: frozenset[str] = frozenset()
    states: _Entries | None = None
    partly_read: Mapping[str, str] | None = None
    unread: Mapping[UnreadKind, int] | None = None


class Derivation(Generic[Made]):
    """Derives the lines of files. `make` makes of a block's records what its part has.

    `fallback` is the session of lines that neither they nor their file name one for. `windows` and
    what `hooked` returns are known from elsewhere than the lines. `rules` are the configured ones
    by default.
    """

    def __init__(
        self,
        sources: Sequence[InputSource],
        fallback: str | None,
        make: Callable[[Sequence[Record]], Sequence[Made]],
        windows: OutsideWindows | None = None,
        hooked: HookedBy | None = None,
        rules: Rules | None = None,
    ) -> None:
        settings = wiring.settings()
        self._rules = wiring.rules(settings) if rules is None else rules
        self._limit_bytes = settings.message_limit_bytes
        self._sources, self._fallback, self._make = sources, fallback, make
        self._windows = windows
        self._hooks = None if hooked is None else HookLines(hooked)
        self.sessions: set[str] = set()
        """The sessions that lines were of, also of lines that gave no record."""

    @cached_property
    def _states(self) -> StoredSessions:
        """How the tasks so far left their sessions."""
        from streams.edge.sqlite.values import TemporaryValues  # noqa: PLC0415 -- of much alone

        return StoredSessions("an earlier file", TemporaryValues())

    def parts(self, processes: int) -> Generator[DerivedBlock[Made], None, None]:
        """Yield the parts in input order, from up to so many processes.

        Raises ConfigError for a file that cannot be read, StopError if a process dies.
        """
        tasks = _tasks(self._sources)
        if len(tasks) <= 1:
            yield from self._derived(self._sources, self._deriver(self.sessions.add))
            return
        if processes == 1:
            for task in tasks:
                yield from self._continued(task)
            return
        from streams.edge.forks import Forks  # noqa: PLC0415 -- one process does without

        forks = Forks(self._task, min(processes, len(tasks)))
        try:
            forks.start()
            for task, parts in zip(tasks, forks.results(tasks), strict=True):
                with closing(parts):
                    yield from self._in_order(task, parts)
        finally:
            forks.stop()

    def _in_order(
        self, task: Sequence[InputSource], parts: Iterable[DerivedBlock[Made]]
    ) -> Iterator[DerivedBlock[Made]]:
        """Yield the parts of the next task; derive here what its process could not know."""
        from streams.edge.forks import TaskFailedError  # noqa: PLC0415 -- as above

        lines = dead = made = 0
        try:
            for part in parts:
                if part.states is not None:
                    self._states.add(part.states)
                    return
                self.sessions |= part.sessions
                if any(session in self._states for session in part.sessions):
                    break
                yield part
                lines, dead, made = lines + part.lines, dead + len(part.dead), made + len(part.made)
        except TaskFailedError:
            pass  # the same error arises here
        for part in self._continued(task):
            yield part._replace(
                lines=max(0, part.lines - lines), dead=part.dead[dead:], made=part.made[made:]
            )
            lines = max(0, lines - part.lines)
            dead, made = max(0, dead - len(part.dead)), max(0, made - len(part.made))

    def _continued(self, task: Sequence[InputSource]) -> Iterator[DerivedBlock[Made]]:
        """Derive a task here, from where the earlier ones left its sessions."""
        deriver = self._deriver(self._stored)
        yield from self._derived(task, deriver)
        self._states.add(_entries(deriver))

    def _task(self, sources: Sequence[InputSource]) -> Iterator[DerivedBlock[Made]]:
        """Yield the parts of a task, in its process."""
        sessions: set[str] = set()
        deriver = self._deriver(sessions.add)
        for part in self._derived(sources, deriver):
            yield part._replace(sessions=frozenset(sessions))
            sessions.clear()
        yield DerivedBlock(0, False, [], (), states=_entries(deriver))  # noqa: FBT003 -- as in the type

    def _deriver(self, stored: Callable[[str], Session | None]) -> Deriver:
        windows = self._windows
        if windows is None:
            return Deriver(self._rules, limit_bytes=self._limit_bytes, stored=stored)

        def known(session_id: str) -> Session | None:
            return with_windows(stored(session_id), windows(session_id))

        return Deriver(self._rules, limit_bytes=self._limit_bytes, stored=known)

    def _stored(self, session_id: str) -> Session | None:
        self.sessions.add(session_id)
        return self._states.take(session_id)

    def _derived(
        self, sources: Sequence[InputSource], deriver: Deriver
    ) -> Iterator[DerivedBlock[Made]]:
        needs_fallback = False
        partly_read: dict[str, str] = {}
        unread = UnreadLines()

        def failed(path: str, error: OSError) -> None:
            partly_read[path] = str(error.strerror)

        for block in self._with_hooks(files.read(sources, self._fallback, failed)):
            lines = sum(not line.value.isspace() and bool(line.value) for line in block)
            if self._fallback is not None and not needs_fallback:
                needs_fallback = any(map(self._needs_fallback, block))
            unread.look(block)
            for derived in replay_lines(deriver, [block], self._limit_bytes):
                unread.take(derived.records)
                yield DerivedBlock(lines, needs_fallback, derived.dead, self._make(derived.records))
        counts = unread.counts()
        if partly_read or counts:
            yield DerivedBlock(0, needs_fallback, [], (), partly_read=partly_read, unread=counts)

    def _with_hooks(self, blocks: Iterator[Sequence[Line]]) -> Iterator[Sequence[Line]]:
        """Yield blocks with messages of hooks between their lines, and after each file's last."""
        if self._hooks is None:
            yield from blocks
            return
        path = None
        for block in filter(None, blocks):
            if path not in (None, block[0].file):
                yield self._hooks.rest(path)
            path = block[0].file
            yield self._hooks.between(path, block)
        if path is not None:
            yield self._hooks.rest(path)

    def _needs_fallback(self, line: Line) -> bool:
        """Return whether neither the line nor its file names a session."""
        # A file's own session may be equal, but is not this object.
        if line.session_hint is not self._fallback:
            return False
        body = codec.decode(line.value)
        return not isinstance(body, DeadLetter) and session_named_by(body, None) is None


def _entries(deriver: Deriver) -> _Entries:
    """Return a deriver's sessions as they are stored."""
    return [
        entry
        for session_id, session in deriver.sessions.items()
        for entry in changes_of(session_id, None, session, _NO_ACTIVITY).items()
    ]


def _tasks(sources: Sequence[InputSource]) -> list[list[InputSource]]:
    """Return the sources in tasks; one or none where they are few, or not files."""
    sizes: dict[InputSource, int] = {}
    for source in sources:
        if source.path is None:
            return []
        try:
            status = source.path.stat()
        except OSError:
            return []
        if not stat.S_ISREG(status.st_mode):
            return []
        sizes[source] = expected_bytes(source.name, status.st_size)
    if sum(sizes.values()) < _FORK_BYTES:
        return []
    tasks: list[list[InputSource]] = []
    room = 0
    for _, group in groupby(sources, lambda source: group_of(os.fspath(source.name))):
        of_session = list(group)
        if room <= 0:
            tasks.append([])
            room = _TASK_BYTES
        tasks[-1] += of_session
        room -= sum(sizes[source] for source in of_session)
    return tasks
