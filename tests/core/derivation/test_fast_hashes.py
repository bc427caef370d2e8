"""The compiled hashes give what `hashlib` and the general search give, or leave it to them."""

import hashlib
import struct
import uuid

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streams.compiled.hashes import hashes
from streams.core.derivation.known_causes import KnownCauses, Segment, add, is_known
from streams.core.derivation.record_ids import NAMESPACE

pytestmark = pytest.mark.compiled

ANY_TEXT = st.text(st.characters(codec="utf-8"), max_size=140)
PLAIN = st.text(
    st.characters(min_codepoint=32, max_codepoint=126, exclude_characters='"\\'), max_size=140
)


def blake(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=8).digest()


@pytest.mark.parametrize("size", range(130))
def test_a_text_of_a_block_at_most_has_its_hash(size: int) -> None:
    assert hashes is not None
    for prefix in (b"", b"message ", b"response "):
        found = hashes.text_hash(prefix, "x" * size)
        assert found == (blake(prefix + b"x" * size) if len(prefix) + size <= 128 else None)


@given(ANY_TEXT)
def test_other_text_than_ascii_is_left(text: str) -> None:
    assert hashes is not None
    found = hashes.text_hash(b"", text)
    assert found == (blake(text.encode()) if text.isascii() and len(text) <= 128 else None)


@given(*[st.integers(0, 2**64 - 1)] * 3)
def test_counts_have_their_hash(first: int, second: int, third: int) -> None:
    assert hashes is not None
    assert hashes.counts_hash(first, second, third) == blake(
        struct.pack("<QQQ", first, second, third)
    )


@given(PLAIN, PLAIN, PLAIN, PLAIN)
@example("s" * 180, "main", "context_reading", "c" * 180)
@example("", "", "", "")
def test_a_plain_name_has_its_id(session: str, chain: str, kind: str, cause: str) -> None:
    assert hashes is not None
    name = f'["{session}","{chain}","{kind}","{cause}"]'
    namespace = uuid.UUID(bytes=NAMESPACE)
    found = hashes.record_id(NAMESPACE, session, chain, kind, cause)
    assert found == (str(uuid.uuid5(namespace, name)) if len(name) < 500 else found)
    assert found is not None or len(name) > 500


@given(ANY_TEXT)
@example("\x7f")
@example('"')
@example("\\")
@example("\n")
@example("a" * 600)
def test_a_name_that_is_not_plain_is_left(text: str) -> None:
    assert hashes is not None
    is_plain = text.isascii() and text.isprintable() and not {'"', "\\"} & set(text)
    for names in ((text, "m", "k", "c"), ("s", text, "k", "c"), ("s", "m", "k", text)):
        assert (hashes.record_id(NAMESPACE, *names) is not None) == (is_plain and len(text) < 480)


def test_a_cause_is_known_wherever_it_is() -> None:
    assert hashes is not None
    known = KnownCauses(b"12345678" * 3 + b"boundary")
    causes = [blake(b"%d" % number) for number in range(1_300)]
    for cause in causes:
        known = add(known, cause)
    others = [blake(b"other %d" % number) for number in range(1_300)]
    # Also hashes that stand there, but not at a multiple of their size.
    others += [known.tail[at : at + 8] for at in range(1, 8)] + [b"23456781"]
    for cause, is_there in [
        *((each, True) for each in [*causes, b"boundary"]),
        *((each, False) for each in others),
    ]:
        assert is_known(known, cause) == is_there
        segments = tuple(Segment(segment.ordered) for segment in known.segments)
        for parts in (known.segments, segments):
            assert hashes.is_absent(known.tail, parts, known.boundaries, cause) != is_there


@given(st.lists(st.sampled_from([b"aaaaaaaa", b"bbbbbbbb", b"abababab"]), max_size=6))
def test_the_last_entry_with_a_key_is_found(keys: list[bytes]) -> None:
    assert hashes is not None
    entries = b"".join(key + b"b" * 17 for key in keys)
    for key in (b"aaaaaaaa", b"bbbbbbbb", b"cccccccc"):
        last = max((at for at, own in enumerate(keys) if own == key), default=None)
        assert hashes.last_place(entries, 25, key) == (-1 if last is None else last * 25)
