"""zstd next to aiokafka's own library: the same content, one error for what is broken."""

import threading
from collections.abc import Callable

import cramjam
import pytest
import zstandard
from aiokafka.errors import CorruptRecordException
from aiokafka.record import default_records
from hypothesis import given
from hypothesis import strategies as st

from streams.edge.kafka import zstd
from streams.edge.kafka.unpacking import LIMIT_BYTES, unpack

ZSTD = 4

CONTENT = b"".join(b"%d: words that come again\n" % number for number in range(9_000))


def unsized(content: bytes) -> bytes:
    """Return a frame that does not contain its size, as Java's library writes it."""
    writing = zstandard.ZstdCompressor().compressobj()
    return writing.compress(content) + writing.flush()


def theirs(payload: bytes) -> bytes | None:
    """Return what aiokafka's own library makes of a payload, None where it refuses it."""
    try:
        return bytes(cramjam.zstd.decompress(payload))
    except cramjam.DecompressionError:
        return None


def ours(payload: bytes) -> bytes | None:
    try:
        return unpack(ZSTD, memoryview(payload), LIMIT_BYTES)
    except CorruptRecordException:
        return None


@pytest.mark.usefixtures("our_parts")
def test_a_batch_of_aiokafka_is_read_by_it() -> None:
    builder = default_records.DefaultRecordBatchBuilder(2, 4, 0, -1, -1, 0, 1 << 20)
    builder.append(0, 5, None, CONTENT, [])
    batch = bytes(builder.build())
    assert theirs(batch[61:]) is not None
    for reader in (default_records.DefaultRecordBatch, default_records._DefaultRecordBatchPy):  # noqa: SLF001 -- the Python form
        (record,) = reader(batch)
        assert record.value == CONTENT
        with pytest.raises(CorruptRecordException):
            list(reader(batch[:-1]))


@given(st.binary(max_size=300))
def test_both_libraries_read_what_the_other_wrote(content: bytes) -> None:
    for payload in (content, bytearray(content), memoryview(content)):
        assert theirs(zstd.compress(payload)) == content
    assert ours(bytes(cramjam.zstd.compress(content, 3))) == content


@given(st.lists(st.tuples(st.binary(max_size=40), st.booleans()), min_size=1, max_size=4))
def test_frames_that_follow_each_other_are_read_as_one(parts: list[tuple[bytes, bool]]) -> None:
    payload = b"".join(
        zstandard.compress(part) if is_sized else unsized(part) for part, is_sized in parts
    )
    assert ours(payload) == b"".join(part for part, _ in parts) == theirs(payload)


@pytest.mark.parametrize("write", [zstd.compress, unsized])
def test_a_frame_that_is_cut_off_is_refused(write: Callable[[bytes], bytes]) -> None:
    payload = write(CONTENT[:400])
    assert ours(payload) == CONTENT[:400]
    for end in range(1, len(payload)):
        assert ours(payload[:end]) is None
        assert ours(payload + payload[:end]) is None
    assert ours(payload + b"x") is None
    assert ours(unsized(CONTENT)) == CONTENT


@pytest.mark.parametrize("write", [zstd.compress, unsized])
def test_a_damaged_frame_is_refused_or_read_as_aiokafka_does(
    write: Callable[[bytes], bytes],
) -> None:
    payload = write(CONTENT[:400])
    for place in range(len(payload)):
        for bit in range(8):
            changed = payload[:place] + bytes((payload[place] ^ 1 << bit,)) + payload[place + 1 :]
            assert ours(changed) == theirs(changed)


@pytest.mark.parametrize("size", [2**63 - 1, 2**40, (64 << 20) + 1, 9])
@pytest.mark.parametrize("block", [b"\x09\x00\x00a", b"\x01\x00\x00"])
def test_a_frame_that_claims_to_hold_more_than_it_does_never_gives_more(
    size: int, block: bytes
) -> None:
    payload = b"\x28\xb5\x2f\xfd\xe0" + size.to_bytes(8, "little") + block
    assert ours(payload) in (None, b"")


def test_threads_do_not_share_what_compresses() -> None:
    failures: list[Exception] = []

    def work() -> None:
        try:
            for _ in range(60):
                assert unpack(ZSTD, zstd.compress(CONTENT), LIMIT_BYTES) == CONTENT
        except Exception as error:  # noqa: BLE001 -- whatever it is
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert failures == []
