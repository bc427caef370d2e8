"""The codec on its way in: every reason of R5, what is read, and what is written plainly."""

import json
import math
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextgauge.json_codec import Encoded, dumps_indented
from schemas.messages import MAX_DEPTH, DeadLetter
from schemas.topics import MESSAGE_LIMIT_BYTES
from streams import codec
from tests.core.given import (
    depth_of,
    nested,
)


def reason(value: bytes) -> str | None:
    read = codec.decode(value)
    return read.reason if isinstance(read, DeadLetter) else None


def nested_lists(depth: int) -> bytes:
    return b'{"a":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b'{"a": "\xff"}', "not_utf8"),
        (b"\xff\xfe{\x00}\x00", "not_utf8"),
        (b'{"a": "\xed\xa0\x80"}', "not_utf8"),
        (b'\xef\xbb\xbf{"a": 1}', "byte_order_mark"),
        (b"\xef\xbb\xbf\xff", "byte_order_mark"),
        (b"{", "not_json"),
        (b"", "not_json"),
        (b"{'a': 1}", "not_json"),
        (b'{"a": 1,}', "not_json"),
        (b'{"a": 1} x', "not_json"),
        (b'{"a": "\n"}', "not_json"),
        (b'{"a": 01}', "not_json"),
        (b'{"a": ' + b"1" * 5_000 + b"}", "not_json"),
        (nested(MAX_DEPTH + 1), "too_deep"),
        (nested_lists(MAX_DEPTH + 1), "too_deep"),
        (b"[" * 100_000 + b"]" * 100_000, "too_deep"),
        (b"[1]", "not_object"),
        (b"null", "not_object"),
        (b"true", "not_object"),
        (b"5", "not_object"),
        (b"5.5", "not_object"),
        (b"NaN", "not_object"),
        (b'"a"', "not_object"),
        (b'"\\ud800"', "not_object"),
    ],
)
def test_r05_every_reason(value: bytes, expected: str) -> None:
    assert reason(value) == expected


def test_r05_a_reason_has_detail_without_the_messages_text() -> None:
    for value in (b'{"secret": \xff}', b'{"secret": tru', b'["secret"]', b"\xef\xbb\xbfsecret"):
        read = codec.decode(value)
        assert isinstance(read, DeadLetter)
        assert read.detail
        assert "secret" not in read.detail


@pytest.mark.parametrize("kind", ["object", "array", "string", "number", "boolean", "null"])
def test_r05_a_reason_names_the_type_of_a_value_that_is_not_an_object(kind: str) -> None:
    values = {"array": b"[]", "string": b'""', "number": b"1", "boolean": b"false", "null": b"null"}
    read = codec.decode(values.get(kind, b"{}"))
    assert read == {} if kind == "object" else kind in str(read)


@pytest.mark.parametrize("depth", [1, 2, 255, 1_000, MAX_DEPTH])
def test_r05_nesting_up_to_1024_is_read(depth: int) -> None:
    assert MAX_DEPTH == 1_024
    assert depth_of(codec.decode(nested(depth))) == depth
    assert depth_of(codec.decode(nested(depth, rb'"\ud800"'))) == depth
    if depth > 1:
        assert depth_of(codec.decode(nested_lists(depth))) == depth


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 3_000, 200_000])
def test_r05_deeper_nesting_is_a_dead_letter_with_either_parser(depth: int) -> None:
    assert reason(nested(depth)) == "too_deep"
    assert reason(nested(depth, rb'"\ud800"')) == "too_deep"
    assert reason(nested_lists(depth)) == "too_deep"


def test_r05_the_interpreters_limit_is_unchanged() -> None:
    before = sys.getrecursionlimit()
    codec.decode(nested(500, rb'"\ud800"'))
    codec.decode(nested(9_000))
    assert sys.getrecursionlimit() == before


@pytest.mark.usefixtures("switching_often")
def test_r05_as_deep_is_read_by_several_threads() -> None:
    before, lines = sys.getrecursionlimit(), [nested(MAX_DEPTH, rb'"\ud800"')] * 200
    with ThreadPoolExecutor(4) as threads:
        depths = [depth_of(read) for read in threads.map(codec.decode, lines)]
    assert depths == [MAX_DEPTH] * len(lines)
    assert sys.getrecursionlimit() == before


@pytest.fixture
def switching_often() -> Iterator[None]:
    """Let threads take turns all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_r05_the_size_limit_is_8_mib() -> None:
    assert MESSAGE_LIMIT_BYTES == 8 * 1024 * 1024
    fits = b'{"a": "' + b"x" * (MESSAGE_LIMIT_BYTES - 9) + b'"}'
    assert len(fits) == MESSAGE_LIMIT_BYTES
    assert reason(fits) is None
    assert reason(fits + b" ") == "too_large"
    assert isinstance(codec.decode(b'{"a": 1}', limit=7), DeadLetter)


def test_r19_a_number_of_any_length_is_kept_where_a_record_may_take_it() -> None:
    for name in ("compact_metadata", "compactMetadata", "applied_edits"):
        value = b'{"%s": {"dropped": 123456789012345678901234567890}}' % name.encode()
        assert codec.decode(value) == {name: {"dropped": 123_456_789_012_345_678_901_234_567_890}}
        value = b'{"%s": {"dropped": -9300000000000000001}}' % name.encode()
        assert codec.decode(value) == {name: {"dropped": -9_300_000_000_000_000_001}}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (rb'{"a": "\ud800"}', {"a": "\ud800"}),
        (rb'{"\udfff": 1}', {"\udfff": 1}),
        (rb'{"a": "\ud83d\ude00"}', {"a": "😀"}),
        (b'{"a": 9007199254740993}', {"a": 9_007_199_254_740_993}),
        (b'{"a": -9223372036854775808}', {"a": -(2**63)}),
        (b'{"a": 18446744073709551615}', {"a": 2**64 - 1}),
        (b'{"a": 1, "a": 2}', {"a": 2}),
        (b' \t\r\n{"a": 1} ', {"a": 1}),
        (b'{"a": 1e999}', {"a": math.inf}),
        (b'{"a": -Infinity}', {"a": -math.inf}),
    ],
)
def test_r05_everything_the_standard_parser_reads_is_read(
    value: bytes, expected: dict[str, Any]
) -> None:
    assert codec.decode(value) == expected == json.loads(value)


def test_r05_nan_is_read_and_written_as_null() -> None:
    read = codec.decode(b'{"a": NaN, "b": [Infinity]}')
    assert isinstance(read, dict)
    assert math.isnan(read["a"])
    assert codec.dumps(read) == b'{"a":null,"b":[null]}'
    assert codec.dumps(read | {"c": "\ud800"}) == b'{"a":null,"b":[null],"c":"\\ud800"}'


def test_fragments_and_lone_surrogates_are_written_together() -> None:
    part = Encoded(b'{"n":123456789012345678901234567890,"d":[0.1]}')
    written = codec.dumps({"text": "\ud800", "part": part})
    assert written == b'{"text":"\\ud800","part":{"n":123456789012345678901234567890,"d":[0.1]}}'


JSON_VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**64 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(st.characters(codec=None, exclude_categories=()), max_size=8),
    ),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


def _joined(value: object) -> object:
    """As JSON has it: two lone surrogates that make a pair are one character."""
    return json.loads(json.dumps(value))


@given(st.dictionaries(st.text(max_size=5), JSON_VALUES, max_size=4))
def test_any_object_is_written_and_read_back(value: dict[str, Any]) -> None:
    written = codec.dumps(value)
    written.decode("utf-8")
    assert codec.loads(written) == _joined(value)
    assert codec.decode(json.dumps(value).encode()) == _joined(value)


def test_loads_raises_for_invalid_json() -> None:
    with pytest.raises(ValueError, match="Expecting"):
        codec.loads(b"{")
    with pytest.raises(ValueError, match="too deep"):
        codec.loads(b"[" * 100_000)


def test_text_is_written_in_utf_8_and_a_lone_surrogate_escaped() -> None:
    assert codec.utf8("ü😀\ud800") == "ü😀".encode() + rb"\ud800"
    assert codec.key_bytes("ü\ud800") == "ü".encode() + b"\xed\xa0\x80"


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (1_577_836_800_000, "2020-01-01T00:00:00.000Z"),
        (1_793_534_400_007, "2026-11-01T12:00:00.007Z"),
        (4_133_980_799_999, "2100-12-31T23:59:59.999Z"),
    ],
)
def test_times_are_rfc_3339_in_utc_with_milliseconds(ms: int, text: str) -> None:
    assert codec.rfc3339(ms) == text
    assert codec.parse_rfc3339(text) == ms


@given(st.integers(1_577_836_800_000, 4_133_980_799_999))
def test_any_time_is_read_back(ms: int) -> None:
    assert codec.parse_rfc3339(codec.rfc3339(ms)) == ms


def test_json_for_people_is_indented_and_ends_its_line() -> None:
    assert dumps_indented({"a": [1]}) == b'{\n  "a": [\n    1\n  ]\n}\n'
