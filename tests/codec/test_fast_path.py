"""The compiled reader of usual messages says what a full reading says, or gives up.

It is there only where it was compiled: `make check-compiled` runs these tests.
"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.messages import MAX_DEPTH
from streams.codec.cloudevents import rfc3339
from tests.codec.fast_path_kit import BROKEN, TEXT, UNUSUAL, USUAL, dump, same, short
from tests.core.given import user

pytestmark = pytest.mark.compiled


@pytest.mark.parametrize("number", range(len(USUAL)))
def test_a_usual_message_takes_the_fast_path(number: int) -> None:
    for value in (dump(USUAL[number]), json.dumps(USUAL[number], indent=1).encode() + b"\r\n "):
        assert same(value)


@pytest.mark.parametrize("number", range(len(USUAL)))
def test_its_fields_may_come_in_any_order(number: int) -> None:
    def turned(value: object) -> object:
        if isinstance(value, dict):
            return {name: turned(value[name]) for name in reversed(value)}
        return value

    assert same(dump(turned(USUAL[number])))


@pytest.mark.parametrize("number", range(len(UNUSUAL)))
def test_an_unusual_message_is_left_to_the_full_parser(number: int) -> None:
    assert short(dump(UNUSUAL[number])) is None


@pytest.mark.parametrize("number", range(len(BROKEN)))
def test_broken_escaped_or_duplicate_content_is_left_to_the_full_parser(number: int) -> None:
    assert short(BROKEN[number]) is None


@pytest.mark.parametrize(
    "written",
    [
        *(b"01", b"-", b"1.", b".5", b"1e", b"1e+", b"+1", b"NaN", b"tru", b"nul", b"'a'", b"1_0"),
        *(
            b'"\\x"',
            b'"\\u12g4"',
            b'"\\u123g"',
            b'"\\ug123"',
            b'"\\u123',
            b'"\\u123"',
            b'"a\nb"',
            b'"',
            b"[1,]",
            b"[,]",
            b"[1 2]",
            b"[",
        ),
        *(
            b'{"a"}',
            b'{"a":}',
            b'{"a":1,}',
            b"{1:1}",
            b"{a:1}",
            b'{"a":1 "b":2}',
            b'{"a":1,2}',
            b'{"a":1,"b"}',
            b"[1}",
            b'{"a":1]',
        ),
        b"9" * 5_000,
        b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1),
        b"[" * 65 + b"]" * 65,
        b'{"a":' * 66 + b"1" + b"}" * 66,
        *(b"\x0b1", b"\x0c1", b"\xc2\xa01", b"[\x0b]"),
        *(b'"%s"' % wrong for wrong in (b"\x80", b"\xc3", b"\xe2\x82", b"\xf5\x80\x80\x80")),
        *(b'"%s"' % wrong for wrong in (b"\xe0\x80\x80", b"\xf0\x80\x80\x80", b"\xf4\x90\x80\x80")),
    ],
)
def test_skipped_fields_are_validated(written: bytes) -> None:
    value = b'{"tool_use_result":%s,' % written + TEXT[1:]
    assert short(value) is None
    nested = TEXT.replace(b'"content":', b'"container":[{"a":%s}],"content":' % written)
    assert short(nested) is None


@pytest.mark.parametrize(
    "written",
    [
        *(
            b"0",
            b"-0",
            b"-1.5e-3",
            b"1E9",
            b"true",
            b"false",
            b"null",
            b"[]",
            b"{}",
            b"[ ]",
            b"{ }",
        ),
        *(b'""', b'"\\ud800"', b'"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9"', b'[[1,"a"],{"b":{}}]'),
        *(b"[" * 64 + b"]" * 64, b'{"a":' * 64 + b"1" + b"}" * 64, b"[\t\n\r 1\t\n\r ]"),
        '"\u007f\u0080\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff"'.encode(),
        *(b'"%s\xc3\xa9%s"' % (b"x" * n, b"y" * (9 - n)) for n in range(10)),
    ],
)
def test_skipped_fields_may_have_any_valid_value(written: bytes) -> None:
    assert same(b'{"tool_use_result":%s,' % written + TEXT[1:])


@pytest.mark.parametrize(
    "timestamp",
    [
        *("2026-11-01T12:00:00.000Z", "2024-02-29T23:59:59.999Z", "2026-12-31T00:00:00.001Z"),
        *("2023-02-29T00:00:00.000Z", "2026-04-31T00:00:00.000Z", "2026-00-10T00:00:00.000Z"),
        *("2026-13-10T00:00:00.000Z", "2026-10-00T00:00:00.000Z", "2026-10-10T24:00:00.000Z"),
        *("2026-10-10T00:60:00.000Z", "2026-10-10T00:00:60.000Z", "2026-10-10T00:00:00,000Z"),
        *("1969-12-31T23:59:59.999Z", "1970-01-01T00:00:00.000Z", "2019-12-31T23:59:59.999Z"),
        *("2020-01-01T00:00:00.000Z", "2099-12-31T23:59:59.999Z", "2100-01-01T00:00:00.000Z"),
        *("9999-12-31T23:59:59.999Z", "0001-01-01T00:00:00.000Z", "2026-10-10 00:00:00.000Z"),
        *("2026-10-10T00:00:00.000z", "2026-10-10T00:00:00.00aZ", "2026-10-1/T00:00:00.000Z"),
        *("2026-10-10T00:00:00.000+", "2026-1\u0661-10T00:00:00.00Z", "2026-W10-1T00:00:00.00Z"),
        *("2026-10-10T00:00:00Z", "2026-10-10T00:00:00.123456Z", "2026-10-10T00:00:00+02:00"),
    ],
)
def test_a_timestamp_is_read_as_in_full(timestamp: str) -> None:
    assert same(dump(user("go on") | {"timestamp": timestamp}))


@given(st.integers(0, 4_200_000_000_000))
def test_any_time_is_read_as_in_full(time_ms: int) -> None:
    assert same(dump(user("go on") | {"timestamp": rfc3339(time_ms)}))


@given(st.text(st.sampled_from('"\\\n\x1f aé漢😀'), max_size=70))
def test_a_string_is_passed_over_however_long_it_is(text: str) -> None:
    message = user("go on") | {"tool_use_result": text}
    for escaped in (True, False):
        assert same(json.dumps(message, ensure_ascii=escaped).encode())


@pytest.mark.parametrize("size", range(40))
@pytest.mark.parametrize("byte", [b"\x00", b"\x1f", b"\n", b"\xff", b"\xc3"])
def test_what_is_no_json_is_found_wherever_it_is(size: int, byte: bytes) -> None:
    value = dump(user("a" * size + "@" + "b" * (39 - size)))
    assert same(value)
    assert short(value.replace(b"@", byte)) is None
