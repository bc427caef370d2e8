"""`contextgauge statusline`: one line of a session, for the prompt of Claude Code.

It is started anew many times a minute, so it starts bare: `streams/__main__.py` comes here before
anything is imported that takes long, and what is needed by some is imported where they need it
(docs/adr/0032-fast-status-line-startup.md). Whatever is wrong, it prints a line that is true
and ends with 0: a prompt is no place for errors. Why a line says little, `--verbose` tells.
"""

import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from streams.cli.screen.figures import forgive_encodings
from streams.cli.statusline.line import draw
from streams.edge.files.objects import object_of
from streams.edge.files.plain_settings import GlanceSettings, read_settings
from streams.serve.statusline.figures import (
    Figures,
    Told,
    figures_of,
    percent_of,
    told_by,
    with_told,
)

REDIS_LIMIT_S = 0.03
"""Redis on the same network answers in one or two milliseconds; a prompt waits no longer."""

_INPUT_BYTES = 1_048_576
"""Claude Code gives some kilobytes; what is longer is something else."""

_BEHIND_MS = 2_000
"""A transcript written to so much later than its view's latest record may hold a later one."""

_PADDING = 4
"""Columns that Claude Code leaves free at the sides of the line."""

_DIGITS = 5
"""Of the largest width that a terminal may have."""

_WIDTH = 120
"""Columns where nothing tells how many there are: Claude Code cuts what is too long."""

if TYPE_CHECKING:
    from streams.core.derivation.rules import Rules
    from streams.serve.statusline.transcript_end import PlainEnd

Tell = Callable[[str], None]


def main(arguments: list[str]) -> None:
    """Print the line for what stands on standard input; never fails, and ends the process."""
    forgive_encodings()
    is_verbose = "--verbose" in arguments or "-v" in arguments

    def tell(reason: str) -> None:
        if is_verbose:
            sys.stderr.write(f"contextgauge statusline: {reason}\n")

    def complain(reason: str) -> None:
        sys.stderr.write(f"contextgauge statusline: {reason}\n")

    try:
        line = statusline(_standard_input(), os.environ, tell, complain)
    except Exception as error:  # noqa: BLE001 -- a prompt is no place for errors
        complain(f"an error in contextgauge itself: {type(error).__name__}: {error}")
        line = "contextgauge: no figures"
    try:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    except OSError:
        pass  # nobody reads it any more
    # Without the interpreter's tidying up, and without waiting for a look at Redis that hangs.
    os._exit(0)


def _standard_input() -> bytes:
    return b"" if sys.stdin.isatty() else sys.stdin.buffer.read(_INPUT_BYTES)


def statusline(given: bytes, environment: Mapping[str, str], tell: Tell, complain: Tell) -> str:
    """Return the line. `complain` is told what is wrong, `tell` where the figures are from."""
    body = object_of(given)
    if body is None:
        complain("no JSON object on standard input: docs/STATUSLINE.md tells how to set it up")
        return "contextgauge: no session was given"
    told = told_by(body)
    settings, wrong = read_settings(environment)
    for line in wrong:
        complain(line)
    figures = with_told(_figures(told, settings, tell, complain), told)
    return draw(
        figures,
        time.time_ns() // 1_000_000,
        _width(environment),
        in_colour=not environment.get("NO_COLOR") and environment.get("TERM") != "dumb",
    )


def _figures(told: Told, settings: GlanceSettings, tell: Tell, complain: Tell) -> Figures | None:
    """Return the figures from Redis, else from the transcript; None where neither has any."""
    stored = _from_redis(told, settings, tell)
    if stored is not None and not _may_be_behind(stored, told.transcript_path):
        return stored
    read = _from_transcript(told, settings, tell, complain)
    if read is None or (stored is not None and (read.last_ms or 0) <= (stored.last_ms or 0)):
        return stored
    if stored is not None:
        tell("the views are behind the transcript: does a project worker run?")
    return read


def _from_redis(told: Told, settings: GlanceSettings, tell: Tell) -> Figures | None:
    if told.session_id is None or settings.redis_url is None:
        tell("no session is named" if told.session_id is None else "no Redis is named")
        return None
    from streams.edge.redis.single_view import NoGlanceError, glance

    try:
        document = glance(settings, settings.redis_url, told.session_id, REDIS_LIMIT_S)
        found = figures_of(object_of(document) or {})
    except (NoGlanceError, ValueError) as error:
        tell(f"not from Redis: {error}")
        return None
    tell("from Redis")
    return found


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
    told: Told, settings: GlanceSettings, tell: Tell, complain: Tell
) -> Figures | None:
    if told.transcript_path is None:
        tell("no transcript is named")
        return None
    from streams.edge.files.transcript_tail import TAIL_BYTES, read_tail
    from streams.serve.statusline.transcript_end import plain_end

    try:
        for tail_bytes in TAIL_BYTES[:-1]:
            tail = read_tail(told.transcript_path, tail_bytes)
            plain = None if told.session_id is None else plain_end(tail, told.session_id)
            if plain is not None and (figures := _windowed(plain, told, settings)) is not None:
                tell("from the end of the transcript")
                return figures
            if tail.is_whole:
                break
        return _derived(told, settings, told.transcript_path, tell)
    except (OSError, ValueError) as error:
        complain(f"the transcript cannot be read ({error})")
        return None


def _windowed(plain: "PlainEnd", told: Told, settings: GlanceSettings) -> Figures | None:
    """Return what a plain end tells, with its window; None where a size says that it is wrong."""
    figures, largest = plain
    if told.window is not None and not settings.windows:
        return figures  # it is better than what would be found here
    if figures.model is None:
        return None
    rules = _rules(settings)
    configured = rules.configured.window(figures.model)
    listed = rules.catalog.window(figures.model)
    if configured is not None:
        return _measured(figures._replace(window=configured, window_source="configured"))
    window, source = (rules.default_window, "default") if listed is None else (listed, "catalog")
    if largest > window:
        return None
    return _measured(figures._replace(window=window, window_source=source))


def _measured(figures: Figures) -> Figures:
    """Return the figures with their percentage."""
    if figures.used_tokens is None or figures.window is None:
        return figures
    return figures._replace(used_percent=percent_of(figures.used_tokens, figures.window))


def _rules(settings: GlanceSettings) -> "Rules":
    from streams.core.derivation.rules import Rules
    from streams.edge.files.catalog import bundled

    return Rules(
        catalog=bundled(),
        configured_windows=settings.windows,
        default_window=settings.default_window,
    )


def _derived(told: Told, settings: GlanceSettings, file_name: str, tell: Tell) -> Figures | None:
    """Return what the derivation makes of the tail, and of more where that holds no size."""
    # Only where it is needed: this takes most of the time that there is.
    from streams.edge.files.transcript_tail import TAIL_BYTES, read_tail
    from streams.flow.replay.glance import look

    rules = _rules(settings)
    for tail_bytes in TAIL_BYTES:
        tail = read_tail(file_name, tail_bytes)
        seen = look(rules, told.session_id, tail.older, tail.lines)
        if tail.is_whole or (seen is not None and seen.is_settled):
            break
    if seen is None:
        tell("no size in the transcript yet")
        return None
    tell("from the transcript")
    if not (tail.is_whole or seen.is_settled):
        seen = seen._replace(used_tokens=None)  # what is older may not be what is now
    return Figures(
        model=seen.model,
        state=seen.state,
        used_tokens=seen.used_tokens,
        used_percent=seen.used_percent,
        window=seen.window,
        window_source=seen.window_source,
        until_compaction_tokens=seen.until_compaction_tokens,
        compactions=seen.compactions,
        all_compactions_seen=tail.has_all_older,
        last_duration_ms=seen.last_duration_ms,
        last_ms=seen.last_ms,
    )


def _width(environment: Mapping[str, str]) -> int:
    """Return the columns that there are: told by COLUMNS, or of the terminal that this runs in."""
    told = environment.get("COLUMNS", "")
    if len(told) <= _DIGITS and told.isdecimal() and int(told):
        return max(1, int(told) - (0 if sys.stdout.isatty() else _PADDING))
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
