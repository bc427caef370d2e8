"""Reads the runtimes' own settings of automatic compaction, where a session runs.

Which files and variables those are is in the runtimes' adapters. What cannot be read, or has a
wrong type, counts as not set: the runtime says so itself. The status line imports this at every
prompt, so it imports nothing that takes long.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from os import path
from typing import Any, Final

from contextgauge.normalise.runtimes import FOLDERS, SETTINGS
from contextgauge.runtime_settings import Places, RuntimeSettings, SettingsFile
from streams.core.runtime_settings import has_any
from streams.edge.files.objects import object_of
from streams.edge.files.runtime_folders import homes

_MOST_BYTES: Final = 64 * 1024 * 1024
"""No settings file is longer: one that runtimes keep the state of all projects in has megabytes."""

Object = Mapping[str, Any]


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
        own = SETTINGS.get(runtime or "")
        if runtime is None or own is None:
            return None
        key = (runtime, folder)
        if key not in self._read:
            own_homes = homes(FOLDERS[runtime], self._environment)
            read = own.read(
                Places(
                    self._environment,
                    self._home,
                    own_homes,
                    self._nearest(folder, own.folder, own_homes),
                    self._of_machine,
                    _names,
                    lambda folder, name: self._file(path.join(folder, name)),
                )
            )
            self._read[key] = read if has_any(read) else None
        return self._read[key]

    def _of_machine(self, folder: str, elsewhere: Mapping[str, str]) -> str:
        return path.join(self._root, elsewhere.get(sys.platform, folder).lstrip("/"))

    def _nearest(self, folder: str | None, name: str, users: Sequence[str]) -> str | None:
        """Return the settings folder of the project: in the folder, else the nearest around it.

        The user's own are none.
        """
        own = [path.realpath(each) for each in users]
        around = folder if folder is not None and path.isabs(folder) else None
        while around is not None:
            place = path.join(around, name)
            if path.isdir(place) and path.realpath(place) not in own:
                return place
            parent = path.dirname(around)
            around = None if around in {parent, self._home} else parent
        return None

    def _file(self, file: str) -> SettingsFile:
        if file not in self._files:
            content = _content(file)
            read = _toml_of(content) if file.endswith(".toml") else object_of(content)
            self._files[file] = read or {}
        home = self._home.rstrip("/\\")
        name = f"~{file[len(home) :]}" if file.startswith(home + os.sep) else file
        return SettingsFile(name, self._files[file])


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _content(file: str) -> bytes:
    try:
        with open(file, "rb") as opened:
            return opened.read(_MOST_BYTES)
    except OSError:
        return b""


def _toml_of(text: bytes) -> Object:
    if not text:
        return {}
    import tomllib  # noqa: PLC0415 -- the status line has no time for it where no file is TOML

    try:
        return tomllib.loads(text.decode())
    except ValueError:
        return {}
