"""The part of the operator's file that says whose text is kept."""

import tomllib
from pathlib import Path

from contextgauge.errors import ConfigError
from streams.core.conversation.opt_in import SECTION, KeptConversations, check_kept

_MOST_BYTES = 1024 * 1024
"""No such file is longer; a wrong path may name something that never ends."""


def read_kept(path: Path) -> KeptConversations:
    """Return whose text is kept by a file. Raises ConfigError, with all that is wrong."""
    kept = find_kept(path)
    if kept is None:
        raise ConfigError(
            f"{path} has no section [{SECTION}], so no text is kept: write whose "
            'conversations are, such as sessions = ["*"]'
        )
    return kept


def find_kept(path: Path) -> KeptConversations | None:
    """Return whose text is kept by a file; None where it does not say. Raises ConfigError."""
    try:
        with path.open("rb") as file:
            raw = file.read(_MOST_BYTES + 1)
        if len(raw) > _MOST_BYTES:
            raise ConfigError(f"{path} is too long: name the right file")
        content = tomllib.loads(raw.decode())
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read ({error.strerror}): name the file in "
            "CONTEXTGAUGE_COMPACTION_FILE"
        ) from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8 text: name the right file") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from None
    kept, faults = check_kept(content)
    if faults:
        raise ConfigError("\n".join(f"{path.name}: {fault}" for fault in faults))
    return kept
