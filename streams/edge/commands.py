"""Appends requests to `context.commands`, over any cluster: Kafka, or its twin in memory."""

import asyncio
import contextlib
import secrets
import uuid
from collections.abc import Iterator, Sequence
from typing import Final

from contextgauge.errors import ConfigError, RecordError, RetryError
from contextgauge.partitioner import key_bytes, partition_of
from contextgauge.ports import Cluster, NewRecord, Producer
from schemas.commands import CommandEntry, ThresholdsSet
from streams.codec.commands import write_entry

_ANSWER_S: Final = 10.0
"""A broker acknowledges in milliseconds. A person waits, or a stream of records."""


def new_id() -> str:
    """Return an id for what a person requests: without a cause in the log, it is random."""
    return str(uuid.UUID(bytes=secrets.token_bytes(16), version=4))


class LogCommandSink:
    """A `CommandSink`. It connects when it is first needed, and again after a failure."""

    def __init__(self, cluster: Cluster, topic: str, answer_s: float = _ANSWER_S) -> None:
        self._cluster, self._topic, self._answer_s = cluster, topic, answer_s
        self._producer: Producer | None = None
        self._partitions = 0
        self._turn = asyncio.Lock()

    async def start(self) -> None:
        """Connect. Raises RetryError or ConfigError."""
        async with self._turn:
            await self._connect()

    async def send(self, entries: Sequence[CommandEntry]) -> None:
        """Append entries; see the port."""
        async with self._turn:
            producer = await self._connect()
            try:
                async with asyncio.timeout(self._answer_s):
                    for entry in entries:
                        for record in self._records(entry):
                            await producer.send(record)
                    await producer.flush()
            except TimeoutError:
                await self._disconnect()
                raise RetryError(
                    f"Kafka did not acknowledge within {self._answer_s:.0f} s what was sent to "
                    f"{self._topic}; sending it again is harmless"
                ) from None
            except BaseException:
                await self._disconnect()  # the producer is spent
                raise

    async def stop(self) -> None:
        """Close the connection."""
        async with self._turn:
            await self._disconnect()

    async def _connect(self) -> Producer:
        if self._producer is not None:
            return self._producer
        await self._cluster.start()
        try:
            self._producer = await self._make_producer()
        except BaseException:
            await self._cluster.stop()
            raise
        return self._producer

    async def _make_producer(self) -> Producer:
        counts = await self._cluster.partition_counts([self._topic])
        self._partitions = counts[self._topic] or 0
        if not self._partitions:
            raise ConfigError(f"there is no topic {self._topic}: run `contextgauge topics create`")
        producer = self._cluster.producer()
        await producer.start()
        return producer

    async def _disconnect(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            with contextlib.suppress(RetryError, RecordError):
                await producer.stop()
            await self._cluster.stop()

    def _records(self, entry: CommandEntry) -> Iterator[NewRecord]:
        headers, value = write_entry(entry)
        session_id = session_of(entry)
        if session_id is None:
            for partition in range(self._partitions):
                yield NewRecord(self._topic, partition, None, value, headers)
        else:
            partition = partition_of(session_id, self._partitions)
            yield NewRecord(self._topic, partition, key_bytes(session_id), value, headers)


def session_of(entry: CommandEntry) -> str | None:
    """Return the session of an entry; None for one that every partition gets."""
    data = entry.data
    if isinstance(data, ThresholdsSet):
        return data.name if data.scope == "session" else None
    return data.session_id
