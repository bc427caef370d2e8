"""Messages as a request of an API may have them: whole answers, and each call with its result.

A transcript has more than that, and in another order: the parts of one answer as messages of their
own, results between them as they came, and what the API reported. Anthropic and Gemini want all
results of an answer in the message right after it, OpenAI's chat in messages right after it, the
Responses API an output of each call; none takes a result without its call. Anthropic refuses fields
that it does not know, texts without characters, and answers that end with thinking. Messages that
are right already stay as they are, so a provider's cache of them is read.
"""

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from contextgauge.compaction.formats.fields import Fields, own
from contextgauge.compaction.messages import (
    Block,
    FormatName,
    JsonSource,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from contextgauge.records import Json

NO_RESULT: Final = "[The result of this call is not in this conversation.]"
"""Answers a call that has no result: it was interrupted, or the conversation ends before it."""

NO_CALL: Final = "[The result of a call that is not in this conversation:]"
"""Stands before such a result, which is a text then."""

_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    kind: frozenset(f"type {fields}".split())
    for kind, fields in {
        "text": "text cache_control citations",
        "image": "source cache_control transformations",
        "document": "source cache_control citations context title",
        "thinking": "thinking signature",
        "redacted_thinking": "data",
        "tool_use": "id name input cache_control caller toolset_name",
        "tool_result": "tool_use_id content is_error cache_control toolset_name",
        "server_tool_use": "id name input cache_control caller",
    }.items()
}
"""What Anthropic's API takes of blocks, as its SDK 2.12 types them. Of other kinds, all is sent."""

_IN_ONE_MESSAGE: Final[frozenset[FormatName]] = frozenset({"anthropic", "gemini", "plain"})
"""Formats in which the results of an answer stand in one message."""


def sendable(
    messages: Sequence[Message],
    format: FormatName,  # noqa: A002 -- its name everywhere
    *,
    leaves_last_open: bool,
) -> list[Message]:
    """Return the messages as a request of the format may have them.

    With `leaves_last_open`, the calls of an answer that nothing follows stay without a result: for
    who goes on with them. Others get one that says that it is not here.
    """
    whole = [each for message in _joined(messages, format) if (each := _cleaned(message)).blocks]
    results = _Results(whole)
    written: list[Message] = []
    index = 0
    while index < len(whole):
        message = whole[index]
        index += 1
        if not message.calls:
            written += results.rest_of(message)
            continue
        written.append(message)
        run = _results_from(whole, index)
        ids = [result.call_id for each in run for result in each.results]
        taken = [results.take(each) for each in message.calls]
        is_one = len(run) == 1 or format not in _IN_ONE_MESSAGE
        if is_one and sorted(ids) == sorted(call.id for call in message.calls):
            written += run
            results.skip(run)
            index += len(run)
            continue
        if not (leaves_last_open and index + len(run) == len(whole)):
            taken = [
                _missing(call, format) if each is None else each
                for call, each in zip(message.calls, taken, strict=True)
            ]
        if answers := tuple(each for each in taken if each is not None):
            written.append(Message("tool", answers))
    return written


def accepted(item: Json, format: FormatName) -> Json:  # noqa: A002 -- as above
    """Return a written message without the fields that the API does not take."""
    if format != "anthropic" or not isinstance(item, dict):
        return item
    content = item["content"]
    return {
        "role": item["role"],
        "content": _accepted_blocks(content) if isinstance(content, list) else content,
    }


def _accepted_blocks(blocks: list[Json]) -> list[Json]:
    return [_accepted_block(each) if isinstance(each, dict) else each for each in blocks]


def _accepted_block(block: Fields) -> Fields:
    fields = _FIELDS.get(str(block.get("type")))
    known = {name: held for name, held in block.items() if fields is None or name in fields}
    content = known.get("content")
    if fields is not None and isinstance(content, list):
        known["content"] = _accepted_blocks(content)
    return known


def _joined(messages: Sequence[Message], format_: FormatName) -> list[Message]:
    """Join the parts of each answer: those with its id, and foreign ones that follow each other."""
    joined: list[Message] = []
    places: dict[str, int] = {}
    for message in messages:
        place = None
        if message.role == "assistant":
            answer = answer_id(message)
            place = None if answer is None else places.get(answer)
            if place is None and joined and joined[-1].role == "assistant":
                is_own = _is_own(message, format_) and _is_own(joined[-1], format_)
                place = None if is_own else len(joined) - 1
            if answer is not None:
                places.setdefault(answer, len(joined) if place is None else place)
        if place is None:
            joined.append(message)
        else:
            blocks = (*joined[place].blocks, *message.blocks)
            joined[place] = replace(joined[place], blocks=blocks, source=None)
    return joined


def answer_id(message: Message) -> str | None:
    """Return the id that an API gave the answer that a message is a part of."""
    value = None if message.source is None else message.source.value
    answer = value.get("id") if isinstance(value, dict) else None
    return answer if message.role == "assistant" and isinstance(answer, str) else None


def _is_own(message: Message, format_: FormatName) -> bool:
    return message.source is not None and message.source.format == format_


def _cleaned(message: Message) -> Message:
    """Return a message without what says nothing: blank texts, and thoughts that led nowhere."""
    blocks = [_without_blank(each) for each in message.blocks if not _is_blank(each)]
    while message.role == "assistant" and blocks and isinstance(blocks[-1], Thinking):
        blocks.pop()
    return message if tuple(blocks) == message.blocks else message.with_blocks(blocks)


def _is_blank(block: Block) -> bool:
    if isinstance(block, Thinking):  # an API takes only thoughts that it signed or encrypted
        fields = own(block, "anthropic")
        return fields is not None and fields.get("signature", fields.get("data")) == ""
    return isinstance(block, Text) and not block.text.strip()


def _without_blank(block: Block) -> Block:
    """Return a result without blank parts; one that is a blank text itself may be."""
    if not isinstance(block, ToolResult):
        return block
    content = [each for each in block.content if each.source is None or not _is_blank(each)]
    return block if len(content) == len(block.content) else block.with_content(content)


def _results_from(messages: Sequence[Message], start: int) -> list[Message]:
    """Return the messages from a place on that begin with results, up to one with more than that.

    Anthropic takes texts only after the results.
    """
    run: list[Message] = []
    for index in range(start, len(messages)):
        message = messages[index]
        if not message.results or message.calls or not _begins_with_results(message):
            break
        run.append(message)
        if len(message.results) < len(message.blocks):
            break
    return run


def _begins_with_results(message: Message) -> bool:
    return all(isinstance(each, ToolResult) for each in message.blocks[: len(message.results)])


class _Results:
    """The results of a conversation that is gone through: each is given to its call once."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._left: dict[str, deque[ToolResult]] = {}
        for message in messages:
            for result in message.results:
                self._left.setdefault(result.call_id, deque()).append(result)
        self._called: set[str] = set()
        self._taken: Counter[str] = Counter()

    def take(self, call: ToolCall) -> ToolResult | None:
        """Return the next result of a call; None where there is none."""
        self._called.add(call.id)
        left = self._left.get(call.id)
        if not left:
            return None
        self._taken[call.id] += 1
        return left.popleft()

    def skip(self, messages: Sequence[Message]) -> None:
        """Go past messages that stay as they are, whose results were taken."""
        self._taken.subtract(result.call_id for each in messages for result in each.results)

    def rest_of(self, message: Message) -> Iterator[Message]:
        """Yield what a message has besides results that stand after their calls, if anything."""
        if not message.results:
            yield message
            return
        blocks: list[Block] = []
        for block in message.blocks:
            if not isinstance(block, ToolResult):
                blocks.append(block)
            elif self._taken[block.call_id]:
                self._taken[block.call_id] -= 1
            else:
                self._left[block.call_id].popleft()
                if block.call_id not in self._called:  # else it is another one of the same call
                    blocks += [Text(NO_CALL), *block.content]
        if blocks:
            yield replace(message, role="user", blocks=tuple(blocks), source=None)


def _missing(call: ToolCall, format_: FormatName) -> ToolResult:
    """Return the answer to a call without one: in the Responses API, of the call's own kind."""
    fields = own(call, "openai-responses") if format_ == "openai-responses" else None
    kind = None if fields is None else str(fields.get("type"))
    source = None
    if kind not in (None, "local_shell_call"):  # whose output Codex sends as a function's
        item: Fields = {"type": f"{kind}_output", "call_id": call.id, "output": ""}
        source = JsonSource("openai-responses", item)
    return ToolResult(call.id, (Text(NO_RESULT),), call.name, is_error=True, source=source)
