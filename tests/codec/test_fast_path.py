"""The compiled reader of usual messages says what a full reading says, or gives up.

It is there only where it was compiled: `make check-compiled` runs these tests.
"""

import json

import pytest

from schemas.messages import MAX_DEPTH
from tests.codec.fast_path_kit import BROKEN, TEXT, UNUSUAL, USUAL, dump, same, short

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
        b'{"a":' * 65 + b"1" + b"}" * 65,
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
