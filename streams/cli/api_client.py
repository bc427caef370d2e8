"""The HTTP API of `contextgauge serve` or `view`, for commands that ask it.

Only the named server may have the token: redirects are not followed, and proxies of the environment
are not used.
"""

from collections.abc import Mapping
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

import typer

from contextgauge.errors import ConfigError, RetryError, StopError
from contextgauge.user_folders import expanded
from streams import codec

SERVE_URL: Final = "http://127.0.0.1:8642"

_MOST_BYTES: Final = 16 << 20
_REQUEST_S: Final = 10.0

TokenFile = Annotated[
    Path | None,
    typer.Option("--token-file", metavar="FILE", help="File with the access token of the API."),
]


class _NoRedirects(HTTPRedirectHandler):
    """Leaves a redirect as the error that it is then."""

    def redirect_request(self, *_: object) -> None:
        """Follow none."""


_OPENER: Final = build_opener(ProxyHandler({}), _NoRedirects)


class NotFoundError(StopError):
    """The server does not know what is asked for; its text says what that is."""


class ApiClient:
    """One server. Raises ConfigError for a URL that is none of HTTP, or a token that is not there.

    `request_s` is how long an answer may take.
    """

    def __init__(self, url: str, token_file: Path | None, request_s: float = _REQUEST_S) -> None:
        if not url.startswith(("http://", "https://")):
            raise ConfigError(f"--url {url} is not an address: begin it with http:// or https://")
        self.url, self._request_s = url.rstrip("/"), request_s
        self._headers = {} if token_file is None else {"Authorization": _bearer(token_file)}

    def get(self, path: str, query: Mapping[str, object] | None = None) -> dict[str, Any]:
        """Return an answer. Raises NotFoundError, StopError, RetryError."""
        given = {name: value for name, value in (query or {}).items() if value is not None}
        return self._answer(Request(f"{self.url}{path}{'?' if given else ''}{urlencode(given)}"))  # noqa: S310 -- checked above

    def send(self, path: str, body: Mapping[str, object]) -> dict[str, Any]:
        """Send a JSON object; return the answer. Raises NotFoundError, StopError, RetryError."""
        return self.post(path, codec.dumps(dict(body)))

    def post(
        self,
        path: str,
        body: bytes,
        media_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Send a body; return the answer. Raises NotFoundError, StopError, RetryError."""
        given = {"Content-Type": media_type, **(headers or {})}
        return self._answer(Request(f"{self.url}{path}", body, given, method="POST"))  # noqa: S310 -- as above

    def _answer(self, request: Request) -> dict[str, Any]:
        for name, value in self._headers.items():
            request.add_header(name, value)
        try:
            with _OPENER.open(request, timeout=self._request_s) as answer:
                content = answer.read(_MOST_BYTES)
            document = codec.loads(content) if content else {}
        except HTTPError as error:
            raise self._problem(error) from None
        except (OSError, HTTPException) as error:
            why = error.reason if isinstance(error, URLError) else error
            raise RetryError(
                f"{self.url} cannot be reached ({why}): is the server running?"
            ) from None
        except ValueError:
            document = None
        if not isinstance(document, dict):
            raise StopError(f"{self.url} answers something other than JSON: is --url right?")
        return document

    def _problem(self, error: HTTPError) -> StopError | RetryError:
        try:
            document = codec.loads(error.read(_MOST_BYTES))
        except (ValueError, OSError, HTTPException):
            document = None
        detail = document.get("detail") if isinstance(document, dict) else None
        text = detail if isinstance(detail, str) else f"{self.url}: HTTP {error.code}"
        if error.code == HTTPStatus.NOT_FOUND:
            return NotFoundError(text)
        if error.code == HTTPStatus.UNAUTHORIZED:
            return StopError(f"{text} Name a file with a token: --token-file")
        if (
            error.code == HTTPStatus.TOO_MANY_REQUESTS
            or error.code >= HTTPStatus.INTERNAL_SERVER_ERROR
        ):
            return RetryError(text)
        return StopError(text)


def _bearer(token_file: Path) -> str:
    try:
        token = Path(expanded(str(token_file))).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not text"
        raise ConfigError(f"--token-file {token_file}: {why}") from None
    if not token or not token.isprintable() or not token.isascii():
        raise ConfigError(f"--token-file {token_file} has no token: one line, as it was shown")
    return f"Bearer {token}"
