"""Where the runtimes of a machine keep transcripts: the one table of their folders.

The status line imports this at every prompt, so it imports nothing that takes long.
"""

from collections.abc import Mapping
from os import path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

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


def homes(runtime: RuntimeFolders, environment: Mapping[str, str]) -> list[str]:
    """Return a runtime's homes, there or not, the main one first."""
    named = next(filter(None, map(environment.get, runtime.variables)), "")
    # A comma may be in a folder's name, too.
    listed = [named] if path.isdir(_expanded(named, environment)) else named.split(",")
    listed = [text.strip() for text in listed if text.strip()]
    config = environment.get("XDG_CONFIG_HOME") or _DEFAULT_CONFIG
    defaults = [home.replace(_CONFIG, config) for home in runtime.homes]
    return [path.abspath(_expanded(home, environment)) for home in listed or defaults]


def transcript_folders(environment: Mapping[str, str]) -> list["Path"]:
    """Return the folders with the transcripts of this machine's runtimes, there or not.

    Of two names for one folder, as by a link, one.
    """
    from pathlib import Path  # noqa: PLC0415 -- the status line has no time for it

    found: dict[str, Path] = {}
    for runtime in RUNTIMES:
        for home in homes(runtime, environment):
            for name in filter(None, (runtime.transcripts, runtime.archive)):
                folder = path.join(home, name)
                found.setdefault(path.realpath(folder), Path(folder))
    return list(found.values())


def _expanded(text: str, environment: Mapping[str, str]) -> str:
    """Return a path whose `~` is the environment's home."""
    home = environment.get("HOME")
    is_home = text == "~" or text.startswith("~/")
    return home + text[1:] if home and is_home else path.expanduser(text)
