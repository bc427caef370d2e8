"""`contextgauge statusline`: one line about a session, for the prompt of Claude Code.

Claude Code starts it many times a minute, so it imports as little as it can: `streams/__main__.py`
comes here before any other import, and what only some runs need is imported where they need it
(docs/adr/0069-the-status-line-reads-on.md). It always prints a true line and exits with 0: a
prompt is no place for errors. `--verbose` explains a line that says little.
"""

import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from contextgauge import documents
from contextgauge.errors import ContextgaugeError, StopError
from contextgauge.windows import base_name
from streams.cli.screen.figures import forgive_encodings, safe
from streams.cli.statusline.figures import (
    ClaudeInput,
    Figures,
    figures_of,
    figures_of_input,
    read_input,
    with_own_settings,
)
from streams.cli.statusline.line import draw
from streams.core.until_compaction import CompactionPoints
from streams.edge.files.objects import object_of
from streams.edge.files.plain_settings import StatusLineSettings, read_settings
from streams.edge.files.runtime_settings import SettingsReader
from streams.edge.files.status_windows import StatusWindows

_INPUT_BYTES = 1_048_576
"""Claude Code passes some kilobytes; anything longer is something else."""

_PROMPT_S = 1.0
"""A prompt does not wait for a Redis that is away."""

_PADDING = 4
"""Columns that Claude Code leaves free at the sides of the line."""

_DIGITS = 5
"""Of the largest width that a terminal may have."""

_WIDTH = 120
"""Columns where the width is unknown: Claude Code cuts what is too long."""

Report = Callable[[str], None]


def main(arguments: list[str], given: bytes | None = None) -> None:
    """Print the line for the given JSON, by default for that on standard input.

    Ends the process. Never fails, but for the given JSON of a person: raises StopError where its
    session is the beginning of several ids.
    """
    forgive_encodings()
    is_verbose = "--verbose" in arguments or "-v" in arguments

    def warn(reason: str) -> None:
        sys.stderr.write(f"contextgauge statusline: {reason}\n")

    def explain(reason: str) -> None:
        if is_verbose:
            warn(reason)

    try:
        text = _standard_input() if given is None else given
        line = statusline(text, os.environ, explain, warn, is_patient=given is not None)
    except StopError:
        raise
    except Exception as error:  # noqa: BLE001 -- a prompt is no place for errors
        warn(f"internal error: {type(error).__name__}: {error}")
        line = "contextgauge: no figures"
    try:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    except OSError:
        pass  # the reader closed the pipe
    # Skips the interpreter's shutdown.
    os._exit(0)


def _standard_input() -> bytes:
    return b"" if sys.stdin.isatty() else sys.stdin.buffer.read(_INPUT_BYTES)


def statusline(
    given: bytes,
    environment: Mapping[str, str],
    explain: Report,
    warn: Report,
    *,
    is_patient: bool = False,
) -> str:
    """Return the line. `warn` receives what is wrong, `explain` where the figures come from.

    A person is patient. Raises StopError for the beginning of several ids, to a person only.
    """
    document = object_of(given)
    if document is None:
        setup = documents.document("STATUSLINE.md")
        warn(f"no JSON object on standard input: see {setup} for the setup")
        return "contextgauge: no session was given"
    asked = asked_of(document, environment, explain, warn, is_patient=is_patient)
    figures = asked.figures()
    return draw(
        figures or figures_of_input(asked.claude),
        time.time_ns() // 1_000_000,
        _width(environment),
        in_colour=not environment.get("NO_COLOR") and environment.get("TERM") != "dumb",
    )


def asked_of(
    document: Mapping[str, Any],
    environment: Mapping[str, str],
    explain: Report,
    warn: Report,
    *,
    is_patient: bool = False,
) -> "AskedFigures":
    """Return whose figures a runtime's input asks for; the window in it is remembered."""
    claude = read_input(document)
    settings, problems = read_settings(environment)
    for problem in problems:
        warn(problem)
    if claude.session_id and not is_patient:
        windows = StatusWindows(_state_folder(environment))
        if claude.model_id and claude.window:
            windows.remember(claude.session_id, base_name(claude.model_id)[0], claude.window)
        claude = claude._replace(windows=windows.of(claude.session_id))
    return AskedFigures(claude, settings, environment, explain, warn, is_patient)


class AskedFigures(NamedTuple):
    """What the line is of, where it is read, and who asks: a prompt, or a person, who waits."""

    claude: ClaudeInput
    settings: StatusLineSettings
    environment: Mapping[str, str]
    explain: Report
    warn: Report
    is_patient: bool

    def figures(self) -> Figures | None:
        """Return the figures of the transcript, or of a session elsewhere; None where none has any.

        That a new session has none yet is no news to a prompt; a person learns why there is none.
        """
        path, session_id = self.claude.transcript_path, self.claude.session_id
        if path is not None:
            return self._of_transcript(path)
        if session_id is None:
            self.explain("the input has no transcript_path and no session_id")
            return None
        return self._from_redis(session_id)

    def _from_redis(self, session_id: str) -> Figures | None:
        """Return the figures of a session elsewhere, as `status SESSION` reads them."""
        from streams.cli.stored import find_session, read_views
        from streams.serve.views.sessions import SeveralSessionsError

        try:
            within_s = None if self.is_patient else _PROMPT_S
            view, points = read_views(lambda reader: find_session(reader, session_id), within_s)
        except ContextgaugeError as error:
            if self.is_patient and isinstance(error.__cause__, SeveralSessionsError):
                raise
            self.explain(f"not from Redis: {safe(str(error))}")
            if self.is_patient:
                self.warn(
                    f"{safe(session_id)}: no such file, and no session on this machine has or "
                    "begins with this id"
                )
            return None
        self.explain("from Redis")
        return figures_of(view, points, self.claude)

    def _of_transcript(self, path: str) -> Figures | None:
        # Imported only here: this takes most of the command's time.
        from streams.cli.statusline import transcript

        try:
            if self.is_patient:
                read: transcript.TranscriptFigures | None = transcript.of_a_person(path)
            else:
                prompt = transcript.PromptTranscript(self.settings, _state_folder(self.environment))
                read = prompt.figures(path, self.claude.session_id, self.explain)
        except ContextgaugeError as error:
            self.warn(safe(str(error)))
            return None
        except (OSError, ValueError) as error:
            self.warn(f"the transcript cannot be read ({safe(str(error))})")
            return None
        if read is None:
            return None
        self.explain("from the transcript")
        points = read.points
        if points is None:
            points = CompactionPoints(tuple(sorted(self.settings.compaction_thresholds.items())))
            reader = SettingsReader(self.environment)
            points = with_own_settings(points, read.view, self.claude, reader)
        return figures_of(read.view, points, self.claude)._replace(is_partial=read.is_partial)


def _state_folder(environment: Mapping[str, str]) -> str | None:
    return environment.get("CONTEXTGAUGE_STATE_FOLDER") or None


def _width(environment: Mapping[str, str]) -> int:
    """Return the line's width in columns: from COLUMNS, else from the terminal."""
    columns = environment.get("COLUMNS", "")
    if len(columns) <= _DIGITS and columns.isdecimal() and int(columns):
        return max(1, int(columns) - (0 if sys.stdout.isatty() else _PADDING))
    try:
        if sys.stdout.isatty():
            return os.get_terminal_size(sys.stdout.fileno()).columns
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except (OSError, ValueError):
        return _WIDTH
    try:
        return max(1, os.get_terminal_size(terminal).columns - _PADDING)
    except OSError:
        return _WIDTH
    finally:
        os.close(terminal)
