"""The seam to the compiled modules: all that knows whether they are there.

What every message and record passes is written twice: plainly in Python, and in Cython, which the
compiled build has besides (`hatch_build.py`; docs/adr/0023). Both have the functions
of one interface below, and the same results: what a compiled module was not made for, it leaves to
the plain one. Where None is a result, the caller goes the general way.

    interface  compiled        plain
    Hashes     fast_hashes     plain_hashes
    Messages   fast_path       plain_messages
    Batches    record_batches  plain_batches
    Events     event_writer    plain_events

A caller binds what it needs once, as a module's constant: looking it up takes time.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from contextgauge.normalise.usual import UsualMessage

if TYPE_CHECKING:
    from contextgauge.ports import NewRecord
    from streams.compiled.plain_hashes import Distinction
    from streams.compiled.plain_messages import UsualRecord
    from streams.compiled.record_batches import BatchHeader, FetchedRecords


class Hashes(Protocol):
    """BLAKE2b of 8 bytes, searches among such hashes, and records' ids."""

    def text_hash(self, prefix: bytes, text: str, /) -> bytes:
        """Return the hash of a text behind a prefix."""

    def counts_hash(self, input_: int, creation: int, read: int, /) -> bytes:
        """Return the hash of three counts."""

    def is_absent(
        self, tail: bytes, segments: tuple[tuple[bytes, bytes], ...], cause: bytes, /
    ) -> bool:
        """Return whether a hash is neither in the tail nor in a segment, of hashes and a filter."""

    def last_place(self, entries: bytes, entry_bytes: int, key: bytes, /) -> int:
        """Return where the last of the entries that begin with a key begins; -1 without one."""

    def record_id(
        self, session_id: str, chain: str, kind: str, cause: str, extra: "Distinction" = (), /
    ) -> str:
        """Return a record's id."""


class Messages(Protocol):
    """Readers of the messages that come most often."""

    def read(self, value: bytes, /) -> UsualMessage | None:
        """Return what a message says; None where it has to be read in full."""

    def read_record(
        self, records: Sequence[object], index: int, limit_bytes: int, /
    ) -> "UsualRecord | None":
        """Return what a fetched record says, read in place; None: read it as an object."""


class Batches(Protocol):
    """Kafka's record batches, read and written in place."""

    FetchedRecords: "type[FetchedRecords]"
    crc32c: Callable[[bytes | memoryview], int] | None
    """The checksum by the machine's instruction; None without one."""

    def headers_of(self, fetched: bytes) -> "list[BatchHeader] | None":
        """Return what can be read in place; None: the client's own reader has to."""

    def encode(
        self, records: "list[NewRecord]", first: int, limit_bytes: int, now_ms: int
    ) -> tuple[bytes, int, int, int] | None:
        """Return records as a batch has them, the next one's place, first and greatest time.

        None: the client's own writer has to.
        """

    def value_bytes(self, records: Sequence[Any]) -> int:
        """Return how many bytes the values of records have."""


class Events(Protocol):
    """Writers of records."""

    def event_writer(self, write: "WriteEvent", *layout: Any) -> "WriteEvent":  # noqa: ANN401 -- as `EventWriter` takes it
        """Return what writes as `write` does."""


class WriteEvent(Protocol):
    """Returns a derived record as it is written, with its message's offset and Kafka time."""

    def __call__(self, record: Any, key: bytes, offset: int, timestamp_ms: int, /) -> "NewRecord":  # noqa: ANN401 -- a `Record`
        """Return it."""


def hashes() -> Hashes:
    """Return the hashes."""
    module: Hashes = _module("fast_hashes", "plain_hashes")
    return module


def messages() -> Messages:
    """Return the readers of messages."""
    module: Messages = _module("fast_path", "plain_messages")
    return module


def batches() -> Batches:
    """Return the readers and writers of batches."""
    module: Batches = _module("record_batches", "plain_batches")
    return module


def events() -> Events:
    """Return the writers of records."""
    module: Events = _module("event_writer", "plain_events")
    return module


def _module(compiled: str, plain: str) -> Any:  # noqa: ANN401 -- a module
    """Return the compiled module, or the plain one where it is not there or refuses the machine."""
    name = f"{__name__}.{compiled}"
    try:
        return import_module(name)
    except ImportError as error:
        if error.name != name:  # pragma: no cover -- a broken build
            raise
        return import_module(f"{__name__}.{plain}")
