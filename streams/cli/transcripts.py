"""Sessions of transcripts, derived in this process: no broker and no Redis.

`replay` prints their records; `sessions`, `status` and `events` take a path in place of a session.
"""

import os
import sys
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple, TypeVar

from contextgauge.containers import Line
from contextgauge.errors import ConfigError, StopError
from schemas.messages import DeadLetter
from schemas.records import CompactBoundary, Record
from schemas.views import MODEL_FIELD, Aggregates, Compaction, SessionView
from streams import codec, wiring
from streams.cli.deriving import Derivation
from streams.cli.machine import collect_young_garbage, cores
from streams.cli.publish.rejected import RejectedLines
from streams.cli.screen.figures import exact, first_of, safe
from streams.core.projection import statistics
from streams.core.projection.documents import compaction
from streams.core.projection.project import project
from streams.core.until_compaction import CompactionPoints, usual_point
from streams.edge.files import reading as files
from streams.edge.files.status_windows import StatusWindows
from streams.edge.files.watch import SUBAGENTS, SUFFIX

Made = TypeVar("Made")

_PATH_BEGINNINGS = ("/", "./", "../", "~/")


def is_path(text: str) -> bool:
    """Return whether an argument is a path to transcripts, and no session's id."""
    if text == files.STANDARD_INPUT or text.startswith(_PATH_BEGINNINGS) or text.endswith(SUFFIX):
        return True
    return os.path.exists(text)  # noqa: PTH110 -- False for what no file can be named, where Path raises


class Replay:
    """The records of transcripts. `rejected` counts the lines that could not be derived.

    Folders are derived in several processes, `processes` at most: by default one for each core.
    With `leave_out`, what cannot be read is reported on standard error, and `unreadable` counts it.
    `as_on_this_machine`: with the windows that the status line was given, which no line has.
    Raises ConfigError for a path that holds no transcripts, and otherwise for what cannot be read.
    """

    def __init__(
        self,
        paths: Iterable[str],
        fallback: str | None = None,
        on_dead: Callable[[Line, DeadLetter], None] | None = None,
        processes: int | None = None,
        *,
        leave_out: bool = False,
        as_on_this_machine: bool = False,
    ) -> None:
        self.unreadable = 0
        failed = self._leave_out if leave_out else files.refuse
        self.sources = files.expand((_expanded(path) for path in paths), failed)
        if not self.sources:
            raise ConfigError("nothing can be read")
        self.rejected = RejectedLines("derived", is_any_right=lambda: self._is_any_right)
        self._is_any_right = False
        self._fallback, self._on_dead = fallback, on_dead
        self._processes = processes or cores()
        state = wiring.settings().state_folder if as_on_this_machine else None
        self._windows = StatusWindows(state).of if as_on_this_machine else None
        self._is_fallback_used = fallback is None
        self._lines = self._position = 0
        self._models: dict[str, Aggregates] = {}

    def _leave_out(self, path: str, error: OSError) -> None:
        self.unreadable += 1
        sys.stderr.write(f"{safe(path)}: cannot be read: {error.strerror}\n")

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
        with closing(
            Derivation(self.sources, self._fallback, make, self._windows).parts(self._processes)
        ) as parts:
            for part in parts:
                self._lines += part.lines
                self._is_fallback_used = self._is_fallback_used or part.needs_fallback
                self._is_any_right = self._lines > self.rejected.total + len(part.dead)
                for line, letter in part.dead:
                    self.rejected(line, letter)
                    if self._on_dead is not None:
                        self._on_dead(line, letter)
                yield part.made
        self.rejected.report_all()
        if self._lines and self.rejected.total == self._lines:
            raise self.rejected.none_right(self.name)
        if not self._is_fallback_used:
            sys.stderr.write(
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
        return self._checked(views)

    def points(self, views: Iterable[SessionView]) -> CompactionPoints:
        """Return where compactions are expected: by all settings, and by these sessions' own."""
        learned = {
            field.removeprefix(MODEL_FIELD): usual_point([asdict(aggregates)])
            for field, aggregates in sorted(self._models.items())
        }
        known = tuple((model, point) for model, point in learned.items() if point is not None)
        return wiring.local_points(wiring.settings(), views)._replace(learned=known)

    def one(self) -> "ReplayedSession":
        """Return the only session. Raises StopError where there is none, or there are several."""
        self._refuse_several(len({source.session for source in self.sources}))
        views: dict[str, SessionView] = {}
        records: dict[str, list[Record]] = defaultdict(list)
        for block in self.records():
            self._fold(views, block)
            for record in block:
                records[record.data.session_id].append(record)
        session_id = next(iter(self._checked(views)))
        if self.sources[0].session in views:
            session_id = str(self.sources[0].session)
        else:
            self._refuse_several(len(views))
        points = self.points([views[session_id]])
        return ReplayedSession(views[session_id], records[session_id], points)

    def _fold(self, views: dict[str, SessionView], records: Iterable[Record]) -> None:
        for record in records:
            session_id = record.data.session_id
            before = views.get(session_id)
            for field in statistics.fields(record, before, None):
                if field.startswith(MODEL_FIELD):
                    known = self._models.get(field, Aggregates())
                    self._models[field] = statistics.counted(known, record, before)
            views[session_id] = project(before, record, self._position)
            self._position += 1

    def _checked(self, views: dict[str, SessionView]) -> dict[str, SessionView]:
        if not views:
            raise no_session(self.name, self._lines)
        return views

    def _refuse_several(self, sessions: int) -> None:
        if sessions > 1:
            raise StopError(
                f"{self.name}: {exact(sessions)} sessions: name the file of one. "
                "`contextgauge sessions PATH` lists them, `contextgauge replay --view PATH` shows "
                "each"
            )


def no_session(name: str, lines: int) -> StopError:
    """Return the error of an input that gives no session."""
    if not lines:
        return StopError(f"{name} has no session: it is empty")
    return StopError(
        f"{name} has no session: no line (of {exact(lines)}) has a size, a compaction or a "
        "session's properties"
    )


def session_of(path: str) -> "ReplayedSession":
    """Return the session of a path, its subagents included; see `Replay.one`."""
    return Replay([session_folder(path) or path], as_on_this_machine=True).one()


def session_folder(path: str) -> str | None:
    """Return the folder with the subagents of a transcript: `X` of `X.jsonl`; None without one."""
    folder = _expanded(path).removesuffix(SUFFIX)
    has_subagents = path.endswith(SUFFIX) and (Path(folder) / SUBAGENTS).is_dir()
    return folder if has_subagents else None


class ReplayedSession(NamedTuple):
    """A session of a transcript: its view, all its records, and where it is compacted."""

    view: SessionView
    records: list[Record]
    points: CompactionPoints

    def latest_compaction(self) -> Compaction | None:
        """Return the compaction with the latest boundary, after all records of it."""
        latest: Compaction | None = None
        for record in self.records:
            if isinstance(record.data, CompactBoundary) or (
                latest is not None and getattr(record.data, "boundary_id", "") == latest.boundary_id
            ):
                latest = compaction(latest, record)
        return latest


def _expanded(path: str) -> str:
    return str(Path(path).expanduser()) if path.startswith("~") else path
