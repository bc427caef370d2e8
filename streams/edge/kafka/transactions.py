"""Writing to Kafka in transactions: one at a time, for the deriver and the control plane.

aiokafka gives no way to learn a batch's offset after a lost reply: the end is unknown then.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple, overload

from aiokafka import AIOKafkaProducer
from aiokafka.errors import ProducerFenced
from aiokafka.structs import RecordMetadata

from contextgauge.errors import RetryError
from contextgauge.kafka.client import UNKNOWN_OFFSET, bounded, close_producer, hand_over
from contextgauge.kafka.diagnosis import connecting
from contextgauge.kafka.options import KafkaOptions
from contextgauge.ports import NewRecord
from streams.edge.kafka.batches import batches_of
from streams.ports import SCATTERED, Approval


class KafkaTransactionalProducer:
    """One producer epoch of a transactional id. After an error of `commit` it is spent."""

    def __init__(self, options: KafkaOptions, transactional_id: str) -> None:
        self._options = options
        self._id = transactional_id
        self._producer: AIOKafkaProducer | None = None
        self._spent = False

    async def start(self) -> None:
        producer = self._producer = AIOKafkaProducer(
            **self._options.connection(),
            client_id=f"{self._options.client_id}-{self._id}",
            transactional_id=self._id,
            transaction_timeout_ms=self._options.transaction_timeout_ms,
            retry_backoff_ms=self._options.retry_backoff_ms,
            max_batch_size=self._options.batch_bytes,
            compression_type=self._options.compression,
            # Batches are made by `batches_of`: there is nothing to wait for.
            linger_ms=0,
        )
        self._spent = True
        doing = f"starting the producer {self._id}"
        async with (
            connecting(self._options, doing),
            bounded(self._options.start_timeout_s, doing),
        ):
            await producer.start()
        self._spent = False

    @overload
    async def commit(self, records: Sequence[NewRecord]) -> Mapping[tuple[str, int], int]: ...

    @overload
    async def commit(
        self, records: Sequence[NewRecord], approve: Approval
    ) -> Mapping[tuple[str, int], int] | None: ...

    async def commit(
        self, records: Sequence[NewRecord], approve: Approval | None = None
    ) -> Mapping[tuple[str, int], int] | None:
        producer = self._producer
        if producer is None or self._spent:
            raise RetryError(f"the producer {self._id} is not started, or spent by an error")
        self._spent = True
        # Spent until it has ended: after an error or a cancellation, the outcome is open.
        async with bounded(self._options.commit_timeout_s, f"committing as {self._id}"):
            ends = await self._commit(producer, records, approve)
        self._spent = False
        return ends

    async def _commit(
        self, producer: AIOKafkaProducer, records: Sequence[NewRecord], approve: Approval | None
    ) -> dict[tuple[str, int], int] | None:
        by_target: dict[tuple[str, int], list[NewRecord]] = {}
        for record in records:
            by_target.setdefault((record.topic, record.partition), []).append(record)
        await producer.begin_transaction()
        # All at once: the coordinator learns of all partitions in one request.
        work = [
            _send_all(producer, self._options, target, items) for target, items in by_target.items()
        ]
        outcomes = await asyncio.gather(*work, return_exceptions=True)
        failures = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        if failures:
            # Being fenced explains all other failures, and demands another reaction.
            raise next((f for f in failures if isinstance(f, ProducerFenced)), failures[0])
        written = {
            target: outcome
            for target, outcome in zip(by_target, outcomes, strict=True)
            if isinstance(outcome, _Written)
        }
        if approve is not None and not await self._approved(written, approve):
            await producer.abort_transaction()
            return None
        await producer.commit_transaction()
        return {target: each.end for target, each in written.items() if each.end is not None}

    async def _approved(
        self, written: Mapping[tuple[str, int], "_Written"], approve: Approval
    ) -> bool:
        known = {
            target: each.first
            for target, each in written.items()
            if each.first is not None and each.end is not None
        }
        if len(known) < len(written):
            raise RetryError(f"a reply to {self._id} was lost: its records' offsets are unknown")
        return await approve(known)

    async def stop(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            await close_producer(producer, abandon=self._spent)


class _Written(NamedTuple):
    """One partition's first offset of a transaction, and its end with the marker to come.

    None where it is not known; SCATTERED where others wrote between the batches.
    """

    first: int | None
    end: int | None


async def _send_all(
    producer: AIOKafkaProducer,
    options: KafkaOptions,
    target: tuple[str, int],
    records: list[NewRecord],
) -> _Written:
    """Write one partition's records; return where they are."""
    acknowledged: list[asyncio.Future[RecordMetadata]] = []
    in_last = 0
    for batch in batches_of(producer, options, records):
        acknowledged.append(await hand_over(producer, batch, target))
        in_last = batch.record_count()
    batches = await asyncio.gather(*map(asyncio.shield, acknowledged))
    first, last = batches[0].offset, batches[-1].offset
    end = None if last == UNKNOWN_OFFSET else last + in_last + 1
    if first == UNKNOWN_OFFSET or end is None:
        return _Written(None, end)
    return _Written(first if end - 1 - first == len(records) else SCATTERED, end)
