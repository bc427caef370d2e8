"""Who may change something, and how a request to do so is sent on."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request

from contextgauge.errors import ConfigError, RecordError, RetryError
from contextgauge.settings.forms import PREFIX
from schemas.commands import CommandEntry
from streams.edge.files.tokens import hashed
from streams.serve.api.guard import READER
from streams.serve.api.problems import Problem, away
from streams.serve.api.serving import Serving

_JSON: Final = "application/json"
_SAME_SITE: Final = frozenset(("same-origin", "none"))


class Writing:
    """Checks requests that change something, and sends what they ask for."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving

    async def check(self, request: Request) -> None:
        """Raise Problem for a request that may change nothing."""
        serving = self._serving
        if serving.commands is None:
            raise _forbidden(
                f"This server only reads. Set {PREFIX}SERVE_CONTROL=true where it runs, to let it "
                "send requests to the control plane.",
                "read-only",
            )
        if serving.readers is None and not serving.only_here:
            raise _forbidden(
                "A server that others reach takes requests only with tokens: set "
                f"{PREFIX}SERVE_TOKENS_FILE where it runs.",
                "read-only",
            )
        if serving.readers is not None and not self._is_writer(request):
            raise _forbidden(
                "This token may only read. `contextgauge token NAME --write` creates one that may "
                "write.",
                "read-only",
            )
        check_origin(request)
        _check_form(request)

    def _is_writer(self, request: Request) -> bool:
        _, _, token = request.headers.get("authorization", "").partition(" ")
        try:
            writers = frozenset() if self._serving.writers is None else self._serving.writers()
        except ConfigError as error:
            self._serving.report("reading the tokens", error)
            raise away("The server cannot read its tokens: see the server's log.") from None
        return hashed(token.strip()) in writers

    @staticmethod
    def requested_by(request: Request) -> str:
        """Return who asks, for the log of commands."""
        name = request.scope.get(READER)
        return "api" if name is None else f"api:{name}"

    async def send(self, entries: Sequence[CommandEntry]) -> None:
        """Send entries. Raises Problem."""
        commands = self._serving.commands
        if commands is None:
            raise AssertionError("the request was not checked")
        try:
            await commands.send(entries)
        except RetryError as error:
            self._serving.report("sending a command", error)
            raise away(
                "Kafka does not answer: try again in a moment, with the same command_id."
            ) from None
        except (ConfigError, RecordError) as error:
            self._serving.report("sending a command", error)
            raise away("The command cannot be sent to Kafka: see the server's log.") from None


def check_origin(request: Request) -> None:
    """Refuse what a page of another origin has a browser send."""
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
    is_other = origin is not None and (
        urlsplit(origin).netloc.lower() != request.headers.get("host", "").lower()
    )
    if is_other or (site is not None and site not in _SAME_SITE):
        raise _forbidden(
            "A page of another origin may not change anything here: only pages of this server, "
            "and programs, may.",
            "other-origin",
        )


def _check_form(request: Request) -> None:
    if not int(request.headers.get("content-length", "0")):
        return
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != _JSON:
        raise Problem(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            f"Send the body as JSON, with `Content-Type: {_JSON}`.",
            "not-json",
        )


def _forbidden(detail: str, name: str) -> Problem:
    return Problem(HTTPStatus.FORBIDDEN, detail, name)
