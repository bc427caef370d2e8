"""What a small body may cost: neither memory, nor time on the event loop, nor the others' room."""

import asyncio
import hashlib
import threading
import tracemalloc
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from contextgauge.normalise.fields import MAX_LONG_NAME
from streams.ingest import publishing
from streams.ingest.otlp import decoding
from streams.ingest.otlp.decoding import items_of
from streams.ingest.otlp.mapping import WithoutMessage, messages_of
from streams.ingest.otlp.telemetry_item import TelemetryItem, word
from streams.ingest.reading import MOST_MESSAGES, read
from tests.ingest.kit import (
    MESSAGE_LIMIT,
    WAITING,
    IngestServer,
    hold_acknowledgements,
    ingest_server,
    lines,
    message,
)
from tests.ingest.otlp_kit import logs, spans

PROTOBUF = "application/x-protobuf"
EVENT = "claude_code.api_request"
SHARED = {"session.id": "s", "query_source": "sdk", "input_tokens": 5}
TEN_KB = {**SHARED, "model": "m" * 10_000}


async def _export(server: IngestServer, request: Any) -> Any:
    path = "/v1/logs" if isinstance(request, ExportLogsServiceRequest) else "/v1/traces"
    return await server.post(request.SerializeToString(), path, content_type=PROTOBUF)


def _responses(count: int) -> list[tuple[str, dict[str, Any]]]:
    return [(EVENT, {"request_id": str(number)}) for number in range(count)]


def test_a_text_longer_than_any_name_is_absent() -> None:
    longest = "x" * MAX_LONG_NAME
    assert word({"model": longest}, "model") == longest
    assert word({"model": longest + "x", "slug": "m"}, "model", "slug") == "m"


async def test_a_resource_multiplied_beyond_all_room_is_too_large() -> None:
    async with ingest_server() as server:
        request = logs(TEN_KB, *_responses(WAITING // 10_000))
        assert request.ByteSize() < WAITING // 10
        answer = await _export(server, request)
        assert answer.status_code == 413
        assert b"in several requests" in answer.content
        assert server.records() == []
        assert (await _export(server, logs(TEN_KB, *_responses(20)))).status_code == 200
        assert len(server.records()) == 21


async def test_messages_of_telemetry_take_room_until_kafka_has_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with ingest_server(answer_s=1) as server:
        gate, is_sending = asyncio.Event(), asyncio.Event()
        hold_acknowledgements(server, gate, monkeypatch, is_sending)
        export = asyncio.create_task(_export(server, logs(TEN_KB, *_responses(25))))
        await is_sending.wait()
        answer = await server.post(b" " * 60_000 + lines(message(1)))
        assert answer.status_code == 429
        gate.set()
        assert (await export).status_code == 200
        assert (await server.post(b" " * 60_000 + lines(message(1)))).status_code == 202


@pytest.mark.parametrize("kind", ["logs", "traces"])
async def test_more_items_than_messages_of_a_request_are_too_many(kind: str) -> None:
    request = logs({}, ("", {})) if kind == "logs" else spans({}, {})
    (of_resource,) = request.resource_logs if kind == "logs" else request.resource_spans
    (of_scope,) = of_resource.scope_logs if kind == "logs" else of_resource.scope_spans
    items = of_scope.log_records if kind == "logs" else of_scope.spans
    items.extend([type(items[0])()] * (MOST_MESSAGES - 1))
    async with ingest_server() as server:
        assert (await _export(server, request)).status_code == 200
        items.add()
        answer = await _export(server, request)
        assert answer.status_code == 413
        assert b"at most 10,000 messages" in answer.content


def test_what_gives_no_message_is_not_hashed() -> None:
    def refused() -> str:
        raise AssertionError("hashed")

    items = [
        TelemetryItem(("claude_code.tool_result",), SHARED, None, refused),
        TelemetryItem((EVENT,), {"query_source": "sdk"}, None, refused),
    ]
    without = WithoutMessage()
    assert list(messages_of(items, without)) == []
    assert (without.others, without.nameless) == (1, 1)


def test_a_resource_is_hashed_once_and_not_copied_for_each_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hashed: list[int] = []
    resource = {**SHARED, **{f"attribute.{number}": "x" * 40 for number in range(200)}}
    request = logs(resource, *_responses(1_000))
    content = request.SerializeToString()
    monkeypatch.setattr(decoding, "hashlib", SimpleNamespace(blake2b=_counting(hashed)))
    tracemalloc.start()
    try:
        items = list(items_of("logs", "protobuf", content))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3_000 * len(items), "bytes for each item; 200 attributes would take 9,000"
    assert len({item.digest() for item in items}) == len(items)
    assert sum(hashed) < 2 * len(content)


def _counting(hashed: list[int]) -> Any:
    class Counting:
        def __init__(self, content: bytes, **options: Any) -> None:
            hashed.append(len(content))
            self.inner = hashlib.blake2b(content, **options)

        def copy(self) -> "Counting":
            copied = Counting(b"")
            copied.inner = self.inner.copy()
            return copied

        def update(self, content: bytes) -> None:
            hashed.append(len(content))
            self.inner.update(content)

        def hexdigest(self) -> str:
            return self.inner.hexdigest()

    return Counting


async def test_without_texts_the_id_of_an_item_is_a_hash_of_the_key() -> None:
    async def ids(text_key: bytes | None) -> list[str]:
        async with ingest_server(text_key=text_key) as server:
            await _export(server, logs(SHARED, (EVENT, {"prompt": "a secret"})))
            return [value["uuid"] for value in server.values() if value["type"] == "assistant"]

    plain, one, again, other = [await ids(key) for key in (None, b"1" * 32, b"1" * 32, b"2" * 32)]
    assert one == again
    assert len({*plain, *one, *other}) == 3


async def test_large_bodies_are_parsed_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    together = threading.Barrier(2)
    most: list[int] = []

    def watched(*parameters: Any) -> Any:
        with suppress(threading.BrokenBarrierError):
            together.wait(0.2)
            most.append(together.parties)
        return read(*parameters)

    monkeypatch.setattr("streams.ingest.messages.read", watched)
    monkeypatch.setattr(publishing, "_AT_ONCE_BYTES", 10)
    async with ingest_server() as server:
        answers = await asyncio.gather(*(server.post(message(number)) for number in range(2)))
    assert [answer.status_code for answer in answers] == [202, 202]
    assert most == []


@pytest.mark.parametrize("form", ["object", "line", "member"])
async def test_a_message_far_over_the_limit_is_not_even_parsed(form: str) -> None:
    long = message(1, filler="x" * 2 * MESSAGE_LIMIT)
    content: Any = {"object": long, "line": lines(long), "member": [long]}[form]
    media_type = "application/x-ndjson" if form == "line" else "application/json"
    async with ingest_server() as server:
        answer = await server.post(content, content_type=media_type)
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["reason"] == "too_large"
        assert "leave out what is large" in answer.json()["detail"]
        assert server.records() == []
