"""What belongs together: calls and results, also of tools that a provider runs; one answer's parts.

The items of a provider's own tools are opaque to the engine, but their ids are not: a provider
refuses a result whose call is missing. Nor does it take an answer whose reasoning was cut off.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from contextgauge.compaction.messages import (
    Block,
    Message,
    Opaque,
    Thinking,
    ToolCall,
    ToolResult,
)

_COMPACTIONS: Final = frozenset({"compaction", "compaction_summary", "context_compaction"})
"""Items by which a provider remembers what it compacted itself."""

_REFERENCES: Final = ("tool_use_id", "approval_request_id", "call_id")


def is_server_compaction(message: Message) -> bool:
    """Whether a provider's own compaction is in a message: nothing else says what is in it."""
    for each in message.blocks:  # noqa: SIM110 -- asked of each message, and a loop is faster
        if isinstance(each, Opaque) and each.kind in _COMPACTIONS:
            return True
    return False


def opened_by(block: Block) -> str | None:
    """Return the id of a call, or of what else is answered by a later block."""
    if isinstance(block, ToolCall):
        return block.id
    if isinstance(block, Opaque):
        if block.kind.endswith("tool_use") or block.kind == "mcp_approval_request":
            return _field(block, "id")
        if block.kind.endswith("_call"):
            return _field(block, "call_id")
    return None


def answered_by(block: Block) -> str | None:
    """Return the id of what a block answers."""
    if isinstance(block, ToolResult):
        return block.call_id
    if isinstance(block, Opaque) and opened_by(block) is None:
        return next((each for name in _REFERENCES if (each := _field(block, name))), None)
    return None


def results_without_call(messages: Iterable[Message]) -> list[str]:
    """Return the ids of calls that have a result and do not stand before it, in order.

    A provider refuses a request with one, unless it keeps the messages before these itself.
    """
    calls: set[str] = set()
    missing: dict[str, None] = {}
    for message in messages:
        for block in message.blocks:
            if isinstance(block, ToolResult):
                if block.call_id not in calls:
                    missing[block.call_id] = None
            elif (call := opened_by(block)) is not None:
                calls.add(call)
    return list(missing)


def caller_of(block: Block) -> str | None:
    """Return the id of the provider's tool whose program made a call."""
    if not isinstance(block, ToolCall) or block.source is None:
        return None
    value = block.source.value
    caller = value.get("caller") if isinstance(value, dict) else None
    each = caller.get("tool_id") if isinstance(caller, dict) else None
    return each if isinstance(each, str) else None


def _field(block: Opaque, name: str) -> str | None:
    value = None if block.source is None else block.source.value
    each = value.get(name) if isinstance(value, dict) else None
    return each if isinstance(each, str) and each else None


def ids_of(message: Message) -> Iterable[str]:
    """Return all ids by which a message belongs to others."""
    for block in message.blocks:
        for each in (opened_by(block), answered_by(block), caller_of(block)):
            if each is not None:
                yield each


def belongs_to_previous(messages: Sequence[Message]) -> list[bool]:
    """Return whether each message is part of the same answer as the message before it.

    Some transcripts have the reasoning, the texts and the calls of an answer as messages of their
    own; an answer that a provider paused goes on in the next message.
    """
    belongs: list[bool] = []
    run = reasoning = False
    for message in messages:
        assistant = message.role == "assistant"
        belongs.append(reasoning or (run and assistant))
        held, reasoning = False, bool(message.blocks)
        for block in message.blocks:
            if isinstance(block, Thinking):
                held = True
            else:
                reasoning = False
                held = held or (isinstance(block, Opaque) and block.kind not in _COMPACTIONS)
        run = assistant and (run or held)
    return belongs
