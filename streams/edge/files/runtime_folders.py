"""Where the runtimes of a machine keep transcripts: the one table of their folders."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

_CONFIG: Final = "$XDG_CONFIG_HOME"
_DEFAULT_CONFIG: Final = "~/.config"


class RuntimeFolders(NamedTuple):
    """A runtime's folders: `transcripts` and `archive` are below each of its homes.

    Its homes are those that the first set one of `variables` lists, separated by commas, else
    `homes`. The runtime moves transcripts that a user archives to `archive`, and back.
    """

    name: str
    variables: tuple[str, ...]
    homes: tuple[str, ...]
    transcripts: str
    archive: str | None = None


CLAUDE: Final = RuntimeFolders(
    "Claude Code", ("CLAUDE_CONFIG_DIR",), ("~/.claude", f"{_CONFIG}/claude"), "projects"
)
CODEX: Final = RuntimeFolders(
    "Codex", ("CODEX_HOME",), ("~/.codex",), "sessions", "archived_sessions"
)
GEMINI: Final = RuntimeFolders("Gemini CLI", ("GEMINI_CLI_HOME",), ("~",), ".gemini/tmp")
QWEN: Final = RuntimeFolders(
    "Qwen Code", ("QWEN_RUNTIME_DIR", "QWEN_HOME"), ("~/.qwen",), "projects"
)

RUNTIMES: Final = (CLAUDE, CODEX, GEMINI, QWEN)


def homes(runtime: RuntimeFolders, environment: Mapping[str, str]) -> list[Path]:
    """Return a runtime's homes, there or not, the main one first."""
    named = next(filter(None, map(environment.get, runtime.variables)), "")
    # A comma may be in a folder's name, too.
    listed = [named] if Path(named).expanduser().is_dir() else named.split(",")
    listed = [text.strip() for text in listed if text.strip()]
    config = environment.get("XDG_CONFIG_HOME") or _DEFAULT_CONFIG
    defaults = [home.replace(_CONFIG, config) for home in runtime.homes]
    return [Path(home).expanduser().absolute() for home in listed or defaults]


def transcript_folders(environment: Mapping[str, str]) -> list[Path]:
    """Return the folders with the transcripts of this machine's runtimes, there or not.

    Of two names for one folder, as by a link, one.
    """
    found: dict[str, Path] = {}
    for runtime in RUNTIMES:
        for home in homes(runtime, environment):
            for name in filter(None, (runtime.transcripts, runtime.archive)):
                found.setdefault(os.path.realpath(home / name), home / name)
    return list(found.values())
