"""The end of a session's messages in `agent.messages`, beyond what is known of it."""

from collections.abc import Iterator, Sequence
from typing import Final

from contextgauge import json_codec
from contextgauge.errors import PositionError
from contextgauge.normalise import session_of
from contextgauge.partitioner import key_bytes
from schemas.records import Json
from streams.core.conversation.fold import ConversationFold
from streams.flow.common.unreadable import poll_past
from streams.flow.derive.deriver import text_of
from streams.ports import LogRecord, PartitionReader

_RECORDS: Final = 2_000
_WAIT_S: Final = 0.5

Line = dict[str, Json]


def lines_of(records: Sequence[LogRecord], session_id: str) -> Iterator[tuple[int, Line]]:
    """Yield a session's messages, each with its offset: by their own id, else by their key (R1)."""
    key = key_bytes(session_id)
    # How the id is written where it is not in plain ASCII is the publisher's choice.
    plain = session_id.encode() if session_id.isascii() and session_id.isprintable() else b""
    for record in records:
        value = record.value or b""
        if record.key != key and plain not in value:
            continue
        try:
            line = json_codec.loads(value)
        except ValueError:
            continue
        if isinstance(line, dict) and session_of(line, text_of(record.key)) == session_id:
            yield record.offset, line


class MessageTail:
    """Reads one session's messages of a partition, from a position on, into its conversation."""

    def __init__(
        self, reader: PartitionReader, partition: int, session_id: str, fold: ConversationFold
    ) -> None:
        self._reader, self._partition, self._session_id = reader, partition, session_id
        self.fold = fold
        self._position = fold.result.position
        reader.seek(partition, self._position)

    async def read(self, until: int) -> None:
        """Read everything before an offset. Raises RetryError, or PositionError."""
        if until < self._position:
            raise PositionError(
                f"the log ends at {until}, before {self._position}: the topic was deleted and "
                "created again, or lost its end"
            )
        while self._position < until:
            await self.wait(_WAIT_S)

    async def wait(self, wait_s: float) -> None:
        """Read what is there next, or comes within that time. Raises RetryError."""
        records, self._position = await poll_past(self._reader, self._partition, _RECORDS, wait_s)
        for offset, line in lines_of(records, self._session_id):
            self.fold.add(line, offset)
