"""What a runtime's own settings say of the next automatic compaction, and where they say it.

Settings are read where a session runs (`streams/edge/files/runtime_settings.py`); what they mean is
computed here, by the formulas of the runtimes:

    Claude Code   the window, or a smaller one that is set, less what it reserves for its answer and
                  for the summary; a percentage applies to the window less the answer, and can only
                  lower the point
    Codex         the limit that is set, at most nine tenths of the window

The status line imports this at every prompt, so it imports nothing that takes long.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast, get_args

Value: TypeAlias = bool | int | float
SettingsOf: TypeAlias = Literal["claude-code", "codex"]

STANDARD_WINDOW: Final = 200_000
"""The window of Claude's models where those of a million tokens are switched off."""

_LEAST_WINDOW: Final = 100_000
_MOST_WINDOW: Final = 1_000_000
"""Claude Code takes no smaller and no larger auto-compact window; a variable is cut to these."""

_ANSWER_RESERVE: Final = 20_000
_SUMMARY_RESERVE: Final = 13_000
"""What Claude Code leaves free: a window of 200 000 is compacted at 167 000."""

_WHOLE: Final = 100
_MAX_COUNT: Final = 2**53 - 1


class Sourced(NamedTuple):
    """A setting's value, and the file or variable that it is from, as people write it."""

    value: Value
    source: str


class RuntimeSettings(NamedTuple):
    """The settings of one runtime in one folder; None: not set.

    `window` is the auto-compact window, `windows` the same by model, `percent` its percentage,
    `limit` the size at which Codex compacts, `context_window` the window that Codex assumes,
    `largest_window` the most that any model has. `is_partial`: Codex counts only what follows a
    prefix against the limit. `has_variable`: `window` is of an environment variable, which comes
    before the settings by model.
    """

    runtime: SettingsOf
    enabled: Sourced | None = None
    window: Sourced | None = None
    windows: tuple[tuple[str, Sourced], ...] = ()
    percent: Sourced | None = None
    limit: Sourced | None = None
    context_window: Sourced | None = None
    largest_window: Sourced | None = None
    is_partial: bool = False
    has_variable: bool = False


class ExpectedPoint(NamedTuple):
    """What settings say: the size at which a compaction begins, None where it is switched off.

    `estimated`: it depends on what the settings do not say.
    """

    tokens: int | None
    source: str
    estimated: bool


def expected(
    settings: RuntimeSettings, model: str | None, window: int | None, *, is_reported: bool
) -> ExpectedPoint | None:
    """Return what settings say of a chain of this model and window; None where they say nothing.

    `is_reported`: the runtime or the configuration of the reader named the window.
    """
    if settings.enabled is not None and settings.enabled.value is False:
        return ExpectedPoint(None, settings.enabled.source, estimated=False)
    if settings.runtime == "codex":
        return _of_codex(settings, window, is_reported=is_reported)
    return _of_claude(settings, model, window, is_reported=is_reported)


def _of_claude(
    settings: RuntimeSettings, model: str | None, window: int | None, *, is_reported: bool
) -> ExpectedPoint | None:
    own, capped, percent = _window_of(settings, model), settings.largest_window, settings.percent
    if window is not None and (is_reported or capped is None or window <= capped.value):
        capped = None  # the window is what it is with this setting
    set_sizes = [each for each in (own, capped) if each is not None]
    sizes = [int(each.value) for each in set_sizes] + ([] if window is None else [window])
    if not sizes or (not set_sizes and percent is None):
        return None
    size = min(sizes)
    point = size - _ANSWER_RESERVE - _SUMMARY_RESERVE
    # Without a window, what is set may be more than the model has.
    estimated = window is None or (size == window and not is_reported)
    if percent is not None:
        # In some versions it has no effect, or none from a settings file.
        point = min(point, int((size - _ANSWER_RESERVE) * percent.value / _WHOLE))
        estimated = True
    named = [*set_sizes, *([] if percent is None else [percent])]
    return ExpectedPoint(point, _sources(named), estimated) if point > 0 else None


def _window_of(settings: RuntimeSettings, model: str | None) -> Sourced | None:
    """Return the auto-compact window of a model: a variable's, its own, else that of all.

    Settings by model are under its name, the beginning of it, or one of its words (`opus`).
    """
    if settings.window is not None and settings.has_variable:
        return settings.window
    name = (model or "").lower()
    fitting = [
        (key, own)
        for key, own in settings.windows
        if name == key or name.startswith(f"{key}-") or key in name.split("-")
    ]
    if fitting:
        return max(fitting, key=lambda each: len(each[0]))[1]
    return settings.window


def _of_codex(
    settings: RuntimeSettings, window: int | None, *, is_reported: bool
) -> ExpectedPoint | None:
    limit, context = settings.limit, settings.context_window
    if window is not None:
        # What a rollout reports is 95 % of the window that the limit is counted by.
        most = window * 18 // 19 if is_reported else window * 9 // 10
    else:
        most = _MAX_COUNT if context is None else int(context.value) * 9 // 10
    if limit is not None:
        is_known = limit.value <= most and not settings.is_partial
        return ExpectedPoint(min(int(limit.value), most), limit.source, estimated=not is_known)
    return None if context is None else ExpectedPoint(most, context.source, estimated=True)


def _sources(settings: Iterable[Sourced]) -> str:
    return " and ".join(dict.fromkeys(each.source for each in settings))


def cut_window(tokens: int) -> int:
    """Return an auto-compact window as Claude Code takes it from a variable."""
    return min(max(tokens, _LEAST_WINDOW), _MOST_WINDOW)


def is_window(value: object) -> bool:
    """Return whether a settings file may have this auto-compact window."""
    return type(value) is int and _LEAST_WINDOW <= value <= _MOST_WINDOW


def has_any(settings: RuntimeSettings) -> bool:
    """Return whether anything is set."""
    return bool(settings.windows) or any(getattr(settings, name) is not None for name in _SOURCED)


def written(settings: RuntimeSettings | None) -> dict[str, object]:
    """Return settings as records have them (R33); empty where nothing is set."""
    if settings is None:
        return {}
    fields: dict[str, object] = {
        name: each._asdict() for name in _SOURCED if (each := getattr(settings, name)) is not None
    }
    if settings.windows:
        fields["windows"] = {model: each._asdict() for model, each in settings.windows}
    return fields | {name: True for name in _MARKS if getattr(settings, name)}


def read_settings(runtime: str | None, fields: Mapping[str, Any]) -> RuntimeSettings | None:
    """Read what `written` gave; None for a runtime without settings. What is wrong is not set."""
    if runtime not in get_args(SettingsOf):
        return None
    windows = fields.get("windows")
    by_model = windows.items() if isinstance(windows, dict) else ()
    known = [(model, _sourced(each)) for model, each in by_model]
    return RuntimeSettings(
        cast("SettingsOf", runtime),
        enabled=_sourced(fields.get("enabled")),
        window=_sourced(fields.get("window")),
        windows=tuple((model, own) for model, own in known if own is not None),
        percent=_sourced(fields.get("percent")),
        limit=_sourced(fields.get("limit")),
        context_window=_sourced(fields.get("context_window")),
        largest_window=_sourced(fields.get("largest_window")),
        is_partial=fields.get("is_partial") is True,
        has_variable=fields.get("has_variable") is True,
    )


def _sourced(field: object) -> Sourced | None:
    if not isinstance(field, dict):
        return None
    value, source = field.get("value"), field.get("source")
    if isinstance(value, int | float) and isinstance(source, str):
        return Sourced(value, source)
    return None


_MARKS: Final = ("is_partial", "has_variable")
_SOURCED: Final = (
    "enabled",
    "window",
    "percent",
    "limit",
    "context_window",
    "largest_window",
)
