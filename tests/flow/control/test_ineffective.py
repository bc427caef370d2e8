"""Compactions that an agent did not follow: each is noted once, whoever owns the partition."""

import pytest

from contextgauge.errors import RetryError
from schemas.commands import CompactionDecided
from streams.core.control.reasons import NO_EFFECT
from streams.flow.control.commands import ineffective
from tests.flow.control.command_kit import SESSION, CommandKit


@pytest.fixture
async def kit(monkeypatch: pytest.MonkeyPatch) -> CommandKit:
    monkeypatch.setattr(ineffective, "_LOOK_S", 0.01)
    monkeypatch.setattr(ineffective, "_LONGEST_S", 0.02)
    kit = CommandKit()
    await kit.create()
    await kit.say(12)
    await answer(kit, 13_000)
    return kit


async def answer(kit: CommandKit, used: int) -> None:
    """Publish a question, and an answer that reports a size."""
    kit.messages += 1
    usage = {"input_tokens": used, "output_tokens": 5}
    message = {
        "id": f"msg-{kit.messages}",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [{"type": "text", "text": "done"}],
        "usage": usage,
    }
    await kit.publish(
        {"type": "user", "message": {"role": "user", "content": f"question {kit.messages}"}},
        {"type": "assistant", "message": message},  # type: ignore[dict-item]  # as JSON
    )


def noted(kit: CommandKit) -> list[CompactionDecided]:
    return [each for each in kit.of(CompactionDecided) if each.reason == NO_EFFECT]


async def test_a_compaction_that_no_one_followed_is_noted_and_undone(kit: CommandKit) -> None:
    await kit.request()
    async with kit.worker():
        assert (await kit.outcome()).outcome == "completed"
        compacted = await kit.conversations.conversation(SESSION)
        assert compacted is not None
        assert len(compacted.history.active) < 26
        await answer(kit, 13_500)
        await kit.until(lambda: noted(kit))
    (only,) = noted(kit)
    assert (only.fired, only.command_id, only.used_tokens) == (False, "command", 13_500)
    conversation = await kit.conversations.conversation(SESSION)
    assert conversation is not None
    assert (conversation.state, len(conversation.history.active)) == ("whole", 28)
    view = await kit.store.control_view(SESSION)
    assert view is not None
    async with kit.worker():  # the next owner reads that in the log
        await kit.request("next")
        await kit.outcome("next")
    assert len(noted(kit)) == 1


async def test_one_that_was_followed_is_not_noted(kit: CommandKit) -> None:
    await kit.request()
    async with kit.worker():
        assert (await kit.outcome()).outcome == "completed"
        await answer(kit, 4_000)
        looks = kit.conversations.looks
        await kit.until(lambda: kit.conversations.looks > looks)
        await answer(kit, 14_000)
        await kit.request("next")
        assert (await kit.outcome("next")).outcome == "completed"
    assert noted(kit) == []
    await kit.check()


async def test_the_next_owner_notes_what_this_one_had_no_time_for(
    kit: CommandKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    await kit.carry_out()
    await answer(kit, 13_500)
    read, failures = kit.conversations.conversation, 2

    async def away(session_id: str) -> object:
        nonlocal failures
        failures -= 1
        if failures >= 0:
            raise RetryError("away")
        return await read(session_id)

    monkeypatch.setattr(kit.conversations, "conversation", away)
    async with kit.worker():
        await kit.until(lambda: noted(kit))
