"""Batches that no client of ours writes, on a real Kafka: they are kept, the rest is derived."""

import base64
import gc
import random
import tracemalloc
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest
import zstandard

from contextgauge.kafka.options import KafkaOptions
from contextgauge.partitioner import partition_of
from contextgauge.units import MIB
from streams.edge.kafka.batches import written_bytes
from streams.edge.kafka.log import KafkaLog
from streams.edge.local_stack.stack import LocalStack
from streams.flow.dead_letters.letters import Letter, letter_of
from streams.ports import started
from tests.flow.derive_kit import DeriveKit, expected, samples
from tests.hostile_batches import WRITERS, batch_of, bomb, damaged, put, record
from tests.patience import PATIENCE_S

MESSAGES = samples(3)[:200]
HALF = len(MESSAGES) // 2


class _KafkaKit(DeriveKit):
    """A kit whose readers unpack a batch to a mebibyte at the most."""

    def __init__(self, address: str, prefix: str, **options: int) -> None:
        self.options = KafkaOptions(address, session_timeout_ms=6_000, **options)  # type: ignore[arg-type]  # sizes
        super().__init__(KafkaLog(self.options), prefix)

    async def put(self, batch: bytes, partition: int = 0) -> int:
        topic = self.config.messages_topic
        return await put(self.options.bootstrap_servers, topic, partition, batch)

    async def letters(self) -> Sequence[Letter]:
        return [letter_of(0, record) for record in await self.dead_letters()]


@pytest.fixture
async def kit(kafka: str, prefix: str) -> AsyncIterator[_KafkaKit]:
    kit = _KafkaKit(kafka, prefix, batch_limit_bytes=MIB)
    await kit.create_topics()
    yield kit
    await kit.log.stop()


@pytest.mark.extended
async def test_batches_of_every_codec_that_hold_too_much_are_kept_as_they_are(
    kit: _KafkaKit,
) -> None:
    await kit.publish(MESSAGES[:HALF])
    batches = [bomb(codec, 40, 64 * 1024) for codec in WRITERS]
    offsets = [await kit.put(batch) for batch in batches]
    await kit.publish(MESSAGES[HALF:])
    await kit.run_until_caught_up()
    assert await kit.events() == expected(MESSAGES)
    letters = await kit.letters()
    origins = [letter.origin for letter in letters if letter.origin is not None]
    assert [(each.offset, each.last_offset) for each in origins] == [
        (offset, offset + 39) for offset in offsets
    ]
    for codec, batch, letter in zip(WRITERS, batches, letters, strict=True):
        assert letter.reason == "batch_too_large"
        assert f"a batch of 40 records in {len(batch):,} bytes ({codec})" in letter.detail
        # But for the base offset and the leader's epoch, which the broker sets.
        assert letter.value[16:] == batch[16:]


async def test_a_batch_that_is_damaged_is_kept_and_the_next_is_derived(kit: _KafkaKit) -> None:
    batch = damaged()
    for partition in range(4):
        await kit.put(batch, partition)
    await kit.publish(MESSAGES)
    await kit.run_until_caught_up()
    assert await kit.events() == expected(MESSAGES)
    letters = await kit.letters()
    assert [letter.reason for letter in letters] == ["batch_damaged"] * 4
    assert all(letter.value[16:] == batch[16:] for letter in letters)


@pytest.mark.extended
async def test_a_large_batch_below_the_limit_is_derived(kafka: str, prefix: str) -> None:
    kit = _KafkaKit(kafka, prefix)
    await kit.create_topics()
    for codec in WRITERS:
        await kit.put(bomb(codec, 400, 64 * 1024), partition_of("s", 4))  # 25 MiB
    figures = await kit.run_until_caught_up()
    assert figures.total("derive_dead_letters") == 0
    assert figures.total("derive_messages") == 4 * 400
    await kit.log.stop()


@pytest.mark.extended
async def test_what_a_disk_did_to_a_batch_is_noticed_and_passed(
    killable_kafka: LocalStack, prefix: str
) -> None:
    kit = _KafkaKit(killable_kafka.services()["kafka"].address, prefix)
    await kit.create_topics()
    await kit.publish(MESSAGES[:HALF])
    mark = b"the words that a disk changes"
    offset = await kit.put(batch_of(record(0, b"s", b'{"x":"' + mark + b'"}'), 1, 0))
    await kit.publish(MESSAGES[HALF:])
    (segment,) = killable_kafka.folder.glob(f"**/{kit.config.messages_topic}-0/*.log")
    place = segment.read_bytes().index(mark)
    with segment.open("r+b") as file:
        file.seek(place)
        file.write(b"T")
    await kit.run_until_caught_up()
    assert await kit.events() == expected(MESSAGES)
    (letter,) = await kit.letters()
    assert letter.reason == "batch_damaged"
    assert letter.detail.endswith("its checksum is wrong")
    assert letter.origin is not None
    assert (letter.origin.offset, letter.origin.last_offset) == (offset, offset)
    assert b"The words that" in letter.value
    await kit.log.stop()


def _large(times: int) -> bytes:
    """Return a message that only a long window compresses: it repeats after four megabytes."""
    block = base64.b64encode(random.Random(1).randbytes(3 * MIB))  # noqa: S311 -- no secret
    return b'{"type":"user","sessionId":"s","x":"' + block * times + b'"}'


@pytest.mark.extended
async def test_a_letter_that_its_topic_does_not_take_is_cut(kafka: str, prefix: str) -> None:
    kit = _KafkaKit(kafka, prefix)
    await kit.create_topics()
    value = _large(5)
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=25, enable_ldm=True)
    content = zstandard.ZstdCompressor(compression_params=parameters).compress(
        record(0, b"s", value)
    )
    offset = await kit.put(batch_of(content, 1, 4))
    await kit.publish(MESSAGES)
    ports = kit.ports

    def with_compression(*arguments: object) -> object:
        given = ports(*arguments)  # type: ignore[arg-type]  # as they come
        return replace(given, written_bytes=lambda letter: written_bytes(kit.options, letter))

    kit.ports = with_compression  # type: ignore[method-assign, assignment]  # as the product's command
    await kit.run_until_caught_up()
    assert await kit.events() == expected(MESSAGES)
    (letter,) = await kit.letters()
    assert letter.reason == "too_large"
    assert letter.key == b"s"
    assert letter.origin is not None
    assert letter.origin.offset == offset
    assert letter.cut is not None
    assert letter.size == len(value)
    assert value.startswith(letter.value)
    assert 9 * MIB < len(letter.value) < 10 * MIB
    await kit.log.stop()


async def test_readers_of_a_partition_hold_only_some_of_what_a_fetch_brought(
    kafka: str, prefix: str
) -> None:
    """Each batch is below the limit; what one fetch brings of them is far above."""
    kit = _KafkaKit(kafka, prefix, fetch_bytes=4 * MIB)
    await kit.create_topics()
    for _ in range(12):
        await kit.put(bomb("zstd", 30, 64 * 1024))
    async with started(kit.log.reader(kit.config.messages_topic, [0])) as reader:
        reader.seek(0, 0)
        position = 0
        while position < 12 * 30:
            batch = await reader.poll(0, 5_000, PATIENCE_S)
            assert 0 < sum(len(one.value or b"") for one in batch.records) < 7 * MIB
            position = batch.position
    await kit.log.stop()


@pytest.mark.extended
async def test_what_was_read_of_them_leaves_the_memory_at_once(kit: _KafkaKit) -> None:
    """Workers collect no cycles, and an error holds its frames, which hold what they unpacked."""
    batches = [bomb(codec, 40, 64 * 1024) for codec in WRITERS]
    await kit.publish(MESSAGES)
    await kit.run_until_caught_up()
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        for _ in range(8):
            for batch in batches:
                await kit.put(batch)
        async with kit.running() as worker:
            await kit.caught_up(worker)
            held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.enable()
    assert held < 8 * MIB  # of 32 that were unpacked
