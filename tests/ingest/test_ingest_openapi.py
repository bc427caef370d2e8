"""The OpenAPI document of the server of messages, against what the server answers."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from google.protobuf import json_format
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from tests.ingest.kit import IngestServer, hold_acknowledgements, ingest_server, lines, message
from tests.ingest.otlp_kit import spans
from tests.serve.kit import GrowingViews, api_over

JSON, NDJSON, PROTOBUF = "application/json", "application/x-ndjson", "application/x-protobuf"


@pytest.fixture
async def server() -> AsyncIterator[IngestServer]:
    """A server that anyone may publish to."""
    async with ingest_server() as server:
        yield server


async def _document(server: IngestServer) -> Any:
    return (await server.client.get("/openapi.json")).json()


def _check(document: Any, path: str, answer: httpx.Response) -> None:
    """Fail unless the document has the answer's status, media type and shape."""
    described = document["paths"][path]["post"]["responses"][str(answer.status_code)]
    media_type = answer.headers["content-type"].partition(";")[0]
    schema = described["content"][media_type]["schema"]
    if media_type != PROTOBUF:
        whole = {**schema, "components": document["components"]}
        Draft202012Validator(whole).validate(answer.json())


@pytest.mark.extended
async def test_both_documents_are_valid_openapi(server: IngestServer) -> None:
    for document in (
        await _document(server),
        await api_over(GrowingViews()).json("/openapi.json"),
    ):
        assert list(OpenAPIV31SpecValidator(document).iter_errors()) == []


async def test_every_route_is_described_and_on_the_page(server: IngestServer) -> None:
    document = await _document(server)
    assert set(document["paths"]) == {"/v1/messages", "/v1/logs", "/v1/traces", "/v1/metrics"}
    page = (await server.client.get("/docs")).text
    for path, operations in document["paths"].items():
        assert f"POST {path}" in page
        for body in operations["post"]["requestBody"]["content"]:
            # What the document allows is read: nothing of it is refused as another form.
            answer = await server.post(b"", path, content_type=body)
            assert answer.status_code != 415, (path, body)
            _check(document, path, answer)


@pytest.mark.parametrize(
    ("status", "content", "headers", "query"),
    [
        (202, message(1), {}, ""),
        (202, lines(message(1), message(2)), {"content_type": NDJSON}, ""),
        (202, [message(1)], {"idempotency_key": "k"}, "?agent_id=a&live=false"),
        (400, b"no gzip", {"content_encoding": "gzip"}, ""),
        (403, message(1), {"origin": "https://elsewhere.example"}, ""),
        (413, [message(n) for n in range(10_001)], {}, ""),
        (415, b"<a/>", {"content_type": "text/xml"}, ""),
        (422, [message(1), "no object"], {}, ""),
        (422, lines(message(1)) + b"no json\n", {"content_type": NDJSON}, ""),
        (422, message(1), {}, "?agnt_id=a"),
        (422, b"{", {}, ""),
    ],
)
async def test_answers_to_messages_are_as_described(
    server: IngestServer, status: int, content: object, headers: dict[str, str], query: str
) -> None:
    answer = await server.post(content, f"/v1/messages{query}", **headers)
    assert answer.status_code == status, answer.text
    _check(await _document(server), "/v1/messages", answer)


async def test_a_wrong_member_of_an_array_is_named_by_its_index(server: IngestServer) -> None:
    answer = await server.post([message(0), message(1), []])
    assert [(each["index"], each["reason"]) for each in answer.json()["errors"]] == [
        (2, "not_object")
    ]


@pytest.mark.parametrize("kind", ["logs", "traces", "metrics"])
@pytest.mark.parametrize(
    ("status", "content", "headers"),
    [
        (200, {}, {"content_type": JSON}),
        (200, b"", {"content_type": PROTOBUF}),
        (400, b"no gzip", {"content_type": PROTOBUF, "content_encoding": "gzip"}),
        (403, {}, {"origin": "https://elsewhere.example"}),
        (415, {}, {"content_type": "text/xml"}),
    ],
)
async def test_answers_to_telemetry_are_as_described(
    server: IngestServer, kind: str, status: int, content: object, headers: dict[str, str]
) -> None:
    answer = await server.post(content, f"/v1/{kind}", **headers)
    assert answer.status_code == status, answer.text
    _check(await _document(server), f"/v1/{kind}", answer)


async def test_a_partial_success_is_as_described(server: IngestServer) -> None:
    call = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 3}
    body = json_format.MessageToJson(spans({"service.name": "nameless"}, call)).encode()
    answer = await server.post(body, "/v1/traces")
    assert answer.json()["partialSuccess"]["rejectedSpans"] == "1"
    _check(await _document(server), "/v1/traces", answer)


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/logs"])
async def test_refusals_before_the_body_is_read_are_as_described(path: str) -> None:
    body = b"{}" if path == "/v1/logs" else b'{"type": "user", "session_id": "s"}'
    statuses = []
    async with ingest_server(readers=dict, requests_per_s=1) as server:
        document = await _document(server)
        for _ in range(12):
            answer = await server.post(body, path)
            statuses.append(answer.status_code)
            _check(document, path, answer)
        large = await server.post(b" " * 200_000, path)
        _check(document, path, large)
    assert set(statuses) == {401, 429}
    assert large.status_code == 413


@pytest.mark.extended
async def test_a_broker_that_does_not_answer_is_as_described(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with ingest_server(answer_s=0.01) as server:
        hold_acknowledgements(server, asyncio.Event(), monkeypatch)
        answer = await server.post(message(1))
        assert answer.status_code == 503
        _check(await _document(server), "/v1/messages", answer)
