"""The OpenAPI document: the shapes of answers, problems of every route, and the bearer scheme."""

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core.core_schema import DataclassSchema, ModelSchema, WithDefaultSchema

from contextgauge import __version__
from streams import codec
from streams.serve.api import chat_shapes, control_shapes, cost_shapes, shapes, what_if_shapes
from streams.serve.api.routing import ApiRoute, problems_of

EXAMPLES: Final = Path(__file__).with_name("examples.json")
"""An answer of each route of `serve`, by its operation: written by `tools/record_examples.py`."""


class ApiFacts(NamedTuple):
    """What a document says in addition to its routes.

    `answers` has the shapes of successes by operations, `examples` an answer of each.
    """

    description: str
    answers: Mapping[str, Any]
    examples: Mapping[str, Any]


_EVERYWHERE: Final = (401, 413, 414, 429, 500, 503)

_BEARER: Final = {
    "type": "http",
    "scheme": "bearer",
    "description": "Needed where the server has a file of tokens.",
}

_OF_SERVE: Final = (
    "Sessions, their sizes and compactions, from the projection. Every answer has its "
    "generation and its age (`as_of`). Errors are problem documents (RFC 9457). Requests that "
    "change something are answered with 202 where the server allows them, else with 403."
)


_ANSWERS: Final[Mapping[str, Any]] = {
    "listSessions": shapes.SessionsAnswer,
    "listCompactions": shapes.CompactionsAnswer,
    "readRules": shapes.RulesAnswer,
    "readCosts": cost_shapes.CostsAnswer,
    "readWhatIf": what_if_shapes.WhatIfResponse,
    "listEvents": shapes.RecordsAnswer,
    "listReadings": shapes.RecordsAnswer,
    "readSession": shapes.SessionAnswer,
    "readStats": shapes.StatsAnswer,
    "readProjection": shapes.ProjectionAnswer,
    "listAgentEvents": list[chat_shapes.ChatEvent],
    "readContext": shapes.ContextAnswer,
    "readHistory": shapes.HistoryAnswer,
    "recallMessages": shapes.RecallAnswer,
    "readControl": control_shapes.ControlAnswer,
    **dict.fromkeys(
        (
            "compactSession",
            "cancelCommand",
            "deleteText",
            "setThresholds",
            "removeThresholds",
            "setAgentThresholds",
            "removeAgentThresholds",
            "setProjectThresholds",
            "removeProjectThresholds",
        ),
        control_shapes.AcceptedAnswer,
    ),
}
"""The shapes of successes, by operations. They are here since only the document needs them: a
server that is not asked for it does not import them."""


def served(routes: Sequence[ApiRoute]) -> dict[str, Any]:
    """Return the document of `serve`."""
    return document(ApiFacts(_OF_SERVE, _ANSWERS, codec.loads(EXAMPLES.read_bytes())), routes)


def document(facts: ApiFacts, routes: Sequence[ApiRoute]) -> dict[str, Any]:
    """Return the document of these routes."""
    schemas, components = _schemas(facts, routes)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        described = route.described
        parameters = components.pop(described.operation_id)
        operation = _operation(route, parameters, schemas.get(described.operation_id))
        for content in operation["responses"][str(described.status)]["content"].values():
            content["example"] = facts.examples.get(described.operation_id)
        paths.setdefault(route.path_format, {})[route.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "contextgauge",
            "description": facts.description,
            "version": __version__,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"bearer": _BEARER}},
    }


class _Schemas(GenerateJsonSchema):
    """Schemas without null as a default: what is left out there is no value.

    Answers are not closed, as later versions add fields.
    """

    def model_schema(self, schema: ModelSchema) -> JsonSchemaValue:
        return self._opened(super().model_schema(schema))

    def dataclass_schema(self, schema: DataclassSchema) -> JsonSchemaValue:
        return self._opened(super().dataclass_schema(schema))

    def _opened(self, made: JsonSchemaValue) -> JsonSchemaValue:
        if self.mode == "serialization" and made.get("additionalProperties") is False:
            del made["additionalProperties"]
        return made

    def default_schema(self, schema: WithDefaultSchema) -> JsonSchemaValue:
        made = super().default_schema(schema)
        if made.get("default", ...) is None:
            del made["default"]
        return made


def _schemas(facts: ApiFacts, routes: Sequence[ApiRoute]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the schemas of the answers by operation, and all that have names.

    Of these, those that are named as operations have the parameters.
    """
    adapters: list[tuple[str, JsonSchemaMode, TypeAdapter[Any]]] = [
        ("", "serialization", TypeAdapter(shapes.ProblemShape))
    ]
    for route in routes:
        name = route.described.operation_id
        adapters.append((name, "validation", TypeAdapter(route.model)))
        if route.described.status not in route.described.responses:
            adapters.append((name, "serialization", TypeAdapter(facts.answers[name])))
    schemas, named = TypeAdapter.json_schemas(
        adapters, ref_template="#/components/schemas/{model}", schema_generator=_Schemas
    )
    answers = {name: schema for (name, mode), schema in schemas.items() if mode == "serialization"}
    return answers, named["$defs"]


def _operation(route: ApiRoute, parameters: dict[str, Any], answer: object) -> dict[str, Any]:
    """Return the description of a route, by the schemas of its parameters and of its answer."""
    described, schemas = route.described, parameters["properties"]
    required = parameters.get("required", ())
    responses = dict(described.responses)
    if answer is not None:
        content = {"application/json": {"schema": answer}}
        responses[described.status] = {"description": "Successful Response", "content": content}
    operation: dict[str, Any] = {
        "tags": [described.tag],
        "summary": described.summary,
        "description": inspect.getdoc(route.function),
        "operationId": described.operation_id,
        "parameters": [],
        "responses": {
            str(status): response
            for status, response in (problems_of(*_EVERYWHERE) | responses).items()
        },
        "security": [{}, {"bearer": []}],
    }
    if described.body is not None:
        operation["requestBody"] = described.body
    for each in route.parameters:
        schema, is_required = schemas[each.argument], each.argument in required
        if each.place == "body":
            content = {"application/json": {"schema": schema}}
            operation["requestBody"] = {"required": is_required, "content": content}
            continue
        operation["parameters"].append(
            {
                "name": each.name,
                "in": each.place,
                "required": is_required,
                "schema": schema,
                "description": schema["description"],
            }
        )
    return operation
