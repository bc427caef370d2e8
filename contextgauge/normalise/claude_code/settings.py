"""Claude Code's settings of automatic compaction.

The first place that has a setting wins: managed settings, the environment,
`.claude/settings.local.json` and `.claude/settings.json` of the project, the user's settings.

The window, or a smaller one that is set, less what is reserved for the answer and for the summary
is where it compacts; a percentage applies to the window less the answer, and can only lower that.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from contextgauge.runtime_settings import (
    MOST_DIGITS,
    ExpectedPoint,
    Places,
    RuntimeSettings,
    SettingOf,
    SettingsFile,
    SettingsReading,
    Sourced,
    first,
    first_variable,
    is_truth,
)
from contextgauge.windows import base_name

STANDARD_WINDOW: Final = 200_000
"""The window of Claude's models where those of a million tokens are switched off."""

_LEAST_WINDOW: Final = 100_000
_MOST_WINDOW: Final = 1_000_000
"""Claude Code takes no smaller and no larger auto-compact window; a variable is cut to these."""

_ANSWER_RESERVE: Final = 20_000
_SUMMARY_RESERVE: Final = 13_000
"""What Claude Code leaves free: a window of 200 000 is compacted at 167 000."""

_WHOLE: Final = 100

_MANAGED: Final = "/etc/claude-code"
_MANAGED_ELSEWHERE: Final = {
    "darwin": "/Library/Application Support/ClaudeCode",
    "win32": "C:\\Program Files\\ClaudeCode",
}
_OF_PROJECT: Final = ("settings.local.json", "settings.json")
_TRUE: Final = frozenset({"1", "true", "yes", "on"})

_WINDOW: Final = "CLAUDE_CODE_AUTO_COMPACT_WINDOW"
_PERCENT: Final = "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE"
_OFF: Final = ("DISABLE_AUTO_COMPACT", "DISABLE_COMPACT")
_STANDARD: Final = "CLAUDE_CODE_DISABLE_1M_CONTEXT"


def _read(places: Places) -> RuntimeSettings:
    managed = list(_managed(places))
    project = places.project
    own = [places.file(project, name) for name in _OF_PROJECT] if project else []
    users = [places.file(home, "settings.json") for home in places.homes]
    files = [*managed, *own, *users]
    variables = [
        *map(_variables_of, managed),
        SettingsFile("", places.environment),
        *map(_variables_of, (*own, *users)),
    ]
    # Where Claude Code stored it before its settings file had it.
    state_folders = places.homes if places.environment.get("CLAUDE_CONFIG_DIR") else [places.home]
    state = [places.file(folder, ".claude.json") for folder in state_folders]
    variable = first_variable(variables, _WINDOW, _window_variable)
    enabled = first((*files, *state), "autoCompactEnabled", is_truth)
    for name in _OFF:
        off = first_variable(variables, name, _truth_variable)
        if off is not None and off.value is True:
            enabled = Sourced(value=False, source=off.source)
    standard = first_variable(variables, _STANDARD, _truth_variable)
    return RuntimeSettings(
        "claude-code",
        enabled=enabled,
        window=variable or first(files, "autoCompactWindow", is_window),
        windows=_by_model(files),
        percent=first_variable(variables, _PERCENT, _percent_variable),
        largest_window=(
            Sourced(STANDARD_WINDOW, standard.source)
            if standard is not None and standard.value is True
            else None
        ),
        has_variable=variable is not None,
    )


def _managed(places: Places) -> Iterator[SettingsFile]:
    """Yield the files of managed settings, the one that wins first."""
    folder = places.of_machine(_MANAGED, _MANAGED_ELSEWHERE)
    parts = f"{folder}/managed-settings.d"
    for name in sorted(places.names(parts), reverse=True):
        if name.endswith(".json") and not name.startswith("."):
            yield places.file(parts, name)
    yield places.file(folder, "managed-settings.json")


def _variables_of(place: SettingsFile) -> SettingsFile:
    variables = place.content.get("env")
    return SettingsFile(place.name, variables if isinstance(variables, dict) else {})


def _by_model(places: Iterable[SettingsFile]) -> tuple[tuple[str, Sourced], ...]:
    windows: dict[str, Sourced] = {}
    for place in places:
        models = place.content.get("modelSettings")
        for model, own in models.items() if isinstance(models, dict) else ():
            value: Any = own.get("autoCompactWindow") if isinstance(own, dict) else None
            if is_window(value):
                windows.setdefault(base_name(model)[0].lower(), Sourced(value, place.name))
    return tuple(windows.items())


def _window_variable(text: str) -> int | None:
    known = text.isdecimal() and len(text) <= MOST_DIGITS and int(text) > 0
    return cut_window(int(text)) if known else None


def _percent_variable(text: str) -> float | None:
    try:
        percent = float(text)
    except ValueError:
        return None
    return percent if 0 < percent <= _WHOLE else None


def _truth_variable(text: str) -> bool | None:
    return text.strip().lower() in _TRUE if text.strip() else None


def cut_window(tokens: int) -> int:
    """Return an auto-compact window as Claude Code takes it from a variable."""
    return min(max(tokens, _LEAST_WINDOW), _MOST_WINDOW)


def is_window(value: object) -> bool:
    """Return whether a settings file may have this auto-compact window."""
    return type(value) is int and _LEAST_WINDOW <= value <= _MOST_WINDOW


def _point(
    settings: RuntimeSettings,
    model: str | None,
    window: int | None,
    is_reported: bool,  # noqa: FBT001 -- as `SettingsReading` has it
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
    sources = [each.source for each in (*set_sizes, percent) if each is not None]
    source = " and ".join(dict.fromkeys(sources))
    return ExpectedPoint(point, source, estimated) if point > 0 else None


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
    return max(fitting, key=lambda each: len(each[0]))[1] if fitting else settings.window


def _setting(tokens: int) -> SettingOf | None:
    window = tokens + _ANSWER_RESERVE + _SUMMARY_RESERVE
    return SettingOf("autoCompactWindow", window) if is_window(window) else None


SETTINGS: Final = SettingsReading(".claude", _read, _point, _setting)
