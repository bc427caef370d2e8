"""The figures of a transcript: from all of its lines, as `contextgauge status FILE` has them.

Claude Code's prompt cannot wait until a long transcript has been read. What was derived is stored,
so each prompt derives only what came since; of one that is met late, each reads a part, and the
line is marked until all has been read (docs/adr/0069-the-status-line-reads-on.md). A person who
names a transcript waits.
"""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from contextgauge import __version__, json_codec
from contextgauge.errors import VersionError
from contextgauge.window_catalog import bundled
from schemas.topics import MIB
from schemas.views import VIEW_VERSION, SessionView
from streams.cli.screen.figures import safe
from streams.core.derivation.rules_config import STATE_VERSION, Rules
from streams.core.until_compaction import CompactionPoints
from streams.edge.files.hook_messages import hooked_by
from streams.edge.files.plain_settings import StatusLineSettings
from streams.edge.files.session_reading import SessionReading
from streams.edge.files.small_files import SmallFiles
from streams.flow.replay.hook_lines import HookLines
from streams.flow.replay.transcript_view import TranscriptSessions

PROMPT_BYTES = MIB // 2
"""After so much a prompt reads no other block of a file, of up to 1 MiB: that takes 10 to 20 ms."""

_FOLDER = "statusline-transcripts"

_DAMAGED = (VersionError, ValueError, KeyError, TypeError, AttributeError)
"""What a damaged or foreign file raises."""


class TranscriptFigures(NamedTuple):
    """A session's view. `points`: where its compactions are expected, if known here.

    `is_partial`: some lines before its last ones have not been read yet.
    """

    view: SessionView
    points: CompactionPoints | None = None
    is_partial: bool = False


def of_a_person(path: str) -> TranscriptFigures:
    """Return what `status FILE` shows. Raises ContextgaugeError."""
    from streams.cli.transcripts import session_of

    session = session_of(path)
    return TranscriptFigures(session.view, session.points)


class PromptTranscript:
    """A transcript at a prompt. `state_folder` is the setting, None for the convention's."""

    def __init__(self, settings: StatusLineSettings, state_folder: str | None) -> None:
        self._rules = Rules(
            catalog=bundled(),
            configured_windows=settings.windows,
            default_window=settings.default_window,
        )
        self._files = SmallFiles(state_folder, _FOLDER)
        self._hooked = hooked_by(state_folder)

    def figures(
        self, path: str, session_id: str | None, explain: Callable[[str], None]
    ) -> TranscriptFigures | None:
        """Read on, and return what is known; None where that is nothing.

        Raises OSError, and ConfigError for what is not a file.
        """
        name = hashlib.sha256(path.encode(errors="surrogateescape")).hexdigest()[:32]
        stored = self._stored(name)
        try:
            reading, sessions = self._read(path, name, stored)
        except _DAMAGED:
            if stored is None:
                raise
            reading, sessions = self._read(path, name, None)
        view = sessions.view(session_id)
        if view is None:
            explain(f"{safe(path)}: no size, compaction or model in the transcript yet")
            return None
        if not reading.is_whole:
            explain(f"only a part of {safe(path)} has been read: the next prompts read on")
            if not (reading.is_at_end or sessions.is_settled(view)):
                return None
        return TranscriptFigures(view, None, not reading.is_whole)

    def _read(
        self, path: str, name: str, stored: Mapping[str, Any] | None
    ) -> tuple[SessionReading, TranscriptSessions]:
        """Read on from what is stored, and store what that gave; then look at the end."""
        reading = SessionReading(path, {} if stored is None else stored["marks"])
        before = stored if reading.goes_on else None
        sessions, hooks = TranscriptSessions(self._rules, before), HookLines(self._hooked)
        hooks.begin(reading.main, None if before is None else before.get("hooked_ms"))
        is_new = False
        for lines in reading.lines(PROMPT_BYTES):
            sessions.take(hooks.between(lines[0].file, lines) if lines else lines)
            is_new = True
        if reading.is_whole and (rest := hooks.rest(reading.main)):
            sessions.take(rest)
            is_new = True
        if is_new and reading.is_decided:
            document = {"tag": self._tag, "marks": reading.marks} | sessions.document()
            document["hooked_ms"] = hooks.given_ms(reading.main)
            self._files.write(name, json_codec.dumps(document))
        if not (reading.is_whole or reading.is_at_end):
            for lines in reading.end():
                sessions.take(lines, follow_on=False)
        return reading, sessions

    @property
    def _tag(self) -> str:
        """What a stored file depends on, besides the transcript."""
        return f"{__version__}/{STATE_VERSION}/{VIEW_VERSION}/{self._rules.tag}/hooks"

    def _stored(self, name: str) -> Mapping[str, Any] | None:
        try:
            stored: dict[str, Any] = json_codec.loads(self._files.read(name) or b"{}")
            return stored if stored.get("tag") == self._tag else None
        except _DAMAGED:
            return None
