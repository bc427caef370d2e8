"""Reads the runtimes' own settings of automatic compaction, where a session runs.

The first place that has a setting wins:

    Claude Code   managed settings, the environment, `.claude/settings.local.json` and
                  `.claude/settings.json` of the project, the user's settings
    Codex         managed settings, `.codex/config.toml` of the project, the user's, the machine's;
                  in each the profile that it names before what is set for all

What cannot be read, or has a wrong type, counts as not set: the runtime says so itself. The status
line imports this at every prompt, so it imports nothing that takes long.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import path
from typing import Any, Final, NamedTuple

from contextgauge.normalise import claude_code, codex
from contextgauge.windows import base_name
from streams.core.runtime_settings import (
    STANDARD_WINDOW,
    RuntimeSettings,
    Sourced,
    Value,
    cut_window,
    has_any,
    is_window,
)
from streams.edge.files.objects import object_of
from streams.edge.files.runtime_folders import homes

_MOST_BYTES: Final = 1024 * 1024
"""No settings file is longer."""

_MANAGED_CLAUDE: Final[Mapping[str, str]] = {
    "darwin": "/Library/Application Support/ClaudeCode",
    "win32": "C:\\Program Files\\ClaudeCode",
}
_MANAGED_CLAUDE_ELSEWHERE: Final = "/etc/claude-code"
_CODEX_OF_MACHINE: Final = "/etc/codex"

_TRUE: Final = frozenset({"1", "true", "yes", "on"})
_DIGITS: Final = 15

_WINDOW: Final = "CLAUDE_CODE_AUTO_COMPACT_WINDOW"
_PERCENT: Final = "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE"
_OFF: Final = ("DISABLE_AUTO_COMPACT", "DISABLE_COMPACT")
_STANDARD: Final = "CLAUDE_CODE_DISABLE_1M_CONTEXT"

Object = Mapping[str, Any]


class _SettingsFile(NamedTuple):
    """A settings file as people write its path, or the environment, with what it has."""

    name: str
    content: Object


class SettingsReader:
    """Reads settings by runtime and folder, each file once until `forget`."""

    def __init__(self, environment: Mapping[str, str], root: str = "/") -> None:
        self._environment = environment
        self._root = root
        self._home = environment.get("HOME") or path.expanduser("~")
        self._files: dict[str, Object] = {}
        self._read: dict[tuple[str, str | None], RuntimeSettings | None] = {}

    def forget(self) -> None:
        """Look at the files again from now on."""
        self._files.clear()
        self._read.clear()

    def settings(self, runtime: str | None, folder: str | None) -> RuntimeSettings | None:
        """Return what is set for sessions of a runtime in a folder; None where nothing is."""
        if runtime not in ("claude-code", "codex"):
            return None
        key = (runtime, folder)
        if key not in self._read:
            read = self._claude(folder) if runtime == "claude-code" else self._codex(folder)
            self._read[key] = read if has_any(read) else None
        return self._read[key]

    def _claude(self, folder: str | None) -> RuntimeSettings:
        own_homes = homes(claude_code.FOLDERS, self._environment)
        managed = [self._json(file) for file in self._managed_claude()]
        project = self._nearest(folder, ".claude", own_homes)
        own = [self._json(path.join(project, name)) for name in _PROJECT] if project else []
        users = [self._json(path.join(user, "settings.json")) for user in own_homes]
        files = [*managed, *own, *users]
        environment = _SettingsFile("", self._environment)
        variables = [
            *(_variables_of(place) for place in managed),
            environment,
            *(_variables_of(place) for place in (*own, *users)),
        ]
        # Where Claude Code stored it before its settings file had it.
        places = own_homes if self._environment.get("CLAUDE_CONFIG_DIR") else [self._home]
        state = [self._json(path.join(place, ".claude.json")) for place in places]
        variable = _first_variable(variables, _WINDOW, _window_variable)
        window = variable or _first(files, "autoCompactWindow", is_window)
        enabled = _first((*files, *state), "autoCompactEnabled", _is_truth)
        for name in _OFF:
            off = _first_variable(variables, name, _truth_variable)
            if off is not None and off.value is True:
                enabled = Sourced(value=False, source=off.source)
        standard = _first_variable(variables, _STANDARD, _truth_variable)
        return RuntimeSettings(
            "claude-code",
            enabled=enabled,
            window=window,
            windows=_by_model(files),
            percent=_first_variable(variables, _PERCENT, _percent_variable),
            largest_window=(
                Sourced(STANDARD_WINDOW, standard.source)
                if standard is not None and standard.value is True
                else None
            ),
            has_variable=variable is not None,
        )

    def _codex(self, folder: str | None) -> RuntimeSettings:
        own_homes = homes(codex.FOLDERS, self._environment)
        machine = path.join(self._root, _CODEX_OF_MACHINE.lstrip("/"))
        project = self._nearest(folder, ".codex", own_homes)
        files = [
            path.join(machine, "managed_config.toml"),
            *([path.join(project, "config.toml")] if project else []),
            *(path.join(user, "config.toml") for user in own_homes),
            path.join(machine, "config.toml"),
        ]
        places = [each for file in files for each in _profiles(self._toml(file))]
        name = "model_auto_compact_token_limit_scope"
        scope = next((place.content[name] for place in places if name in place.content), "total")
        return RuntimeSettings(
            "codex",
            limit=_first(places, "model_auto_compact_token_limit", _is_size),
            context_window=_first(places, "model_context_window", _is_size),
            is_partial=scope != "total",
        )

    def _managed_claude(self) -> Iterator[str]:
        """Yield the files of managed settings, the one that wins first."""
        folder = _MANAGED_CLAUDE.get(sys.platform, _MANAGED_CLAUDE_ELSEWHERE)
        folder = path.join(self._root, folder.lstrip("/"))
        parts = path.join(folder, "managed-settings.d")
        try:
            names = sorted((each.name for each in os.scandir(parts)), reverse=True)
        except OSError:
            names = []
        for name in names:
            if name.endswith(".json") and not name.startswith("."):
                yield path.join(parts, name)
        yield path.join(folder, "managed-settings.json")

    def _nearest(self, folder: str | None, name: str, users: Sequence[str]) -> str | None:
        """Return the settings folder of the project: in the folder, else the nearest around it.

        The user's own are none.
        """
        own = [path.realpath(each) for each in users]
        at = folder if folder is not None and path.isabs(folder) else None
        while at is not None:
            place = path.join(at, name)
            if path.isdir(place) and path.realpath(place) not in own:
                return place
            parent = path.dirname(at)
            at = None if at in {parent, self._home} else parent
        return None

    def _json(self, file: str) -> _SettingsFile:
        if file not in self._files:
            self._files[file] = object_of(_content(file)) or {}
        return _SettingsFile(self._short(file), self._files[file])

    def _toml(self, file: str) -> _SettingsFile:
        if file not in self._files:
            self._files[file] = _toml_of(_content(file))
        return _SettingsFile(self._short(file), self._files[file])

    def _short(self, file: str) -> str:
        """Return a path as people write it."""
        home = self._home.rstrip("/\\")
        return f"~{file[len(home) :]}" if file.startswith(home + os.sep) else file


_PROJECT: Final = ("settings.local.json", "settings.json")


def _content(file: str) -> bytes:
    try:
        with open(file, "rb") as opened:
            return opened.read(_MOST_BYTES)
    except OSError:
        return b""


def _toml_of(text: bytes) -> Object:
    if not text:
        return {}
    import tomllib  # noqa: PLC0415 -- only Codex needs it

    try:
        return tomllib.loads(text.decode())
    except ValueError:
        return {}


def _profiles(place: _SettingsFile) -> list[_SettingsFile]:
    """Return a file of Codex, with the profile that it names before it."""
    name, profiles = place.content.get("profile"), place.content.get("profiles")
    profile = profiles.get(name) if isinstance(profiles, dict) and isinstance(name, str) else None
    if not isinstance(profile, dict):
        return [place]
    return [_SettingsFile(f"profile {name} of {place.name}", profile), place]


def _variables_of(place: _SettingsFile) -> _SettingsFile:
    variables = place.content.get("env")
    return _SettingsFile(place.name, variables if isinstance(variables, dict) else {})


def _first(
    places: Sequence[_SettingsFile], name: str, fits: Callable[[object], bool]
) -> Sourced | None:
    for place in places:
        value: Any = place.content.get(name)
        if fits(value):
            return Sourced(value, place.name)
    return None


def _first_variable(
    places: Sequence[_SettingsFile], name: str, read: Callable[[str], Value | None]
) -> Sourced | None:
    for place in places:
        value = place.content.get(name)
        made = read(value if isinstance(value, str) else str(value)) if value is not None else None
        if made is not None:
            return Sourced(made, f"{name} of {place.name}" if place.name else name)
    return None


def _by_model(places: Sequence[_SettingsFile]) -> tuple[tuple[str, Sourced], ...]:
    windows: dict[str, Sourced] = {}
    for place in places:
        models = place.content.get("modelSettings")
        for model, own in models.items() if isinstance(models, dict) else ():
            value: Any = own.get("autoCompactWindow") if isinstance(own, dict) else None
            if is_window(value):
                windows.setdefault(base_name(model)[0].lower(), Sourced(value, place.name))
    return tuple(windows.items())


def _window_variable(text: str) -> int | None:
    known = text.isdecimal() and len(text) <= _DIGITS and int(text) > 0
    return cut_window(int(text)) if known else None


def _percent_variable(text: str) -> float | None:
    try:
        percent = float(text)
    except ValueError:
        return None
    return percent if 0 < percent <= 100 else None  # noqa: PLR2004 -- per cent


def _truth_variable(text: str) -> bool | None:
    return text.strip().lower() in _TRUE if text.strip() else None


def _is_truth(value: object) -> bool:
    return isinstance(value, bool)


def _is_size(value: object) -> bool:
    return type(value) is int and 0 < value < 10**_DIGITS
