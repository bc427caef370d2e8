"""The part of the operator's file that says whose text is kept."""

from pathlib import Path
from typing import Final

from contextgauge.errors import ConfigError
from streams.core.conversation.opt_in import SECTION, KeptConversations, check_kept
from streams.core.sections import Fault, Table
from streams.edge.files.toml_file import read_toml

_FILE: Final = "the compaction service in CONTEXTGAUGE_COMPACTION_FILE"


def read_kept(path: Path) -> KeptConversations:
    """Return whose text is kept by a file. Raises ConfigError, with a line for each fault."""
    kept = find_kept(path)
    if kept is None:
        raise ConfigError(
            f"{path} has no section [{SECTION}], so no text is kept: write whose "
            'conversations are, such as sessions = ["*"]'
        )
    return kept


def find_kept(path: Path) -> KeptConversations | None:
    """Return whose text is kept by a file; None where it does not say. Raises ConfigError."""

    def check(content: Table) -> tuple[list[KeptConversations] | None, list[Fault]]:
        if SECTION not in content:
            return [], []
        kept, faults = check_kept(content)
        return None if kept is None else [kept], faults

    return next(iter(read_toml(path, _FILE, check)), None)
