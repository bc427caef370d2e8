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

from contextgauge import documents
from contextgauge.errors import StopError
from streams.cli.screen.figures import forgive_encodings, safe
from streams.cli.statusline.figures import (
    ClaudeInput,
    Figures,
    figures_of,
    figures_of_input,
    model_to_learn,
    points_of,
    read_input,
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
    if claude.session_id and claude.model_id and claude.window:
        windows = StatusWindows(environment.get("CONTEXTGAUGE_STATE_FOLDER") or None)
        windows.remember(claude.session_id, claude.model_id.partition("[")[0], claude.window)
    own = SettingsReader(environment).settings("claude-code", claude.folder)
    points = points_of(settings.compaction_thresholds, {}, own)
    figures = _figures(claude, settings, points, explain, warn, is_patient=is_patient)
    return draw(
        figures or figures_of_input(claude),
        time.time_ns() // 1_000_000,
        _width(environment),
        in_colour=not environment.get("NO_COLOR") and environment.get("TERM") != "dumb",
    )


def _figures(
    claude: ClaudeInput,
    settings: StatusLineSettings,
    points: CompactionPoints,
    explain: Report,
    warn: Report,
    *,
    is_patient: bool,
) -> Figures | None:
    """Return the figures from Redis, else from the transcript; None where neither has any."""
    stored, read = _from_redis(claude, settings, points, explain, is_patient=is_patient), None
    if stored is None or _may_be_behind(stored, claude.transcript_path):
        read = _from_transcript(claude, settings, points, explain, warn, is_patient=is_patient)
    if stored is not None and (read is None or (read.last_ms or 0) <= (stored.last_ms or 0)):
        explain("from Redis")
        return stored
    if stored is not None:
        explain("not from Redis: the views are behind the transcript: is a project worker running?")
    if read is not None:
        explain("from the transcript")
    return read


def _from_redis(
    claude: ClaudeInput,
    settings: StatusLineSettings,
    points: CompactionPoints,
    explain: Report,
    *,
    is_patient: bool,
) -> Figures | None:
    if claude.session_id is None or settings.redis_url is None:
        missing = "the input has no session_id" if claude.session_id is None else "no Redis URL"
        explain(f"not from Redis: {missing}")
        return None
    from streams.edge.redis.single_view import SeveralSessionsError, ViewUnavailableError, read_view

    models: list[str] = []

    def field_of(document: bytes) -> bytes | None:
        try:
            model = model_to_learn(object_of(document) or {}, points, claude)
        except ValueError:  # `figures_of` reports it
            model = None
        if model is None:
            return None
        models.append(model)
        return b"model:" + model.encode("utf-8", "surrogatepass")

    limit_s = _PATIENT_LIMIT_S if is_patient else _REDIS_LIMIT_S
    try:
        stored = read_view(settings, settings.redis_url, claude.session_id, limit_s, field_of)
        learned = usual_point(filter(None, map(object_of, stored.aggregates)))
        if learned is not None:
            points = points._replace(learned=tuple((model, learned) for model in models))
        figures = figures_of(object_of(stored.document) or {}, points, claude)
    except (ViewUnavailableError, ValueError) as error:
        if is_patient and isinstance(error, SeveralSessionsError):
            raise StopError(safe(str(error))) from None
        explain(f"not from Redis: {error}")
        return None
    return figures


def _may_be_behind(stored: Figures, transcript: str | None) -> bool:
    """Return whether the transcript was written to after the view's latest record."""
    if transcript is None or stored.last_ms is None:
        return False
    try:
        written_ms = os.stat(transcript).st_mtime_ns // 1_000_000
    except OSError:
        return False
    return written_ms - stored.last_ms > _BEHIND_MS


def _from_transcript(
    claude: ClaudeInput,
    settings: StatusLineSettings,
    points: CompactionPoints,
    explain: Report,
    warn: Report,
    *,
    is_patient: bool,
) -> Figures | None:
    """Return the figures of the view that the transcript's tail gives.

    That a new session has none yet is no news to a prompt; a person learns why there is none.
    """
    report = warn if is_patient else explain
    if claude.transcript_path is None:
        named = safe(str(claude.session_id))
        report(
            f"{named}: no such file, and no session on this machine has or begins with this id"
            if is_patient
            else "not from a transcript: the input has no transcript_path"
        )
        return None
    # Imported only here: this takes most of the command's time.
    from dataclasses import asdict

    from contextgauge.window_catalog import bundled
    from streams.core.derivation.rules_config import Rules
    from streams.edge.files.transcript_tail import TAIL_BYTES, holds_messages, read_tail
    from streams.flow.replay.transcript_view import view_of_lines

    rules = Rules(
        catalog=bundled(),
        configured_windows=settings.windows,
        default_window=settings.default_window,
    )
    try:
        for tail_bytes in TAIL_BYTES:
            tail = read_tail(claude.transcript_path, tail_bytes)
            session_id = tail.session or claude.session_id
            result = view_of_lines(rules, session_id, tail.older, tail.lines)
            if tail.is_whole or (result is not None and result.is_settled):
                break
        if result is None:
            is_readable = holds_messages(claude.transcript_path)
    except (OSError, ValueError) as error:
        warn(f"the transcript cannot be read ({error})")
        return None
    if result is None:
        path = safe(claude.transcript_path)
        report(
            f"{path}: no size, compaction or model in the transcript yet"
            if is_readable
            else f"{path} is empty or not a transcript: no line is a JSON object"
        )
        return None
    figures = figures_of(asdict(result.view), points, claude)
    if not (tail.is_whole or result.is_settled):
        # Something older may not be the size now.
        figures = figures._replace(
            used_tokens=None, used_percent=None, until_compaction_tokens=None
        )
    return figures._replace(all_compactions_seen=tail.has_all_older)


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
