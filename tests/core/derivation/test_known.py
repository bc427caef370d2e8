"""The causes that a session knows (R4): how many, how long, and as they are stored."""

import hashlib
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextgauge.normalise.signals import Usage
from streams.core.derivation import known_causes as known
from streams.core.derivation import responses
from streams.core.derivation.known_causes import (
    CHUNK,
    HASH_BYTES,
    KEPT,
    NOTHING_KNOWN,
    RECENT,
    SEGMENT,
    SLOTS,
    STEP,
    KnownCauses,
)


def cause(number: int) -> bytes:
    return number.to_bytes(HASH_BYTES, "big")


def with_causes(numbers: Iterable[int], before: KnownCauses = NOTHING_KNOWN) -> KnownCauses:
    for number in numbers:
        before = known.add(before, cause(number))
    return before


def ring(stored: dict[int, tuple[int, bytes]]) -> dict[int, bytes]:
    """The chunks by number, as the slots of the ring hold them, stale ones too."""
    return dict(stored.values())


def read_back(seen: KnownCauses, stored: dict[int, tuple[int, bytes]]) -> KnownCauses:
    """The causes as they are read back from the chunks and the newest."""
    return known.from_chunks(seen.boundaries, seen.added, known.recent(seen), ring(stored))


def test_a_cause_is_known_by_8_bytes_of_its_hash() -> None:
    expected = hashlib.blake2b(b"some-uuid", digest_size=8).digest()
    assert known.cause_hash("some-uuid") == expected
    assert len(known.cause_hash("\ud800")) == HASH_BYTES == 8


@pytest.mark.parametrize("added", [1, 511, 512, 513, 4_095, 4_096, 4_097, 4_500, 4_608, 9_999])
def test_exactly_the_last_4096_are_known(added: int) -> None:
    causes = with_causes(range(added))
    first_kept = max(added - KEPT, 0)
    assert causes.added == added
    assert all(known.is_known(causes, cause(number)) for number in range(first_kept, added))
    assert not any(known.is_known(causes, cause(number)) for number in range(first_kept))
    assert not known.is_known(causes, cause(added))
    assert KEPT == 4_096


def test_a_forgotten_cause_is_known_once_it_is_added_again() -> None:
    causes = with_causes([*range(KEPT + 200), 0])
    assert known.is_known(causes, cause(0))
    assert known.is_known(causes, cause(KEPT + 199))


def test_boundaries_are_known_for_life() -> None:
    causes = known.add_boundary(NOTHING_KNOWN, cause(1 << 40))
    causes = with_causes(range(3 * KEPT), known.add_boundary(causes, cause(1 << 41)))
    assert known.is_known(causes, cause(1 << 40))
    assert known.is_known(causes, cause(1 << 41))
    assert causes.added == 3 * KEPT


def test_the_last_4096_boundaries_are_known_and_a_repeated_one_as_long_as_a_new_one() -> None:
    causes = NOTHING_KNOWN
    for number in range(KEPT):
        causes = known.add_boundary(causes, cause(number))
    assert known.refresh(causes, cause(KEPT - 1)) is causes
    causes = known.refresh(causes, cause(0))
    for number in range(KEPT, 2 * KEPT - 1):
        causes = known.add_boundary(causes, cause(number))
    assert known.is_known(causes, cause(0))
    assert known.is_known(causes, cause(KEPT))
    assert not any(known.is_known(causes, cause(number)) for number in range(1, KEPT))
    assert len(causes.boundaries) == KEPT * HASH_BYTES
    assert causes.added == 0


def test_old_causes_that_share_a_filter_bit_are_distinguished() -> None:
    causes = with_causes(range(0, KEPT << 16, 1 << 16))
    assert known.is_known(causes, cause(3 << 16))
    assert not known.is_known(causes, cause((KEPT + 3) << 16))


def test_a_repeated_cause_is_known_as_long_as_a_new_one() -> None:
    causes = with_causes(range(100))
    causes = with_causes(range(100, KEPT), known.refresh(causes, cause(0)))
    causes = with_causes(range(KEPT, KEPT + 99), causes)
    assert known.is_known(causes, cause(0))
    assert not known.is_known(causes, cause(1))


def test_the_latest_cause_and_a_boundary_are_not_added_again() -> None:
    causes = known.add_boundary(with_causes(range(9)), cause(99))
    assert known.refresh(causes, cause(8)) is causes
    assert known.refresh(causes, cause(99)) is causes
    assert known.refresh(causes, cause(7)).added == 10


def test_hashes_are_found_at_their_places_only() -> None:
    left, right, across = b"AAAABBBB", b"CCCCDDDD", b"BBBBCCCC"
    causes = known.add(known.add(NOTHING_KNOWN, left), right)
    assert not known.is_known(causes, across)
    assert known.is_known(known.add(causes, across), across)
    bounds = known.add_boundary(known.add_boundary(NOTHING_KNOWN, left), right)
    assert not known.is_known(bounds, across)


def test_hashes_are_found_at_their_places_in_old_segments_too() -> None:
    causes = NOTHING_KNOWN
    for told in (b"BBBBCCCC", b"AAAABBBB", b"CCCCDDDD"):
        causes = known.add(causes, told)
    causes = with_causes(range(KEPT - 3), causes)
    assert known.is_known(causes, b"BBBBCCCC")
    causes = with_causes([KEPT], causes)
    assert not known.is_known(causes, b"BBBBCCCC")
    assert known.is_known(causes, b"AAAABBBB")


def test_nothing_added_is_nothing_stored() -> None:
    assert known.chunks(NOTHING_KNOWN, NOTHING_KNOWN) == {}
    causes = with_causes(range(5))
    assert known.chunks(causes, known.add_boundary(causes, cause(9))) == {}
    assert known.from_chunks(b"", 0, b"", {}) == NOTHING_KNOWN


def test_a_batch_stores_the_chunks_that_grew() -> None:
    before = with_causes(range(CHUNK + 3))
    after = with_causes(range(CHUNK + 3, 2 * CHUNK + RECENT + 1), before)
    found = known.chunks(before, after)
    assert {number: len(hashes) // HASH_BYTES for number, hashes in found.values()} == {
        1: CHUNK,
        2: RECENT,
    }
    assert known.recent(after) == cause(2 * CHUNK + RECENT)


def test_the_newest_causes_change_no_chunk() -> None:
    before = with_causes(range(CHUNK))
    after = with_causes(range(CHUNK, CHUNK + RECENT - 1), before)
    assert known.chunks(before, after) == {}
    assert len(known.recent(after)) == (RECENT - 1) * HASH_BYTES
    full = with_causes([0], after)
    assert len(known.chunks(after, full)) == 1
    assert known.recent(full) == b""


def test_an_oversized_batch_stores_no_more_than_the_ring_holds() -> None:
    found = known.chunks(NOTHING_KNOWN, with_causes(range(3 * KEPT + 17)))
    assert len(found) == SLOTS
    assert all(0 <= slot < SLOTS for slot in found)


@given(
    st.lists(st.integers(1, 700), min_size=1, max_size=25),
    st.lists(st.booleans(), min_size=25, max_size=25),
)
def test_stored_causes_equal_the_known_ones_for_any_batching(
    batches: list[int], restarts: list[bool]
) -> None:
    stored: dict[int, tuple[int, bytes]] = {}
    causes, added = NOTHING_KNOWN, 0
    for size, restart in zip(batches, restarts, strict=False):
        after = with_causes(range(added, added + size), causes)
        stored |= known.chunks(causes, after)
        added += size
        causes = read_back(after, stored) if restart else after
    restored = read_back(causes, stored)
    plain = with_causes(range(added))
    oldest = max(added - KEPT, 0)
    some = range(oldest, added, 29)
    for number in (*range(max(oldest - 70, 0), oldest + 70), *some, added - 1, added):
        expected = known.is_known(plain, cause(number))
        assert known.is_known(causes, cause(number)) == expected
        assert known.is_known(restored, cause(number)) == expected
    assert len(stored) <= SLOTS


def layout(seen: KnownCauses) -> tuple[list[int], int]:
    """Return how many hashes the segments have that cannot have been cut, and the tail."""
    whole = [len(segment.ordered) // HASH_BYTES for segment in seen.segments]
    return whole[-8:], len(seen.tail) // HASH_BYTES


@pytest.mark.parametrize("added", [1, 63, 64, 65, 500, 511, 512, 513, 4_096, 4_100, 5_120, 5_555])
def test_a_restored_memory_grows_like_the_original(added: int) -> None:
    seen = with_causes(range(added))
    restored = read_back(seen, known.chunks(NOTHING_KNOWN, seen))
    assert layout(restored) == layout(seen)
    for more in (1, 63, 64, 300, 700, 3_500):
        numbers = range(added, added + more)
        seen, restored = with_causes(numbers, seen), with_causes(numbers, restored)
        added += more
        assert layout(restored) == layout(seen)
        assert len(seen.tail) < STEP * HASH_BYTES
        assert len(restored.segments) <= KEPT // SEGMENT + 1
        for number in (added - 1, added - 65, added - 513, added - 4_096, added - 4_097):
            if number >= 0:
                assert known.is_known(restored, cause(number)) == (added - KEPT <= number)


def test_stale_slots_of_the_ring_are_not_read() -> None:
    causes = with_causes(range(2 * KEPT))
    stored = ring(known.chunks(NOTHING_KNOWN, causes))
    stored[3] = b"stale".ljust(CHUNK * HASH_BYTES)
    restored = known.from_chunks(cause(77), causes.added, known.recent(causes), stored)
    assert known.is_known(restored, cause(77))
    assert known.is_known(restored, cause(2 * KEPT - 1))
    assert not known.is_known(restored, cause(3 * CHUNK))


def test_chunks_that_do_not_fit_together_are_refused() -> None:
    causes = with_causes(range(215))
    stored, newest = ring(known.chunks(NOTHING_KNOWN, causes)), known.recent(causes)
    assert len(newest) == 7 * HASH_BYTES
    with pytest.raises(ValueError, match="missing"):
        known.from_chunks(b"", 215, newest, {key: told for key, told in stored.items() if key != 1})
    with pytest.raises(ValueError, match="missing"):
        known.from_chunks(b"", 300, newest, stored)
    with pytest.raises(ValueError, match="end elsewhere"):
        known.from_chunks(b"", 216, newest, stored)
    with pytest.raises(ValueError, match="end elsewhere"):
        known.from_chunks(b"", 215, newest[HASH_BYTES:], stored)
    with pytest.raises(ValueError, match="end elsewhere"):
        known.from_chunks(b"", 215, newest, stored | {1: stored[1][:-HASH_BYTES]})


@pytest.mark.parametrize("added", [1, 15, 16, 63, 64, 70, 203, KEPT + 5])
def test_what_version_3_stored_in_chunks_is_read(added: int) -> None:
    """It stored the newest in chunks too; a chunk that did not grow since has them still."""
    causes = with_causes(range(added))
    up_to = with_causes(range(-(-added // RECENT) * RECENT))
    stored = ring(known.chunks(NOTHING_KNOWN, up_to))
    stored[(added - 1) // CHUNK] = stored[(added - 1) // CHUNK][: ((added - 1) % CHUNK + 1) * 8]
    assert known.from_chunks(b"", added, b"", stored) == read_back(
        causes, known.chunks(NOTHING_KNOWN, causes)
    )
    if more := -added % RECENT:
        after = with_causes(range(added, added + more - 1), causes)
        assert known.from_chunks(b"", after.added, known.recent(after), stored) == read_back(
            after, known.chunks(NOTHING_KNOWN, after)
        )


def memory_of(*names: str) -> bytes:
    memory, added = b"", 0
    for name in names:
        key = responses.key_hash(name, "")
        counts = responses.counts_hash(Usage(1, None, 3))
        memory, added = responses.remember(memory, added, key, (counts, None, responses.READ_MARK))
    assert added == len(names)
    return memory


@pytest.mark.parametrize("added", [31, 32, 33, 39, 40, 41, 64, 71, 100])
def test_the_last_32_responses_are_remembered(added: int) -> None:
    memory = memory_of(*(f"r{number}" for number in range(added)))
    for number in range(added):
        is_known = responses.find(memory, responses.key_hash(f"r{number}", "")) is not None
        assert is_known == (number >= added - responses.KEPT)
    assert responses.is_whole(memory, added)
    assert not responses.is_whole(memory[25:], added)


def test_a_forgotten_response_that_comes_again_is_the_newest() -> None:
    memory = memory_of(*(f"r{number}" for number in range(39)))
    key, again = responses.key_hash("r0", ""), (responses.NOT_COUNTED, None, 2)
    memory, added = responses.remember(memory, 39, key, again)
    assert (added, responses.find(memory, key)) == (40, again)


def test_what_is_stored_of_the_older_responses_seldom_changes() -> None:
    parts = []
    for added in range(1, 81):
        memory = memory_of(*(f"r{number}" for number in range(added)))
        older, newest = responses.parted(memory, added)
        assert older + newest == memory
        assert responses.count(newest) == added % responses.RECENT
        parts.append(older)
    assert [responses.count(part) for part in parts[7::8]] == [8, 16, 24, *[32] * 7]
    assert len(set(parts)) == 1 + 80 // responses.RECENT


def test_an_updated_response_is_remembered_once() -> None:
    memory = memory_of("a", "b")
    key = responses.key_hash("a", "")
    assert responses.find(memory, key) is not None
    changed = responses.counts_hash(Usage(7, 8, 9)), 11, 5
    again, added = responses.remember(memory, 2, key, changed)
    assert added == 2
    assert len(again) == len(memory)
    assert responses.find(again, key) == changed


def test_a_response_is_found_at_its_place_only() -> None:
    key = responses.key_hash("sought", "")
    disguised = (key, None, 8)
    memory, _ = responses.remember(b"", 0, b"8 bytes!", disguised)
    assert responses.find(memory, key) is None
    own = (responses.NOT_COUNTED, None, 1)
    memory, _ = responses.remember(memory, 1, key, own)
    memory, _ = responses.remember(memory, 2, b"another!", disguised)
    assert responses.find(memory, key) == own
    assert responses.remember(memory, 3, key, own) == (memory, 3)


def test_a_response_without_a_key_is_its_messages() -> None:
    assert responses.key_hash(None, "cause-1") != responses.key_hash(None, "cause-2")
    assert responses.key_hash("id", "cause-1") == responses.key_hash("id", "cause-2")
    assert responses.key_hash(None, "x") != responses.key_hash("x", "y")
