"""The rung that shortens the arguments of old calls; they stay valid JSON with the same keys.

Calls that a provider signed stay as they came, and with them all calls of their message.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from contextgauge.compaction.counting import CHARACTERS_PER_TOKEN, Counter
from contextgauge.compaction.engine.cutting import (
    MINIMUM_CHARACTERS,
    cut,
    even_limit,
    middle_cut,
)
from contextgauge.compaction.formats.signatures import is_signed
from contextgauge.compaction.messages import Block, Message, ToolCall, ToolResult
from contextgauge.compaction.profiles import Profile
from contextgauge.json_codec import dumps, loads
from contextgauge.records import Json

_NOTE_TOKENS: Final = 4
"""What the note of a cut may take more than counted, escaped as JSON."""


class Edited(NamedTuple):
    """The messages after a rung, and the ids of those that it changed."""

    messages: list[Message]
    changed: tuple[str, ...]


def shorten_arguments(
    messages: Sequence[Message],
    profile: Profile,
    positions: Iterable[int],
    counter: Counter,
    excess_tokens: int,
) -> Edited:
    """Shorten long texts in the arguments of answered calls, until `excess_tokens` are saved.

    Messages at the given positions are shortened in their order. The arguments stay valid JSON
    with the same keys: only texts above `argument_characters` are cut. The free text of a custom
    tool's call is cut as text; other arguments that are no JSON object are cut as a whole and
    wrapped in one.
    """
    limit = profile.argument_characters

    def shorter(call: ToolCall, _excess: int) -> ToolCall:
        return _shorter_call(call, limit, lambda text: cut(text, limit))

    return _with_shorter_calls(messages, profile, positions, counter, excess_tokens, shorter)


def fit_arguments(
    messages: Sequence[Message],
    profile: Profile,
    positions: Iterable[int],
    counter: Counter,
    excess_tokens: int,
) -> Edited:
    """Cut the middle of long texts in arguments, no more of them than saves `excess_tokens`."""

    def shorter(call: ToolCall, excess: int) -> ToolCall:
        lengths = _argument_lengths(call)
        room = sum(lengths) - CHARACTERS_PER_TOKEN * (excess + _NOTE_TOKENS)
        limit = max(MINIMUM_CHARACTERS, even_limit(lengths, max(0, room)))
        return _shorter_call(call, limit, lambda text: middle_cut(text, limit))

    return _with_shorter_calls(messages, profile, positions, counter, excess_tokens, shorter)


def _with_shorter_calls(
    messages: Sequence[Message],
    profile: Profile,
    positions: Iterable[int],
    counter: Counter,
    excess_tokens: int,
    shorter: Callable[[ToolCall, int], ToolCall],
) -> Edited:
    edited = list(messages)
    changed: list[str] = []
    answered: set[str] | None = None
    left = excess_tokens
    for index in positions:
        if left <= 0:
            break
        message = messages[index]
        if is_signed(message):
            continue
        shortened: dict[int, Block] = {}
        for place, block in enumerate(message.blocks):
            if (
                isinstance(block, ToolCall)
                and block.name not in profile.exclude_tools
                and (call := shorter(block, left)) is not block
                and call != block
            ):
                answered = _answered(messages) if answered is None else answered
                if block.id in answered:
                    shortened[place] = call
        if shortened:
            blocks = [shortened.get(place, block) for place, block in enumerate(message.blocks)]
            edited[index] = message.with_blocks(blocks)
            changed.append(message.id)
            left -= counter.message(message) - counter.message(edited[index])
    return Edited(edited, tuple(changed))


def _answered(messages: Iterable[Message]) -> set[str]:
    blocks = (block for message in messages for block in message.blocks)
    return {block.call_id for block in blocks if isinstance(block, ToolResult)}


def _argument_lengths(call: ToolCall) -> list[int]:
    """Return the lengths of the texts in a call's arguments; of no JSON object, of the whole."""
    lengths: list[int] = []

    def note(text: str) -> str:
        lengths.append(len(text))
        return text

    try:
        value: Json = loads(call.arguments)
        if not _takes_text(call) and isinstance(value, dict):
            _map_texts(value, note)
            return lengths
    except (ValueError, RecursionError):
        pass
    return [len(call.arguments)]


def _shorter_call(call: ToolCall, limit: int, shorten: Callable[[str], str]) -> ToolCall:
    if len(call.arguments) <= limit:
        return call
    if _takes_text(call):
        return replace(call, arguments=shorten(call.arguments))
    whole: Json = {"shortened": shorten(call.arguments)}
    try:
        value: Json = loads(call.arguments)
        shorter = _map_texts(value, shorten)
    except (ValueError, RecursionError):
        value, shorter = None, whole
    if not isinstance(value, dict):
        shorter = whole
    arguments = dumps(shorter).decode()
    # Numbers may have more digits when they are written again.
    is_shorter = shorter != value and len(arguments) < len(call.arguments)
    return replace(call, arguments=arguments) if is_shorter else call


def _takes_text(call: ToolCall) -> bool:
    """Whether the tool is one of OpenAI's custom tools, which take any text."""
    value = None if call.source is None else call.source.value
    return isinstance(value, dict) and value.get("type") in ("custom_tool_call", "custom")


def _map_texts(value: Json, change: Callable[[str], str]) -> Json:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: _map_texts(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [_map_texts(item, change) for item in value]
    return value
