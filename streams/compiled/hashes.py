"""The compiled hashes, where the product was compiled; see `fast_hashes.pyx`."""

from importlib import import_module
from typing import Final, Protocol

_NAME: Final = "streams.compiled.fast_hashes"


class Hashes(Protocol):
    """What the module has. A result of None is for the general function to find."""

    def text_hash(self, prefix: bytes, text: str, /) -> bytes | None:
        """Return `known_causes.text_hash`."""

    def counts_hash(self, input_: int, creation: int, read: int, /) -> bytes:
        """Return `responses.counts_hash`."""

    def is_absent(
        self,
        tail: bytes,
        segments: tuple[tuple[bytes, bytes], ...],
        boundaries: bytes,
        cause: bytes,
        /,
    ) -> bool:
        """Return whether a cause is in no part of `known_causes.KnownCauses`."""

    def last_place(self, entries: bytes, entry_bytes: int, key: bytes, /) -> int:
        """Return where the last of the entries with a key begins, -1 without one."""

    def record_id(
        self, namespace: bytes, session_id: str, chain: str, kind: str, cause: str, /
    ) -> str | None:
        """Return `record_ids.record_id`."""


def _load() -> Hashes | None:
    """Return the module: None without it, and on a big-endian machine, which it refuses."""
    try:
        module: Hashes = import_module(_NAME)
    except ImportError as error:
        if error.name != _NAME:  # pragma: no cover -- a broken build
            raise
        return None
    return module  # pragma: no cover -- compiled


hashes: Final = _load()
