"""The OpenAPI document: problems of every route, the bearer scheme, and a page without scripts."""

import html
import inspect
import re
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter
from pydantic.json_schema import JsonSchemaMode

from streams import codec
from streams.serve.api.problems import MEDIA_TYPE
from streams.serve.api.routing import ApiRoute
from streams.serve.api.shapes import ProblemShape

EXAMPLES: Final = Path(__file__).with_name("examples.json")
"""An answer of each route, by its operation: written by `tools/record_examples.py`."""

_EVERYWHERE: Final = (401, 413, 414, 429, 500, 503)

_BEARER: Final = {
    "type": "http",
    "scheme": "bearer",
    "description": "Needed where the server was given readers.",
}

_DESCRIPTION: Final = (
    "Sessions, their sizes and compactions, from the projection. Every answer has its "
    "generation and its age (`as_of`). Errors are problem documents (RFC 9457). Requests that "
    "change something are answered with 202 where the server allows them, else with 403."
)


def problems_of(*statuses: int) -> dict[int, dict[str, Any]]:
    """Return the description of a route's errors, for these statuses."""
    return {
        status: {
            "description": HTTPStatus(status).phrase,
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemShape"}}},
        }
        for status in statuses
    }


def document(version: str, routes: Sequence[ApiRoute]) -> dict[str, Any]:
    """Return the document of these routes."""
    schemas, components = _schemas(routes)
    examples = codec.loads(EXAMPLES.read_bytes())
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        described = route.described
        parameters = components.pop(described.operation_id)
        operation = _operation(route, parameters, schemas.get(described.operation_id))
        for content in operation["responses"][str(described.status)]["content"].values():
            content["example"] = examples.get(described.operation_id)
        paths.setdefault(route.path_format, {})[route.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "contextgauge", "description": _DESCRIPTION, "version": version},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"bearer": _BEARER}},
    }


def _schemas(routes: Sequence[ApiRoute]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the schemas of the answers by operation, and all that have names.

    Of these, those that are named as operations have the parameters.
    """
    adapters: list[tuple[str, JsonSchemaMode, TypeAdapter[Any]]] = [
        ("", "validation", TypeAdapter(ProblemShape))
    ]
    for route in routes:
        name, answer = route.described.operation_id, route.described.answer
        adapters.append((name, "validation", TypeAdapter(route.model)))
        if answer is not None:
            adapters.append((name, "serialization", TypeAdapter(answer)))
    schemas, named = TypeAdapter.json_schemas(adapters, ref_template="#/components/schemas/{model}")
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
    for each in route.parameters:
        schema, is_required = schemas[each.argument], each.argument in required
        if each.place == "body":
            content = {"application/json": {"schema": schema}}
            operation["requestBody"] = {"required": is_required, "content": content}
            continue
        if schema.get("default", ...) is None:  # left out, it is no value
            del schema["default"]
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


def page(schema: dict[str, Any]) -> str:
    """Return the document as a page: no script, nothing from elsewhere."""
    parts = []
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            rows = "".join(
                f"<tr><td><code>{html.escape(item['name'])}</code></td>"
                f"<td>{_written(item.get('description', ''))}{_allowed(item['schema'])}</td></tr>"
                for item in operation.get("parameters", ())
            )
            text = operation.get("description", operation.get("summary", ""))
            parts.append(
                f"<section><h2><code>{method.upper()} {html.escape(path)}</code></h2>"
                + "".join(f"<p>{_written(each)}</p>" for each in text.split("\n\n"))
                + (f"<table>{rows}</table>" if rows else "")
                + "</section>"
            )
    title = schema["info"]["title"]
    return _whole(
        title,
        f"<h1>{html.escape(title)}</h1>"
        f"<p>{_written(schema['info']['description'])}</p>"
        "<p>The whole document, with the shapes of all answers: "
        '<a href="/openapi.json">openapi.json</a>.</p>'
        f"{''.join(parts)}",
    )


def nothing_here(path: str) -> str:
    """Return what a browser shows at an address where nothing is."""
    return _whole(
        "Nothing here",
        f"<h1>There is nothing at <code>{html.escape(path[:200])}</code></h1>"
        '<p><a href="/">The sessions</a> are on the first page; <a href="/docs">the API</a> has '
        "a page of its own.</p>",
    )


def _whole(title: str, body: str) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head>"
        f"<body>{body}</body></html>"
    )


def _written(text: str) -> str:
    """Return a description in HTML: what stands between backticks is code."""
    return _CODE.sub(r"<code>\1</code>", html.escape(text))


def _allowed(schema: dict[str, Any]) -> str:
    """Return what values a parameter takes, in HTML: names or bounds, and the default."""
    forms = [schema, *schema.get("anyOf", ())]
    forms += [form["items"] for form in forms if "items" in form]
    values = []
    for form in forms:
        if "enum" in form:
            names = (f"<code>{html.escape(str(name))}</code>" for name in form["enum"])
            values.append(f"One of {', '.join(names)}.")
        if "maximum" in form:
            values.append(f"{form['minimum']:,} to {form['maximum']:,}.")
    if "default" in schema:
        values.append(f"Default <code>{html.escape(str(schema['default']))}</code>.")
    return "".join(f"<br>{each}" for each in values)


_CODE: Final = re.compile("`([^`]+)`")

_STYLE: Final = (
    ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;"
    "margin:2rem auto;padding:0 1rem}h2{font-size:1.1rem;margin-top:2rem}"
    "table{border-collapse:collapse}td{padding:.2rem 1rem .2rem 0;vertical-align:top}"
    "section{border-top:1px solid color-mix(in srgb,currentColor 25%,transparent)}"
)
