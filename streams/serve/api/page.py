"""The web page at `/`: files of `streams/serve/page/`, read once and served from memory.

All files but the first have addresses that hold a hash of all of them, so a browser keeps them
for ever and never mixes two versions. Nothing is fetched from elsewhere and nothing is run that
is not a file of ours: the policy says so to the browser.
"""

import hashlib
import html
from http import HTTPStatus
from pathlib import Path
from typing import Final, NamedTuple, get_args

from starlette.requests import Request
from starlette.responses import Response

from contextgauge import json_codec
from contextgauge.normalise.runtimes import FIGURE_TABLE
from schemas.records import Runtime
from streams.serve.api.routing import PlainRoute

FOLDER: Final = Path(__file__).parents[1] / "page"

_INDEX: Final = "index.html"
_BASE: Final = b"@@"
"""Stands in the first file for the folder of the others."""

_MODULES: Final = b"<!-- modules -->"
"""Stands there for the names of all modules, so that a browser fetches them at once and not one
after the other as they name each other."""

_RUNTIMES: Final = b"@runtimes@"
"""Stands there for the names that records have of runtimes, by which sessions are filtered."""

_FIGURES: Final = b"@figures@"
"""Stands there for the table of where figures come from, as JSON."""

_SCRIPTS: Final = ("theme.js",)
"""No modules: run before the page is painted."""

_HASH_CHARACTERS: Final = 16

_MEDIA_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

_FOR_EVER: Final = "public, max-age=31536000, immutable"
_ASK: Final = "no-cache"


class Page(NamedTuple):
    """The page's files by name, below a folder that is named by their hash."""

    base: str
    first: bytes
    files: dict[str, bytes]


def read_page(folder: Path = FOLDER) -> Page:
    """Read the page. What was not fetched for this installation (`vendor/`) is just not there."""
    files = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.suffix in _MEDIA_TYPES
    }
    index = files.pop(_INDEX).replace(_RUNTIMES, " ".join(get_args(Runtime)).encode())
    figures = html.escape(json_codec.dumps(FIGURE_TABLE).decode())
    index = index.replace(_FIGURES, figures.encode())
    digest = hashlib.sha256(index)
    for name, content in files.items():
        digest.update(b"\0".join((name.encode(), hashlib.sha256(content).digest())))
    base = f"page/{digest.hexdigest()[:_HASH_CHARACTERS]}"
    modules = "\n".join(
        f'<link rel="modulepreload" href="@@/{name}">'
        for name in files
        if name.endswith(".js") and "/" not in name and name not in _SCRIPTS
    )
    first = index.replace(_MODULES, modules.encode()).replace(_BASE, base.encode())
    return Page(base, first, files)


def page_routes(folder: Path = FOLDER) -> list[PlainRoute]:
    """Return the page's routes. They need no token: there is nothing of any session in them."""
    page = read_page(folder)
    tag = f'"{page.base.rpartition("/")[2]}"'

    async def index(request: Request) -> Response:
        return _answer(request, page.first, _INDEX, tag, _ASK)

    async def file(request: Request) -> Response:
        version, name = request.path_params["version"], request.path_params["name"]
        content = page.files.get(name)
        if content is None:
            return Response(status_code=HTTPStatus.NOT_FOUND, headers={"Cache-Control": _ASK})
        # A page that was opened before an update may still ask for what it had not needed yet.
        is_current = page.base.endswith(f"/{version}")
        return _answer(request, content, name, tag, _FOR_EVER if is_current else _ASK)

    return [PlainRoute("/", index), PlainRoute("/page/{version}/{name:path}", file)]


def _answer(request: Request, content: bytes, name: str, tag: str, caching: str) -> Response:
    headers = {
        "Cache-Control": caching,
        "ETag": tag,
        "Content-Security-Policy": _POLICY,
        "Content-Type": _MEDIA_TYPES[Path(name).suffix],
    }
    header = request.headers.get("if-none-match", "")
    if tag in {part.strip().removeprefix("W/") for part in header.split(",")}:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(content, headers=headers)
