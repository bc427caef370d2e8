"""What files hold, plain or compressed: the same bytes at the same places, in bounded memory."""

import os
import tracemalloc
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from streams.edge.files import content as content_module
from streams.edge.files import tail
from streams.edge.files.content import Content, DamagedError
from streams.edge.files.opening import lines_in, open_content, read_whole
from streams.edge.files.positions import Position
from streams.edge.files.tail import FileTail
from streams.edge.files.watch import source_of
from tests.edge.follower_kit import compressed

MIB = 1 << 20


@contextmanager
def opened(path: Path) -> Iterator[Content]:
    with closing(open_content(str(path))) as content:
        yield content


def lines_of(path: Path, *, final: bool = True) -> tuple[list[tuple[int, bytes, int]], Position]:
    """Return all lines of a file with their numbers and sizes, and the position after them."""
    status = path.stat()
    tail_ = FileTail(source_of(str(path)), Position("", status.st_dev, status.st_ino), None)
    tail_.size = status.st_size
    try:
        pieces = list(tail_.pieces(0.0, final=final))
        lines = [(line.number, line.value, line.size) for piece in pieces for line in piece.lines]
        return lines, tail_.read
    finally:
        tail_.close()


@given(
    value=st.binary(max_size=6_000),
    frames=st.integers(1, 4),
    places=st.lists(st.tuples(st.integers(0, 6_500), st.integers(0, 6_500)), max_size=12),
)
def test_a_compressed_file_holds_the_same_bytes_at_the_same_places(
    tmp_path_factory: pytest.TempPathFactory,
    value: bytes,
    frames: int,
    places: list[tuple[int, int]],
) -> None:
    path = tmp_path_factory.mktemp("content") / "a.jsonl.zst"
    path.write_bytes(compressed(value, frames))
    with opened(path) as content:
        assert content.is_measured
        for offset, size in places:
            assert content.read(size, offset) == value[offset : offset + size]
        assert (content.size(), content.damage) == (len(value), None)


@pytest.mark.parametrize("name", ["a.jsonl.zst", "renamed.jsonl"])
def test_a_compressed_file_is_known_by_its_beginning_too(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(compressed(b"{}\n"))
    assert list(lines_in(str(tmp_path / name))) == [b"{}"]


def test_frames_to_skip_hold_nothing(tmp_path: Path) -> None:
    skipped = (0x184D2A50).to_bytes(4, "little") + (5).to_bytes(4, "little") + b"hello"
    path = tmp_path / "a.jsonl.zst"
    path.write_bytes(skipped + compressed(b"1\n") + skipped + compressed(b"2\n"))
    assert read_whole(str(path)) == b"1\n2\n"


@given(value=st.binary(min_size=1, max_size=4_000), frames=st.integers(1, 3), data=st.data())
def test_what_is_cut_off_is_read_up_to_there(
    tmp_path_factory: pytest.TempPathFactory, value: bytes, frames: int, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("content") / "a.jsonl.zst"
    whole = compressed(value, frames)
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
    with opened(path) as content:
        size = content.size()
        assert content.read(len(value), 0) == value[:size]
        # Between two frames nothing shows that another one followed.
        assert content.damage is not None or size < len(value)


@given(value=st.binary(min_size=300, max_size=4_000), data=st.data())
def test_what_is_damaged_is_read_up_to_there_and_never_otherwise(
    tmp_path_factory: pytest.TempPathFactory, value: bytes, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("content") / "a.jsonl.zst"
    first, second = compressed(b"first\n"), bytearray(compressed(value))
    second[data.draw(st.integers(4, len(second) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(first + second)
    with opened(path) as content:
        assert content.read(6, 0) == b"first\n"
        assert content.read(len(value) + 6, 0)[: content.size()][:6] == b"first\n"
        if content.damage is None:
            # A bit of a frame's header that means nothing to what it holds.
            assert read_whole(str(path)) == b"first\n" + value


@pytest.mark.parametrize("value", [b"no zstd", b"\x28\xb5", b"{}\n" * 1_000])
def test_a_file_that_is_only_named_compressed_is_damaged(tmp_path: Path, value: bytes) -> None:
    path = tmp_path / "a.jsonl.zst"
    path.write_bytes(value)
    with pytest.raises(DamagedError, match="after 0 bytes of content"):
        lines_of(path)


def test_lines_numbers_sizes_and_the_position_are_those_of_the_plain_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "_BLOCK_BYTES", 64)
    monkeypatch.setattr(tail, "HELD_LINE_BYTES", 300)
    monkeypatch.setattr(content_module, "HELD_LINE_BYTES", 300)
    lengths = [0, 1, 10, 63, 64, 65, 200, 299, 300, 301, 1_000, 5_000, 7]
    value = b"".join(b"%d" % (n % 10) * n + b"\n" for n in lengths) + b"without an end"
    plain, packed = tmp_path / "a.jsonl", tmp_path / "a.jsonl.zst"
    plain.write_bytes(value)
    packed.write_bytes(compressed(value, 3))
    lines, position = lines_of(plain)
    assert len(lines) == len(lengths) + 1
    unpacked, after = lines_of(packed)
    assert unpacked == lines
    assert after._replace(inode=0) == position._replace(inode=0)


def test_long_lines_are_decompressed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "_BLOCK_BYTES", 1_000)
    value = b"".join(os.urandom(5_000).hex().encode() + b"\n" for _ in range(40))
    path = tmp_path / "a.jsonl.zst"
    path.write_bytes(compressed(value))
    begun = []
    really = os.pread

    def counted(descriptor: int, size: int, at: int) -> bytes:
        begun.append(at) if at == 0 and size > 4 else None
        return really(descriptor, size, at)

    monkeypatch.setattr(os, "pread", counted)
    lines, _ = lines_of(path)
    assert len(lines) == 40
    # To be measured, to be searched for what it is, twice, and to be read.
    assert len(begun) <= 4


@pytest.mark.extended
def test_gigabytes_from_a_few_bytes_take_megabytes(tmp_path: Path) -> None:
    """One line without an end, and many small ones, each of a gigabyte."""
    gigabyte = zstandard.ZstdCompressor(level=3).compressobj(size=1 << 30)
    block = bytes(MIB)
    packed = b"".join(gigabyte.compress(block) for _ in range(1_024)) + gigabyte.flush()
    assert len(packed) < MIB // 16
    path = tmp_path / "bomb.jsonl.zst"
    path.write_bytes(packed)
    tracemalloc.start()
    try:
        with opened(path) as content:
            assert content.size() == 1 << 30
            assert content.read(10, (1 << 30) - 10) == bytes(10)
        with pytest.raises(OSError, match="decompress it first"):
            read_whole(str(path))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 * MIB


def test_a_frame_that_asks_for_too_much_memory_is_refused(tmp_path: Path) -> None:
    settings = zstandard.ZstdCompressionParameters(window_log=30)
    packer = zstandard.ZstdCompressor(compression_params=settings).compressobj()
    path = tmp_path / "a.jsonl.zst"
    path.write_bytes(packer.compress(b"{}\n") + packer.flush())
    with opened(path) as content:
        assert content.size() == 0
        assert "damaged after 0 bytes" in str(content.damage)


def test_a_file_that_is_cut_off_is_not_read_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.zst"
    path.write_bytes(compressed(os.urandom(3_000))[:-10])
    with pytest.raises(DamagedError, match="cut off after"):
        read_whole(str(path))


def test_a_folder_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[int] = []
    really_close = os.close

    def close(number: int) -> None:
        closed.append(number)
        really_close(number)

    monkeypatch.setattr(os, "close", close)
    with pytest.raises(IsADirectoryError):
        open_content(str(tmp_path))
    assert len(closed) == 1
