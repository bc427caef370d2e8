"""`contextgauge context`: what the model of a session sees, by the messages that are kept."""

import asyncio
from typing import Annotated, Final

import typer

from contextgauge.clock import SystemClock
from contextgauge.compaction.counting import ESTIMATE
from contextgauge.compaction.displays import ContextStatus, context_box, context_text
from contextgauge.compaction.messages import (
    Block,
    ContextCompaction,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from contextgauge.compaction.reading.session_conversation import SessionConversation
from contextgauge.errors import StopError
from schemas.records import Json
from schemas.views import SessionView
from streams import wiring
from streams.cli.screen.figures import GUESS, UNKNOWN, ago, count, exact, safe
from streams.cli.screen.options import AsJson
from streams.cli.screen.output import out, say, write_json
from streams.cli.stored import opened_views
from streams.core.session_status import leading_chain
from streams.serve.views.sessions import SessionLookupError, active_sessions
from streams.serve.views.snapshot import ViewsGoneError

_CATEGORIES: Final = ("Summary", "User", "Answers", "Thinking", "Tool calls", "Tool results")
_SILENT_MS: Final = 30_000
"""A worker reports every five seconds, unless Redis or Kafka is slow."""
_NOTES: Final = {
    "whole": "",
    "incomplete": "Incomplete: a part of what the model sees is not kept; see CONVERSATIONS.md.",
    "too_large": "Too large: it begins again at its next compaction or reset.",
    "without_text": "Published without text: sizes are those of what stands in its place.",
}


def context(
    session: Annotated[
        str, typer.Argument(metavar="SESSION", help="Session ID or a unique prefix of it.")
    ],
    *,
    as_json: AsJson = False,
) -> None:
    """Show what the model of a session sees, by its kept messages.

    Active and total messages, all summaries so far, usage, a breakdown by category, and the oldest
    message. Token counts are estimates of the messages alone, marked with `~`: system prompt and
    tools are not among them. The size that `contextgauge status` shows is the whole request's, as
    reported: the last row is the difference. It is unknown from a compaction to the next response;
    `contextgauge why` shows what the service estimates of the whole request.
    `contextgauge conversations` keeps the messages of sessions that you choose.
    """
    settings = wiring.settings()

    async def read() -> tuple[SessionView, SessionConversation | None]:
        async with (
            opened_views(settings) as views,
            wiring.started(wiring.redis_conversations(settings)) as conversations,
        ):
            sessions = await active_sessions(views, SystemClock())
            view = await sessions.find(session)
            return view, await conversations.conversation(view.session_id)

    try:
        view, conversation = asyncio.run(read())
    except (SessionLookupError, ViewsGoneError) as error:
        # Ids are input, and each line of an error is printed as one of its own.
        raise StopError(safe(str(error))) from None
    if conversation is None:
        raise StopError(
            f"The messages of session {safe(view.session_id)} are not kept: name it in the section "
            "[conversations] of the file in CONTEXTGAUGE_COMPACTION_FILE, and run "
            "`contextgauge conversations`"
        )
    _show(view, conversation, as_json=as_json)


def _show(view: SessionView, conversation: SessionConversation, *, as_json: bool) -> None:
    by_category = breakdown(conversation)
    status = status_of_context(view, conversation, sum(by_category.values()))
    if as_json:
        write_json(_document(view, conversation, status, by_category))
        return
    rows = [
        context_box(status),
        "",
        context_text(status).partition("\n\nBreakdown")[0],
        "",
        "Breakdown (estimates of the messages alone):",
        *(f"  {name}: {_estimate(tokens)} tokens" for name, tokens in by_category.items()),
        f"  Together: {_estimate(status.tokens)} tokens",
        *_against_reported(view, status.tokens),
    ]
    notes = (_NOTES[conversation.state], how_current(conversation, SystemClock().now_ms()))
    for note in filter(None, notes):
        rows += ["", note]
    for line in "\n".join(rows).splitlines():
        say(line, to=out)


def _estimate(tokens: int) -> str:
    return f"{GUESS}{exact(tokens)}" if tokens else "0"  # of nothing, nothing is estimated


def _against_reported(view: SessionView, estimated: int) -> list[str]:
    """Return how the estimates differ from the size that `contextgauge status` shows."""
    chain = leading_chain(view)
    used = None if chain is None else chain.used_tokens
    reported = "Reported, as in `contextgauge status`:"
    if used is None:
        rows = [
            f"{reported} {UNKNOWN} until the next response",
            f"  Not accounted for: {UNKNOWN}: system prompt, tools, and what the estimates lack",
        ]
        if view.compactions.last:
            rows.append(
                "  After a compaction by the service, `contextgauge why` estimates the whole "
                "request: its size before, less what was saved by the estimates"
            )
        return ["", *rows]
    rest = used - estimated
    what = (
        f"  Not accounted for: {GUESS}{exact(rest)} tokens: system prompt, tools, and what the "
        "estimates lack"
        if rest >= 0
        else f"  Estimated beyond it: {GUESS}{exact(-rest)} tokens"
    )
    return ["", f"{reported} {exact(used)} tokens", what]


def how_current(conversation: SessionConversation, now_ms: int) -> str:
    """Return what may be missing, because the worker is behind or stopped; empty: nothing."""
    worker, reported_ms = "`contextgauge conversations`", conversation.reported_ms
    if reported_ms is None:
        return f"How current this is, is not known: {worker} has not reported yet."
    if now_ms - reported_ms > _SILENT_MS:
        return (
            f"{worker} last reported {ago(reported_ms, now_ms)}: what was published since then is "
            "missing. Is it running?"
        )
    if conversation.behind:
        waiting = count(conversation.behind, "message")
        return f"{worker} is behind: {waiting} of the session's partition not read yet."
    return ""


def status_of_context(
    view: SessionView, conversation: SessionConversation, tokens: int
) -> ContextStatus:
    """Return the figures that the box shows."""
    chain, history = leading_chain(view), conversation.history
    reading = conversation.reading
    before = 0 if reading is None else reading.archived_before
    oldest_ms = conversation.oldest_ms
    return ContextStatus(
        window_tokens=0 if chain is None else chain.window or 0,
        conversation_tokens=tokens,
        active=len(history.active),
        total=len(history.everything) + before,
        summaries=history.rounds if reading is None else reading.compactions,
        is_compressed=any(each.compaction is not None for each in history.active),
        is_estimated=True,
        oldest_age_ms=None if oldest_ms is None else max(0, SystemClock().now_ms() - oldest_ms),
    )


def breakdown(conversation: SessionConversation) -> dict[str, int]:
    """Return the estimated tokens of what the model sees, by category."""
    tokens = dict.fromkeys(_CATEGORIES, 0)
    for message in conversation.history.active:
        for block in message.blocks:
            name = _category(message, block)
            tokens[name] += ESTIMATE.message(Message(message.role, (block,)))
    return tokens


def _category(message: Message, block: Block) -> str:
    match block:
        case ContextCompaction():
            return "Summary"
        case ToolCall():
            return "Tool calls"
        case ToolResult():
            return "Tool results"
        case Thinking():
            return "Thinking"
        case Text() | Image() if message.role != "assistant":
            return "User"
    return "Answers"


def _document(
    view: SessionView,
    conversation: SessionConversation,
    status: ContextStatus,
    by_category: dict[str, int],
) -> dict[str, Json]:
    chain = leading_chain(view)
    return {
        "session_id": view.session_id,
        "state": conversation.state,
        "position": conversation.position,
        "behind": conversation.behind,
        "reported_ms": conversation.reported_ms,
        "model": conversation.model,
        "agent_id": conversation.agent_id,
        "project": conversation.project,
        "active": status.active,
        "total": status.total,
        "summaries": status.summaries,
        "estimated_tokens": status.tokens,
        "reported_tokens": None if chain is None else chain.used_tokens,
        "window_tokens": status.window_tokens or None,
        "oldest_ms": conversation.oldest_ms,
        "breakdown": {name.lower().replace(" ", "_"): n for name, n in by_category.items()},
    }
