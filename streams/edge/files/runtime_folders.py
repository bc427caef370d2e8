"""Where the runtimes of a machine keep transcripts, by the folders that their adapters name."""

import re
from collections.abc import Mapping
from os import path
from typing import TYPE_CHECKING, Final

from contextgauge.normalise.adapter import Adapter, Folders
from contextgauge.normalise.runtimes import ADAPTERS

if TYPE_CHECKING:
    from pathlib import Path

_VARIABLE: Final = re.compile(r"\$(\w+)")
_DEFAULTS: Final = {"XDG_CONFIG_HOME": "~/.config", "XDG_DATA_HOME": "~/.local/share"}

_BY_LABEL: Final = sorted(ADAPTERS, key=lambda each: each.label)


def homes(folders: Folders, environment: Mapping[str, str]) -> list[str]:
    """Return a runtime's homes, there or not, the main one first."""
    named = next(filter(None, map(environment.get, folders.variables)), "")
    # A comma may be in a folder's name, too.
    listed = [named] if path.isdir(_expanded(named, environment)) else named.split(",")
    listed = [text.strip() for text in listed if text.strip()]
    defaults = [_filled(home, environment) for home in folders.homes]
    homes = listed or [home for home in defaults if home is not None]
    return [path.abspath(_expanded(home, environment)) for home in homes]


def transcript_folders(environment: Mapping[str, str]) -> list["Path"]:
    """Return the folders with the transcripts of this machine's runtimes, there or not.

    Of two names for one folder, as by a link, one.
    """
    folders: dict[str, Path] = {}
    for folder in (each for adapter in _BY_LABEL for each in folders_of(adapter, environment)):
        folders.setdefault(path.realpath(folder), folder)
    return list(folders.values())


def folders_of(adapter: Adapter, environment: Mapping[str, str]) -> list["Path"]:
    """Return the folders with the transcripts of a runtime, there or not."""
    from pathlib import Path  # noqa: PLC0415 -- the status line has no time for it

    folders = adapter.folders
    if folders is None:
        return []
    names = [each for each in (folders.transcripts, folders.archive) if each is not None]
    return [Path(home, name) for home in homes(folders, environment) for name in names]


def _filled(home: str, environment: Mapping[str, str]) -> str | None:
    """Return a home with its variable's value; None where that is not set and has no default."""
    match = _VARIABLE.match(home)
    if match is None:
        return home
    value = environment.get(match[1]) or _DEFAULTS.get(match[1])
    return None if value is None else value + home[match.end() :]


def _expanded(text: str, environment: Mapping[str, str]) -> str:
    """Return a path whose `~` is the environment's home."""
    home = environment.get("HOME")
    is_home = text == "~" or text.startswith("~/")
    return home + text[1:] if home and is_home else path.expanduser(text)
