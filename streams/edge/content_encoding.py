"""Decompresses bodies of HTTP requests, each to at most so many bytes, as batches of Kafka are."""

from typing import Final

from aiokafka.errors import CorruptRecordException

from streams.edge.kafka.unpacking import CODECS, UnpackedTooLargeError, unpack

ENCODINGS: Final = ("gzip", "zstd")
"""What `Content-Encoding` may name."""


class UndecodableError(Exception):
    """The body is not what its encoding writes."""


class DecodedTooLargeError(Exception):
    """The body decompresses to more than the limit."""


def decoded(encoding: str, body: bytes, most: int) -> bytes:
    """Return what a body was compressed from, of at most so many bytes.

    Raises UndecodableError or DecodedTooLargeError.
    """
    try:
        return unpack(CODECS.index(encoding), body, most)
    except UnpackedTooLargeError as error:
        raise DecodedTooLargeError(str(error)) from None
    except CorruptRecordException as error:
        raise UndecodableError(str(error)) from None
