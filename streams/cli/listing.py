"""The sessions of paths, as `contextgauge sessions PATH` lists them.

What `contextgauge view` has stored of files that are as they were is not derived again, and the
list is the same (`streams/flow/view/unchanged.py`). Where all is stored, nothing that derives is
imported.
"""

import os
import stat
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import Any, NamedTuple

from contextgauge.clock import SystemClock
from contextgauge.errors import VersionError
from contextgauge.frozen import replace
from schemas.views import Aggregates, SessionView
from streams import codec, wiring
from streams.cli.inputs import LeftOut, add_totals, named_or_own, points_of, unrecognised
from streams.cli.screen.figures import count, first_of
from streams.cli.screen.lines import write_error
from streams.cli.screen.sessions_table import live_first
from streams.codec import view_codec
from streams.core.session_status import is_unrecognised, leading_chain
from streams.core.until_compaction import NO_POINTS, CompactionPoints
from streams.edge.files.positions import absolute
from streams.wiring.stored import Recalled, outdated, recalled


class Order(StrEnum):
    """How sessions are sorted."""

    recent = "recent"
    pressure = "pressure"


class Listed(NamedTuple):
    """The first sessions, how many there are, and where compactions are expected.

    `unrecognised` sessions are left out: of an unknown runtime, without any figures.
    """

    views: list[SessionView]
    total: int
    points: CompactionPoints
    unrecognised: int = 0


class Listing:
    """The sessions of paths; of this machine's runtimes where there are none.

    `unreadable` counts what cannot be read, which is reported. What is not stored is derived in
    `processes`, by default one for each core.

    The position in a view counts the session's own records: it is the same, whatever else is listed
    with it. Raises ConfigError for a path that holds no transcripts.
    """

    def __init__(self, paths: Sequence[str], processes: int | None = None) -> None:
        self._left_out, self._processes = LeftOut(), processes
        self.sources = named_or_own(paths, self._left_out)

    @property
    def unreadable(self) -> int:
        """How many files and folders cannot be read, or in part only."""
        return self._left_out.count

    def read(self, order: Order, limit: int) -> Listed:
        """Return the first sessions. Raises StopError where paths have no session."""
        if not self.sources:
            return Listed([], 0, NO_POINTS)
        listed = self._read(order, limit)
        if listed.unrecognised:
            if not listed.total:
                raise unrecognised(first_of([source.name for source in self.sources]))
            sessions = count(listed.unrecognised, "session")
            write_error(f"not listed: {sessions} of an unknown runtime, without any figures\n")
        return listed

    def _read(self, order: Order, limit: int) -> Listed:
        stored = self._recalled()
        listed = None if stored is None else self._with_stored(stored, order, limit)
        if listed is not None:
            return listed
        from streams.cli.transcripts import Replay  # noqa: PLC0415 -- where all is stored, without

        replay = Replay(self.sources, processes=self._processes, as_on_this_machine=True)
        views = replay.views()
        self._left_out.count += replay.unreadable
        return _listed(views, {}, _documents(replay.models), order, limit)

    def _recalled(self) -> Recalled | None:
        """Return what is stored of the sources; None of pipes, which are read once."""
        names = [source.name for source in self.sources if source.path is not None]
        try:
            are_files = all(stat.S_ISREG(os.stat(name).st_mode) for name in names)  # noqa: PTH116 -- for thousands
        except OSError:
            return None
        if not are_files or len(names) < len(self.sources):
            return None
        return recalled(wiring.settings(), list(map(absolute, names)))

    def _with_stored(self, stored: Recalled, order: Order, limit: int) -> Listed | None:
        """Return what is stored, with what has to be derived; None where nothing stored holds."""
        try:
            elsewhere = outdated(wiring.settings(), stored.views)
        except _DAMAGED:
            return None
        while (unchanged := stored.unchanged(elsewhere)).sessions:
            rest = [
                source
                for source, path in zip(self.sources, stored.order, strict=True)
                if path not in unchanged.files
            ]
            views: dict[str, SessionView] = {}
            models: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
            if rest:
                from streams.cli.transcripts import Replay  # noqa: PLC0415 -- as above

                reports: list[str] = []
                replay = Replay(
                    rest,
                    processes=self._processes,
                    is_rest=True,
                    as_on_this_machine=True,
                    report=reports.append,
                )
                views, models = replay.views(), _documents(replay.models)
                in_both = set(map(codec.key_bytes, replay.session_ids)) & unchanged.sessions
                if in_both:
                    # Their stored files come first or between: they are read again with the rest.
                    elsewhere |= in_both
                    continue
                self._left_out.count += replay.unreadable
                for text in reports:
                    write_error(text)
            documents = {
                session: document
                for session, document in stored.views.items()
                if session in unchanged.sessions
            }
            try:
                add_totals(models, stored.totals, unchanged.sessions.__contains__)
                return _listed(views, documents, models, order, limit)
            except _DAMAGED:
                return None
        return None


_DAMAGED = (VersionError, ValueError, KeyError, TypeError)
"""What a damaged document raises."""


class _Found(NamedTuple):
    """A session: its id, when it was last active, and its view, decoded or as it is stored."""

    session_id: str
    last_ms: int
    view: SessionView | bytes

    def decoded(self) -> SessionView:
        """Return the view. Raises VersionError."""
        if isinstance(self.view, SessionView):
            view = self.view
        else:
            view = view_codec.decode(SessionView, self.view)
        return replace(view, position=view.sequence)


def _listed(
    views: Mapping[str, SessionView],
    documents: Mapping[bytes, bytes],
    models: Mapping[str, Sequence[Mapping[str, Any]]],
    order: Order,
    limit: int,
) -> Listed:
    """Return the first of all sessions. Sessions of the same rank are in the order of their ids."""
    every = [_Found(name, view.last_ms or 0, view) for name, view in views.items()]
    for document in documents.values():
        body = codec.loads(document)
        is_known = body["identity"]["runtime"] not in (None, "other")
        view = document if is_known else view_codec.decode(SessionView, document)
        every.append(_Found(body["session_id"], body["last_ms"] or 0, view))
    sessions = [
        each for each in every if isinstance(each.view, bytes) or not is_unrecognised(each.view)
    ]
    if order is Order.recent:
        sessions.sort(key=lambda each: (-each.last_ms, each.session_id))
        shown = [each.decoded() for each in sessions[:limit]]
    else:
        decoded = sorted((each.decoded() for each in sessions), key=lambda view: view.session_id)
        shown = live_first(sorted(decoded, key=_free), SystemClock().now_ms())[:limit]
    left_out = len(every) - len(sessions)
    return Listed(shown, len(sessions), points_of(models, shown), left_out)


def _free(view: SessionView) -> float:
    """Return what orders sessions by pressure: the fullest first, unknown sizes last."""
    leading = leading_chain(view)
    used = None if leading is None else leading.used_percent
    return float("inf") if used is None else -used


def _documents(models: Mapping[str, Aggregates]) -> dict[str, list[Mapping[str, Any]]]:
    documents: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for name, aggregates in models.items():
        documents[name].append(asdict(aggregates))
    return documents
