"""`contextgauge statusline`: one line about a session, for the prompt of Claude Code.

Claude Code starts it many times a minute, so it imports as little as it can: `streams/__main__.py`
comes here before any other import, and what only some runs need is imported where they need it
(docs/adr/0032-fast-status-line-startup.md). It always prints a true line and exits with 0: a
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
    model_to_learn,
    read_input,
    with_own_settings,
)
from streams.cli.statusline.line import draw
from streams.core.until_compaction import CompactionPoints, usual_point
from streams.edge.files.objects import object_of
from streams.edge.files.plain_settings import StatusLineSettings, read_settings
from streams.edge.files.runtime_settings import SettingsReader
from streams.edge.files.status_windows import StatusWindows

_REDIS_LIMIT_S = 0.03
"""Redis on the same network answers in one or two milliseconds; a prompt waits no longer."""

_PATIENT_LIMIT_S = 2.0
"""A person who names a session waits for the answer."""

_INPUT_BYTES = 1_048_576
"""Claude Code passes some kilobytes; anything longer is something else."""

_BEHIND_MS = 2_000
"""A transcript written this much later than its view's latest record may hold a later one."""

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
    # Skips the interpreter's shutdown, and does not wait for a Redis that hangs.
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
    claude = read_input(document)
    settings, problems = read_settings(environment)
    for problem in problems:
        warn(problem)
    if claude.session_id and not is_patient:
        windows = StatusWindows(_state_folder(environment))
        if claude.model_id and claude.window:
            windows.remember(claude.session_id, base_name(claude.model_id)[0], claude.window)
        claude = claude._replace(windows=windows.of(claude.session_id))
    asked = _Asked(claude, settings, environment, explain, warn, is_patient)
    figures = asked.figures()
    return draw(
        figures or figures_of_input(claude),
        time.time_ns() // 1_000_000,
        _width(environment),
        in_colour=not environment.get("NO_COLOR") and environment.get("TERM") != "dumb",
    )


class _Asked(NamedTuple):
    """What the line is of, where it is read, and who asks: a prompt, or a person, who waits."""

    claude: ClaudeInput
    settings: StatusLineSettings
    environment: Mapping[str, str]
    explain: Report
    warn: Report
    is_patient: bool

    def figures(self) -> Figures | None:
        """Return the figures from Redis, else from the transcript; None where neither has any."""
        stored, read = self._from_redis(), None
        if stored is None or _may_be_behind(stored, self.claude.transcript_path):
            read = self._from_transcript()
        if stored is not None and (read is None or (read.last_ms or 0) <= (stored.last_ms or 0)):
            self.explain("from Redis")
            return stored
        if stored is not None:
            self.explain(
                "not from Redis: the views are behind the transcript: is a project worker running?"
            )
        if read is not None:
            self.explain("from the transcript")
        return read

    def _from_redis(self) -> Figures | None:
        claude = self.claude
        if claude.session_id is None or self.settings.redis_url is None:
            missing = "the input has no session_id" if claude.session_id is None else "no Redis URL"
            self.explain(f"not from Redis: {missing}")
            return None
        from streams.edge.redis.single_view import (
            SeveralSessionsError,
            ViewUnavailableError,
            read_view,
        )

        models: list[str] = []

        def field_of(document: bytes) -> bytes | None:
            try:
                view = object_of(document) or {}
                model = model_to_learn(view, self._points(view), claude)
            except ValueError:  # `figures_of` reports it
                model = None
            if model is None:
                return None
            models.append(model)
            return b"model:" + model.encode("utf-8", "surrogatepass")

        limit_s = _PATIENT_LIMIT_S if self.is_patient else _REDIS_LIMIT_S
        try:
            stored = read_view(
                self.settings, self.settings.redis_url, claude.session_id, limit_s, field_of
            )
            view = object_of(stored.document) or {}
            points = self._points(view)
            learned = usual_point(filter(None, map(object_of, stored.aggregates)))
            if learned is not None:
                points = points._replace(learned=tuple((model, learned) for model in models))
            figures = figures_of(view, points, claude)
        except (ViewUnavailableError, ValueError) as error:
            if self.is_patient and isinstance(error, SeveralSessionsError):
                raise StopError(safe(str(error))) from None
            self.explain(f"not from Redis: {error}")
            return None
        return figures

    def _from_transcript(self) -> Figures | None:
        """Return the figures that the transcript gives.

        That a new session has none yet is no news to a prompt; a person learns why there is none.
        """
        path, session_id = self.claude.transcript_path, self.claude.session_id
        if path is None:
            named = safe(str(session_id))
            if self.is_patient:
                self.warn(
                    f"{named}: no such file, and no session on this machine has or begins with "
                    "this id"
                )
            else:
                self.explain("not from a transcript: the input has no transcript_path")
            return None
        # Imported only here: this takes most of the command's time.
        from streams.cli.statusline import transcript

        try:
            if self.is_patient:
                read: transcript.TranscriptFigures | None = transcript.of_a_person(path)
            else:
                prompt = transcript.PromptTranscript(self.settings, _state_folder(self.environment))
                read = prompt.figures(path, session_id, self.explain)
        except ContextgaugeError as error:
            self.warn(safe(str(error)))
            return None
        except (OSError, ValueError) as error:
            self.warn(f"the transcript cannot be read ({safe(str(error))})")
            return None
        if read is None:
            return None
        points = self._points(read.view) if read.points is None else read.points
        figures = figures_of(read.view, points, self.claude)
        return figures._replace(is_partial=read.is_partial)

    def _points(self, view: Mapping[str, Any]) -> CompactionPoints:
        """Return where compactions of a view's session are expected, by all settings.

        Those of the runtime are this machine's at a prompt: what a person asks for may be of
        another.
        """
        points = CompactionPoints(tuple(sorted(self.settings.compaction_thresholds.items())))
        if self.is_patient:
            return points
        return with_own_settings(points, view, self.claude, SettingsReader(self.environment))


def _may_be_behind(stored: Figures, transcript: str | None) -> bool:
    """Return whether the transcript was written to after the view's latest record."""
    if transcript is None or stored.last_ms is None:
        return False
    try:
        written_ms = os.stat(transcript).st_mtime_ns // 1_000_000
    except OSError:
        return False
    return written_ms - stored.last_ms > _BEHIND_MS


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
