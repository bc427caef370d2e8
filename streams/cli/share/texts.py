"""The texts of a session's messages, from its transcript, each at the response that read it."""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from contextgauge.compaction.messages import (
    ContextCompaction,
    Message,
    Text,
    ToolCall,
    ToolResult,
)
from contextgauge.compaction.reading.conversation import ConversationReading
from contextgauge.errors import ConfigError
from contextgauge.normalise.fields import text as text_of
from streams.cli.filling import bodies_of
from streams.cli.share.shared import SharedSession
from streams.cli.transcripts import ReplayedSession

MOST_CHARACTERS: Final = 2_000
"""Of each text: a tool's result may have megabytes."""


class SpokenText(NamedTuple):
    """A text, who it is of, and the step that it belongs to."""

    of: str
    text: str
    step: int


def spoken(session: ReplayedSession, shared: SharedSession) -> list[SpokenText]:
    """Return the main conversation's texts, in order. Raises ConfigError without a file."""
    if session.source.path is None:
        raise ConfigError("--text needs the transcript as a file: a pipe is read only once")
    reading = ConversationReading()
    for number, body in enumerate(bodies_of(session.source, session.view.session_id)):
        try:
            reading.add(body, f"m{number}")
        except ConfigError:  # of one line: the others have their texts
            continue
    return list(_placed(reading.history.everything, shared))


def _placed(messages: Iterable[Message], shared: SharedSession) -> Iterator[SpokenText]:
    """Yield texts with their steps: what a response says at its own, what it read there too."""
    by_id = {each: at for at, each in enumerate(shared.response_ids) if each is not None}
    last, step = len(shared.steps) - 1, 0
    unread: list[tuple[str, str]] = []
    for message in messages:
        texts = list(_of(message))
        if message.role != "assistant":
            unread += texts
            continue
        step = _step(message, by_id, shared, step)
        for of, text in (*unread, *texts):
            yield SpokenText(of, text, min(step, last))
        unread = []
    for of, text in unread:
        yield SpokenText(of, text, last)


def _step(message: Message, by_id: dict[str, int], shared: SharedSession, now: int) -> int:
    """Return a response's step: by its id, else the next one of its size, else the one before."""
    value = None if message.source is None else message.source.value
    id_ = text_of(value, "id") if isinstance(value, dict) else None
    if id_ in by_id:
        return by_id[id_]
    if message.usage is None:
        return now
    size = message.usage.context
    return next(
        (at for at, step in enumerate(shared.steps[now:], now) if step.used == size),
        now,
    )


def _of(message: Message) -> Iterator[tuple[str, str]]:
    for block in message.blocks:
        match block:
            case Text():
                yield message.role, block.text
            case ContextCompaction():
                yield "summary", block.summary
            case ToolCall():
                yield "tool call", f"{block.name} {block.arguments}"
            case ToolResult():
                yield "tool result", block.text
