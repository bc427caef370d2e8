"""The plain reader and writer of batches: they leave all to the client's own."""

from collections.abc import Sequence
from typing import Any, Final

crc32c: Final = None


def headers_of(_fetched: bytes) -> None:
    """Return that batches cannot be read in place."""


def encode(_records: object, _first: int, _limit_bytes: int, _now_ms: int) -> None:
    """Return that batches cannot be encoded in one go."""


def value_bytes(records: Sequence[Any]) -> int:
    """Return how many bytes the values of records have."""
    return sum(len(record.value or b"") for record in records)
