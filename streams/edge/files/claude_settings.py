"""Claude Code's settings file: adds the status line's command to it, and takes it out again.

Everything else in the file stays. A copy of the file as it was stands next to it until the change
is undone.
"""

import json
import os
import re
import shlex
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from contextgauge.errors import ConfigError, StopError
from contextgauge.normalise.claude_code import FOLDERS
from streams.edge.files.objects import object_of
from streams.edge.files.runtime_folders import homes

_FIELD: Final = "statusLine"
_BACKUP_SUFFIX: Final = ".before-contextgauge"
_INDENT: Final = re.compile(rb'\n([ \t]+)"')


def settings_path(environment: Mapping[str, str]) -> Path:
    """Return the user's settings file of Claude Code; a link's target, so that the link stays."""
    return Path(homes(FOLDERS, environment)[0]).resolve() / "settings.json"


class ClaudeSettings:
    """A settings file as it is now. Raises ConfigError where it cannot be read or is no object."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self.backup = self.path.with_name(self.path.name + _BACKUP_SUFFIX)
        self._text = _read(self.path)
        settings = object_of(self._text or b"{}")
        if settings is None:
            raise ConfigError(f"{self.path}: not a JSON object: nothing was changed")
        self._settings: dict[str, Any] = settings

    @property
    def command(self) -> str | None:
        """The status line's command; None where there is none."""
        return _command_of(self._settings)

    @property
    def has_ours(self) -> bool:
        """Whether the status line is that of contextgauge."""
        return _is_ours(self.command)

    @property
    def former_command(self) -> str | None:
        """The status line's command before the installation; None where there was none."""
        return _command_of(object_of(_read(self.backup) or b"{}") or {})

    def install(self, command: str) -> None:
        """Set the status line's command, and store the file as it was."""
        before = None if self.has_ours else self._text
        self._settings[_FIELD] = {"type": "command", "command": command}
        written = self._written()
        if before is not None:
            _write(self.backup, before, like=self.path)
        _write(self.path, written, like=self.path)

    def uninstall(self) -> None:
        """Restore the status line as it was. Raises StopError where it is not contextgauge's."""
        if not self.has_ours:
            raise StopError(f"{self.path} has no status line of contextgauge: nothing to undo")
        before = _read(self.backup)
        former = object_of(before or b"{}") or {}
        if before is not None and former | {_FIELD: self._settings[_FIELD]} == self._settings:
            _write(self.path, before, like=self.path)
        else:  # something else was changed since
            if _FIELD in former:
                self._settings[_FIELD] = former[_FIELD]
            else:
                del self._settings[_FIELD]
            if self._settings or before is not None:
                _write(self.path, self._written(), like=self.path)
            else:
                self.path.unlink()
        self.backup.unlink(missing_ok=True)

    def _written(self) -> bytes:
        """Return the settings as JSON. Raises ConfigError for what Python would write otherwise."""
        indent = _INDENT.search(self._text or b"")
        try:
            text = json.dumps(
                self._settings,
                indent=indent[1].decode() if indent is not None else 2,
                ensure_ascii=False,
                allow_nan=False,
            )
        except ValueError as error:  # 1e999 is JSON, `Infinity` is not
            raise ConfigError(f"{self.path}: a number is too large: nothing was changed") from error
        return f"{text}\n".encode("utf-8", "backslashreplace")  # half characters, as JSON has them


def _command_of(settings: Mapping[str, Any]) -> str | None:
    status_line = settings.get(_FIELD)
    command = status_line.get("command") if isinstance(status_line, dict) else None
    return command if isinstance(command, str) else None


def _is_ours(command: str | None) -> bool:
    try:
        words = shlex.split(command or "")
    except ValueError:
        return False
    is_command = bool(words) and Path(words[0]).name == "contextgauge"
    return "statusline" in words and (is_command or words[1:3] == ["-m", "streams"])


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error


def _write(path: Path, text: bytes, *, like: Path) -> None:
    """Replace a file at once, with the permissions of `like`. Raises ConfigError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(text)
            if like.exists():
                Path(name).chmod(like.stat().st_mode & 0o777)
            Path(name).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
