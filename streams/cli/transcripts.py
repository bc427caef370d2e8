"""Sessions of transcripts, derived in this process: no broker and no Redis.

`replay` prints their records; `sessions`, `status` and `events` take a path in place of a session.
"""

from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict
from typing import Any, NamedTuple, TypeVar

from contextgauge.containers import Line
from contextgauge.errors import StopError
from contextgauge.normalise.unread_lines import UnreadKind
from schemas.messages import DeadLetter
from schemas.records import CompactBoundary, Record
from schemas.views import MODEL_FIELD, Aggregates, Compaction, SessionView
from streams import codec, wiring
from streams.cli.deriving import Derivation
from streams.cli.inputs import add_totals, points_of, sources_of, unrecognised
from streams.cli.machine import collect_young_garbage, cores
from streams.cli.only_session import only_id
from streams.cli.publish.rejected import RejectedLines
from streams.cli.screen.figures import exact, first_of, safe
from streams.cli.screen.lines import write_error
from streams.cli.unread import shown
from streams.core.derivation.rules_config import Rules
from streams.core.projection import statistics
from streams.core.projection.documents import compaction
from streams.core.projection.project import project
from streams.core.session_status import is_unrecognised
from streams.core.until_compaction import CompactionPoints
from streams.edge.files.hook_messages import hooked_by
from streams.edge.files.names import name_of
from streams.edge.files.positions import absolute
from streams.edge.files.status_windows import StatusWindows
from streams.edge.files.watch import InputSource
from streams.wiring.stored import totals_with

Made = TypeVar("Made")


class Replay:
    """The records of transcripts. `rejected` counts the lines that could not be derived.

    Folders are derived in several processes, `processes` at most: by default one for each core.
    `is_rest`: the sources are not all that was asked for, and lines of the others are right.
    `as_on_this_machine`: with the windows that the status line was given, and the compactions'
    starts and ends that hooks were given, which no line has. `rules` are the configured ones by
    default.
    `report` gets what is reported of rejected lines. What can be read in part only is reported on
    standard error, and `unreadable` counts it.
    """

    def __init__(
        self,
        sources: Sequence[InputSource],
        fallback: str | None = None,
        on_dead: Callable[[Line, DeadLetter], None] | None = None,
        processes: int | None = None,
        *,
        is_rest: bool = False,
        as_on_this_machine: bool = False,
        report: Callable[[str], object] = write_error,
        rules: Rules | None = None,
    ) -> None:
        self.sources = sources
        self.rejected = RejectedLines("derived", is_any_right=lambda: self._is_any_right, to=report)
        self.session_ids: set[str] = set()
        """The sessions that lines were of, known after the derivation."""
        self._is_rest = self._is_any_right = is_rest
        self._fallback, self._on_dead = fallback, on_dead
        self._rules = rules
        self._processes = processes or cores()
        state = wiring.settings().state_folder if as_on_this_machine else None
        self._windows = StatusWindows(state).of if as_on_this_machine else None
        self._hooked = hooked_by(state) if as_on_this_machine else None
        self._is_fallback_used = fallback is None
        self._lines = self._position = 0
        self._partly_read: set[str] = set()
        self._unread: dict[UnreadKind, int] = {}
        self.unreadable = 0
        self.models: dict[str, Aggregates] = {}
        """Aggregates of the sessions by model, known after the views."""

    def _report_partly_read(self, reasons: Mapping[str, str] | None) -> None:
        for path, reason in (reasons or {}).items():
            # Files may be derived twice, in other processes and here.
            if path not in self._partly_read:
                self._partly_read.add(path)
                self.unreadable += 1
                write_error(f"{safe(path)}: {reason}\n")

    def records(self) -> Iterator[Sequence[Record]]:
        """Yield the records in input order, those of a block of lines at a time.

        Rejected lines are reported on standard error. Raises StopError where no line could be
        derived: this is something other than transcripts.
        """
        return self._derived(lambda records: records)

    def lines(self) -> Generator[Sequence[bytes], None, None]:
        """Yield the records as structured CloudEvents; see `records`."""
        return self._derived(lambda records: [codec.to_structured(record) for record in records])

    def _derived(
        self, make: Callable[[Sequence[Record]], Sequence[Made]]
    ) -> Generator[Sequence[Made], None, None]:
        collect_young_garbage()
        derivation = Derivation(
            self.sources, self._fallback, make, self._windows, self._hooked, self._rules
        )
        self.session_ids = derivation.sessions
        with closing(derivation.parts(self._processes)) as parts:
            for part in parts:
                self._lines += part.lines
                self._is_fallback_used = self._is_fallback_used or part.needs_fallback
                self._report_partly_read(part.partly_read)
                self._unread |= part.unread or {}
                rejected = self.rejected.total + len(part.dead)
                self._is_any_right = self._is_rest or self._lines > rejected
                for line, letter in part.dead:
                    self.rejected(line, letter)
                    if self._on_dead is not None:
                        self._on_dead(line, letter)
                yield part.made
        self.rejected.report_all()
        for text in shown(self._unread):
            write_error(f"{text}\n")
        if self._lines and not self._is_any_right:
            raise self.rejected.none_right(self.name)
        if not self._is_fallback_used:
            write_error(
                f"--session {safe(str(self._fallback))} is not used: it is for lines without a "
                "session, and each of these has one. To print one session, name its file: "
                "`contextgauge replay FILE`\n"
            )

    @property
    def name(self) -> str:
        """What was read, for messages."""
        return first_of([source.name for source in self.sources])

    def views(self) -> dict[str, SessionView]:
        """Return each session's view. Raises StopError where there is no session."""
        views: dict[str, SessionView] = {}
        for records in self.records():
            self._fold(views, records)
        return views if self._is_rest else self._checked(views)

    def points(self, views: Iterable[SessionView]) -> CompactionPoints:
        """Return where compactions are expected: by all settings, and by these sessions' own."""
        return points_of({name: [asdict(each)] for name, each in self.models.items()}, views)

    def one(self, wanted: str | None = None) -> "ReplayedSession":
        """Return the only session, or the one whose id begins so.

        Raises StopError where there is none, or there are several.
        """
        if wanted is None:
            self._refuse_several(len({source.session for source in self.sources}))
        views: dict[str, SessionView] = {}
        records: dict[str, list[Record]] = defaultdict(list)
        for block in self.records():
            self._fold(views, block)
            for record in block:
                records[record.data.session_id].append(record)
        session_id = self._chosen(self._checked(views), wanted)
        view, source = views[session_id], self._source_of(session_id)
        if is_unrecognised(view):
            raise unrecognised(self.name)
        points = points_of(self._models_with_others(session_id, source), [view])
        return ReplayedSession(view, records[session_id], points, source)

    def _source_of(self, session_id: str) -> InputSource:
        """Return the main file of a session; where no name shows which it is, the first one."""
        own = [
            each
            for each in self.sources
            if each.path is not None and name_of(str(each.path)).is_main
        ]
        named = (each for each in own if each.session == session_id)
        return next(named, (own or self.sources)[0])

    def _models_with_others(
        self, session_id: str, source: InputSource
    ) -> dict[str, list[Mapping[str, Any]]]:
        """Return the models' aggregates, with those of the sessions that `view` has read, too."""
        models: dict[str, list[Mapping[str, Any]]] = {
            name: [asdict(each)] for name, each in self.models.items()
        }
        path, own = source.path, codec.key_bytes(session_id)
        others = () if path is None else totals_with(wiring.settings(), absolute(str(path)))
        with suppress(ValueError):  # damaged
            add_totals(models, others, lambda session: session != own)
        return models

    def _fold(self, views: dict[str, SessionView], records: Iterable[Record]) -> None:
        for record in records:
            session_id = record.data.session_id
            before = views.get(session_id)
            for field in statistics.fields(record, before, None):
                if field.startswith(MODEL_FIELD):
                    name = field.removeprefix(MODEL_FIELD)
                    known = self.models.get(name, Aggregates())
                    self.models[name] = statistics.counted(known, record, before)
            views[session_id] = project(before, record, self._position)
            self._position += 1

    def _checked(self, views: dict[str, SessionView]) -> dict[str, SessionView]:
        if not views:
            raise self.no_session()
        return views

    def no_session(self) -> StopError:
        """Return the error of an input that gave no record."""
        if self.unreadable and not self._lines:
            return StopError(f"{self.name} cannot be read: see above")
        return no_session(self.name, self._lines)

    def _chosen(self, views: Mapping[str, SessionView], wanted: str | None) -> str:
        if wanted is not None:
            session = only_id(wanted, views)
            if session is None:
                raise StopError(f"{self.name}: no session begins with {safe(wanted)}")
            return session
        own = self.sources[0].session
        if own is not None and own in views:
            return own
        self._refuse_several(len(views))
        return next(iter(views))

    def _refuse_several(self, sessions: int) -> None:
        if sessions > 1:
            raise StopError(
                f"{self.name}: {exact(sessions)} sessions: name the file of one, or add "
                "`--session ID`. `contextgauge sessions PATH` lists them, "
                "`contextgauge replay --view PATH` shows each"
            )


def no_session(name: str, lines: int) -> StopError:
    """Return the error of an input that gives no session."""
    if not lines:
        return StopError(f"{name} has no session: it is empty")
    return StopError(
        f"{name} has no session: no line (of {exact(lines)}) has a size, a compaction or a "
        "session's properties"
    )


def session_of(
    path: str, wanted: str | None = None, *, processes: int | None = None
) -> "ReplayedSession":
    """Return the session of a path, its subagents included; see `Replay` and its `one`."""
    sources = sources_of([path])
    return Replay(sources, processes=processes, as_on_this_machine=True).one(wanted)


class ReplayedSession(NamedTuple):
    """A session of a transcript: its view and records, where it is compacted, its main file."""

    view: SessionView
    records: list[Record]
    points: CompactionPoints
    source: InputSource

    def compactions(self, *, inherited: bool = False) -> list[Compaction]:
        """Return the session's compactions after all records of them, the newest first.

        They are its own; with `inherited`, those too that its history had when it began.
        """
        own: dict[str, Compaction] = {}
        for record in self.records:
            data = record.data
            if data.inherited and not inherited:
                continue
            boundary = record.id if isinstance(data, CompactBoundary) else _boundary_of(record)
            document = compaction(own.get(boundary), record)
            if document is not None:
                own[boundary] = document
        return list(reversed(own.values()))

    def latest_compaction(self) -> Compaction | None:
        """Return the session's own compaction with the latest boundary."""
        return next(iter(self.compactions()), None)


def _boundary_of(record: Record) -> str:
    """Return the boundary that a record adds to; empty where it is of none."""
    return getattr(record.data, "boundary_id", None) or ""
