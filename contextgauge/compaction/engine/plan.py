"""A plan: a compaction that was worked out and not applied yet.

It names exactly what it covers, so it can be made in the background while the conversation goes
on: applying it replaces the covered beginning and leaves what came later, or is rejected where
the beginning is not what it was.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from contextgauge.compaction.engine.compaction_receipt import Receipt
from contextgauge.compaction.formats.fields import json_text
from contextgauge.compaction.messages import (
    Block,
    ContextCompaction,
    Image,
    JsonSource,
    Message,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from contextgauge.errors import ContextgaugeError
from contextgauge.json_codec import dumps


class PlanRejectedError(ContextgaugeError):
    """The conversation's beginning is not what the plan covers: make a new plan."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The first `covers` active messages, up to `last_id`, become `replacement`.

    `prefix_hash` is `digest` of what is covered, as hexadecimal SHA-256.
    """

    covers: int
    last_id: str
    prefix_hash: str
    replacement: tuple[Message, ...]
    receipt: Receipt


def plan_of(covered: Sequence[Message], replacement: Sequence[Message], receipt: Receipt) -> Plan:
    """Return the plan by which the covered messages become the replacement."""
    last_id = covered[-1].id if covered else ""
    return Plan(len(covered), last_id, digest(covered), tuple(replacement), receipt)


def digest(messages: Iterable[Message]) -> str:
    """Return the SHA-256 of what a model would see of the messages, and of their ids."""
    state = hashlib.sha256()
    for message in messages:
        parts = ["message", message.id, message.role]
        for block in message.blocks:
            if isinstance(block, Text):
                parts += ("text", block.text)
                continue
            parts += _parts(block)
            if isinstance(block, ToolResult):
                for each in block.content:
                    parts += _parts(each)
        state.update(dumps(parts))
    return state.hexdigest()


def _parts(block: Block) -> tuple[str, ...]:
    if isinstance(block, Text):
        return "text", block.text
    if isinstance(block, ToolCall):
        return "call", block.id, block.name, block.arguments
    if isinstance(block, ToolResult):
        return "result", block.call_id, str(block.is_error), str(len(block.content))
    if isinstance(block, Thinking):
        return "thinking", block.text, str(block.characters), _source(block.source)
    if isinstance(block, Image):
        return "image", str(block.tokens), block.media_type or "", _source(block.source)
    if isinstance(block, Opaque):
        return "opaque", block.kind, str(block.characters), _source(block.source)
    if isinstance(block, ContextCompaction):
        return "compaction", str(block.number), block.summary
    raise AssertionError(block)


def _source(source: JsonSource | None) -> str:
    """Return what a provider gave of a block that the engine does not read in full."""
    return "" if source is None else json_text(source.value)
