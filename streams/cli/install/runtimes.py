"""Where each runtime has its settings, and what is added to them."""

import shlex
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from contextgauge.normalise.runtimes import ADAPTERS
from streams.cli.install.entries import SettingsEntry
from streams.edge.files.runtime_folders import homes


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


INSTALLATIONS: Final = {
    each.runtime: (each.folders, each.installation)
    for each in sorted(ADAPTERS, key=lambda each: each.runtime)
    if each.folders is not None and each.installation is not None
}
"""Of the runtimes whose settings are known."""

if TYPE_CHECKING:
    Runtime: TypeAlias = str
else:
    Runtime = StrEnum("Runtime", [(each.replace("-", "_"), each) for each in INSTALLATIONS])
"""One of them, as the command line takes it."""


def placed(
    runtime: Runtime,
    environment: Mapping[str, str],
    program: Sequence[str],
    at: float | None = None,
) -> list[Placed]:
    """Return all that is added to a runtime's settings. `program` runs contextgauge.

    `at` is the percentage of the hook at a threshold; None leaves that out.
    """
    folders, installation = INSTALLATIONS[runtime]
    only_transcripts = installation.transcripts_variable
    named = {name: value for name, value in environment.items() if name != only_transcripts}
    home = Path(homes(folders, named)[0])
    hooks_path = home / installation.hooks_file
    parts = []
    if installation.status_line is not None:
        value = {"type": "command", "command": shlex.join([*program, "statusline"])}
        entry = SettingsEntry((installation.status_line,), value, ("statusline",))
        parts.append(Placed(InstallPart.status_line, hooks_path, entry))
    hooks = [(event, ["hook", "compaction"]) for event in installation.compaction_events]
    if at is not None:
        at_percent = ["hook", "threshold", "--at", f"{at:g}"]
        hooks += [(event, at_percent) for event in installation.context_events]
    for event, words in hooks:
        hook = {"type": "command", "command": shlex.join([*program, *words])}
        group = {"hooks": [hook]}
        entry = SettingsEntry(("hooks", event), group, (words[0], words[1]), is_listed=True)
        parts.append(Placed(InstallPart.hooks, hooks_path, entry))
    variable = installation.mcp_variable
    is_next_to = variable is not None and not environment.get(variable)
    mcp_path = (home.parent if is_next_to else home) / installation.mcp_file
    server = {**installation.mcp_fields, "command": program[0], "args": [*program[1:], "mcp"]}
    entry = SettingsEntry((installation.mcp_table, "contextgauge"), server, ("mcp",))
    parts.append(Placed(InstallPart.mcp, mcp_path, entry))
    return parts
