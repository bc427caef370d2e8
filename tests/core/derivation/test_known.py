"""The causes that a session knows (R4): how many, how long, and as they are stored."""

import hashlib
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextgauge.normalise.signals import Usage
from streams.core.derivation import known_causes as known
from streams.core.derivation import responses
from streams.core.derivation.known_causes import (
    BLOCK,
    CHUNK,
    HASH_BYTES,
    KEPT,
    NOTHING_KNOWN,
    RECENT,
    SEGMENT,
    STEP,
    KnownCauses,
)
from tests.core.derivation.state_kit import cause, held, with_causes


@cache
def full() -> KnownCauses:
    """The first state in which causes have left."""
    return with_causes(range(KEPT + BLOCK))


def read_back(seen: KnownCauses, stored: dict[int, bytes]) -> KnownCauses:
    """The causes as they are read back from the chunks and the newest."""
    newest = known.recent(seen)
    return known.from_chunks(seen.added, seen.first, newest, stored)


def test_a_cause_is_known_by_8_bytes_of_its_hash() -> None:
    expected = hashlib.blake2b(b"some-uuid", digest_size=8).digest()
    assert known.cause_hash("some-uuid") == expected
    assert len(known.cause_hash("\ud800")) == HASH_BYTES == 8


@pytest.mark.parametrize("added", [1, 63, 64, 511, 512, 513, 4_096, 4_097, 9_999, 20_000])
def test_all_causes_of_a_session_are_known(added: int) -> None:
    causes = with_causes(range(added))
    assert causes.added == added
    assert causes.first == 0
    assert all(known.is_known(causes, cause(number)) for number in range(added))
    assert not any(known.is_known(causes, cause(number)) for number in range(added, added + 3_000))


def test_of_more_than_262144_the_oldest_leave_by_blocks() -> None:
    causes = full()
    assert KEPT == 262_144
    assert causes.first == BLOCK
    assert len(held(causes)) == KEPT * HASH_BYTES
    assert not any(known.is_known(causes, cause(number)) for number in range(BLOCK))
    assert all(known.is_known(causes, cause(number)) for number in range(BLOCK, 2 * BLOCK))
    causes = with_causes(range(KEPT + BLOCK, KEPT + 2 * BLOCK - 1), causes)
    assert known.is_known(causes, cause(BLOCK))
    causes = with_causes([KEPT + 2 * BLOCK - 1], causes)
    assert not known.is_known(causes, cause(2 * BLOCK - 1))
    assert known.is_known(causes, cause(2 * BLOCK))
    # A look-up stays short.
    assert len(causes.segments) <= KEPT // BLOCK + 3 * BLOCK // SEGMENT


def test_a_repeated_cause_that_would_leave_soon_is_known_as_long_as_a_new_one() -> None:
    causes = full()
    assert known.refresh(causes, cause(KEPT)) is causes
    assert known.refresh(with_causes(range(9)), cause(0)).added == 9
    causes = known.refresh(causes, cause(BLOCK))
    assert causes.added == KEPT + BLOCK + 1
    causes = with_causes(range(2 * KEPT, 2 * KEPT + BLOCK), causes)
    assert known.is_known(causes, cause(BLOCK))
    assert not known.is_known(causes, cause(BLOCK + 1))


def test_old_causes_that_share_a_filter_bit_are_distinguished() -> None:
    causes = NOTHING_KNOWN
    for number in range(2 * BLOCK):
        causes = known.add(causes, (number << 16).to_bytes(HASH_BYTES, "big"))
    assert known.is_known(causes, (3 << 16).to_bytes(HASH_BYTES, "big"))
    assert not known.is_known(causes, ((2 * BLOCK + 3) << 16).to_bytes(HASH_BYTES, "big"))


def test_hashes_are_found_at_their_places_only() -> None:
    left, right, across = b"AAAABBBB", b"CCCCDDDD", b"BBBBCCCC"
    causes = known.add(known.add(NOTHING_KNOWN, left), right)
    assert not known.is_known(causes, across)
    assert known.is_known(known.add(causes, across), across)
    old = with_causes(range(3 * BLOCK), causes)
    assert known.is_known(old, left)
    assert not known.is_known(old, across)


def test_nothing_added_is_nothing_stored() -> None:
    assert known.chunks(NOTHING_KNOWN, NOTHING_KNOWN) == {}
    assert known.from_chunks(0, 0, b"", {}) == NOTHING_KNOWN


def test_a_batch_stores_the_chunks_that_grew() -> None:
    before = with_causes(range(CHUNK + 3))
    after = with_causes(range(CHUNK + 3, 2 * CHUNK + RECENT + 1), before)
    chunks = known.chunks(before, after)
    assert {number: len(hashes) // HASH_BYTES for number, hashes in chunks.items()} == {
        1: CHUNK,
        2: RECENT,
    }
    assert known.recent(after) == cause(2 * CHUNK + RECENT)
    assert list(known.left_chunks(before, after)) == []


def test_the_newest_causes_change_no_chunk() -> None:
    before = with_causes(range(CHUNK))
    after = with_causes(range(CHUNK, CHUNK + RECENT - 1), before)
    assert known.chunks(before, after) == {}
    assert len(known.recent(after)) == (RECENT - 1) * HASH_BYTES
    full = with_causes([0], after)
    assert len(known.chunks(after, full)) == 1
    assert known.recent(full) == b""


def test_chunks_whose_causes_left_are_deleted() -> None:
    before = with_causes(range(1_000))
    stored = known.chunks(NOTHING_KNOWN, before) | known.chunks(before, full())
    left = known.left_chunks(before, full())
    assert list(left) == list(range(BLOCK // CHUNK))
    rest = {number: hashes for number, hashes in stored.items() if number not in left}
    assert held(read_back(full(), rest)) == held(full())
    # One batch may add more than is held.
    assert min(known.chunks(NOTHING_KNOWN, full())) == BLOCK // CHUNK


@pytest.mark.extended
@given(
    st.lists(st.integers(1, 3_000), min_size=1, max_size=12),
    st.lists(st.booleans(), min_size=12, max_size=12),
)
def test_stored_causes_equal_the_known_ones_for_any_batching(
    batches: list[int], restarts: list[bool]
) -> None:
    stored: dict[int, bytes] = {}
    causes, added = NOTHING_KNOWN, 0
    for size, restart in zip(batches, restarts, strict=False):
        after = with_causes(range(added, added + size), causes)
        stored |= known.chunks(causes, after)
        added += size
        causes = read_back(after, stored) if restart else after
    assert held(causes) == held(read_back(causes, stored)) == held(with_causes(range(added)))
    for number in (*range(0, added, 29), added - 1):
        assert known.is_known(causes, cause(number))
    assert not any(known.is_known(causes, cause(number)) for number in range(added, added + 200))
    assert len(causes.tail) < STEP * HASH_BYTES


def test_chunks_that_do_not_fit_together_are_refused() -> None:
    causes = with_causes(range(215))
    stored, newest = known.chunks(NOTHING_KNOWN, causes), known.recent(causes)
    assert len(newest) == 7 * HASH_BYTES
    one_less = {key: value for key, value in stored.items() if key != 1}
    with pytest.raises(ValueError, match="missing"):
        known.from_chunks(215, 0, newest, one_less)
    with pytest.raises(ValueError, match="missing"):
        known.from_chunks(300, 0, newest, stored)
    with pytest.raises(ValueError, match="missing"):
        known.from_chunks(215, 256, newest, stored)
    with pytest.raises(ValueError, match="end elsewhere"):
        known.from_chunks(216, 0, newest, stored)
    with pytest.raises(ValueError, match="end elsewhere"):
        known.from_chunks(215, 0, newest[HASH_BYTES:], stored)
    with pytest.raises(ValueError, match="end elsewhere"):
        known.from_chunks(215, 0, newest, stored | {1: stored[1][:-HASH_BYTES]})


@pytest.mark.parametrize("first", [0, 64, 5 * 64])
@pytest.mark.parametrize("added", [400, 511, 512, 700, 4_500])
def test_causes_that_begin_later_grow_on(first: int, added: int) -> None:
    stored = known.chunks(NOTHING_KNOWN, with_causes(range(added)))
    newest = known.recent(with_causes(range(added)))
    causes = known.from_chunks(added, first, newest, stored)
    causes = with_causes(range(added, added + 2 * BLOCK), causes)
    assert (causes.added, causes.first) == (added + 2 * BLOCK, first)
    assert held(causes) == held(with_causes(range(added + 2 * BLOCK)))[first * HASH_BYTES :]
    assert known.is_known(causes, cause(first))
    assert not any(known.is_known(causes, cause(number)) for number in range(first))


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
