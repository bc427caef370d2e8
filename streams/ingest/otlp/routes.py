"""`POST /v1/logs`, `/v1/traces` and `/v1/metrics`: the answers that the protocol asks for."""

from functools import partial
from http import HTTPStatus
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from contextgauge.delivery.outgoing import Conversation
from contextgauge.json_codec import dumps
from streams.ingest.bodies import too_many
from streams.ingest.context import Ingesting
from streams.ingest.otlp.decoding import (
    MEDIA_TYPES,
    Form,
    Kind,
    NoTelemetryError,
    items_of,
    response_of,
    status_of,
)
from streams.ingest.otlp.mapping import WithoutMessage, messages_of
from streams.ingest.publishing import Publishing, ReceivedBody
from streams.ingest.reading import BodyMessages, TooManyMessagesError, add
from streams.serve.api.problems import Problem
from streams.serve.api.routing import PlainRoute
from streams.serve.api.writing import check_origin

_KINDS: Final[tuple[Kind, ...]] = ("logs", "traces", "metrics")

_MULTIPLIED: Final = 16
"""What a resource says is in each message of it: smaller bodies take longer than of messages."""

_WITH_TIMES: Final = Conversation(None, ())
"""Items name their sessions and have times of their own: exporters send them seconds later."""


def otlp_routes(publishing: Publishing, ingesting: Ingesting) -> list[PlainRoute]:
    """Return the routes. Metrics are taken and not used: an exporter may send all to one place."""
    return [
        PlainRoute(f"/v1/{kind}", partial(_export, publishing, ingesting, kind), "POST")
        for kind in _KINDS
    ]


async def _export(
    publishing: Publishing, ingesting: Ingesting, kind: Kind, request: Request
) -> Response:
    check_origin(request)
    form = _form_of(request)
    try:
        async with publishing.body(request) as body:
            work = partial(_read, ingesting, kind, form, body)
            without, read = await publishing.in_turn(_MULTIPLIED * len(body.content), work)
            body.share.take(_size_of(read))
            await publishing.publish(read)
    except Problem as problem:
        return _error(problem, form)
    refused = len(read.refused)
    publishing.count(refused=refused + without.nameless, ignored=without.others)
    content = response_of(kind, form, without.nameless + refused, _why(without, read))
    return Response(content, HTTPStatus.OK, media_type=_media_type(form))


def _read(
    ingesting: Ingesting, kind: Kind, form: Form, body: ReceivedBody
) -> tuple[WithoutMessage, BodyMessages]:
    without, read, size = WithoutMessage(), BodyMessages(), 0
    items = items_of(kind, form, body.content, ingesting.form.text_key)
    try:
        for place, message in enumerate(messages_of(items, without)):
            value = dumps(message)
            size += len(value)
            body.share.check(size)
            add(read, place, value, _WITH_TIMES, ingesting.form)
    except TooManyMessagesError:
        raise too_many() from None
    except NoTelemetryError as error:
        detail = f"The body is not {kind} of OTLP in {form}: {error}"
        raise Problem(HTTPStatus.BAD_REQUEST, detail, "bad-messages") from None
    return without, read


def _size_of(read: BodyMessages) -> int:
    return sum(len(message.value) for message in read.ready)


def _why(without: WithoutMessage, read: BodyMessages) -> str:
    """Return why some items were rejected."""
    reasons = []
    if without.nameless:
        names = " or ".join(without.missing)
        reasons.append(f"{without.nameless} name no session: set the attribute {names}")
    if read.refused:
        reasons.append(f"{len(read.refused)} cannot be published: {read.refused[0][1].detail}")
    return "; ".join(reasons)


def _form_of(request: Request) -> Form:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    form = MEDIA_TYPES.get(media_type)
    if form is None:
        raise Problem(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            f"Send OTLP with `Content-Type: {' or '.join(MEDIA_TYPES)}`: set "
            "OTEL_EXPORTER_OTLP_PROTOCOL to http/protobuf or http/json.",
            "unknown-form",
        )
    return form


def _media_type(form: Form) -> str:
    return next(name for name, each in MEDIA_TYPES.items() if each == form)


def _error(problem: Problem, form: Form) -> Response:
    content = status_of(form, problem.detail)
    return Response(content, problem.status, problem.headers, _media_type(form))
