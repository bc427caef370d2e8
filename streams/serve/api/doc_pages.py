"""Pages without scripts: the description of the API, and what is at an address without anything."""

import html
import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from streams import codec
from streams.serve.api.routing import PlainRoute

HEADERS: Final = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}


def document_routes(document: Callable[[], dict[str, Any]]) -> list[PlainRoute]:
    """Return the routes of an API's description, which is made when it is asked for."""
    of_api_once = cache(document)

    async def as_json(_: Request) -> Response:
        return Response(codec.dumps(of_api_once()), media_type="application/json")

    async def as_page(_: Request) -> Response:
        return HTMLResponse(of_api(of_api_once()), headers=HEADERS)

    return [PlainRoute("/openapi.json", as_json), PlainRoute("/docs", as_page)]


def of_api(document: dict[str, Any]) -> str:
    """Return the OpenAPI document as a page: nothing in it is from elsewhere."""
    parts = []
    for path, operations in document["paths"].items():
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
    title = document["info"]["title"]
    return _whole(
        title,
        f"<h1>{html.escape(title)}</h1>"
        f"<p>{_written(document['info']['description'])}</p>"
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
    "margin:2rem auto;padding:0 1rem;overflow-wrap:anywhere}h2{font-size:1.1rem;margin-top:2rem}"
    "table{border-collapse:collapse}td{padding:.2rem 1rem .2rem 0;vertical-align:top}"
    "section{border-top:1px solid color-mix(in srgb,currentColor 25%,transparent)}"
)
