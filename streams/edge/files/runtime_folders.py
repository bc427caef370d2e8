"""Where the runtimes of a machine keep transcripts, by the folders that their adapters name."""

from collections.abc import Mapping
from os import path
from typing import TYPE_CHECKING, Final

from contextgauge.normalise.adapter import Folders
from contextgauge.normalise.runtimes import ADAPTERS

if TYPE_CHECKING:
    from pathlib import Path

_CONFIG: Final = "$XDG_CONFIG_HOME"
_DEFAULT_CONFIG: Final = "~/.config"

_BY_LABEL: Final = sorted(ADAPTERS, key=lambda each: each.label)


def homes(folders: Folders, environment: Mapping[str, str]) -> list[str]:
    """Return a runtime's homes, there or not, the main one first."""
    named = next(filter(None, map(environment.get, folders.variables)), "")
    # A comma may be in a folder's name, too.
    listed = [named] if path.isdir(_expanded(named, environment)) else named.split(",")
    listed = [text.strip() for text in listed if text.strip()]
    config = environment.get("XDG_CONFIG_HOME") or _DEFAULT_CONFIG
    defaults = [home.replace(_CONFIG, config) for home in folders.homes]
    return [path.abspath(_expanded(home, environment)) for home in listed or defaults]


def transcript_folders(environment: Mapping[str, str]) -> list["Path"]:
    """Return the folders with the transcripts of this machine's runtimes, there or not.

    Of two names for one folder, as by a link, one.
    """
    from pathlib import Path  # noqa: PLC0415 -- the status line has no time for it

    found: dict[str, Path] = {}
    for folders in (each.folders for each in _BY_LABEL if each.folders is not None):
        for home in homes(folders, environment):
            for name in filter(None, (folders.transcripts, folders.archive)):
                folder = path.join(home, name)
                found.setdefault(path.realpath(folder), Path(folder))
    return list(found.values())


def _expanded(text: str, environment: Mapping[str, str]) -> str:
    """Return a path whose `~` is the environment's home."""
    home = environment.get("HOME")
    is_home = text == "~" or text.startswith("~/")
    return home + text[1:] if home and is_home else path.expanduser(text)
