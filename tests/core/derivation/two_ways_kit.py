"""A session by two ways (R34): what three runtimes write, and what they export of the same."""

from collections.abc import Callable
from typing import Any

from schemas.records import ContextReading, Record
from streams.core.projection.project import project
from streams.ingest.otlp.mapping import WithoutMessage, messages_of
from streams.ingest.otlp.telemetry_item import TelemetryItem
from tests.core.given import (
    SESSION,
    START_MS,
    Body,
    Given,
    assistant,
    every,
    line,
    moment,
    token_count,
)

Shape = tuple[Callable[..., Body], Callable[..., list[Body]]]


def exported(name: str, at: float, **attributes: Any) -> list[Body]:
    """Return the messages that a log record of a runtime becomes."""
    event = {"session.id": SESSION, "conversation.id": SESSION, **attributes}
    digest = f"{name} {at} {sorted(attributes.items())}"
    items = [TelemetryItem((name,), event, START_MS + int(at * 1_000), lambda: digest)]
    return list(messages_of(items, WithoutMessage()))


def claude_line(number: int, read: int, at: float, creation: int = 500) -> Body:
    """Return a response as the transcript has it."""
    response = assistant(f"msg_{number}", 4, creation, read, output=9)
    return line(response, at, requestId=f"req_{number}")


def claude_request(number: int, read: int, at: float, creation: int = 500) -> list[Body]:
    """Return the same response as Claude Code exports it."""
    return exported(
        "claude_code.api_request",
        at,
        query_source="repl_main_thread",
        model="claude-sonnet-5",
        input_tokens=4,
        cache_creation_tokens=creation,
        cache_read_tokens=read,
        output_tokens=9,
        request_id=f"req_{number}",
    )


def codex_line(number: int, read: int, at: float) -> Body:
    """Return a rollout's `token_count`."""
    last = {"input_tokens": read + 504, "cached_input_tokens": read, "output_tokens": 9}
    return token_count(last, number * 1_000_000 + read, at=at)


def codex_event(_number: int, read: int, at: float) -> list[Body]:
    """Return the event that Codex exports of the same response; it names no response."""
    return exported(
        "codex.sse_event",
        at,
        **{"event.kind": "response.completed", "model": "gpt-5.5"},
        input_token_count=read + 504,
        cached_token_count=read,
        output_token_count=9,
    )


def gemini_line(number: int, read: int, at: float) -> Body:
    """Return a message of a chat that Gemini CLI stores."""
    tokens = {"input": read + 504, "output": 9, "cached": read, "total": read + 513}
    own = {"id": f"g{number}", "timestamp": moment(at), "type": "gemini", "content": "Done."}
    return {**own, "model": "gemini-3-pro", "tokens": tokens}


def gemini_event(_number: int, read: int, at: float) -> list[Body]:
    """Return the event that Gemini CLI exports of the same response."""
    return exported(
        "gemini_cli.api_response",
        at,
        role="main",
        model="gemini-3-pro",
        input_token_count=read + 504,
        cached_content_token_count=read,
        output_token_count=9,
    )


SHAPES: dict[str, Shape] = {
    "claude-code": (claude_line, claude_request),
    "codex": (codex_line, codex_event),
    "gemini": (gemini_line, gemini_event),
}
LATER = 0.2
"""Seconds by which an exported event is later than the line."""


def taken(*bodies: Body) -> Given:
    """Return a session that took messages which name no session themselves."""
    given = Given()
    given.take(*bodies, hint=SESSION)
    return given


def counted(records: list[Record]) -> list[int]:
    """Return the sizes that are in totals."""
    return [each.used_tokens for each in every(records, ContextReading) if not each.inherited]


def shown(records: list[Record]) -> int | None:
    """Return the size that the session's view has at the end."""
    view = None
    for offset, record in enumerate(records):
        view = project(view, record, offset)
    assert view is not None
    return view.chains["main"].used_tokens
