"""What the servers need besides their adapters: who may read, write and publish."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from contextgauge.settings.forms import PREFIX
from streams.edge.files.tokens import TokenFile
from streams.settings import Settings


class Access(NamedTuple):
    """Who may read: names by token hash; who may write: token hashes. None: anyone may."""

    readers: Callable[[], Mapping[str, str]] | None
    writers: Callable[[], frozenset[str]] | None


def access(settings: Settings) -> Access:
    """Return who may do what. Raises ConfigError for a file that cannot be read."""
    if settings.serve_tokens_file is None:
        return Access(None, None)
    file = TokenFile(settings.serve_tokens_file, f"{PREFIX}SERVE_TOKENS_FILE")
    file.read()
    return Access(file.read, file.writers)


def publishers(settings: Settings) -> Callable[[], Mapping[str, str]] | None:
    """Return who may publish, names by token hash; None: anyone may. Raises ConfigError."""
    if settings.ingest_tokens_file is None:
        return None
    file = TokenFile(settings.ingest_tokens_file, f"{PREFIX}INGEST_TOKENS_FILE", "publisher")
    file.read()
    return file.read
