"""A session's checkpoints, wherever it is: a path, this machine's transcripts, or the views."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from contextgauge.clock import SystemClock
from contextgauge.compaction.history import History
from contextgauge.compaction.reading.session_conversation import SessionConversation
from contextgauge.errors import ConfigError, StopError
from contextgauge.normalise.fields import name
from schemas.records import MAIN_CHAIN
from schemas.views import Compaction, SessionView
from streams import wiring
from streams.cli.local_session import file_of
from streams.cli.screen.figures import safe
from streams.cli.screen.output import reading
from streams.cli.session_lines import SessionLines, lines_of_session
from streams.cli.stored import opened_views
from streams.cli.transcripts import session_of
from streams.codec import view_codec
from streams.core.conversation.checkpoints import (
    BoundaryReport,
    HeldContext,
    SessionCheckpoint,
    before_compaction,
    same_boundaries,
)
from streams.edge.files.known_forks import KnownForks, known_forks
from streams.edge.files.reading import STANDARD_INPUT
from streams.edge.files.runtime_folders import transcript_folders
from streams.edge.files.session_files import SessionFiles
from streams.serve.views.sessions import SessionLookupError, active_sessions
from streams.serve.views.snapshot import ViewsGoneError
from streams.wiring.stored import own_folders


class CheckpointSession(NamedTuple):
    """A session with the compactions of its main chain, the oldest first.

    `lines` are those of its transcript, `kept` is its kept conversation: None for what is not here.
    """

    view: SessionView
    compactions: Sequence[Compaction]
    lines: SessionLines | None
    kept: SessionConversation | None = None

    def held(self) -> Mapping[int, SessionCheckpoint]:
        """Return what forks would hold, by the compactions' numbers, of those that are here.

        Of a kept conversation, `lines` are the messages that it has.
        """
        if self.lines is not None:
            given = self.lines.checkpoints()
            places = same_boundaries(
                [BoundaryReport(each.boundary_id, each.time_ms) for each in self.compactions],
                [each for _, each in self.lines.boundaries],
            )
            return {
                each.number: given[places[each.boundary_id]]
                for each in self.compactions
                if each.boundary_id in places
            }
        if self.kept is None:
            return {}
        histories = {each.number: self.kept_around(each.number) for each in self.compactions}
        is_whole = self.kept.state == "whole"
        return {
            number: SessionCheckpoint(*(_held(each, is_whole=is_whole) for each in around))
            for number, around in histories.items()
            if around is not None
        }

    def kept_around(self, number: int) -> tuple[History, History] | None:
        """Return the kept conversation before and after a compaction; None where it is not kept.

        It counts from where it begins: its numbers are those of the compactions only if both end
        with the same.
        """
        if self.kept is None:
            return None
        if _compactions_in(self.kept) != max(each.number for each in self.compactions):
            return None
        history = self.kept.history
        try:
            return before_compaction(history, number), history.after_compaction(number)
        except ConfigError:
            return None

    def forks(self) -> KnownForks:
        """Return its forks on this machine, and sessions that may be as well."""
        lines = [] if self.lines is None else self.lines.lines
        paths = [] if self.lines is None else self.lines.paths
        ids = {line_id for each in lines if (line_id := name(each, "uuid")) is not None}
        if self.view.identity.forked_from is not None:
            ids.clear()  # with these begin its origin and that one's other forks
        near = dict.fromkeys(str(each.absolute().parent) for each in paths)
        return known_forks(self.view.session_id, ids, [*near], own_folders())


def _compactions_in(kept: SessionConversation) -> int:
    return kept.history.rounds if kept.reading is None else kept.reading.compactions


def _held(history: History, *, is_whole: bool) -> HeldContext:
    return HeldContext(len(history.everything), len(history.active), is_whole)


def checkpoint_session(session: str, one: str | None) -> CheckpointSession:
    """Return a session of a path, else of the views, else of this machine.

    Raises StopError where there is none, and ConfigError for standard input.
    """
    if session == STANDARD_INPUT:
        raise ConfigError("name a file: it is read twice, which standard input cannot be")
    file = file_of(session, one)
    return _of_views(session) if file is None else _of_path(*file)


def _of_path(path: str, one: str | None) -> CheckpointSession:
    with reading():
        replayed = session_of(path, one)
        view = replayed.view
        lines = lines_of_session(path, view.session_id, view.identity.runtime)
    return CheckpointSession(view, _of_main(replayed.compactions(inherited=True)[::-1]), lines)


def _of_views(session: str) -> CheckpointSession:
    settings = wiring.settings()

    async def read() -> tuple[SessionView, list[bytes], SessionConversation | None]:
        async with (
            opened_views(settings) as views,
            wiring.started(wiring.redis_conversations(settings)) as conversations,
        ):
            sessions = await active_sessions(views, SystemClock())
            view = await sessions.find(session)
            documents = await sessions.compactions(view.session_id)
            return view, documents, await conversations.conversation(view.session_id)

    try:
        view, documents, conversation = asyncio.run(read())
    except (SessionLookupError, ViewsGoneError) as error:
        raise StopError(safe(str(error))) from None
    stored = [view_codec.decode(Compaction, each) for each in reversed(documents)]
    path = SessionFiles(transcript_folders(os.environ)).path(view.session_id)
    lines = None if path is None else _lines_at(path, view)
    return CheckpointSession(view, _of_main(stored), lines, conversation)


def _lines_at(path: Path, view: SessionView) -> SessionLines:
    with reading():
        return lines_of_session(str(path), view.session_id, view.identity.runtime)


def _of_main(compactions: Sequence[Compaction]) -> list[Compaction]:
    return [each for each in compactions if each.chain == MAIN_CHAIN]
