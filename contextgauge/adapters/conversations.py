"""The conversations of one agent, known again by the messages that a framework hands over.

A framework gives the whole list of its messages before each call, and no name for the
conversation. A list that begins with all that was given before, or with what was returned then, is
the same conversation: its history goes on, so the next request begins as the last one did. Any
other list begins a new one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Generic, Protocol, TypeVar

from contextgauge.compaction.compactor import Compactor
from contextgauge.compaction.engine.request_size import ModelCall
from contextgauge.compaction.history import History
from contextgauge.compaction.messages import Block, Message, Text, ToolCall, ToolResult
from contextgauge.compaction.stateless import with_fresh_usage
from contextgauge.compaction.store.recall import NAME, recall, recall_tool_schema

Item = TypeVar("Item")

IMAGE_TOKENS: Final = 1_500
"""Of a picture of a thousand pixels squared: frameworks hand over no sizes."""

REMEMBERED: Final = 64
"""Histories that are held; of more the conversation that rested longest is read again."""

RECALL_NAME: Final = NAME
RECALL_DESCRIPTION: Final = str(recall_tool_schema("plain")["description"])


class Codec(Protocol[Item]):
    """Reads and writes the messages of a framework, of one conversation."""

    def read(self, items: Sequence[Item], after: Sequence[Message]) -> list[Message]:
        """Return the messages of what follows `after`."""
        ...

    def write(self, messages: Sequence[Message]) -> list[Item]:
        """Return messages as the framework has them; those that did not change as they were."""
        ...


class FollowedConversations(Generic[Item]):
    """Compacts what a framework is about to send. `codec` makes one for a conversation.

    `recall`: whether the model has the tool of this name that asks `recalled`. A tool of the
    caller's with the same name does not count.
    """

    def __init__(
        self, codec: Callable[[], Codec[Item]], compactor: Compactor | None, *, recall: bool = False
    ) -> None:
        self._codec = codec
        self._recall = recall
        self._compactor = compactor or Compactor()
        self._conversations: list[_Conversation[Item]] = []

    async def request(self, items: Sequence[Item], call: ModelCall) -> list[Item]:
        """Return the messages to send in place of these. Raises ConfigError."""
        conversation, call = self._of(items), replace(call, recall=self._recall)
        prepared = await self._compactor.before_call(conversation.history, call)
        return conversation.sent(prepared.messages)

    def recalled(self, items: Sequence[Item], arguments: Mapping[str, object]) -> str:
        """Return what the model asks the tool `recall` for, of all that the framework has."""
        return recall(self._of(items).history.archived, arguments)

    def _of(self, items: Sequence[Item]) -> "_Conversation[Item]":
        for conversation in reversed(self._conversations):
            if conversation.goes_on(items):
                self._conversations.remove(conversation)
                break
        else:
            conversation = _Conversation(self._codec(), items)
        self._conversations = [*self._conversations[1 - REMEMBERED :], conversation]
        return conversation


class _Conversation(Generic[Item]):
    """One conversation: what was given of it, and what was sent."""

    def __init__(self, codec: Codec[Item], items: Sequence[Item]) -> None:
        self._codec = codec
        self._given = self._sent = list(items)
        self.history = History(with_fresh_usage(codec.read(items, ())))

    def goes_on(self, items: Sequence[Item]) -> bool:
        """Whether a list continues the conversation; what it adds is part of the history then."""
        items = list(items)
        for known in (self._given, self._sent):
            if items[: len(known)] == known:
                new = items[len(known) :]
                self.history.extend(self._codec.read(new, self.history.active))
                self._given, self._sent = items, [*self._sent, *new]
                return True
        return False

    def sent(self, messages: Sequence[Message]) -> list[Item]:
        """Return what is sent, and remember it: what was given until something was compacted."""
        self._sent = self._codec.write(messages) if self.history.receipts else self._given
        return list(self._sent)


class ObjectCodec(Generic[Item]):
    """A codec for messages that are objects: what did not change is the object that was read."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[Message, Item]] = {}

    def read(self, items: Sequence[Item], after: Sequence[Message]) -> list[Message]:  # noqa: ARG002 -- of the protocol
        """Return a message for each object, under an id of its own."""
        messages = []
        for item in items:
            message = self.message_of(item, f"m{len(self._read) + 1}")
            self._read[message.id] = message, item
            messages.append(message)
        return messages

    def write(self, messages: Sequence[Message]) -> list[Item]:
        """Return the objects of the messages."""
        return [self._item(each) for each in messages]

    def _item(self, message: Message) -> Item:
        before, item = self._read.get(message.id, (None, None))
        if before is None or item is None:
            return self.compaction_of(message.text)
        if before.blocks == message.blocks:
            return item
        return self.changed(item, blocks_by_place(before, message))

    def message_of(self, item: Item, id_: str) -> Message:
        """Return the message of an object."""
        raise NotImplementedError

    def compaction_of(self, text: str) -> Item:
        """Return the object for a compaction's text."""
        raise NotImplementedError

    def changed(self, item: Item, blocks: dict[int, Block]) -> Item:
        """Return a copy of the object with these blocks, by their place; others are taken out."""
        raise NotImplementedError


def blocks_by_place(before: Message, after: Message) -> dict[int, Block]:
    """Return the blocks of a shortened message by the place of what each was made from."""
    own = {id(old): place for place, old in enumerate(before.blocks)}
    places = {own[id(block)]: block for block in after.blocks if id(block) in own}
    for block in after.blocks:
        if id(block) not in own:
            shortened = (
                place
                for place, old in enumerate(before.blocks)
                if place not in places and _is_of(block, old)
            )
            places[next(shortened)] = block
    return places


def _is_of(block: Block, old: Block) -> bool:
    if isinstance(block, ToolResult):
        return isinstance(old, ToolResult) and old.call_id == block.call_id
    if isinstance(block, ToolCall):
        return isinstance(old, ToolCall) and old.id == block.id
    return isinstance(block, Text) and isinstance(old, Text)
