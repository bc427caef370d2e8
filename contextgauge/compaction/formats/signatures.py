"""Signatures of thoughts that stand with a text or a call, and not with the thoughts themselves.

Gemini signs the first call of an answer, or its last part, and wants both back as they came; in
other formats the signature is among the extra fields of the call. What Anthropic signs and OpenAI
encrypts is the reasoning alone, a block or an item of its own, which is never changed here.
"""

from typing import Final

from contextgauge.compaction.formats.fields import Fields
from contextgauge.compaction.messages import ContextCompaction, Message
from contextgauge.records import Json

_NAMES: Final = frozenset({"thoughtSignature", "thought_signature"})

_ARGUMENTS: Final = frozenset({"args", "arguments", "input"})
"""What the model wrote itself: a field of that name there is no signature."""

_DEEPEST: Final = 4
"""`tool_call.function.provider_specific_fields.thought_signature` is the deepest known."""


def is_signed(message: Message) -> bool:
    """Whether a provider signed what the model wrote in a message: then it stays as it came."""
    sources = [
        block.source.value
        for block in message.blocks
        if not isinstance(block, ContextCompaction) and block.source is not None
    ]
    return any(_is_signed(each, _DEEPEST) for each in sources)


def _is_signed(value: Json, depth: int) -> bool:
    if not isinstance(value, dict) or not depth:
        return False
    return any(
        (name in _NAMES and bool(held)) or (name not in _ARGUMENTS and _is_signed(held, depth - 1))
        for name, held in value.items()
    )


def unsigned(fields: Fields) -> Fields:
    """Return the fields without the signature of what they were."""
    return {
        name: unsigned(held) if isinstance(held, dict) and name not in _ARGUMENTS else held
        for name, held in fields.items()
        if name not in _NAMES
    }
