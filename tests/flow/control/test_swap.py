"""When a compaction takes effect: never while a call of the model may be under way."""

import asyncio
from collections.abc import Sequence
from unittest.mock import ANY

import pytest

from contextgauge.errors import RetryError
from contextgauge.records import Json
from schemas.commands import CommandEntry
from streams.core.control.messages import Line
from streams.flow.control.commands.command_log import CommandLog
from streams.ports import Approval, Asked
from tests.flow.control.command_kit import SESSION, CommandKit
from tests.patience import PATIENCE_S


@pytest.fixture
async def kit() -> CommandKit:
    kit = CommandKit()
    await kit.create()
    return kit


async def test_a_swap_waits_for_the_answer_to_what_was_sent_before_it(kit: CommandKit) -> None:
    await kit.say(12)
    await kit.publish({"type": "user", "message": {"role": "user", "content": "and now?"}})
    await kit.request()
    async with kit.worker():
        await kit.until(lambda: kit.has_called(1))
        await asyncio.sleep(0.3)  # nothing must happen
        assert kit.boundaries() == []
        await kit.say(1)
        assert (await kit.outcome()).outcome == "completed"
    lines = kit.lines()
    last = max(index for index, line in enumerate(lines) if line.get("type") == "assistant")
    assert lines.index(kit.boundaries()[0]) > last
    await kit.check()


async def _asked_for(kit: CommandKit) -> str:
    """Have the agent ask for its context, as it does before a call; return the last message."""
    conversation = await kit.conversations.conversation(SESSION)
    assert conversation is not None
    last_id = conversation.history.active[-1].id
    await kit.asked.note(SESSION, last_id, conversation.history.rounds)
    return last_id


async def _answer(kit: CommandKit) -> None:
    content: list[Json] = [{"type": "text", "text": "an answer"}]
    message: dict[str, Json] = {"id": "m", "role": "assistant", "content": content}
    await kit.publish({"type": "assistant", "message": message})


def _was_during_call(kit: CommandKit) -> bool:
    (boundary,) = kit.boundaries()
    metadata = boundary["compact_metadata"]
    assert isinstance(metadata, dict)
    own = metadata["contextgauge"]
    assert isinstance(own, dict)
    return own.get("during_call", False) is True


async def test_an_agent_that_waits_for_what_it_published_calls_its_model_next(
    kit: CommandKit,
) -> None:
    kit.change(quiet_s=PATIENCE_S)
    await kit.say(11)
    for _ in range(2):  # it asks again, as the conversation lags behind what it published
        last_id = await _asked_for(kit)
    await kit.ask()
    assert (await kit.asked.asked(SESSION)) == Asked(last_id, 2, ANY)
    await kit.request()
    async with kit.worker():
        await kit.until(lambda: kit.has_called(1))
        await asyncio.sleep(0.3)  # nothing must happen
        assert kit.boundaries() == []
        await _answer(kit)
        assert (await kit.outcome()).outcome == "completed"
    assert not _was_during_call(kit)
    await kit.check()


async def test_a_call_that_begins_before_the_commit_is_waited_for(
    kit: CommandKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    kit.change(quiet_s=PATIENCE_S)
    await kit.say(12)
    append, swaps = CommandLog.append, list[int]()

    async def late(
        log: CommandLog,
        entries: Sequence[CommandEntry],
        lines: Sequence[Line] = (),
        approve: Approval | None = None,
    ) -> bool:
        if approve is not None and not swaps:
            swaps.append(1)
            await kit.ask()
        return await append(log, entries, lines, approve)

    monkeypatch.setattr(CommandLog, "append", late)
    await kit.request()
    async with kit.worker():
        await kit.until(lambda: bool(swaps))
        await asyncio.sleep(0.3)  # nothing must happen
        assert kit.boundaries() == []
        await _answer(kit)
        assert (await kit.outcome()).outcome == "completed"
    assert not _was_during_call(kit)
    await kit.check()


async def test_an_agent_that_waits_for_its_context_is_not_waited_for(kit: CommandKit) -> None:
    kit.change(quiet_s=PATIENCE_S)
    await kit.say(12)
    await kit.ask()
    await _asked_for(kit)
    await kit.request()
    async with kit.worker():
        await kit.until(lambda: kit.has_called(1))
        await asyncio.sleep(0.3)  # a call may be under way: nothing must happen
        assert kit.boundaries() == []
        await _asked_for(kit)
        assert (await kit.outcome()).outcome == "completed"
    await kit.check()


async def test_where_it_is_not_known_what_was_asked_for_an_answer_is_waited_for(
    kit: CommandKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(_: str) -> None:
        raise RetryError("away")

    monkeypatch.setattr(kit.asked, "asked", away)
    kit.change(quiet_s=0.3)
    await kit.say(12)
    await kit.ask()
    await kit.request()
    async with kit.worker():
        assert (await kit.outcome()).outcome == "completed"
    await kit.check()


@pytest.mark.parametrize("urgent", [True, False])
async def test_a_swap_does_not_wait_for_ever(kit: CommandKit, *, urgent: bool) -> None:
    kit.change(quiet_s=60.0 if urgent else 0.1)
    await kit.say(12)
    await kit.publish({"type": "user", "message": {"role": "user", "content": "and now?"}})
    await kit.request(urgent=urgent)
    async with kit.worker():
        assert (await kit.outcome()).outcome == "completed"
    assert _was_during_call(kit)
    await kit.check()
