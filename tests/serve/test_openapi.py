"""Whatever is asked of the routes, there is no 500, and answers are as the document says."""

from collections.abc import Iterator
from typing import Any

import jsonschema

from schemas.records import CompactBoundary
from tests.serve.kit import GrowingViews, api_over, sample_records

RECORDS = sample_records()
SESSION = next(r.data.session_id for r in RECORDS if isinstance(r.data, CompactBoundary))


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
        for status, value in operation["responses"].items():
            if int(status) >= 400:
                assert list(value["content"]) == ["application/problem+json"], (path, status)
        (content,) = operation["responses"][success]["content"].values()
        assert content.get("example") is not None, path


async def test_the_examples_are_of_the_shapes() -> None:
    document = await api_over(GrowingViews()).json("/openapi.json")
    for path, operation, success in operations_of(document):
        (content,) = operation["responses"][success]["content"].values()
        whole = {**content["schema"], "components": document["components"]}
        jsonschema.Draft202012Validator(whole).validate(content["example"])
        assert operation["summary"], path
