"""Both modules of hashes give what `hashlib` and a search give; `make check-compiled` runs both."""

import hashlib
import json
import struct
import uuid

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streams import compiled
from streams.core.derivation.known_causes import KnownCauses, Segment, add, is_known

ANY_TEXT = st.text(st.characters(codec="utf-8"), max_size=140)
NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "urn:contextgauge:records")
hashes = compiled.hashes()


def blake(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=8).digest()


@pytest.mark.parametrize("size", range(130))
def test_a_text_has_its_hash(size: int) -> None:
    for prefix in (b"", b"message ", b"response "):
        assert hashes.text_hash(prefix, "x" * size) == blake(prefix + b"x" * size)


@given(ANY_TEXT)
def test_any_text_has_its_hash(text: str) -> None:
    assert hashes.text_hash(b"", text) == blake(text.encode())


@given(*[st.integers(0, 2**64 - 1)] * 3)
def test_counts_have_their_hash(first: int, second: int, third: int) -> None:
    assert hashes.counts_hash(first, second, third) == blake(
        struct.pack("<QQQ", first, second, third)
    )


@given(ANY_TEXT, ANY_TEXT, ANY_TEXT, ANY_TEXT, st.sampled_from([(), (3, None, "x")]))
@example("s" * 180, "main", "context_reading", "c" * 180, ())
@example("", "", "", "", ())
@example("a" * 600, '"', "\\", "\n\x7f", ())
def test_a_name_has_its_id(
    session: str, chain: str, kind: str, cause: str, extra: tuple[str | int | None, ...]
) -> None:
    parts = [session, chain, kind, cause, *extra]
    name = json.dumps(parts, ensure_ascii=False, separators=(",", ":"))
    assert hashes.record_id(session, chain, kind, cause, extra) == str(uuid.uuid5(NAMESPACE, name))


def test_a_cause_is_known_wherever_it_is() -> None:
    known = KnownCauses()
    causes = [blake(b"%d" % number) for number in range(1_300)]
    for cause in causes:
        known = add(known, cause)
    others = [blake(b"other %d" % number) for number in range(1_300)]
    # Also hashes that stand there, but not at a multiple of their size.
    others += [known.tail[offset : offset + 8] for offset in range(1, 8)]
    for cause, is_there in [
        *((each, True) for each in causes),
        *((each, False) for each in others),
    ]:
        assert is_known(known, cause) == is_there
        segments = tuple(Segment(segment.ordered) for segment in known.segments)
        for parts in (known.segments, segments):
            assert hashes.is_absent(known.tail, parts, cause) != is_there


@given(st.lists(st.sampled_from([b"aaaaaaaa", b"bbbbbbbb", b"abababab"]), max_size=6))
def test_the_last_entry_with_a_key_is_found(keys: list[bytes]) -> None:
    entries = b"".join(key + b"b" * 17 for key in keys)
    for key in (b"aaaaaaaa", b"bbbbbbbb", b"cccccccc"):
        last = max((index for index, own in enumerate(keys) if own == key), default=None)
        assert hashes.last_place(entries, 25, key) == (-1 if last is None else last * 25)
