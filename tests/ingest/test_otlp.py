"""OTLP over HTTP: which messages events and spans become, and the answers of the protocol."""

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceResponse,
)

from contextgauge.normalise.signals import InputMessage
from contextgauge.window_catalog import bundled
from schemas.records import (
    CompactBoundary,
    CompactionFailed,
    ContextLimits,
    ContextReading,
    RecordData,
    SessionInfo,
)
from streams import codec
from streams.core.derivation.rules_config import Rules
from streams.flow.derive.deriver import Deriver
from tests.ingest.kit import IngestServer, ingest_server, zipped
from tests.ingest.otlp_kit import AT_NS, logs, spans
from tests.library.delivery_kit import memory

PROTOBUF = "application/x-protobuf"
JSON = "application/json"
AT = codec.rfc3339(AT_NS // 1_000_000)

RECORDED = Path(__file__).with_name("claude_code_export.json")

CLAUDE = {"service.name": "claude-code", "service.version": "2.1.300"}
GEMINI = {"service.name": "gemini-cli", "service.version": "v22.21.1"}  # of Node
QWEN = {"service.name": "qwen-code"}
CODEX = {"service.name": "codex_cli_rs"}
AGENT = {"service.name": "my-agent"}

MAIN = {
    "session.id": "s",
    "event.name": "api_request",
    "query_source": "repl_main_thread",
    "model": "claude-sonnet-4-5",
    "input_tokens": "12",
    "cache_read_tokens": "40000",
    "cache_creation_tokens": 500,
    "output_tokens": 30,
    "request_id": "req_1",
}


@pytest.fixture
async def server() -> AsyncIterator[IngestServer]:
    """A server that anyone may publish to."""
    async with ingest_server() as server:
        yield server


async def export(server: IngestServer, request: Any, **headers: str) -> httpx.Response:
    """Send a request as protobuf."""
    path = "/v1/logs" if isinstance(request, ExportLogsServiceRequest) else "/v1/traces"
    named = {"content_type": PROTOBUF, **headers}
    return await server.post(request.SerializeToString(), path, **named)


def derived(server: IngestServer) -> list[RecordData]:
    """Return the records of what arrived."""
    deriver = Deriver(Rules(bundled()))
    return [
        record.data
        for each in server.records()
        for record in deriver.derive(
            InputMessage(each.value or b"", (each.key or b"").decode())
        ).records
    ]


def of_kind(server: IngestServer, kind: type[Any]) -> list[Any]:
    """Return the records of a kind."""
    return [data for data in derived(server) if isinstance(data, kind)]


def sizes(server: IngestServer) -> list[tuple[str, int, int | None]]:
    """Return chain, size and cached tokens of all readings."""
    readings = of_kind(server, ContextReading)
    return [(data.chain, data.used_tokens, data.cache_read_tokens) for data in readings]


async def test_a_response_of_claude_code_is_a_reading_of_its_session(server: IngestServer) -> None:
    answer = await export(server, logs(CLAUDE, ("claude_code.api_request", MAIN)))
    assert answer.status_code == 200
    assert answer.headers["content-type"] == PROTOBUF
    assert ExportLogsServiceResponse.FromString(answer.content) == ExportLogsServiceResponse()
    facts, response = server.values()
    assert {record.key for record in server.records()} == {b"s"}
    assert {record.headers for record in server.records()} == {()}
    assert (facts["runtime"], facts["runtime_version"]) == ("claude-code", "2.1.300")
    assert response["timestamp"] == AT
    assert response["message"]["model"] == "claude-sonnet-4-5"
    (reading,) = of_kind(server, ContextReading)
    assert (reading.chain, reading.used_tokens, reading.response_id) == ("main", 40_512, "req_1")


@pytest.mark.parametrize(
    ("source", "is_main"),
    [
        ("repl_main_thread", True),
        ("repl_main_thread:outputStyle:custom", True),
        ("sdk", True),
        ("agent:builtin:Explore", False),
        ("session_memory", False),
        (None, False),
    ],
)
async def test_only_the_main_conversation_of_claude_code_has_a_size(
    server: IngestServer, source: str | None, is_main: bool
) -> None:
    event = {name: value for name, value in MAIN.items() if name != "query_source"}
    if source is not None:
        event["query_source"] = source
    answer = await export(server, logs(CLAUDE, ("claude_code.api_request", event)))
    assert answer.status_code == 200
    assert (sizes(server) == [("main", 40_512, 40_000)]) is is_main
    assert bool(server.records()) is is_main


async def test_an_export_of_claude_code_gives_its_sizes_and_its_compaction_with_its_cost(
    server: IngestServer,
) -> None:
    # By Claude Code 2.1.332, with a server that answered with these counts; without identities.
    answer = await server.post(RECORDED.read_bytes(), "/v1/logs")
    assert (answer.status_code, answer.json()) == (200, {})
    assert sizes(server) == [("main", 20_108, 20_001), ("main", 20_111, 20_004)]
    (boundary,) = of_kind(server, CompactBoundary)
    assert (boundary.trigger, boundary.duration_ms) == ("manual", 648)
    assert (boundary.pre_tokens, boundary.post_tokens) == (2_500, 2_531)
    assert boundary.receipt.summary_input_tokens == 20_110
    assert boundary.receipt.summary_output_tokens == 5


async def test_compactions_of_claude_code_keep_trigger_sizes_and_duration(
    server: IngestServer,
) -> None:
    done = {
        "session.id": "s",
        "event.name": "compaction",
        "trigger": "auto",
        "success": "true",
        "pre_tokens": "160000",
        "post_tokens": "9000",
        "duration_ms": "41000",
    }
    failed = {"session.id": "s", "success": "false", "error": "API Error", "trigger": "manual"}
    await export(
        server, logs(CLAUDE, ("claude_code.compaction", done), ("claude_code.compaction", failed))
    )
    (boundary,) = of_kind(server, CompactBoundary)
    assert (boundary.trigger, boundary.pre_tokens, boundary.post_tokens) == ("auto", 160_000, 9_000)
    assert (boundary.duration_ms, boundary.duration_source) == (41_000, "reported")
    (failure,) = of_kind(server, CompactionFailed)
    assert (failure.outcome, failure.error) == ("failed", "API Error")


@pytest.mark.parametrize(("role", "expected"), [("main", 1), ("subagent", 0), (None, 0)])
async def test_a_response_of_gemini_cli_counts_where_its_role_is_main(
    server: IngestServer, role: str | None, expected: int
) -> None:
    event = {
        "session.id": "g",
        "event.name": "gemini_cli.api_response",
        "model": "gemini-3-pro",
        "input_token_count": 9_000,
        "cached_content_token_count": 8_000,
        **({} if role is None else {"role": role}),
    }
    await export(server, logs(GEMINI, ("API response from gemini-3-pro.", event)))
    assert sizes(server) == [("main", 9_000, 8_000)] * expected
    versions = [(each.runtime, each.runtime_version) for each in of_kind(server, SessionInfo)]
    assert versions == [("gemini", None)] * expected


async def test_a_response_of_qwen_code_counts_where_its_prompt_is_of_the_session(
    server: IngestServer,
) -> None:
    def event(prompt: str, **more: object) -> tuple[str, dict[str, object]]:
        name = {"event.name": "qwen-code.api_response", "session.id": "q", "prompt_id": prompt}
        counts = {"input_token_count": 7_000, "cached_content_token_count": 0}
        return "API response", {**name, **counts, "response_id": prompt, **more}

    await export(
        server,
        logs(
            QWEN,
            event("q########4"),
            event("side-query:title"),
            event("q#agent-1#0", subagent_name="explorer"),
            event("q########5", subagent_name="explorer"),
        ),
    )
    assert sizes(server) == [("main", 7_000, 0)]


@pytest.mark.parametrize("runtime", ["gemini_cli", "qwen-code"])
async def test_a_chat_compression_is_a_boundary_unless_it_made_the_chat_larger(
    server: IngestServer, runtime: str
) -> None:
    def event(before: int, after: int) -> tuple[str, dict[str, object]]:
        name = {"event.name": f"{runtime}.chat_compression", "session.id": "c"}
        return "Chat compression", {**name, "tokens_before": before, "tokens_after": after}

    await export(server, logs({}, event(90_000, 20_000), event(20_000, 30_000)))
    boundaries = of_kind(server, CompactBoundary)
    assert [(each.pre_tokens, each.post_tokens) for each in boundaries] == [(90_000, 20_000)]
    assert boundaries[0].trigger is None


async def test_codex_reports_its_window_and_the_sizes_of_its_thread(server: IngestServer) -> None:
    thread = {"conversation.id": "t", "app.version": "0.154.0", "model": "gpt-5.5"}
    start = {"event.name": "codex.conversation_starts", "context_window": 272_000}
    done = {
        "event.name": "codex.sse_event",
        "event.kind": "response.completed",
        "input_token_count": "100000",
        "cached_token_count": 90_000,
        "output_token_count": "400",
    }
    other = {"event.name": "codex.sse_event", "event.kind": "response.created"}
    broken = {"event.name": "codex.sse_event", "event.kind": "response.completed"}
    events = [{**thread, **each, "auto_compact_token_limit": 244_800} for each in (start,)]
    events += [{**thread, **each} for each in (other, done, broken)]
    await export(server, logs(CODEX, *((str(each["event.name"]), each) for each in events)))
    (reading,) = of_kind(server, ContextReading)
    assert (reading.window, reading.window_source) == (272_000, "runtime")
    assert of_kind(server, ContextLimits)[-1].auto_compact_threshold == 244_800
    assert sizes(server) == [("main", 100_000, 90_000)]


CALL = {
    "gen_ai.operation.name": "chat",
    "gen_ai.conversation.id": "conv_1",
    "gen_ai.request.model": "my-model",
    "gen_ai.response.id": "resp_1",
    "gen_ai.usage.input_tokens": 5_000,
    "gen_ai.usage.output_tokens": 20,
}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, [("main", 5_000, None)]),
        ({"gen_ai.usage.cache_read.input_tokens": 4_000}, [("main", 5_000, 4_000)]),
        # An instrumentation that counts cached tokens next to the input.
        (
            {
                "gen_ai.usage.cache_read.input_tokens": 90_000,
                "gen_ai.usage.cache_creation.input_tokens": 1_000,
            },
            [("main", 96_000, 90_000)],
        ),
        ({"gen_ai.operation.name": "invoke_agent"}, []),
        ({"gen_ai.operation.name": "execute_tool"}, []),
        ({"gen_ai.agent.id": "a", "gen_ai.main_agent.id": "a"}, [("main", 5_000, None)]),
        ({"gen_ai.agent.id": "b", "gen_ai.main_agent.id": "a"}, [("b", 5_000, None)]),
        ({"gen_ai.usage.input_tokens": -1}, []),
        ({"gen_ai.usage.input_tokens": "many"}, []),
        ({"gen_ai.usage.input_tokens": True}, []),
        ({"gen_ai.usage.input_tokens": 5_000.0}, [("main", 5_000, None)]),
        ({"gen_ai.usage.input_tokens": 5_000.5}, []),
    ],
)
async def test_a_span_of_a_models_call_is_a_reading_by_the_conventions(
    server: IngestServer, more: Mapping[str, Any], expected: list[object]
) -> None:
    answer = await export(server, spans(AGENT, {**CALL, **more}))
    assert answer.status_code == 200
    assert sizes(server) == expected
    windows = {getattr(data, "window", None) for data in derived(server)}
    assert windows <= {None}, "the window of an unknown model is not assumed"


async def test_spans_of_runtimes_whose_logs_are_read_are_not_read_twice(
    server: IngestServer,
) -> None:
    assert (await export(server, spans(GEMINI, CALL))).status_code == 200
    assert server.records() == []


async def test_an_export_that_is_sent_again_counts_nothing_twice(server: IngestServer) -> None:
    request = logs(CLAUDE, ("claude_code.api_request", MAIN), ("claude_code.api_request", MAIN))
    await export(server, request)
    once = derived(server)
    await export(server, request)
    assert derived(server) == once
    assert sizes(server) == [("main", 40_512, 40_000)], "of two lines of one response"


async def test_json_is_read_and_answered_as_json(server: IngestServer) -> None:
    request = logs(CLAUDE, ("claude_code.api_request", MAIN))
    document = json.loads(json_format.MessageToJson(request))
    (record,) = document["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    record |= {"traceId": "5b8efff798038103d269b633813fc60c", "unknownField": [1]}
    answer = await server.post(document, "/v1/logs")
    assert (answer.status_code, answer.json()) == (200, {})
    assert sizes(server) == [("main", 40_512, 40_000)]


async def test_compressed_exports_are_taken(server: IngestServer) -> None:
    request = logs(CLAUDE, ("claude_code.api_request", MAIN))
    body = zipped(request.SerializeToString())
    answer = await server.post(body, "/v1/logs", content_type=PROTOBUF, content_encoding="gzip")
    assert answer.status_code == 200
    assert len(server.records()) == 2


async def test_items_without_a_session_are_rejected_in_part_and_the_answer_says_why(
    server: IngestServer,
) -> None:
    nameless = {name: value for name, value in MAIN.items() if name != "session.id"}
    request = logs(
        CLAUDE,
        ("claude_code.api_request", nameless),
        ("claude_code.api_request", MAIN),
        ("claude_code.tool_result", {"session.id": "s"}),
    )
    answer = await export(server, request)
    assert answer.status_code == 200
    partial = ExportLogsServiceResponse.FromString(answer.content).partial_success
    assert partial.rejected_log_records == 1
    assert "session.id" in partial.error_message
    assert len(sizes(server)) == 1
    metrics = server.metrics()
    assert 'ingest_messages_total{outcome="refused"} 1.0' in metrics
    assert 'ingest_messages_total{outcome="ignored"} 1.0' in metrics
    spanless = {name: value for name, value in CALL.items() if name != "gen_ai.conversation.id"}
    answer = await export(server, spans(AGENT, spanless))
    refused = ExportTraceServiceResponse.FromString(answer.content).partial_success
    assert (refused.rejected_spans, "gen_ai.conversation.id" in refused.error_message) == (1, True)


async def test_metrics_are_taken_and_not_used(server: IngestServer) -> None:
    answer = await server.post(b"", "/v1/metrics", content_type=PROTOBUF)
    assert answer.status_code == 200
    assert ExportMetricsServiceResponse.FromString(answer.content) == ExportMetricsServiceResponse()
    assert server.records() == []


@pytest.mark.parametrize(
    ("content", "media_type", "status", "explained"),
    [
        (b"\xff\xff", PROTOBUF, 400, "not logs of OTLP in protobuf"),
        (b"[]", JSON, 400, "not logs of OTLP in json"),
        (b'{"resourceLogs": 3}', JSON, 400, "not logs of OTLP in json"),
        (b"", "application/grpc", 415, "OTEL_EXPORTER_OTLP_PROTOCOL"),
    ],
)
async def test_what_is_no_otlp_is_explained(
    server: IngestServer, content: bytes, media_type: str, status: int, explained: str
) -> None:
    answer = await server.post(content, "/v1/logs", content_type=media_type)
    assert answer.status_code == status
    assert explained.encode() in answer.content
    assert server.records() == []


@pytest.mark.extended
async def test_an_away_broker_is_503_with_retry_after_and_a_status_in_the_same_form() -> None:
    log = await memory()
    log.away = True
    async with ingest_server(log=log) as server:
        request = logs(CLAUDE, ("claude_code.api_request", MAIN))
        answer = await export(server, request)
        assert answer.status_code == 503
        assert answer.headers["retry-after"]
        assert answer.headers["content-type"] == PROTOBUF
        assert b"send them again" in answer.content
        document = json.loads(json_format.MessageToJson(request))
        as_json = await server.post(document, "/v1/logs")
        assert (as_json.status_code, "send them again" in as_json.json()["message"]) == (503, True)
