"""`POST /v1/messages`: one message, an array of messages, or one on each line."""

import hashlib
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any, Final

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from contextgauge.delivery.outgoing import Conversation, headers_of
from contextgauge.normalise.fields import MAX_NAME
from schemas.records import Json
from streams import codec
from streams.ingest.bodies import too_many
from streams.ingest.context import Ingesting
from streams.ingest.publishing import Publishing, Taken
from streams.ingest.reading import (
    MOST_MESSAGES,
    BodyForm,
    BodyMessages,
    TooManyMessagesError,
    UnreadableBodyError,
    read,
)
from streams.ingest.repeats import Repeats
from streams.serve.api.guard import READER
from streams.serve.api.problems import Problem
from streams.serve.api.routing import Described, Header, Router, problems_of
from streams.serve.api.writing import check_origin

PATH: Final = "/v1/messages"

_FORMS: Final[dict[str, BodyForm]] = {
    "application/json": "json",
    "application/x-ndjson": "lines",
    "application/ndjson": "lines",
    "application/jsonl": "lines",
    "application/x-jsonlines": "lines",
}

_SHOWN: Final = 20
"""Messages that cannot be published that an answer names."""

_SESSION_CHARACTERS: Final = 16_384
"""Far beyond any id."""

_Session = Annotated[
    str | None,
    Field(
        min_length=1,
        max_length=_SESSION_CHARACTERS,
        description="The session of messages that name none.",
    ),
]
_Agent = Annotated[
    str | None,
    Field(min_length=1, max_length=MAX_NAME, description="Your name of the session's agent."),
]
_Task = Annotated[
    str | None,
    Field(min_length=1, max_length=MAX_NAME, description="Your name of the messages' task."),
]
_Live = Annotated[
    bool, Field(description="Whether the time of sending is the messages': false if they are older")
]
_Key = Annotated[
    str | None,
    Header(),
    Field(
        min_length=1,
        max_length=255,
        description="A new one for each request, the same when it is sent again.",
    ),
]

_MESSAGE: Final = {
    "type": "object",
    "description": "What a runtime writes, or what RULES.md has of any.",
}
_SCHEMAS: Final[dict[BodyForm, dict[str, Any]]] = {
    "json": {"anyOf": [_MESSAGE, {"type": "array", "items": _MESSAGE, "maxItems": MOST_MESSAGES}]},
    "lines": {"type": "string", "description": "A message on each line."},
}
_DESCRIBED: Final = Described(
    "publish",
    "messages",
    "Publish messages",
    problems_of(400, 403, 408, 415, 422),
    HTTPStatus.ACCEPTED,
    {
        "required": True,
        "content": {name: {"schema": _SCHEMAS[form]} for name, form in _FORMS.items()},
    },
)


async def _check(request: Request) -> None:
    """Raise Problem for what a page of another origin sends, and for a body of another form."""
    check_origin(request)
    _form_of(request)


def add_messages(router: Router, publishing: Publishing, ingesting: Ingesting) -> None:
    """Add the route."""
    repeats = Repeats[Taken](ingesting.clock)

    @router.add("POST", PATH, _DESCRIBED, _check)
    async def publish(
        request: Request,
        session_id: _Session = None,
        agent_id: _Agent = None,
        task_id: _Task = None,
        live: _Live = True,  # noqa: FBT002 -- a parameter of the query
        idempotency_key: _Key = None,
    ) -> Response:
        """Publish messages; the answer comes once Kafka has acknowledged all of them."""
        headers = headers_of(is_live=live, task_id=task_id, agent_id=agent_id)
        conversation, body_form = Conversation(session_id, headers), _form_of(request)
        async with publishing.body(request) as (content, _):

            async def work() -> Taken:
                reading = await publishing.in_turn(
                    len(content), partial(_read, content, body_form, conversation, ingesting)
                )
                if reading.refused:
                    publishing.count(refused=len(reading.refused))
                    raise _refused(reading, body_form)
                return await publishing.publish(reading)

            if idempotency_key is None:
                return _accepted(await work(), is_repeated=False)
            digest = hashlib.sha256(content)
            digest.update(request.scope["query_string"])
            owner = request.scope.get(READER) or ""
            taken, is_repeated = await repeats.once((owner, idempotency_key), digest.digest(), work)
            return _accepted(taken, is_repeated=is_repeated)


def _form_of(request: Request) -> BodyForm:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    form = _FORMS.get(media_type)
    if form is None:
        raise Problem(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "Send a message, or an array of messages, with `Content-Type: application/json`; "
            "messages on a line each with `Content-Type: application/x-ndjson`.",
            "unknown-form",
        )
    return form


def _read(
    content: bytes, body_form: BodyForm, conversation: Conversation, ingesting: Ingesting
) -> BodyMessages:
    try:
        return read(content, body_form, conversation, ingesting.form)
    except TooManyMessagesError:
        raise too_many() from None
    except UnreadableBodyError as error:
        raise Problem(
            HTTPStatus.UNPROCESSABLE_ENTITY, f"Nothing was published: {error}.", "bad-messages"
        ) from None


def _refused(reading: BodyMessages, body_form: BodyForm) -> Problem:
    """Return the answer to a request with messages that cannot be published."""
    word, name = ("line", "line") if body_form == "lines" else ("message", "index")
    errors: list[Json] = [
        {name: place, "reason": letter.reason, "message": letter.detail}
        for place, letter in reading.refused[:_SHOWN]
    ]
    place, first = reading.refused[0]
    others = "; `errors` has the others" if len(errors) > 1 else ""
    return Problem(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        f"Nothing was published: {word} {place} {first.detail}{others}",
        "bad-messages",
        more={"errors": errors},
    )


def _accepted(taken: Taken, *, is_repeated: bool) -> Response:
    headers = {"Cache-Control": "no-store"}
    if is_repeated:
        headers["Idempotency-Replayed"] = "true"
    body = {"accepted": taken.accepted, "ignored": taken.ignored}
    return Response(codec.dumps(body), HTTPStatus.ACCEPTED, headers, "application/json")
