"""The routes that read a session's text where it is kept: context, history, recall."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from contextgauge.compaction.format_names import FormatName
from contextgauge.compaction.reading.session_conversation import SessionConversation
from contextgauge.errors import ConfigError, RetryError
from schemas.records import Json
from streams import codec
from streams.ports import ConversationReader
from streams.serve.api import parameters
from streams.serve.api.problems import Problem
from streams.serve.api.reading import Reading
from streams.serve.api.routing import Described, Router, problems_of
from streams.serve.api.serving import Serving

if TYPE_CHECKING:
    from contextgauge.compaction.messages import Message

_PAGE: Final = 200
_MOST: Final = 1_000
_LONGEST: Final = 1_000
"""Characters of a search: it is compared with every archived message."""

Format: TypeAlias = Annotated[
    FormatName, Field(description="The format of the messages: `plain`, or that of an API.")
]
Boundary: TypeAlias = Annotated[
    int | None,
    Field(ge=1, description="Number of a compaction: the context with which it left the model."),
]
HistoryStart: TypeAlias = Annotated[
    int,
    Field(
        ge=-_MOST,
        description="`next` of the previous answer, to continue after it; -N: the last N messages.",
    ),
]
HistoryLimit: TypeAlias = Annotated[
    int, Field(ge=1, le=_MOST, description="Messages in the answer, at most.")
]
Words: TypeAlias = Annotated[
    str | None,
    Field(max_length=_LONGEST, description="Words to look for, in any order and language."),
]
File: TypeAlias = Annotated[
    str | None, Field(max_length=_LONGEST, description="Path of a file, or the end of it.")
]
MessageId: TypeAlias = Annotated[
    str | None, Field(max_length=_LONGEST, description="Id of a message or of a tool's call.")
]
RecallStart: TypeAlias = Annotated[
    int, Field(ge=0, description="Matches to skip; with `id`, characters to skip.")
]

_UNUSABLE: Final = {
    "too_large": "The conversation is larger than what is kept of a session (max_mib and "
    "max_messages in [conversations]): it begins again at its next compaction or reset.",
    "without_text": "The session was published without its text (`publish --no-text`, or a "
    "message over the size limit was shortened).",
}


def add_conversations(router: Router, reading: Reading, serving: Serving) -> None:
    """Add the routes. `serving.conversations` is None where no text is kept."""
    find = partial(_find, reading, serving.conversations)
    described = partial(Described, responses=problems_of(404, 409, 422), tag="text")

    @router.add(
        "GET",
        "/v1/sessions/{session_id:id}/context",
        described("readContext", summary="Read the messages that the model should see now"),
    )
    async def context(
        request: Request,
        session_id: parameters.SessionId,
        format: Format = "plain",  # noqa: A002 -- the parameter's name
        at: Boundary = None,
    ) -> Response:
        """Read the conversation since its last compaction, with that one's summary.

        With `at` it is the context right after an earlier compaction, to resume or fork from. A
        request that names its `format`, and not `at`, counts as one of the session's agent: the
        service then compacts for it, and knows when it waits.
        """
        conversation = await find(session_id)
        if at is not None:
            conversation = await asyncio.to_thread(_at_boundary, conversation, at)
        elif "format" in request.query_params:
            await _note(serving, session_id, conversation)
        messages = await asyncio.to_thread(_written, conversation.history.active, format)
        return _answer(conversation, {"format": format, "messages": messages})

    @router.add(
        "GET",
        "/v1/sessions/{session_id:id}/history",
        described("readHistory", summary="Read all messages that are kept of a session"),
    )
    async def history(
        session_id: parameters.SessionId, after: HistoryStart = 0, limit: HistoryLimit = _PAGE
    ) -> Response:
        """Read archived messages and those of the context, oldest first, with their markers."""
        conversation = await find(session_id)
        everything = conversation.history.everything
        # Places count what was dropped: a page continues after it although more was dropped since.
        dropped = _dropped(conversation)
        first = max(after - dropped if after >= 0 else len(everything) + after, 0)
        page = everything[first : first + limit]
        active = {each.id for each in conversation.history.active}
        end = first + limit
        following = end + dropped if end < len(everything) else None
        messages: list[Json] = [_entry(each, is_active=each.id in active) for each in page]
        place = first + dropped
        return _answer(conversation, {"messages": messages, "first": place, "next": following})

    @router.add(
        "GET",
        "/v1/sessions/{session_id:id}/recall",
        described("recallMessages", summary="Look for archived messages"),
    )
    async def recall_messages(
        session_id: parameters.SessionId,
        query: Words = None,
        file: File = None,
        id: MessageId = None,  # noqa: A002 -- the parameter's name
        offset: RecallStart = 0,
    ) -> Response:
        """Look in what left the context: by words, by file or by id. The answer is fenced data."""
        conversation = await find(session_id)
        asked = {"text": query, "file": file, "id": id, "offset": offset}
        arguments = {name: value for name, value in asked.items() if value is not None}
        answer = await asyncio.to_thread(_recall, conversation.history.archived, arguments)
        return _answer(conversation, {"answer": answer})


async def _find(
    reading: Reading, conversations: ConversationReader | None, session_id: str
) -> SessionConversation:
    """Return a session's conversation. Raises Problem where it cannot be shown."""
    conversation = None
    if conversations is not None:
        conversation = await conversations.conversation(session_id)
    if conversation is None:
        await reading.session(session_id)  # raises where there is no such session
        raise _not_kept()
    unusable = _UNUSABLE.get(conversation.state)
    if unusable is not None:
        raise Problem(HTTPStatus.CONFLICT, unusable, conversation.state.replace("_", "-"))
    return conversation


def _at_boundary(conversation: SessionConversation, number: int) -> SessionConversation:
    """Return a conversation as it was right after a compaction. Raises Problem."""
    try:
        history = conversation.history.after_compaction(number)
    except ConfigError:
        detail = f"No compaction {number} is among the messages that are kept of this session."
        raise Problem(HTTPStatus.NOT_FOUND, detail, "no-compaction") from None
    return conversation._replace(history=history, reading=None)


async def _note(serving: Serving, session_id: str, conversation: SessionConversation) -> None:
    """Note what an agent is given; it gets its answer all the same where that fails."""
    active = conversation.history.active
    if serving.asked is None or not active:
        return
    try:
        await serving.asked.note(session_id, active[-1].id, _compactions(conversation))
    except (RetryError, ConfigError) as error:
        serving.report("noting that an agent asked for its context", error)


def _not_kept() -> Problem:
    return Problem(
        HTTPStatus.NOT_FOUND,
        "The text of this session is not kept. Name it in the section [conversations] of the file "
        "in CONTEXTGAUGE_COMPACTION_FILE, and run `contextgauge conversations`.",
        "no-text",
    )


def _answer(conversation: SessionConversation, members: dict[str, Json]) -> Response:
    history = conversation.history
    body: dict[str, Json] = {
        "state": conversation.state,
        "position": conversation.position,
        "behind": conversation.behind,
        "reported_ms": conversation.reported_ms,
        "first_offset": conversation.first_offset,
        "model": conversation.model,
        "agent_id": conversation.agent_id,
        "project": conversation.project,
        "compactions": _compactions(conversation),
        "active": len(history.active),
        "archived": len(history.archived),
        "dropped": _dropped(conversation),
        **members,
    }
    return Response(
        codec.dumps(body), media_type="application/json", headers={"Cache-Control": "no-store"}
    )


def _compactions(conversation: SessionConversation) -> int:
    reading = conversation.reading
    return conversation.history.rounds if reading is None else reading.compactions


def _dropped(conversation: SessionConversation) -> int:
    """Return how many of the oldest messages are no longer kept."""
    return 0 if conversation.reading is None else conversation.reading.archived_before


def _entry(message: "Message", *, is_active: bool) -> dict[str, Json]:
    marker = message.compaction
    return {
        "id": message.id,
        "active": is_active,
        "compaction": None if marker is None else marker.number,
        "message": next(iter(_write([message], "plain")), None),
    }


def _written(messages: Sequence["Message"], format: FormatName) -> list[Json]:  # noqa: A002 -- its name everywhere
    """Write messages as an API takes them.

    The format `plain` would keep a compaction's marker, which no API knows: it is a text here.
    """
    from contextgauge.compaction.formats import write_sendable  # noqa: PLC0415 -- the engine

    texts = [each if each.compaction is None else _unmarked(each) for each in messages]
    return write_sendable(texts, format)


def _unmarked(message: "Message") -> "Message":
    """Return the message of a compaction with its summary as a text."""
    from contextgauge.compaction.messages import ContextCompaction, Text  # noqa: PLC0415 -- as below

    blocks = (
        Text(each.summary) if isinstance(each, ContextCompaction) else each
        for each in message.blocks
    )
    return replace(message, blocks=tuple(blocks), source=None)


def _write(messages: Sequence["Message"], format: FormatName) -> list[Json]:  # noqa: A002 -- as above
    from contextgauge.compaction.formats import write_messages  # noqa: PLC0415 -- the engine

    return write_messages(messages, format)


def _recall(archived: Sequence["Message"], arguments: Mapping[str, object]) -> str:
    from contextgauge.compaction.store.recall import recall  # noqa: PLC0415 -- as above

    return recall(archived, arguments)
