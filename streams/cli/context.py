"""`contextgauge context`: what the model of a session sees, by the messages that are kept."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Final

import typer

from contextgauge.clock import SystemClock
from contextgauge.compaction.counting import ESTIMATE
from contextgauge.compaction.displays import ContextStatus, context_box, context_text, header_text
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
from contextgauge.compaction.profiles import DEFAULT
from contextgauge.compaction.reading.session_conversation import SessionConversation
from contextgauge.errors import ConfigError, StopError
from schemas.records import MAIN_CHAIN, Json
from schemas.views import SessionView
from streams import wiring
from streams.cli.screen.conversation import message_lines
from streams.cli.screen.figures import GUESS, UNKNOWN, ago, count, exact, safe
from streams.cli.screen.options import AsJson
from streams.cli.screen.output import out, say, write_json
from streams.cli.stored import opened_views
from streams.core.session_status import leading_chain
from streams.serve.views.sessions import SessionLookupError, active_sessions
from streams.serve.views.snapshot import ViewsGoneError

_PARTS: Final = ("Summary", "User", "Answers", "Thinking", "Tool calls", "Tool results")
"""Of what seed 004 shows as the conversation."""
_SYSTEM, _MEMORY = "System prompt", "Memory context"
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
    all_: Annotated[
        bool,
        typer.Option("--all", help="Show all messages, with a marker where each compaction came."),
    ] = False,
    expand: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NUMBER",
            help="With --all: show a message, or a marker's summary, whole; or all of them.",
        ),
    ] = None,
    at: Annotated[
        int | None,
        typer.Option(metavar="NUMBER", min=1, help="As it was right after that compaction."),
    ] = None,
) -> None:
    """Show what the model of a session sees, by its kept messages.

    Active and total messages, all summaries so far, usage, a breakdown by category, and the oldest
    message; with --all, the messages themselves. Token counts are estimates of the messages alone,
    marked with `~`: system prompt and tools are not among them. The size that `contextgauge status`
    shows is the whole request's, as reported: the last row is the difference. It is unknown from a
    compaction to the next response; `contextgauge why` shows what the service estimates of the
    whole request. `contextgauge conversations` keeps the messages of sessions that you choose.
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
    whole = _numbers(expand or [])
    if (whole is None or whole) and not all_:
        raise ConfigError("--expand goes with --all")
    if as_json and all_:
        raise ConfigError("--json has figures: messages are in GET /v1/sessions/{id}/history")
    if at is not None:
        try:
            history = conversation.history.after_compaction(at)
        except ConfigError as error:
            raise StopError(f"{error} among the messages that are kept") from None
        conversation = conversation._replace(history=history, reading=None, oldest_ms=None)
    if all_:
        _show_all(view, conversation, whole)
    else:
        _show(view, conversation, as_json=as_json, is_earlier=at is not None)


def _numbers(names: Sequence[str]) -> frozenset[int] | None:
    """Return the numbers to expand, None for all. Raises ConfigError."""
    if "all" in names:
        return None
    if wrong := next((each for each in names if not each.isdecimal()), None):
        raise ConfigError(f"--expand {wrong}: the number of a message, or all")
    return frozenset(map(int, names))


def _show_all(
    view: SessionView, conversation: SessionConversation, whole: frozenset[int] | None
) -> None:
    status = status_of_context(view, conversation, breakdown(conversation))
    say(header_text(status), to=out)
    reading = conversation.reading
    dropped = 0 if reading is None else reading.archived_before
    for line in message_lines(conversation.history, whole, dropped, _freed(view, conversation)):
        out.print(line, soft_wrap=True)


def _freed(view: SessionView, conversation: SessionConversation) -> dict[int, int | None]:
    """Return what compactions saved: as measured, where both count the same ones, or estimated."""
    own = [each for each in view.compactions.last if each.chain == MAIN_CHAIN]
    measured = {each.number: each.tokens_saved for each in own if each.number is not None}
    history = conversation.history
    estimated = {each.number: each.tokens_saved for each in history.receipts if each.number}
    return {**estimated, **(measured if max(measured, default=0) == history.rounds else {})}


def _show(
    view: SessionView, conversation: SessionConversation, *, as_json: bool, is_earlier: bool
) -> None:
    by_category = breakdown(conversation)
    status = status_of_context(view, conversation, by_category)
    if as_json:
        write_json(_document(view, conversation, status, by_category))
        return
    rows = [
        context_box(status),
        "",
        context_text(status),
        *(f"    {name}: {_estimate(by_category[name])} tokens" for name in _PARTS),
        f"  Together: {_estimate(status.tokens)} tokens, estimates of the messages alone",
    ]
    if not is_earlier:
        notes = (_NOTES[conversation.state], how_current(conversation, SystemClock().now_ms()))
        rows += _against_reported(view, status.tokens)
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
    view: SessionView, conversation: SessionConversation, by_category: Mapping[str, int]
) -> ContextStatus:
    """Return the figures that the box shows."""
    chain, history = leading_chain(view), conversation.history
    reading = conversation.reading
    before = 0 if reading is None else reading.archived_before
    oldest_ms = conversation.oldest_ms
    return ContextStatus(
        window_tokens=0 if chain is None else chain.window or 0,
        system_tokens=by_category[_SYSTEM],
        memory_tokens=by_category[_MEMORY],
        conversation_tokens=sum(by_category[name] for name in _PARTS),
        active=len(history.active),
        total=len(history.everything) + before,
        summaries=history.rounds if reading is None else reading.compactions,
        is_compressed=any(each.compaction is not None for each in history.active),
        is_estimated=True,
        oldest_age_ms=None if oldest_ms is None else max(0, SystemClock().now_ms() - oldest_ms),
    )


def breakdown(conversation: SessionConversation) -> dict[str, int]:
    """Return the estimated tokens of what the model sees, by category.

    Memory is what the tool of that name read and wrote.
    """
    tokens = dict.fromkeys((_SYSTEM, _MEMORY, *_PARTS), 0)
    active, excluded = conversation.history.active, DEFAULT.exclude_tools
    memory = {call.id for each in active for call in each.calls if call.name in excluded}
    for message in active:
        for block in message.blocks:
            name = _category(message, block, memory)
            tokens[name] += ESTIMATE.message(Message(message.role, (block,)))
    return tokens


def _category(message: Message, block: Block, memory: Collection[str]) -> str:
    match block:
        case ToolCall(id=id_) | ToolResult(call_id=id_) if id_ in memory:
            return _MEMORY
        case Text() | Image() if message.role == "system":
            return _SYSTEM
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
