"""Where each runtime has its settings, and what is added to them."""

import shlex
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple

from contextgauge.normalise.runtimes import ADAPTERS
from streams.cli.install.entries import SettingsEntry
from streams.edge.files.runtime_folders import homes


class Runtime(StrEnum):
    """The runtimes whose settings are known."""

    claude_code = "claude-code"
    codex = "codex"
    gemini = "gemini"
    qwen_code = "qwen-code"


class InstallPart(StrEnum):
    """What can be installed."""

    status_line = "status-line"
    hooks = "hooks"
    mcp = "mcp"


class Placed(NamedTuple):
    """An entry, the part that it is of, and the file in which it belongs."""

    part: InstallPart
    path: Path
    entry: SettingsEntry


class _Shape(NamedTuple):
    """A runtime's own names: files in its home, and hooks by what happens."""

    hooks_file: str
    mcp_file: str
    mcp_table: str
    compaction_events: Sequence[str]
    telling_events: Sequence[str]


_SHAPES: Final[Mapping[Runtime, _Shape]] = {
    Runtime.claude_code: _Shape(
        "settings.json",
        ".claude.json",
        "mcpServers",
        ("PreCompact", "PostCompact"),
        ("UserPromptSubmit", "PostToolUse"),
    ),
    Runtime.codex: _Shape(
        "hooks.json",
        "config.toml",
        "mcp_servers",
        ("PreCompact", "PostCompact"),
        ("UserPromptSubmit", "PostToolUse"),
    ),
    Runtime.gemini: _Shape(
        ".gemini/settings.json",
        ".gemini/settings.json",
        "mcpServers",
        (),  # its PreCompress comes before each turn, before it is known whether one is needed
        ("BeforeAgent", "AfterTool"),
    ),
    Runtime.qwen_code: _Shape(
        "settings.json",
        "settings.json",
        "mcpServers",
        ("PreCompact", "PostCompact"),
        ("UserPromptSubmit", "PostToolUse"),
    ),
}
_FOLDERS: Final = {each.runtime: each.folders for each in ADAPTERS if each.folders is not None}
_ONLY_TRANSCRIPTS: Final = "QWEN_RUNTIME_DIR"
"""Moves what Qwen Code writes while it runs, and not its settings."""


def placed(
    runtime: Runtime,
    environment: Mapping[str, str],
    program: Sequence[str],
    at: float | None = None,
) -> list[Placed]:
    """Return all that is added to a runtime's settings. `program` runs contextgauge.

    `at` is the percentage of the hook at a threshold; None leaves that out.
    """
    shape = _SHAPES[runtime]
    named = {name: value for name, value in environment.items() if name != _ONLY_TRANSCRIPTS}
    home = Path(homes(_FOLDERS[runtime.value], named)[0])
    hooks_path = home / shape.hooks_file
    parts = []
    if runtime is Runtime.claude_code:
        value = {"type": "command", "command": shlex.join([*program, "statusline"])}
        entry = SettingsEntry(("statusLine",), value, ("statusline",))
        parts.append(Placed(InstallPart.status_line, hooks_path, entry))
    hooks = [(event, ["hook", "compaction"]) for event in shape.compaction_events]
    if at is not None:
        at_percent = ["hook", "threshold", "--at", f"{at:g}"]
        hooks += [(event, at_percent) for event in shape.telling_events]
    for event, words in hooks:
        hook = {"type": "command", "command": shlex.join([*program, *words])}
        group = {"hooks": [hook]}
        entry = SettingsEntry(("hooks", event), group, (words[0], words[1]), is_listed=True)
        parts.append(Placed(InstallPart.hooks, hooks_path, entry))
    mcp_path = _mcp_path(runtime, home, environment, shape)
    parts.append(Placed(InstallPart.mcp, mcp_path, _mcp(runtime, shape, program)))
    return parts


def _mcp(runtime: Runtime, shape: _Shape, program: Sequence[str]) -> SettingsEntry:
    value: dict[str, Any] = {"command": program[0], "args": [*program[1:], "mcp"]}
    if runtime is Runtime.claude_code:
        value = {"type": "stdio", **value}
    return SettingsEntry((shape.mcp_table, "contextgauge"), value, ("mcp",))


def _mcp_path(runtime: Runtime, home: Path, environment: Mapping[str, str], shape: _Shape) -> Path:
    """Return the file with MCP servers: Claude Code's is next to its home, unless that is named."""
    is_next_to = runtime is Runtime.claude_code and not environment.get("CLAUDE_CONFIG_DIR")
    return (home.parent if is_next_to else home) / shape.mcp_file
