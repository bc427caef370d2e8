"""Publishing to Kafka: an idempotent producer that builds its record batches itself."""

import asyncio
import math
from dataclasses import dataclass

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, KafkaTimeoutError
from aiokafka.producer.message_accumulator import BatchBuilder
from aiokafka.structs import RecordMetadata

from contextgauge.kafka.client import UNKNOWN_OFFSET, append, bounded, close_producer, hand_over
from contextgauge.kafka.diagnosis import connecting
from contextgauge.kafka.options import KafkaOptions, translated
from contextgauge.ports import NewRecord

_BATCH_BYTES = 4_096
"""What a batch takes in memory besides its records, about: its task, its lock, its buffer."""


class KafkaProducer:
    """Publishes records in order within a partition, each exactly once (idempotent)."""

    def __init__(self, options: KafkaOptions) -> None:
        self._options = options
        self._producer: AIOKafkaProducer | None = None
        self._open: dict[tuple[str, int], _OpenBatch] = {}
        self._in_flight: set[asyncio.Task[None]] = set()
        self._settled = asyncio.Event()
        self._unacknowledged_bytes = 0
        self._answered_s = 0.0
        self._turns: dict[tuple[str, int], asyncio.Lock] = {}
        self._linger: asyncio.TimerHandle | None = None
        self._failure: BaseException | None = None
        self.acknowledged: dict[tuple[str, int], int] = {}
        """The last offset of each partition that the broker is known to have given."""

    async def start(self) -> None:
        """Connect."""
        self._producer = AIOKafkaProducer(
            **self._options.connection(),
            client_id=f"{self._options.client_id}-publisher",
            enable_idempotence=True,
            max_batch_size=self._options.batch_bytes,
            compression_type=self._options.compression,
            linger_ms=0,
        )
        try:
            doing = "starting the publisher"
            async with (
                connecting(self._options, doing),
                bounded(self._options.start_timeout_s, doing),
            ):
                await self._producer.start()
            # A batch that was given up would leave a hole in the idempotent sequence; there is
            # no option for it.
            self._producer._message_accumulator._batch_ttl = math.inf  # noqa: SLF001 -- as above
        except BaseException:
            await self.stop()
            raise

    @property
    def waiting_s(self) -> float:
        """How long the broker has acknowledged nothing of what it was sent, in seconds."""
        if not self._in_flight:
            return 0.0
        return asyncio.get_running_loop().time() - self._answered_s

    async def send(self, record: NewRecord) -> None:
        """Queue a record; waits while too many bytes are unacknowledged."""
        self._raise_failure()
        while self._unacknowledged_bytes >= self._options.publish_buffer_bytes:
            # What is still open counts too, and would never be acknowledged.
            self._dispatch_all()
            await self._settle()
        target = (record.topic, record.partition)
        opened = self._open.get(target) or self._begin_batch(target)
        size = append(opened.builder, record)
        if not size:
            self._dispatch(target)
            opened = self._begin_batch(target)
            size = append(opened.builder, record)
        self._count(opened, size)
        if self._linger is None:
            self._linger = asyncio.get_running_loop().call_later(
                self._options.publish_linger_ms / 1000, self._dispatch_all
            )

    async def flush(self) -> None:
        """Wait until all that was queued is acknowledged; raises what failed."""
        self._dispatch_all()
        while self._in_flight:
            await self._settle()
        self._raise_failure()

    async def stop(self) -> None:
        """Close. What was not flushed is dropped."""
        if self._linger is not None:
            self._linger.cancel()
        unfinished = bool(self._open or self._in_flight)
        delivering = list(self._in_flight)
        for task in delivering:
            task.cancel()
        await asyncio.gather(*delivering, return_exceptions=True)
        producer, self._producer = self._producer, None
        if producer is not None:
            await close_producer(producer, abandon=unfinished or self._failure is not None)

    def _started(self) -> AIOKafkaProducer:
        if self._producer is None:
            raise RuntimeError("the publisher is not started")
        return self._producer

    def _raise_failure(self) -> None:
        if self._failure is not None:
            with translated("publishing"):
                raise self._failure

    def _dispatch_all(self) -> None:
        if self._linger is not None:
            self._linger.cancel()
            self._linger = None
        for target in list(self._open):
            self._dispatch(target)

    def _begin_batch(self, target: tuple[str, int]) -> "_OpenBatch":
        opened = self._open[target] = _OpenBatch(self._started().create_batch())
        self._count(opened, _BATCH_BYTES)
        return opened

    def _count(self, opened: "_OpenBatch", size: int) -> None:
        opened.size += size
        self._unacknowledged_bytes += size

    def _dispatch(self, target: tuple[str, int]) -> None:
        """Hand a partition's open batch over. Tasks start, and so send, in their order."""
        opened = self._open.pop(target)
        opened.builder.close()
        if not self._in_flight:
            self._answered_s = asyncio.get_running_loop().time()
        task = asyncio.create_task(self._deliver(opened.builder, target))
        self._in_flight.add(task)

        def settle(done: asyncio.Task[None]) -> None:
            self._in_flight.discard(done)
            self._unacknowledged_bytes -= opened.size
            self._settled.set()

        task.add_done_callback(settle)

    async def _deliver(self, builder: BatchBuilder, target: tuple[str, int]) -> None:
        try:
            # aiokafka lets the batches that wait for a place pass each other; the lock is fair.
            async with self._turns.setdefault(target, asyncio.Lock()):
                acknowledged = await self._place(builder, target)
            metadata = await asyncio.shield(acknowledged)
            if metadata.offset != UNKNOWN_OFFSET:
                self.acknowledged[target] = max(metadata.offset, self.acknowledged.get(target, 0))
            self._answered_s = asyncio.get_running_loop().time()
        except (KafkaError, OSError) as error:
            self._failure = self._failure or error

    async def _place(
        self, builder: BatchBuilder, target: tuple[str, int]
    ) -> asyncio.Future[RecordMetadata]:
        """Give a batch to aiokafka, however long the one before it takes."""
        while True:
            try:
                return await hand_over(self._started(), builder, target)
            except KafkaTimeoutError:
                continue  # nothing of it was taken

    async def _settle(self) -> None:
        """Wait until any batch in flight is acknowledged; raises what failed."""
        self._settled.clear()
        await self._settled.wait()
        self._raise_failure()


@dataclass(slots=True)
class _OpenBatch:
    """A batch that still takes records, and the memory that it is counted with."""

    builder: BatchBuilder
    size: int = 0
