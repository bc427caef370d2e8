"""The figures of a status line: from a session's view, and from what Claude Code passes.

A view is a plain object: the JSON from Redis, or a `SessionView` as a dict. Claude Code's input is
an object too; any of its fields may be missing or of a wrong type. Imports only what is fast.
"""

import re
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeAlias

from streams.core.session_status import leading_chain, status_of
from streams.core.until_compaction import (
    NO_POINTS,
    CompactionPoints,
    UntilCompaction,
)
from streams.edge.files.runtime_settings import SettingsReader

VIEW_VERSION = 3
"""The views' version that this reads, `VIEW_VERSION` of `schemas/views.py`."""

Object: TypeAlias = Mapping[str, Any]

_NONE: Object = {}

_LATER_OF_BRIEFS: Object = {"inherited": False, "model": None, "window": None, "idle_ms": None}
"""What views that were stored before lack of a compaction."""

_LATER_OF_IDENTITIES: Object = {"compaction_settings": None}
"""And of a session's identity."""

_MAX_COUNT = 2**53 - 1
"""A larger count is no plausible count (R3)."""

_MAX_PERCENT = 1_000
"""More is no plausible percentage."""

_KNOWN_WINDOWS = frozenset({"configured", "runtime"})
"""Sources of a window that rank above what Claude Code passes to its status line (R12)."""

_SUFFIX = re.compile(r"\[([0-9]{1,6})([km])\]\Z", re.IGNORECASE)
_SUFFIX_UNIT = {"k": 1_000, "m": 1_000_000}
"""A window at the end of a model's name: `[1m]`."""


class Figures(NamedTuple):
    """What the line shows of the leading chain. Sizes in tokens, times in ms; None: unknown.

    The attempt's times are the open attempt's start and last heartbeat. `compactions` counts the
    session's own successful ones. `last_ms` is the time of the session's latest record.
    `is_partial`: of a transcript whose middle has not been read yet, so that the window and what
    rests on it may be wrong, and there may be more compactions.
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
    last_ms: int | None = None
    is_partial: bool = False


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


class _Judged(NamedTuple):
    """A view's state before any instant, its leading chain, and how far that is from compaction."""

    state: str
    chain: Object
    until: UntilCompaction | None = None
    is_doubtful: bool = False


def with_own_settings(
    points: CompactionPoints, view: Object, claude: ClaudeInput, reader: SettingsReader
) -> CompactionPoints:
    """Return the points with the settings that the runtime of a view has on this machine.

    Claude Code names the folder whose settings count; else it is the session's.
    """
    identity = _object(view, "identity")
    runtime, folder = _text(identity, "runtime"), _text(identity, "cwd")
    own = reader.settings(runtime or "claude-code", claude.folder or folder)
    return points if own is None else points._replace(settings=(((runtime, folder), own),))


def model_to_learn(view: Object, points: CompactionPoints, claude: ClaudeInput) -> str | None:
    """Return the leading chain's model, where only what is usual of it tells when it is compacted.

    Raises ValueError for another version or shape.
    """
    judged = _judged(view, points, claude)
    if judged.until is not None or judged.chain.get("auto_compact_enabled") is False:
        return None
    model = judged.chain.get("model")
    return model if isinstance(model, str) else None


def _judged(view: Object, points: CompactionPoints, claude: ClaudeInput) -> _Judged:
    """Return the judgement of a view in the window that Claude Code has. Raises ValueError."""
    if view.get("version") != VIEW_VERSION:
        raise ValueError(f"a view is of version {view.get('version')}, not {VIEW_VERSION}")
    try:
        attributes = _with_attributes(view, points)
        leading = leading_chain(attributes)
        if leading is None:
            return _Judged(status_of(attributes).settled, _with_window(_NONE, claude))
        name = leading.chain
        chain = _with_window(view["chains"][name], claude)
        attributes.chains[name] = SimpleNamespace(**chain)
        status = status_of(attributes, points)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"a view lacks {error}") from error
    until = status.until_compaction.get(name)
    return _Judged(status.settled, chain, until, name in status.window_doubts)


def figures_of(
    view: Object, points: CompactionPoints = NO_POINTS, claude: ClaudeInput = NO_INPUT
) -> Figures:
    """Return a view's figures, with the model's name and the window that Claude Code has.

    Raises ValueError for another version or shape.
    """
    state, chain, until, is_doubtful = _judged(view, points, claude)
    try:
        attempt, compactions = view["attempt"], view["compactions"]
        own = [
            brief
            for brief in compactions["last"]
            if brief["outcome"] == "succeeded" and not brief.get("inherited")
        ]
        return Figures(
            model=claude.model or chain.get("model") or view["identity"]["model"],
            state=state,
            used_tokens=chain.get("used_tokens"),
            used_percent=chain.get("used_percent"),
            window=chain.get("window"),
            window_source=chain.get("window_source"),
            window_is_doubtful=is_doubtful,
            passed_window=chain.get("passed_window"),
            until_compaction_tokens=None if until is None else until.tokens,
            until_is_estimated=until is not None and until.estimated,
            attempt_started_ms=None if attempt is None else attempt["started_ms"],
            attempt_heartbeat_ms=None if attempt is None else attempt["last_heartbeat_ms"],
            compactions=sum(
                compactions.get(name, 0)
                for name in ("manual", "automatic", "idle", "unknown_trigger")
            ),
            last_duration_ms=own[-1]["duration_ms"] if own else None,
            last_ms=view["last_ms"],
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"a view lacks {error}") from error


def figures_of_input(claude: ClaudeInput) -> Figures:
    """Return the figures that Claude Code has, where there is no view and no transcript."""
    own = {"used_tokens": claude.used_tokens, "used_percent": claude.used_percent}
    chain = _with_window(own, claude)
    return Figures(
        model=claude.model,
        state="measured" if claude.used_tokens or claude.used_percent else "unknown",
        used_tokens=claude.used_tokens,
        used_percent=chain["used_percent"],
        window=chain.get("window"),
        window_source=chain.get("window_source"),
    )


def _with_attributes(view: Object, points: CompactionPoints) -> Any:  # noqa: ANN401 -- the judgement reads a SessionView
    """Return what the judgement reads of a view, as attributes: its class takes long to import.

    The settings that this machine has come before those that were published.
    """
    attempt, identity = view["attempt"], {**_LATER_OF_IDENTITIES, **view["identity"]}
    if points.settings:
        identity["compaction_settings"] = None
    return SimpleNamespace(
        identity=SimpleNamespace(**identity),
        last_ms=view["last_ms"],
        chains={name: SimpleNamespace(**chain) for name, chain in view["chains"].items()},
        attempt=None if attempt is None else SimpleNamespace(**attempt),
        compactions=SimpleNamespace(
            last=[
                SimpleNamespace(**{**_LATER_OF_BRIEFS, **brief})
                for brief in view["compactions"]["last"]
            ]
        ),
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
        window=_suffix_window(model_id or "") or _count(context, "context_window_size") or None,
        used_tokens=used or None,
        used_percent=_percent(context),
        folder=_text(_object(given, "workspace"), "project_dir") or _text(given, "cwd"),
    )


def _with_window(chain: Object, claude: ClaudeInput) -> Object:
    """Return a chain in the window that Claude Code has, where it is known no better.

    That ranks below a configured window and below one that a result reported. One that is smaller
    than the used tokens is wrong, as an assumed one would be (R12).
    """
    window, used = claude.window, chain.get("used_tokens")
    if window is None:
        window = claude.windows.get(chain.get("model") or "")
    if window is None or chain.get("window_source") in _KNOWN_WINDOWS:
        return chain
    if used is None:
        return {**chain, "window": window, "window_source": "runtime"}
    if used > window:
        passed = {"window_source": "exceeded", "passed_window": window}
        return {**chain, "window": None, **passed, "used_percent": None}
    percent = percent_of(used, window)
    return {**chain, "window": window, "window_source": "runtime", "used_percent": percent}


def percent_of(used_tokens: int, window: int) -> float:
    """Return the percentage used, floored to two decimals as in the records."""
    return used_tokens * 10_000 // window / 100


def _suffix_window(model: str) -> int | None:
    match = _SUFFIX.search(model)
    return int(match[1]) * _SUFFIX_UNIT[match[2].lower()] if match else None


def _object(holder: Object, name: str) -> Object:
    value = holder.get(name)
    return value if isinstance(value, dict) else _NONE


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
