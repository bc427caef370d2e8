"""What `contextgauge install` may write into a runtime's settings: its files, names and hooks."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Installation(NamedTuple):
    """The files are in the runtime's home; `mcp_table` is what holds the servers.

    `mcp_fields` are those of a server besides `command` and `args`. With `mcp_variable`, the file
    is next to the home, unless that variable names the home. Of hooks, `compaction_events` are a
    compaction's start and end, `context_events` those after which the model reads what a hook adds.
    `status_line` is the setting of a command that prints one; `notice` is shown after installing.
    `transcripts_variable` moves what the runtime writes while it runs, and not its settings.
    """

    hooks_file: str
    mcp_file: str
    mcp_table: str
    context_events: Sequence[str]
    compaction_events: Sequence[str] = ()
    mcp_fields: Mapping[str, str] = {}
    mcp_variable: str | None = None
    status_line: str | None = None
    notice: str | None = None
    transcripts_variable: str | None = None
