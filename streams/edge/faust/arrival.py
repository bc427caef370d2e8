"""A record as Faust hands it over, which knows of which assignment it is."""

from typing import Any, Final, Protocol

from streams.ports import LogRecord

_CREATE_TIME: Final = 0


class Assignments(Protocol):
    """Who knows which assignment is the present one, and hears what was handled."""

    def is_current(self, generation: object) -> bool:
        """Tell whether the handler has that assignment still."""

    def acknowledge(self, generation: object, partition: int, offset: int) -> None:
        """Hear that a record of an assignment and all before it are handled."""


class FaustArrival:
    """One of Faust's messages, of one assignment."""

    __slots__ = ("_generation", "_stream", "partition", "record")

    def __init__(self, message: Any, stream: Assignments) -> None:  # noqa: ANN401 -- Faust's
        self._stream, self._generation = stream, message.generation_id
        self.partition: int = message.partition
        self.record = LogRecord(
            message.offset,
            round(message.timestamp * 1_000),
            message.key,
            message.value,
            tuple(message.headers or ()),
            message.timestamp_type == _CREATE_TIME,
        )

    def is_current(self) -> bool:
        """Tell whether it is of the assignment that the handler was told of last."""
        return self._stream.is_current(self._generation)

    def release(self) -> None:
        """Drop the bytes."""
        self.record = self.record._replace(key=None, value=None, headers=())

    def acknowledge(self) -> None:
        """Tell the consumer, which commits every second."""
        self._stream.acknowledge(self._generation, self.partition, self.record.offset)
