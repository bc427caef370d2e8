"""A publisher's messages on their way: taken at once, sent in order, dropped only as chosen."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import pytest

from contextgauge.delivery.outgoing import belongs_to_conversation
from contextgauge.errors import ClosedError
from schemas.topics import MIB
from tests.library.delivery_kit import (
    LIMIT,
    conversation,
    delivery_over,
    memory,
    message,
    numbers,
    opened,
    written,
)
from tests.patience import PATIENCE_S


class Model:
    """An answer of a model SDK."""

    def model_dump(self, *, mode: str, exclude_unset: bool) -> dict[str, object]:
        assert (mode, exclude_unset) == ("json", True)
        return {"object": "chat.completion", "usage": {"prompt_tokens": 3}}


async def test_every_form_of_a_message_arrives_under_its_session() -> None:
    log = await memory()
    line = b'{"type": "user",  "session_id": "s"}'
    async with opened(log) as (delivery, result):
        for given in (line + b"\r\n", bytearray(line), line.decode(), MappingProxyType(message(1))):
            assert await delivery.submit(given, conversation()) == "queued"
        assert await delivery.submit(Model(), conversation("of-the-key")) == "queued"
    values = {record.value: record.key for record in written(log)}
    assert values == {
        line: b"s",
        json.dumps(message(1), separators=(",", ":")).encode(): b"s",
        b'{"object":"chat.completion","usage":{"prompt_tokens":3}}': b"of-the-key",
    }
    assert len(written(log)) == 5
    assert {record.headers for record in written(log)} == {(("observed", b"live"),)}
    assert result == []


async def test_a_session_keeps_its_order_and_all_is_sent_at_the_end() -> None:
    log = await memory()
    async with opened(log) as (delivery, _):
        for number in range(2_500):
            await delivery.submit(message(number, f"s{number % 7}"), conversation())
    for name in (f"s{which}" for which in range(7)):
        assert numbers(log, name) == [n for n in range(2_500) if f"s{n % 7}" == name]
    stats = delivery.stats
    assert (stats.accepted, stats.sent, stats.waiting, stats.unacknowledged) == (2_500, 2_500, 0, 0)
    assert stats.sent_bytes == sum(len(record.value or b"") for record in written(log))


async def test_a_message_without_a_session_gets_the_conversations_last_one() -> None:
    log = await memory()
    async with opened(log) as (delivery, _):
        one = conversation()
        assert await delivery.submit({"type": "user", "message": "early"}, one) == "refused"
        await delivery.submit(b'{"type":"user","session_id":"a"}', one)
        await delivery.submit({"type": "user", "message": "x"}, one)
        await delivery.submit({"type": "user", "session_id": "b"}, one)
        await delivery.submit(b'{"type":"user","message":"y"}', one)
    keys = {record.value: record.key for record in written(log)}
    assert keys[b'{"type":"user","message":"x"}'] == b"a"
    assert keys[b'{"type":"user","message":"y"}'] == b"b"


@pytest.mark.parametrize("text_key", [None, b"key"])
async def test_a_conversation_knows_the_session_of_a_message_still_being_shortened(
    text_key: bytes | None,
) -> None:
    log = await memory()
    size = MIB if text_key else LIMIT
    async with opened(log, text_key=text_key, max_bytes=4 * MIB) as (delivery, _):
        one = conversation()
        long = {"type": "user", "session_id": "a", "uuid": "a-1", "message": "x" * size}
        assert await delivery.submit(long, one) == "queued"
        assert await delivery.submit({"type": "user", "uuid": "a-2"}, one) == "queued"
    assert [record.key for record in written(log)] == [b"a", b"a"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"type": "user", "message": "secret"}, "give a session_id"),
        ({"type": "user", "session_id": "s", "message": object()}, "JSON has no form for"),
        (b"secret no json", "unexpected|Expecting"),
        (b"\xff", "UTF-8"),
    ],
)
async def test_refused_messages_are_counted_and_reported_without_their_text(
    given: object, said: str
) -> None:
    log = await memory()
    async with opened(log) as (delivery, result):
        assert await delivery.submit(given, conversation()) == "refused"
    assert delivery.stats.refused == 1
    assert written(log) == []
    (line,) = result
    assert "secret" not in line
    assert any(part in line for part in said.split("|"))


async def test_circular_references_and_other_sdk_classes_are_refused() -> None:
    circle: dict[str, object] = {"session_id": "s"}
    circle["self"] = circle
    options = type("ClaudeAgentOptions", (), {"__module__": "claude_agent_sdk.types"})()
    async with opened(await memory()) as (delivery, _):
        assert await delivery.submit(circle, conversation()) == "refused"
        assert await delivery.submit(options, conversation()) == "refused"


class Broken:
    """An answer of a model SDK that cannot be written."""

    def model_dump(self, *, mode: str, exclude_unset: bool) -> dict[str, object]:
        raise LookupError(mode, exclude_unset)


async def test_a_response_that_cannot_be_serialised_is_refused() -> None:
    async with opened(await memory()) as (delivery, result):
        assert await delivery.submit(Broken(), conversation("s")) == "refused"
    assert "LookupError" in result[0]


class Unreadable(Mapping[str, object]):
    """A mapping whose own code fails."""

    def __getitem__(self, key: str) -> object:
        raise LookupError(key)

    def __iter__(self) -> Iterator[str]:
        raise LookupError("secret")

    def __len__(self) -> int:
        return 1


async def test_an_unreadable_mapping_is_refused() -> None:
    async with opened(await memory()) as (delivery, result):
        assert await delivery.submit(Unreadable(), conversation("s")) == "refused"
    assert "LookupError" in result[0]
    assert "secret" not in result[0]


async def test_an_unexpected_error_in_shortening_blocks_no_other_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise RecursionError("secret")

    log = await memory()
    async with opened(log) as (delivery, result):
        monkeypatch.setattr("contextgauge.delivery.outgoing.keyed", fail)
        await delivery.submit(message(1) | {"message": "x" * LIMIT}, conversation())
        await delivery.submit(message(2), conversation())
    assert numbers(log) == [2]
    assert (delivery.stats.sent, delivery.stats.refused) == (1, 1)
    assert result == ["a message cannot be sent: not_json: reading it raised RecursionError"]


async def test_irrelevant_messages_are_ignored() -> None:
    async with opened(await memory()) as (delivery, result):
        assert await delivery.submit(message(1), conversation()) == "queued"
        assert await delivery.submit({"type": "progress"}, conversation()) == "ignored"
        assert await delivery.submit(b" \n", conversation()) == "ignored"
    assert delivery.stats.ignored == 2
    assert result == []


@pytest.mark.parametrize("given", [5, None, ["a"], object()])
async def test_a_value_that_is_not_a_message_raises_a_type_error(given: object) -> None:
    async with opened(await memory()) as (delivery, _):
        with pytest.raises(TypeError, match="a message is a mapping"):
            await delivery.submit(given, conversation())


async def test_publishing_before_start_or_after_close_raises_an_error() -> None:
    delivery, _ = delivery_over(await memory())
    with pytest.raises(ClosedError, match="not open"):
        await delivery.submit(message(1), conversation())
    assert await delivery.close(PATIENCE_S) == 0
    delivery.start()
    await delivery.close(PATIENCE_S)
    with pytest.raises(ClosedError, match="not open"):
        await delivery.submit(message(1), conversation())


async def test_another_event_loop_is_an_error() -> None:
    async with opened(await memory()) as (delivery, _):

        def elsewhere() -> None:
            with pytest.raises(ClosedError, match="another event loop"):
                asyncio.run(delivery.submit(message(1), conversation()))

        await asyncio.to_thread(elsewhere)


async def test_an_over_long_message_is_shortened_in_its_place() -> None:
    log = await memory()
    long = {"type": "user", "session_id": "s", "uuid": "s-1", "message": "x" * 3 * LIMIT}
    async with opened(log) as (delivery, _):
        for given in (message(0), long, json.dumps(long).encode(), message(2)):
            assert await delivery.submit(given, conversation()) == "queued"
    assert numbers(log) == [0, 1, 1, 2]
    assert max(len(record.value or b"") for record in written(log)) <= LIMIT
    assert delivery.stats.shortened == 2


async def test_an_over_long_line_that_cannot_be_shortened_is_refused_later() -> None:
    log = await memory()
    async with opened(log) as (delivery, result):
        assert await delivery.submit(b"x" * (LIMIT + 1), conversation("s")) == "queued"
        assert await delivery.submit({"type": "user", "m": "x" * LIMIT}, conversation()) == "queued"
        await delivery.submit(message(1), conversation())
    assert numbers(log) == [1]
    assert delivery.stats.refused == 2
    assert "too_large" in result[0]


async def test_without_text_no_text_is_sent() -> None:
    log = await memory()
    async with opened(log, text_key=b"key") as (delivery, _):
        await delivery.submit({**message(1), "message": {"content": "secret"}}, conversation())
        await delivery.submit(b'{"session_id":"s","uuid":"s-2","message":"secret"}', conversation())
        await delivery.submit({**message(3), "message": "secret" * 200_000}, conversation())
        assert await delivery.submit(b"secret", conversation("s")) == "refused"
    assert numbers(log) == [1, 2, 3]
    assert not [record for record in written(log) if b"secret" in (record.value or b"")]


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        ({"type": "assistant"}, True),
        ({"no": "type"}, True),
        ({"type": "control_response", "response": {"response": {"account": "x"}}}, False),
        ({"type": "control_response", "response": {"response": {"totalTokens": 5}}}, True),
        ({"type": "control_request", "request": {"subtype": "can_use_tool"}}, False),
        (
            {
                "type": "control_request",
                "request": {
                    "subtype": "hook_callback",
                    "input": {"hook_event_name": "PreCompact", "trigger": "auto"},
                },
            },
            True,
        ),
        ({"type": "transcript_mirror", "entries": []}, False),
    ],
)
def test_only_context_control_frames_are_published(
    frame: Mapping[str, object], expected: object
) -> None:
    assert belongs_to_conversation(frame) is expected


async def no_figures(*bodies: dict[str, Any] | bytes) -> list[str]:
    """Return what a publisher of these messages reports."""
    async with opened(await memory()) as (delivery, reports):
        for body in bodies:
            await delivery.submit(body, conversation("s"))
    return reports


async def test_messages_that_never_give_a_figure_are_reported_once_with_the_reason() -> None:
    lines = [{"type": "thread.started", "thread_id": "t"}, *({"type": "turn.completed"},) * 150]
    (report,) = await no_figures(*lines)
    assert report.startswith("none of the first 100 messages gives a size or a compaction: `codex")
    assert "~/.codex/sessions" in report


async def test_a_short_run_without_figures_is_reported_at_its_end() -> None:
    (report,) = await no_figures({"event": "token", "type": "my_event"}, b'{"type":"other"}')
    assert "none of the first 2 messages" in report
    assert "(my_event, other)" in report


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"type": "response.output_text.delta", "delta": "x"}, "response.completed"),
        ({"object": "chat.completion.chunk", "id": "c", "choices": []}, "include_usage"),
    ],
)
async def test_a_stream_without_usage_is_reported_with_what_to_publish(
    body: dict[str, Any], reason: str
) -> None:
    (report,) = await no_figures(body)
    assert report.startswith("the only message gives no size and no compaction: ")
    assert reason in report


@pytest.mark.parametrize(
    "body",
    [
        {"type": "user", "message": "hi"},
        {"type": "message", "role": "assistant", "usage": {"input_tokens": 9}},
        {"type": "system", "subtype": "status", "status": "compacting"},
    ],
)
async def test_a_message_that_may_give_a_figure_ends_the_check(body: dict[str, Any]) -> None:
    assert not await no_figures({"type": "my_event"}, body, *({"type": "my_event"},) * 120)


@pytest.mark.parametrize(
    ("piece", "last"),
    [
        (
            {"method": "item/agentMessage/delta", "params": {"threadId": "t"}},
            {
                "method": "thread/tokenUsage/updated",
                "params": {"threadId": "t", "tokenUsage": {"last": {"inputTokens": 9}}},
            },
        ),
        (
            {"type": "response.output_text.delta"},
            {"type": "response.completed", "response": {"object": "response", "usage": {
                "input_tokens": 9, "input_tokens_details": {}}}},
        ),
        (
            {"object": "chat.completion.chunk"},
            {"object": "chat.completion.chunk", "usage": {"prompt_tokens": 9}},
        ),
    ],
)  # fmt: skip
async def test_pieces_of_a_stream_are_not_counted(
    piece: dict[str, Any], last: dict[str, Any]
) -> None:
    assert not await no_figures(*[piece] * 150, last)


async def test_a_report_repeats_no_text() -> None:
    (report,) = await no_figures({"type": "My password is hunter2"}, {"object": "secret words"})
    assert "password" not in report
    assert "secret" not in report
