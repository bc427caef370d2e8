"""Dead letters that their topic does not take: what is kept of them."""

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from typing import Final

import structlog

from streams.flow.dead_letters.letters import CUT_HASH_HEADER, CUT_SIZE_HEADER, split_headers
from streams.ports import Headers, NewRecord

_ROOM_BYTES: Final = 64 * 1024
"""For what a letter has besides the message: the batch's header, the reason, the origin."""

_LONGEST_KEY_BYTES: Final = 64 * 1024
"""A longer key names no session (R1), so a letter that is cut goes without it."""

logger = structlog.get_logger()


async def fitting(
    records: Sequence[NewRecord],
    topic: str,
    limit_bytes: int,
    written_bytes: Callable[[NewRecord], int],
) -> list[NewRecord]:
    """Return records; dead letters for `topic` that take more as they are written are cut."""
    fitted = []
    for record in records:
        is_small = record.topic != topic or letter_bytes(record) <= limit_bytes
        # It compresses megabytes, which takes a moment.
        if is_small or await asyncio.to_thread(written_bytes, record) <= limit_bytes:
            fitted.append(record)
        else:
            fitted.append(await asyncio.to_thread(cut_letter, record, limit_bytes))
            kept_bytes = len(fitted[-1].value or b"")
            logger.warning("a dead letter is cut", size=len(record.value or b""), kept=kept_bytes)
    return fitted


def letter_bytes(letter: NewRecord) -> int:
    """Return how many bytes a letter takes that is not compressed, at the most."""
    own = len(letter.key or b"") + len(letter.value or b"")
    return _ROOM_BYTES + own + _size(letter.headers)


def _size(headers: Headers) -> int:
    # A character has four bytes at the most, and each length that is written ten.
    return sum(4 * len(name) + len(value or b"") + 20 for name, value in headers)


def cut_letter(letter: NewRecord, limit_bytes: int) -> NewRecord:
    """Return a letter of at most so many bytes: of a message that its topic does not take whole.

    Of the value the beginning is kept, with the size and the hash of the whole; the message's own
    headers are kept if they take at most a quarter, a key if it may be a session's.
    """
    value = letter.value or b""
    own, appended = split_headers(letter.headers)
    if _size(own) > limit_bytes // 4:
        own = ()
    key = letter.key if len(letter.key or b"") <= _LONGEST_KEY_BYTES else None
    digest = hashlib.sha256(value).hexdigest().encode()
    about = ((CUT_SIZE_HEADER, b"%d" % len(value)), (CUT_HASH_HEADER, digest))
    cut = letter._replace(key=key, value=b"", headers=(*own, *appended, *about))
    return cut._replace(value=value[: max(limit_bytes - letter_bytes(cut), 0)])
