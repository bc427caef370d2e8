"""Settings of runtimes, for the tests of `contextgauge install`."""

import json
import tomllib
from pathlib import Path
from typing import Any

CONFIG = '# mine\nmodel = "gpt"  # yes\n\n[mcp_servers.other]\ncommand = "x"\n'
SETTINGS = {
    "model": "opus",
    "hooks": {
        "PreCompact": [{"matcher": "auto", "hooks": [{"type": "command", "command": "own"}]}]
    },
    "mcpServers": {"other": {"command": "x"}},
}


def files_of(home: Path) -> dict[str, str]:
    """Return all files of a home."""
    paths = (path for path in home.rglob("*") if path.is_file())
    return {str(path.relative_to(home)): path.read_text() for path in paths}


def commands_of(settings: dict[str, Any], event: str) -> list[str]:
    """Return the commands of a hook, behind the program."""
    hooks = [hook for group in settings["hooks"][event] for hook in group["hooks"]]
    return [hook["command"].partition(" -m streams ")[2] or hook["command"] for hook in hooks]


def settings_of(home: Path, path: str) -> Any:
    """Return a file's settings."""
    text = (home / path).read_text()
    return tomllib.loads(text) if path.endswith(".toml") else json.loads(text)
