"""A framework's lists of messages are known again as one conversation."""

from collections.abc import Sequence

import pytest

from contextgauge.adapters import conversations
from contextgauge.adapters.conversations import FollowedConversations, ObjectCodec, blocks_by_place
from contextgauge.compaction import Compactor, ModelCall
from contextgauge.compaction.messages import Block, Message, Text, ToolCall, ToolResult

CALL = ModelCall(window_tokens=8_000, reserved_output_tokens=1_000)


class TextCodec(ObjectCodec[str]):
    """A framework whose messages are texts, the answers marked."""

    def message_of(self, item: str, id_: str) -> Message:
        return Message("assistant" if item.startswith("A:") else "user", (Text(item),), id_)

    def compaction_of(self, text: str) -> str:
        return text

    def changed(self, item: str, blocks: dict[int, Block]) -> str:
        raise NotImplementedError


def turns(name: str, first: int, after: int) -> list[str]:
    return [
        text
        for number in range(first, after)
        for text in (f"{name} {number}: not on main!", f"A: {number} " + "done " * 100)
    ]


def compactions(texts: Sequence[str]) -> int:
    return sum(each.startswith("[Compaction ") for each in texts)


async def test_the_next_request_begins_as_the_last_one_did() -> None:
    known = FollowedConversations(TextCodec, None)
    given = turns("a", 0, 60)
    sent = await known.request(given, CALL)
    assert compactions(sent) == 1
    assert len(sent) < len(given)
    longer = await known.request([*given, *turns("a", 60, 63)], CALL)
    assert longer == [*sent, *turns("a", 60, 63)]
    assert await known.request([*given, *turns("a", 60, 63)], CALL) == longer


async def test_a_framework_may_store_what_was_sent() -> None:
    known = FollowedConversations(TextCodec, None)
    stored = await known.request(turns("a", 0, 60), CALL)
    for first in range(60, 200, 20):
        stored = await known.request([*stored, *turns("a", first, first + 20)], CALL)
        assert compactions(stored) == 1
    assert any("a 0: not on main!" in each for each in stored)


async def test_conversations_do_not_mix() -> None:
    known = FollowedConversations(TextCodec, None)
    for after in range(10, 100, 10):
        for name in ("a", "b"):
            sent = await known.request(turns(name, 0, after), CALL)
            other = {"a": "b", "b": "a"}[name]
            assert not any(f"{other} 0:" in each for each in sent)


async def test_a_history_that_was_changed_is_read_again() -> None:
    known = FollowedConversations(TextCodec, None)
    given = turns("a", 0, 20)
    await known.request(given, CALL)
    changed = ["another beginning", *given[1:], "and on"]
    assert await known.request(changed, CALL) == changed


async def test_conversations_are_forgotten_and_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversations, "REMEMBERED", 2)
    read: list[int] = []

    class Counting(TextCodec):
        def read(self, items: Sequence[str], after: Sequence[Message]) -> list[Message]:
            read.append(len(items))
            return super().read(items, after)

    known = FollowedConversations(Counting, Compactor())
    for name in ("a", "b", "a", "c", "a", "b"):
        await known.request(turns(name, 0, 1), CALL)
    assert read == [2, 2, 0, 2, 0, 2]


def test_blocks_of_a_shortened_message_have_their_place() -> None:
    result, text = ToolResult("c2", (Text("long"),)), Text("b")
    before = Message("user", (Text("a"), ToolCall("c1", "x", "{}"), result, text, Text("c")))
    short = result.with_content((Text("l"),))
    after = before.with_blocks((Text("A"), ToolCall("c1", "x", "[]"), short, text))
    assert blocks_by_place(before, after) == dict(enumerate(after.blocks))
    assert blocks_by_place(before, before.with_blocks((short, text))) == {2: short, 3: text}
