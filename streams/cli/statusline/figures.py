"""The figures of a status line: from a session's view, and from what Claude Code passes.

Claude Code's input is an object; any of its fields may be missing or of a wrong type.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from contextgauge.frozen import replace
from contextgauge.windows import base_name
from schemas.views import ChainView, SessionView
from streams.core.session_status import leading_chain, status_of
from streams.core.until_compaction import NO_POINTS, CompactionPoints
from streams.edge.files.runtime_settings import SettingsReader

Object: TypeAlias = Mapping[str, Any]

_MAX_COUNT = 2**53 - 1
"""A larger count is no plausible count (R3)."""

_MAX_PERCENT = 1_000
"""More is no plausible percentage."""

_KNOWN_WINDOWS = frozenset({"configured", "runtime"})
"""Sources of a window that rank above what Claude Code passes to its status line (R12)."""


class Figures(NamedTuple):
    """What the line shows of the leading chain. Sizes in tokens, times in ms; None: unknown.

    The attempt's times are the open attempt's start and last heartbeat. `compactions` counts the
    session's own successful ones. `is_partial`: of a transcript whose middle has not been read yet,
    so that the window and what rests on it may be wrong, and there may be more compactions.
    `as_of_ms` is when the size was measured.
    """

    model: str | None = None
    state: str = "unknown"
    used_tokens: int | None = None
    used_percent: float | None = None
    window: int | None = None
    window_source: str | None = None
    window_is_doubtful: bool = False
    passed_window: int | None = None
    until_compaction_tokens: int | None = None
    until_is_estimated: bool = False
    attempt_started_ms: int | None = None
    attempt_heartbeat_ms: int | None = None
    compactions: int = 0
    last_duration_ms: int | None = None
    is_partial: bool = False
    as_of_ms: int | None = None


class ClaudeInput(NamedTuple):
    """What Claude Code passes. `used_tokens` and `used_percent` are of its last response.

    `windows` are those that it passed before, by model.
    """

    session_id: str | None = None
    transcript_path: str | None = None
    model_id: str | None = None
    model_name: str | None = None
    window: int | None = None
    used_tokens: int | None = None
    used_percent: float | None = None
    folder: str | None = None
    windows: Mapping[str, int] = {}

    @property
    def model(self) -> str | None:
        """The model's name, else its id."""
        return self.model_name or self.model_id


NO_INPUT = ClaudeInput()


def with_own_settings(
    points: CompactionPoints, view: SessionView, claude: ClaudeInput, reader: SettingsReader
) -> CompactionPoints:
    """Return the points with the settings that the runtime of a view has on this machine.

    Claude Code names the folder whose settings count; else it is the session's.
    """
    runtime, folder = view.identity.runtime, view.identity.cwd
    own = reader.settings(runtime or "claude-code", claude.folder or folder)
    return points if own is None else points._replace(settings=(((runtime, folder), own),))


def figures_of(
    view: SessionView, points: CompactionPoints = NO_POINTS, claude: ClaudeInput = NO_INPUT
) -> Figures:
    """Return a view's figures, with the model's name and the window that Claude Code has."""
    leading = leading_chain(view)
    if leading is None:
        chain = _with_window(ChainView(chain=""), claude)
    else:
        chain = _with_window(leading, claude)
        view = replace(view, chains={**view.chains, chain.chain: chain})
    if points.settings:  # those of this machine come before those that were published
        view = replace(view, identity=replace(view.identity, compaction_settings=None))
    status = status_of(view, points)
    until = status.until_compaction.get(chain.chain)
    attempt, compactions = view.attempt, view.compactions
    own = [each for each in compactions.last if each.outcome == "succeeded" and not each.inherited]
    return Figures(
        model=claude.model or chain.model or view.identity.model,
        state=status.settled,
        used_tokens=chain.used_tokens,
        used_percent=chain.used_percent,
        window=chain.window,
        window_source=chain.window_source,
        window_is_doubtful=chain.chain in status.window_doubts,
        passed_window=chain.passed_window,
        until_compaction_tokens=None if until is None else until.tokens,
        until_is_estimated=until is not None and until.estimated,
        attempt_started_ms=None if attempt is None else attempt.started_ms,
        attempt_heartbeat_ms=None if attempt is None else attempt.last_heartbeat_ms,
        compactions=sum(
            (
                compactions.manual,
                compactions.automatic,
                compactions.idle,
                compactions.unknown_trigger,
            )
        ),
        last_duration_ms=own[-1].duration_ms if own else None,
        as_of_ms=chain.as_of_ms,
    )


def figures_of_input(claude: ClaudeInput) -> Figures:
    """Return the figures that Claude Code has, where there is no view and no transcript."""
    own = ChainView(chain="", used_tokens=claude.used_tokens, used_percent=claude.used_percent)
    chain = _with_window(own, claude)
    return Figures(
        model=claude.model,
        state="measured" if claude.used_tokens or claude.used_percent else "unknown",
        used_tokens=claude.used_tokens,
        used_percent=chain.used_percent,
        window=chain.window,
        window_source=chain.window_source,
    )


def read_input(given: Object) -> ClaudeInput:
    """Read what Claude Code passes; a field of a wrong type counts as missing (R3)."""
    model, context = _object(given, "model"), _object(given, "context_window")
    model_id = _text(model, "id")
    usage = _object(context, "current_usage")
    parts = [
        _count(usage, name)
        for name in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    ]
    used = sum(part for part in parts if part is not None)
    return ClaudeInput(
        session_id=_text(given, "session_id"),
        transcript_path=_text(given, "transcript_path"),
        model_id=model_id,
        model_name=_text(model, "display_name"),
        window=base_name(model_id or "")[1] or _count(context, "context_window_size") or None,
        used_tokens=used or None,
        used_percent=_percent(context),
        folder=_text(_object(given, "workspace"), "project_dir") or _text(given, "cwd"),
    )


def _with_window(chain: ChainView, claude: ClaudeInput) -> ChainView:
    """Return a chain in the window that Claude Code has, where it is known no better.

    That ranks below a configured window and below one that a result reported. One that is smaller
    than the used tokens is wrong, as an assumed one would be (R12).
    """
    window, used = claude.window or claude.windows.get(chain.model or ""), chain.used_tokens
    if window is None or chain.window_source in _KNOWN_WINDOWS:
        return chain
    if used is None:
        return replace(chain, window=window, window_source="runtime")
    if used > window:
        return replace(
            chain, window=None, window_source="exceeded", passed_window=window, used_percent=None
        )
    percent = percent_of(used, window)
    return replace(chain, window=window, window_source="runtime", used_percent=percent)


def percent_of(used_tokens: int, window: int) -> float:
    """Return the percentage used, floored to two decimals as in the records."""
    return used_tokens * 10_000 // window / 100


def _object(holder: Object, name: str) -> Object:
    value = holder.get(name)
    return value if isinstance(value, dict) else {}


def _text(holder: Object, name: str) -> str | None:
    value = holder.get(name)
    return value if isinstance(value, str) and value else None


def _percent(context: Object) -> float | None:
    value = context.get("used_percentage")
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if 0 < value <= _MAX_PERCENT else None


def _count(holder: Object, name: str) -> int | None:
    value = holder.get(name)
    return value if type(value) is int and 0 <= value <= _MAX_COUNT else None
