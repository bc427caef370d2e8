"""A framework's lists of messages are known again as one conversation."""

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from contextgauge.adapters import conversations
from contextgauge.adapters.conversations import FollowedConversations, ObjectCodec, blocks_by_place
from contextgauge.compaction import Compactor, ModelCall
from contextgauge.compaction.messages import ApiUsage, Block, Message, Text, ToolCall, ToolResult

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


class ReportingCodec(ObjectCodec[tuple[str, str, int]]):
    """A framework whose messages have a role, a text, and the size that the API reported."""

    def message_of(self, item: tuple[str, str, int], id_: str) -> Message:
        role, text, size = item
        usage = ApiUsage(size, 100) if size else None
        return Message("user" if role == "user" else "assistant", (Text(text),), id_, usage)

    def compaction_of(self, text: str) -> tuple[str, str, int]:
        return "user", text, 0

    def changed(self, item: tuple[str, str, int], blocks: dict[int, Block]) -> tuple[str, str, int]:
        raise NotImplementedError


def estimated(items: Sequence[tuple[str, str, int]]) -> int:
    return sum(len(text) // 4 + 3 for _, text, _ in items)


@pytest.mark.parametrize(("overhead", "first_report"), [(0, 0), (3_000, 0), (0, 30)])
async def test_a_list_whose_reported_sizes_are_of_compacted_requests_is_sent_compacted(
    overhead: int, first_report: int
) -> None:
    known = FollowedConversations(ReportingCodec, None)
    state: list[tuple[str, str, int]] = []
    sizes = []
    for number in range(60):
        state.append(("user", f"{number}: " + "word " * 100, 0))
        sizes.append(overhead + estimated(await known.request(state, CALL)))
        state.append(("agent", "done " * 80, sizes[-1] if number >= first_report else 0))
    assert max(sizes) < 7_000
    state.append(("user", "And now?", 0))
    whole = await known.request(state, CALL)
    edited = await known.request([*state[:-1], ("user", "Another question.", 0)], CALL)
    other = await FollowedConversations(ReportingCodec, None).request(state, CALL)
    for sent in (whole, edited, other):
        assert overhead + estimated(sent) < 7_000


async def test_reported_sizes_that_grow_with_the_list_count_when_it_is_read() -> None:
    state: list[tuple[str, str, int]] = []
    for number in range(20):
        state.append(("user", f"{number}: " + "word " * 20, 0))
        state.append(("agent", "done " * 20, 2_000 + estimated(state) // 2))
    sent = await FollowedConversations(ReportingCodec, None).request(state, CALL)
    assert sent == state
    large = [*state, ("user", "More.", 0), ("agent", "Fine.", 6_990), ("user", "And now?", 0)]
    assert await FollowedConversations(ReportingCodec, None).request(large, CALL) != large


def test_blocks_of_a_shortened_message_have_their_place() -> None:
    result, text = ToolResult("c2", (Text("long"),)), Text("b")
    before = Message("user", (Text("a"), ToolCall("c1", "x", "{}"), result, text, Text("c")))
    short = result.with_content((Text("l"),))
    after = before.with_blocks((Text("A"), ToolCall("c1", "x", "[]"), short, text))
    assert blocks_by_place(before, after) == dict(enumerate(after.blocks))
    assert blocks_by_place(before, before.with_blocks((short, text))) == {2: short, 3: text}


@pytest.mark.parametrize("has_tool", [False, True])
async def test_recall_is_named_where_the_adapter_offers_it_and_for_no_tool_of_that_name(
    *, has_tool: bool
) -> None:
    own = '{"name":"recall","description":"What the customer bought."}'
    known = FollowedConversations(TextCodec, None, recall=has_tool)
    given = [f"{number}: " + "never on main " * 400 for number in range(30)] + ["And now?"]
    sent = await known.request(given, replace(CALL, tools=(own,)))
    named = re.findall(r" \u2026 [0-9]+ (m[0-9]+)\]", sent[0])
    assert bool(named) == (": recall m" in sent[0]) == has_tool
    for each in named:
        assert f"id={each} " in known.recalled(given, {"id": each})
