"""The OpenAPI document of `contextgauge ingest`: messages, and the requests of OTLP/HTTP."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final

from pydantic import BaseModel, Field, TypeAdapter

from schemas.messages import DeadReason
from streams.edge.content_encoding import ENCODINGS
from streams.ingest.otlp.decoding import MEDIA_TYPES, REJECTED
from streams.serve.api.openapi import ApiFacts, document
from streams.serve.api.routing import ApiRoute, problems_of

_DESCRIPTION: Final = (
    "Messages of agent runtimes, and telemetry of OpenTelemetry's exporters. Every request is "
    "answered once Kafka has its messages. Errors are problem documents (RFC 9457), those of what "
    "is in telemetry a `google.rpc.Status`, as OTLP has it."
)


class TakenAnswer(BaseModel):
    """Kafka has the messages."""

    accepted: int = Field(description="Messages that were published.", ge=0)
    ignored: int = Field(description="Messages that mean nothing and name no session.", ge=0)


class WrongMessage(BaseModel):
    """A message that cannot be published; its line from 1, or its index in the array from 0."""

    line: int | None = None
    index: int | None = None
    reason: DeadReason
    message: str


_MESSAGES: Final = ApiFacts(
    _DESCRIPTION, {"publish": TakenAnswer}, {"publish": {"accepted": 3, "ignored": 1}}
)

_BINARY: Final = {"type": "string", "format": "binary"}
_ENCODING: Final = {
    "name": "Content-Encoding",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "enum": ["identity", *ENCODINGS]},
    "description": "How the body is compressed.",
}
_OF_BOTH: Final = (413, 415, 429, 503)
"""A problem before the form of telemetry is known, then a `google.rpc.Status`."""
_OF_THE_GUARD: Final = (401, 403, 408, 414, 500)


def ingested(routes: Sequence[ApiRoute]) -> dict[str, Any]:
    """Return the document of these routes and of OTLP's."""
    made = document(_MESSAGES, routes)
    for operations in made["paths"].values():
        operations["post"]["parameters"].append(_ENCODING)
    named = made["components"]["schemas"]
    named["WrongMessage"] = TypeAdapter(WrongMessage).json_schema()
    _, null = named["ProblemShape"]["properties"]["errors"]["anyOf"]
    wrong = [
        {"$ref": f"#/components/schemas/{name}"} for name in ("WrongParameter", "WrongMessage")
    ]
    errors = {"type": "array", "items": {"anyOf": wrong}}
    named["ProblemShape"]["properties"]["errors"]["anyOf"] = [errors, null]
    named["Status"] = {
        "type": "object",
        "description": "A `google.rpc.Status`.",
        "properties": {"message": {"type": "string"}},
        "required": ["message"],
    }
    for kind, rejected in REJECTED.items():
        made["paths"][f"/v1/{kind}"] = {"post": _export(kind, rejected)}
    return made


def _export(kind: str, rejected: str) -> dict[str, Any]:
    """Return the operation that takes this kind of telemetry."""
    first, *others = rejected.split("_")
    success = {
        "type": "object",
        "properties": {
            "partialSuccess": {
                "type": "object",
                "properties": {
                    first + "".join(part.capitalize() for part in others): {
                        "type": "string",
                        "pattern": "^[0-9]+$",
                        "description": "How many were not taken: a number of 64 bits, as text.",
                    },
                    "errorMessage": {"type": "string", "description": "Why, and what to do."},
                },
            }
        },
    }
    status = {"$ref": "#/components/schemas/Status"}
    bad = HTTPStatus.BAD_REQUEST
    responses = {
        int(HTTPStatus.OK): _in_both_forms("Kafka has what was used", success),
        int(bad): _in_both_forms(bad.phrase, status),
        **problems_of(*_OF_THE_GUARD, *_OF_BOTH),
    }
    for code in _OF_BOTH:
        responses[code]["content"].update(_in_both_forms("", status)["content"])
    unused = " They are accepted and not used." if kind == "metrics" else ""
    return {
        "tags": ["telemetry"],
        "summary": f"Take {kind} of OpenTelemetry",
        "description": f"An `Export…ServiceRequest` of OTLP/HTTP with {kind}.{unused}",
        "operationId": f"export{kind.capitalize()}",
        "parameters": [_ENCODING],
        "requestBody": {
            "required": True,
            "content": {
                media_type: {"schema": {"type": "object"} if form == "json" else _BINARY}
                for media_type, form in MEDIA_TYPES.items()
            },
        },
        "responses": {str(code): response for code, response in sorted(responses.items())},
        "security": [{}, {"bearer": []}],
    }


def _in_both_forms(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    content = {
        media_type: {"schema": schema if form == "json" else _BINARY}
        for media_type, form in MEDIA_TYPES.items()
    }
    return {"description": description, "content": content}
