"""`POST /v1/messages`: what is taken, what is refused and how that is explained."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import orjson
import pytest
import zstandard

from contextgauge.errors import RetryError
from contextgauge.partitioner import partition_of
from streams.edge.files.tokens import TokenFile, hashed, line_of
from streams.ingest import reading
from tests.ingest.kit import (
    BODY_LIMIT,
    MESSAGE_LIMIT,
    WAITING,
    IngestServer,
    hold_acknowledgements,
    ingest_server,
    lines,
    message,
    zipped,
)
from tests.library.delivery_kit import PARTITIONS, memory, until
from tests.patience import PATIENCE_S

NDJSON = "application/x-ndjson"
PROBLEM = "application/problem+json"


@pytest.fixture
async def server() -> AsyncIterator[IngestServer]:
    """A server that anyone may publish to."""
    async with ingest_server() as server:
        yield server


async def test_one_message_keeps_its_bytes_its_session_and_its_partition(
    server: IngestServer,
) -> None:
    sent = b'{"type": "user",\n "session_id": "a",  "n": 123456789012345678901234567890}'
    answer = await server.post(b"\n" + sent + b"\n")
    assert answer.status_code == 202, answer.text
    assert answer.json() == {"accepted": 1, "ignored": 0}
    (record,) = server.records()
    assert record.value == sent
    assert record.key == b"a"
    assert record.headers == (("observed", b"live"),)
    assert server.log.partition("agent.messages", partition_of("a", PARTITIONS)).read(0, 9).records


async def test_members_of_an_array_are_messages_in_their_order(server: IngestServer) -> None:
    messages = [message(number) for number in range(20)]
    messages[3]["n"] = 123456789012345678901234567890
    body = b"[" + b",".join(str(each).replace("'", '"').encode() for each in messages) + b"]"
    assert (await server.post(body)).json() == {"accepted": 20, "ignored": 0}
    assert [value["uuid"] for value in server.values()] == [each["uuid"] for each in messages]
    assert b"123456789012345678901234567890" in (server.records()[3].value or b"")


@pytest.mark.parametrize(
    "media_type",
    [NDJSON, "application/jsonl", "Application/X-NDJSON; charset=utf-8"],
)
async def test_lines_are_messages_and_empty_ones_are_skipped(
    server: IngestServer, media_type: str
) -> None:
    body = lines(message(1)) + b"\r\n\n" + lines(message(2)).replace(b"\n", b"\r\n")
    answer = await server.post(body, content_type=media_type)
    assert answer.json() == {"accepted": 2, "ignored": 0}
    assert server.values() == [message(1), message(2)]


async def test_parameters_name_session_agent_task_and_age(server: IngestServer) -> None:
    nameless = {"type": "assistant", "message": {"usage": {"input_tokens": 3}}, "uuid": "u"}
    path = "/v1/messages?session_id=s%2F1&agent_id=billing&task_id=t&live=false"
    assert (await server.post([nameless, message(1, "own")], path)).status_code == 202
    records = server.records()
    assert {record.key for record in records} == {b"s/1", b"own"}
    assert {record.headers for record in records} == {(("task_id", b"t"), ("agent_id", b"billing"))}


async def test_what_means_nothing_is_ignored_and_counted(server: IngestServer) -> None:
    answer = await server.post([{"type": "file-history-snapshot"}, message(1)])
    assert answer.json() == {"accepted": 1, "ignored": 1}
    assert 'ingest_messages_total{outcome="accepted"} 1.0' in server.metrics()
    assert 'ingest_messages_total{outcome="ignored"} 1.0' in server.metrics()


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
async def test_bodies_may_be_compressed_and_unpack_to_the_limit_at_most(
    server: IngestServer, encoding: str
) -> None:
    compress = {"gzip": zipped, "zstd": zstandard.ZstdCompressor().compress}[encoding]
    sent = lines(*(message(number) for number in range(100)))
    answer = await server.post(compress(sent), content_type=NDJSON, content_encoding=encoding)
    assert answer.json()["accepted"] == 100
    bomb = compress(b" " * (BODY_LIMIT + 1))
    assert len(bomb) < 1_000
    answer = await server.post(bomb, content_encoding=encoding)
    assert answer.status_code == 413
    assert "several requests" in answer.json()["detail"]
    for damaged in (compress(sent)[:-20], b"no such thing"):
        answer = await server.post(damaged, content_encoding=encoding)
        assert answer.status_code == 400
        assert f"not {encoding}" in answer.json()["detail"]


async def test_chunked_bodies_are_bounded_too(server: IngestServer) -> None:
    async def chunks(count: int) -> AsyncIterator[bytes]:
        yield b"["
        yield orjson.dumps(message(1))
        for _ in range(count):
            yield b" " * 1_000
        yield b"]"

    headers = {"content-type": "application/json"}
    path = "/v1/messages"
    few = await server.client.post(path, content=chunks(9), headers=headers)
    assert few.json()["accepted"] == 1
    many = await server.client.post(path, content=chunks(101), headers=headers)
    assert many.status_code == 413


@pytest.mark.parametrize(
    ("body", "headers", "status", "explained"),
    [
        (b"{}", {"content_type": "text/plain"}, 415, "Content-Type: application/json"),
        (b"{}", {"content_encoding": "br"}, 415, "Content-Encoding: gzip or zstd"),
        (b"", {}, 422, "the body is empty"),
        (b"[1", {}, 422, "the body is not JSON"),
        (b'{"a"', {}, 422, "message 0 "),
        (b"3", {}, 422, "not an object"),
        (b'[{"session_id":"s"},7]', {}, 422, "message 1 is no JSON object"),
        (b'{"type":"user","message":{"content":"x"}}', {}, 422, "?session_id=ID"),
        (b'{"session_id":"s"}\n\xff\n', {"content_type": NDJSON}, 422, "line 2 "),
        (b"[" + b"{}," * 10_000 + b"{}]", {}, 413, "at most 10,000 messages"),
        (b"\n" * 10_001, {"content_type": NDJSON}, 413, "at most 10,000 messages"),
        (b" " * (BODY_LIMIT + 1), {}, 413, "limit of a body"),
        (b"{}", {"origin": "https://evil.example"}, 403, "other origin"),
        (b"{}", {"host": "evil.example"}, 421, "CONTEXTGAUGE_INGEST_NAMES"),
    ],
)
async def test_an_invalid_request_publishes_nothing_and_the_answer_says_what_to_do(
    server: IngestServer, body: bytes, headers: Mapping[str, str], status: int, explained: str
) -> None:
    answer = await server.post(body, **headers)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == PROBLEM
    assert explained.lower() in answer.json()["detail"].lower()
    assert server.records() == []


async def test_one_invalid_message_refuses_its_request_and_each_is_named(
    server: IngestServer,
) -> None:
    answer = await server.post(lines(message(1)) + b"{\n[]\n", content_type=NDJSON)
    assert answer.status_code == 422
    assert [(each["line"], each["reason"]) for each in answer.json()["errors"]] == [
        (2, "not_json"),
        (3, "not_object"),
    ]
    assert server.records() == []
    assert 'ingest_messages_total{outcome="refused"} 2.0' in server.metrics()


async def test_the_session_of_the_request_does_not_make_messages_of_what_is_none(
    server: IngestServer,
) -> None:
    answer = await server.post(b"{", "/v1/messages?session_id=s")
    assert answer.status_code == 422


async def test_an_unknown_parameter_or_address_is_explained(server: IngestServer) -> None:
    unknown = await server.post({}, "/v1/messages?session=s")
    assert unknown.status_code == 422
    assert "did you mean session_id?" in unknown.json()["detail"]
    assert (await server.post({}, "/v1/messages?agent_id=")).status_code == 422
    assert "POST messages to /v1/messages" in (await server.post({}, "/")).json()["detail"]
    got = await server.client.get("/v1/messages")
    assert (got.status_code, got.headers["allow"]) == (405, "POST")


async def test_long_messages_are_shortened_and_texts_are_left_out() -> None:
    long = message(1, message={"role": "user", "content": "word " * MESSAGE_LIMIT})
    async with ingest_server() as server:
        assert (await server.post(long)).status_code == 413  # a limit of the body in this test
        long["message"] = {"role": "user", "content": "word " * 5_000}
        assert (await server.post(long)).status_code == 202
        assert "contextgauge_shortened" in server.values()[0]
    async with ingest_server(text_key=b"0" * 32) as server:
        assert (await server.post(long)).status_code == 202
        assert b"word" not in (server.records()[0].value or b"")


async def test_a_repeated_key_gets_the_first_answer_and_is_not_for_another_body(
    server: IngestServer,
) -> None:
    first = await server.post(message(1), idempotency_key="k")
    again = await server.post(message(1), idempotency_key="k")
    assert first.json() == again.json()
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    assert len(server.records()) == 1
    other = await server.post(message(2), idempotency_key="k")
    assert other.status_code == 422
    assert other.json()["type"].endswith("key-reused")
    assert (await server.post(message(2), idempotency_key="l")).status_code == 202
    assert len(server.records()) == 2


async def test_requests_with_one_key_at_the_same_time_are_one(server: IngestServer) -> None:
    answers = await asyncio.gather(
        *(server.post(message(1), idempotency_key="k") for _ in range(5))
    )
    assert {answer.status_code for answer in answers} == {202}
    assert len(server.records()) == 1


async def test_a_key_whose_request_failed_may_be_sent_again(server: IngestServer) -> None:
    assert (await server.post([3], idempotency_key="k")).status_code == 422
    assert (await server.post(message(3), idempotency_key="k")).status_code == 202


async def test_tokens_of_publishers_publish_and_those_of_readers_do_not(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"{line_of('rita', 'cg_r', 'write')}\n{line_of('pat', 'cg_p', 'publish')}\n")
    publishers = TokenFile(file, "INGEST_TOKENS_FILE", "publisher")
    async with ingest_server(readers=publishers.read) as server:
        without = await server.post(message(1))
        assert without.status_code == 401
        wrong = await server.post(message(1), authorization="Bearer cg_r")
        assert wrong.status_code == 401
        assert "contextgauge token NAME --publish" in wrong.json()["detail"]
        assert server.records() == []
        right = await server.post(message(1), authorization="Bearer cg_p")
        assert right.status_code == 202
        assert (await server.client.get("/healthz")).status_code == 200
    assert TokenFile(file, "SERVE_TOKENS_FILE").read() == {hashed("cg_r"): "rita"}


async def test_a_key_is_of_its_publisher() -> None:
    names = {hashed("cg_a"): "ann", hashed("cg_b"): "bob"}
    async with ingest_server(readers=lambda: names) as server:
        for token, sent in (("cg_a", message(1)), ("cg_b", message(2))):
            answer = await server.post(sent, authorization=f"Bearer {token}", idempotency_key="k")
            assert answer.status_code == 202
        assert len(server.records()) == 2


async def test_too_many_requests_are_answered_with_retry_after() -> None:
    async with ingest_server(requests_per_s=1) as server:
        answers = [await server.post(message(1)) for _ in range(11)]
    assert [answer.status_code for answer in answers] == [202] * 10 + [429]
    assert int(answers[-1].headers["retry-after"]) >= 1


async def test_an_away_broker_is_503_with_retry_after_and_not_ready() -> None:
    log = await memory()
    log.away = True
    async with ingest_server(log=log) as server:
        answer = await server.post(message(1))
        assert answer.status_code == 503
        assert answer.headers["retry-after"]
        assert isinstance(server.reported[0][1], RetryError)
        assert (await server.client.get("/readyz")).status_code == 503
        log.away = False
        await until(lambda: server.intake.is_connected)
        assert (await server.post(message(1))).status_code == 202
        async with asyncio.timeout(PATIENCE_S):
            while (await server.client.get("/readyz")).status_code != 200:  # noqa: ASYNC110 -- it is the server that knows
                await asyncio.sleep(0.05)


async def test_under_pressure_a_request_is_refused_whole_with_retry_after(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with ingest_server(answer_s=30) as server:
        gate = asyncio.Event()
        hold_acknowledgements(server, gate, monkeypatch)
        big = [message(number, filler="x" * 9_000) for number in range(10)]
        requests = [asyncio.create_task(server.post(big)) for _ in range(2 * WAITING // BODY_LIMIT)]
        done, waiting = await asyncio.wait(requests, return_when=asyncio.FIRST_COMPLETED)
        refused = done.pop().result()
        assert refused.status_code == 429
        assert refused.headers["retry-after"] == "1"
        assert "nothing of this request was taken" in refused.json()["detail"]
        gate.set()
        answers = [await each for each in waiting]
        accepted = [each for each in answers if each.status_code == 202]
        assert len(server.records()) == len(big) * len(accepted)
        assert (await server.post(message(99))).status_code == 202


async def test_a_silent_broker_is_503_and_nothing_that_was_accepted_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with ingest_server(answer_s=0.05) as server:
        gate = asyncio.Event()
        hold_acknowledgements(server, gate, monkeypatch)
        answer = await server.post(message(1))
        assert answer.status_code == 503
        assert "none is counted twice" in answer.json()["detail"]
        gate.set()
        await until(lambda: len(server.records()) == 1)


async def test_what_the_broker_refuses_is_not_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    async with ingest_server() as server:
        for number in range(PARTITIONS):
            monkeypatch.setattr(
                server.log.partition("agent.messages", number), "max_message_bytes", 500
            )
        answers = await asyncio.gather(
            server.post(message(1, filler="x" * 1_000)), server.post(message(2))
        )
        assert [answer.status_code for answer in answers] == [413, 202]
        assert server.values() == [message(2)]


async def test_a_limit_of_messages_is_for_both_forms(
    server: IngestServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MOST_MESSAGES", 2)
    assert (await server.post([message(number) for number in range(2)])).status_code == 202
    assert (await server.post([message(number) for number in range(3)])).status_code == 413
