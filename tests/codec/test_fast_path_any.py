"""The compiled reader of usual messages says what a full reading says, or gives up, whatever comes.

It is there only where it was compiled: `make check-compiled` runs these tests.
"""

import json
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.flow.simulator import SimulationOptions, simulate
from tests.codec.fast_path_kit import USUAL, dump, same

pytestmark = pytest.mark.compiled

MARKS = b'\x00\t\n\x0b\x0c\r\x1f "\\/<,:{}[]-0129.eEu\x7f\x80\xbf\xc3\xe2\xed\xf0\xff'


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(number, marks=pytest.mark.extended if number % 8 else ())
        for number in range(len(USUAL))
    ],
)
def test_a_truncated_or_altered_message_is_read_correctly_or_declined(number: int) -> None:
    value = dump(USUAL[number])
    for place in range(len(value)):
        assert not same(value[:place])
        for mark in MARKS:
            same(value[:place] + bytes((mark,)) + value[place + 1 :])
            same(value[:place] + bytes((mark,)) + value[place:])
        same(value[:place] + value[place + 1 :])


SECOND = (
    b"null",
    b'{"role":"x"}',
    b'{"type":"message_start"}',
    b"{}",
    b"[]",
    b"1",
    b'"x"',
    b"true",
)


def doubled(written: bytes) -> Iterator[bytes]:
    """Yield a message with each of its names said once more, at the beginning and at the end."""
    yield from _doubled(written, json.loads(written), 0)


def _doubled(written: bytes, body: dict[str, Any], begin: int) -> Iterator[bytes]:
    own = dump(body)
    begin = written.index(own, begin)
    end = begin + len(own) - 1
    for name, value in body.items():
        for second in (*SECOND, dump(value)):
            pair = dump(name) + b":" + second
            yield written[: begin + 1] + pair + b"," + written[begin + 1 :]
            yield written[:end] + b"," + pair + written[end:]
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, dict) and inner:
                yield from _doubled(written, inner, begin)


@pytest.mark.parametrize("number", range(len(USUAL)))
def test_duplicate_fields_are_read_correctly_or_declined(number: int) -> None:
    values = list(doubled(dump(USUAL[number])))
    assert len(values) > 2 * len(SECOND) * len(USUAL[number])
    for value in values:
        same(value)


NAMES = sorted(
    {
        *(name for message in USUAL for name in message),
        *("id", "model", "content", "usage", "stop_reason", "context_management", "role"),
        *("input_tokens", "output_tokens", "cache_read_input_tokens", "iterations", "event"),
        *("delta", "applied_edits", "text", "isMeta", "sessionId", "agentId", "task_id"),
        *("input_tokens_details", "cached_tokens", "responseId", "modelVersion", "request"),
        *("toolUseResult", "resolvedModel", "tool_use_result", "resolved_model"),
        *("agentType", "agent_type", "agent_id"),
        *("isSidechain", "requestId", "parentUuid", "parentToolUseId", "forkedFrom", "version"),
    }
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 2**54),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=12),
    st.sampled_from(
        [
            *("assistant", "user", "stream_event", "message_start", "message_delta", "compaction"),
            *("claude-opus-4-6[1m]", "claude-opus-4-6"),
            *("message", "text", "<a>", "/clear", "<synthetic>", "model_context_window_exceeded"),
        ]
    ),
)
VALUES: st.SearchStrategy[object] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)
    ),
    max_leaves=8,
)


@st.composite
def variations(draw: st.DrawFn) -> bytes:
    """A usual message with some fields changed, at any depth."""
    body = json.loads(dump(draw(st.sampled_from(USUAL))))
    for _ in range(draw(st.integers(1, 4))):
        fields: Any = body
        while True:
            inner = [name for name in fields if isinstance(fields[name], dict) and fields[name]]
            if not inner or draw(st.booleans()):
                break
            fields = fields[draw(st.sampled_from(inner))]
        name = draw(st.sampled_from([*fields, *NAMES]))
        if draw(st.booleans()):
            fields[name] = draw(VALUES)
        else:
            fields.pop(name, None)
    return json.dumps(body, ensure_ascii=draw(st.booleans())).encode("utf-8", "surrogatepass")


@settings(max_examples=1_500)
@given(variations())
def test_any_message_is_read_correctly_or_declined(value: bytes) -> None:
    same(value)


@settings(max_examples=500)
@given(st.data(), st.sampled_from(USUAL))
def test_any_bytes_are_read_correctly_or_declined(
    data: st.DataObject, message: dict[str, Any]
) -> None:
    value = bytearray(dump(message))
    for _ in range(data.draw(st.integers(1, 3))):
        begin = data.draw(st.integers(0, len(value)))
        end = data.draw(st.integers(begin, min(begin + 6, len(value))))
        value[begin:end] = data.draw(st.binary(max_size=4))
    same(bytes(value))


def simulated() -> Iterator[bytes]:
    options = SimulationOptions(seed=7, sessions=60, providers=("claude",))
    for one in islice(simulate(options), 20_000):
        yield one.value


def test_runtime_messages_are_read_correctly_and_mostly_by_the_fast_path() -> None:
    all_of, in_short = Counter[bool](), Counter[bool]()
    for value in simulated():
        is_transcript = b'"sessionId"' in value
        all_of[is_transcript] += 1
        in_short[is_transcript] += same(value)
    for is_transcript, share in ((False, 0.85), (True, 0.9)):
        assert all_of[is_transcript] > 3_000
        assert in_short[is_transcript] > share * all_of[is_transcript]


@pytest.mark.shared
def test_samples_and_transcripts_are_read_correctly(shared: Path) -> None:
    counted = 0
    for path in sorted(shared.rglob("*.jsonl")):
        for value in path.read_bytes().splitlines():
            counted += same(value)
    for path in sorted(shared.glob("samples/*.json")):
        counted += same(dump(json.loads(path.read_bytes())["message"]))
    assert counted > 1_000
