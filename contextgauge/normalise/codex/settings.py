"""Codex's settings of automatic compaction.

The first place that has a setting wins: managed settings, `.codex/config.toml` of the project, the
user's, the machine's; in each the profile that it names before what is set for all. It compacts at
the limit that is set, at most nine tenths of the window.
"""

from typing import Final

from contextgauge.runtime_settings import (
    ExpectedPoint,
    Places,
    RuntimeSettings,
    SettingOf,
    SettingsFile,
    SettingsReading,
    first,
    is_size,
)

_OF_MACHINE: Final = "/etc/codex"
_SCOPE: Final = "model_auto_compact_token_limit_scope"
_MAX_COUNT: Final = 2**53 - 1


def _read(places: Places) -> RuntimeSettings:
    machine, project = places.of_machine(_OF_MACHINE, {}), places.project
    files = [
        places.file(machine, "managed_config.toml"),
        *([places.file(project, "config.toml")] if project else []),
        *(places.file(home, "config.toml") for home in places.homes),
        places.file(machine, "config.toml"),
    ]
    profiles = [each for file in files for each in _profiles(file)]
    scope = next((each.content[_SCOPE] for each in profiles if _SCOPE in each.content), "total")
    return RuntimeSettings(
        "codex",
        limit=first(profiles, "model_auto_compact_token_limit", is_size),
        context_window=first(profiles, "model_context_window", is_size),
        is_partial=scope != "total",
    )


def _profiles(place: SettingsFile) -> list[SettingsFile]:
    """Return a file of Codex, with the profile that it names before it."""
    name, profiles = place.content.get("profile"), place.content.get("profiles")
    profile = profiles.get(name) if isinstance(profiles, dict) and isinstance(name, str) else None
    if not isinstance(profile, dict):
        return [place]
    return [SettingsFile(f"profile {name} of {place.name}", profile), place]


def _point(
    settings: RuntimeSettings,
    _model: str | None,
    window: int | None,
    is_reported: bool,  # noqa: FBT001 -- as `SettingsReading` has it
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


def _setting(tokens: int) -> SettingOf | None:
    return SettingOf("model_auto_compact_token_limit", tokens) if tokens > 0 else None


SETTINGS: Final = SettingsReading(".codex", _read, _point, _setting)
