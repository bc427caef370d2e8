"""Whatever is asked of the routes, there is no 500, and answers are as the document says."""

from collections.abc import Iterator
from typing import Any

import jsonschema
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from schemas.records import CompactBoundary
from streams.serve.api.guard import STREAM
from tests.serve.kit import GrowingViews, api_over, sample_records
from tests.serve.text_kit import OneConversation, kept_conversation

RECORDS = sample_records()
SESSION = next(r.data.session_id for r in RECORDS if isinstance(r.data, CompactBoundary))
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    unsupported_method,
]


def _app() -> Any:
    views = GrowingViews()
    views.add(*RECORDS)
    conversations = OneConversation(SESSION, kept_conversation())
    return api_over(views, only_here=False, conversations=conversations).app


# The feed never ends; tests/serve/test_stream.py asks it.
schema = schemathesis.openapi.from_asgi("/openapi.json", _app()).exclude(path=STREAM)


@schema.parametrize()
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_request_gets_a_valid_response(case: Any) -> None:
    case.call_and_validate(checks=CHECKS)


@schema.include(path_regex=r"\{").parametrize()
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_session_request_gets_a_valid_response(case: Any) -> None:
    case.path_parameters = dict.fromkeys(case.path_parameters, SESSION)
    case.call_and_validate(checks=CHECKS)


def operations_of(document: Any) -> Iterator[tuple[str, Any, str]]:
    """Yield the operations by path, each with the status of its success."""
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            yield f"{method} {path}", operation, "200" if method == "get" else "202"


async def test_the_document_lists_every_route_with_errors_and_an_example() -> None:
    document = await api_over(GrowingViews()).json("/openapi.json")
    assert set(document["paths"]) == {
        "/v1/sessions",
        "/v1/sessions/{session_id}",
        "/v1/sessions/{session_id}/events",
        "/v1/sessions/{session_id}/readings",
        "/v1/sessions/{session_id}/compactions",
        "/v1/sessions/{session_id}/rules",
        "/v1/sessions/{session_id}/costs",
        "/v1/sessions/{session_id}/what-if",
        "/v1/sessions/{session_id}/control",
        "/v1/sessions/{session_id}/compact",
        "/v1/sessions/{session_id}/compact/{command_id}",
        "/v1/sessions/{session_id}/text",
        "/v1/sessions/{session_id}/thresholds",
        "/v1/agents/{name}/thresholds",
        "/v1/projects/{name}/thresholds",
        "/v1/sessions/{session_id}/context",
        "/v1/sessions/{session_id}/history",
        "/v1/sessions/{session_id}/recall",
        "/v1/stats",
        "/v1/projection",
        "/v1/stream",
        "/api/agents/{agent_id}/events",
    }
    for path, operation, success in operations_of(document):
        assert {success, "401", "429", "500", "503"} <= set(operation["responses"]), path
        for status, told in operation["responses"].items():
            if int(status) >= 400:
                assert list(told["content"]) == ["application/problem+json"], (path, status)
        (content,) = operation["responses"][success]["content"].values()
        assert content.get("example") is not None, path


async def test_the_examples_are_of_the_shapes() -> None:
    document = await api_over(GrowingViews()).json("/openapi.json")
    for path, operation, success in operations_of(document):
        (content,) = operation["responses"][success]["content"].values()
        whole = {**content["schema"], "components": document["components"]}
        jsonschema.Draft202012Validator(whole).validate(content["example"])
        assert operation["summary"], path
