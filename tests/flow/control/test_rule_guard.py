"""The rule guard over a log: each boundary of a kept conversation is checked once."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from contextgauge.compaction.history import History
from contextgauge.compaction.messages import Message
from contextgauge.compaction.reading.session_conversation import (
    ConversationState,
    SessionConversation,
)
from contextgauge.errors import RetryError
from schemas.records import CompactBoundary, PinsChecked, Record
from schemas.topics import AGENT_MESSAGES
from streams import codec
from streams.core.alerts.rules import LostRules
from streams.core.control.turn_overlap import GuardAllowance
from streams.flow.control.control_loop import ControlLoop
from streams.flow.control.decisions import rule_guard
from streams.flow.control.decisions.rule_guard import RuleGuard, RuleGuardPorts
from streams.ports import NewRecord
from streams.ports.conversations import Mark
from tests.core.control.test_pins import PUSH, said, summary, turn
from tests.core.given import AUTO, Given, assistant, boundary, one, record_of
from tests.doubles.record_stream import MemoryRecordStream
from tests.flow.control.control_kit import TOPIC, ControlKit, rule
from tests.flow.derive_kit import until
from tests.patience import PATIENCE_S

MESSAGES = AGENT_MESSAGES.name
BOUNDARY_AT = 7
"""The offset of the boundary's message."""


def conversation(
    *messages: Message, position: int = BOUNDARY_AT + 2, state: ConversationState = "whole"
) -> SessionConversation:
    """Return what is kept of the session."""
    return SessionConversation(History(messages), state, None, None, None, 0, position)


LOST = conversation(turn(PUSH), said("Ok."), summary("The importer was fixed."))


class GuardKit(ControlKit):
    """A guard over the log in memory, and the conversations that it reads."""

    def __init__(self) -> None:
        super().__init__()
        self.conversations: list[SessionConversation | RetryError | None] = []
        self.has_texts = True
        self.asked_conversations = 0
        self.kept_until: int | None = 0
        self.topic_id = ""
        self.given = Given()

    async def create(self) -> None:
        await super().create()
        await self.log.create_topics([AGENT_MESSAGES], 2)

    async def start(self) -> None:
        """Nothing."""

    async def stop(self) -> None:
        """Nothing."""

    async def mark(self, partition: int) -> Mark | None:
        assert partition == 0
        return None if self.kept_until is None else Mark(self.kept_until, "", self.topic_id)

    async def conversation(self, session_id: str) -> SessionConversation | None:
        """Return what is kept now; the last of the test's answers stays."""
        assert session_id
        self.asked_conversations += 1
        more = len(self.conversations) > 1
        answer = self.conversations.pop(0) if more else self.conversations[0]
        if isinstance(answer, RetryError):
            raise answer
        return answer

    async def bound(
        self, *, age_ms: int = 0, offset: bytes | None = b"%d" % BOUNDARY_AT, **more: Any
    ) -> Record:
        """Let a boundary be derived; return its record."""
        records = self.given.take(boundary(AUTO, at=1, **more))
        self.clock.at_ms = max(self.clock.at_ms, (records[-1].time_ms or 0) + age_ms)
        producer = self.log.producer()
        await producer.start()
        for record in records:
            headers, value = codec.to_binary(record)
            headers = (*headers, ("src_offset", offset))
            key = codec.key_bytes(record.data.session_id)
            at_ms = self.clock.at_ms - age_ms
            await producer.send(NewRecord(TOPIC, 0, key, value, headers, at_ms))
        await producer.flush()
        await producer.stop()
        return record_of(records, CompactBoundary)

    @asynccontextmanager
    async def guarding(self) -> AsyncIterator[None]:
        """Run a guard meanwhile."""
        stop = asyncio.Event()
        ports = RuleGuardPorts(
            telemetry=self.figures,
            health=self.health,
            clock=self.clock,
            stop=stop,
            log=self.log,
            conversations=self,
            has_texts=self.has_texts,
        )
        guard = RuleGuard(MESSAGES, ports)
        stream = MemoryRecordStream(
            self.log, TOPIC, (0, 1), self.acknowledged, lambda: 0, lambda: 0
        )
        loop = ControlLoop("decisions", stream, [guard.opened], ports)
        task = asyncio.create_task(loop.run())
        try:
            yield
            stop.set()
            await asyncio.wait_for(task, PATIENCE_S)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def published(self) -> list[dict[str, Any]]:
        """Return what was published of the sessions."""
        records = self.log.partition(MESSAGES, 0).read(0, 1_000_000).records
        return [json.loads(each.value or b"") for each in records]


@pytest.fixture
async def kit() -> GuardKit:
    kit = GuardKit()
    await kit.create()
    return kit


async def test_a_lost_rule_is_published_derived_and_alerted(kit: GuardKit) -> None:
    kit.conversations = [LOST]
    kit.by(rule(LostRules(1)), rule(LostRules(2), name="more"))
    record = await kit.bound()
    async with kit.guarding():
        await kit.until_acknowledged()
    (message,) = kit.published()
    assert (message["kept"], message["lost"]) == (0, [PUSH])
    checked = kit.given.take(message)
    data = one(checked, PinsChecked)
    assert (data.boundary_id, data.pins_lost, data.lost_pins) == (record.id, 1, (PUSH,))
    await kit.write(checked)
    async with kit.running():
        await kit.until_taken(1)
    (body,) = kit.receivers["ops"].bodies
    assert "~1 turn of the user is not in the conversation after compaction 1" in str(body["text"])
    assert PUSH not in json.dumps(body)
    assert body["facts"] == {
        "boundary_id": record.id,
        "number": 1,
        "pins_kept": 0,
        "pins_lost": 1,
    }


async def test_it_waits_for_the_conversation_and_its_summary(kit: GuardKit) -> None:
    behind = conversation(turn(PUSH), position=BOUNDARY_AT)
    awaited = LOST._replace(state="incomplete")
    kit.conversations = [RetryError("away"), None, behind, awaited, LOST]
    await kit.bound()
    async with kit.guarding():
        await kit.until_acknowledged()
    assert len(kit.conversations) == 1
    assert [each["lost"] for each in kit.published()] == [[PUSH]]


async def test_texts_are_withheld_where_they_may_not_be_published(kit: GuardKit) -> None:
    kit.conversations, kit.has_texts = [LOST], False
    await kit.bound()
    async with kit.guarding():
        await kit.until_acknowledged()
    (message,) = kit.published()
    assert (message["lost"], message["lost_count"]) == ([], 1)


async def test_a_worker_that_has_too_much_to_check_publishes_nothing(
    kit: GuardKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rule_guard, "GuardAllowance", lambda: GuardAllowance(0))
    kit.conversations = [LOST]
    await kit.bound()
    async with kit.guarding():
        await kit.until_acknowledged()
    assert kit.published() == []


@pytest.mark.parametrize(
    "answers",
    [
        [LOST._replace(state="without_text")],
        [LOST._replace(state="too_large")],
        [conversation(turn(PUSH))],
    ],
)
async def test_what_cannot_be_judged_is_not_published(
    kit: GuardKit, answers: Sequence[SessionConversation]
) -> None:
    kit.conversations = list(answers)
    await kit.bound()
    async with kit.guarding():
        await kit.until_acknowledged()
    assert not kit.published()


@pytest.mark.parametrize("kept_until", [None, BOUNDARY_AT + 1])
async def test_a_session_whose_text_is_not_kept_is_done_at_once(
    kit: GuardKit, kept_until: int | None
) -> None:
    kit.conversations, kit.kept_until = [None], kept_until
    await kit.bound()
    async with kit.guarding():
        await kit.until_acknowledged()
    assert kit.asked_conversations == 1
    assert not kit.published()


async def test_what_is_kept_of_a_former_topic_is_waited_for(kit: GuardKit) -> None:
    kit.topic_id, kit.kept_until = "former", BOUNDARY_AT + 1
    kit.conversations = [LOST._replace(topic_id="former"), None, LOST]
    await kit.bound()
    async with kit.guarding():
        await kit.until_acknowledged()
    assert kit.asked_conversations == 3
    assert len(kit.published()) == 1


@pytest.mark.parametrize("answer", [None, LOST._replace(state="incomplete")])
async def test_after_a_while_it_gives_up(
    kit: GuardKit, answer: SessionConversation | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rule_guard, "WAIT_MS", 0)
    kit.conversations = [answer]
    await kit.bound()
    async with kit.guarding():
        await kit.until_acknowledged()
    assert not kit.published()


async def test_old_boundaries_and_those_of_subagents_are_not_checked(kit: GuardKit) -> None:
    await kit.bound(age_ms=rule_guard.MAX_AGE_MS + 1)
    await kit.bound(isSidechain=True, agentId="a1")
    async with kit.guarding():
        await kit.until_acknowledged()
    assert not kit.published()


@pytest.mark.parametrize("offset", [None, b"", b"-1", b"seven", b"9" * 5_000])
async def test_a_boundary_that_another_program_wrote_is_not_checked(
    kit: GuardKit, offset: bytes | None
) -> None:
    await kit.bound(offset=offset)
    async with kit.guarding():
        await kit.until_acknowledged()
    assert not kit.published()


async def test_a_killed_check_is_made_again_with_the_same_id(kit: GuardKit) -> None:
    kit.conversations = [LOST]
    await kit.bound()
    async with kit.guarding():
        await kit.until_acknowledged()
    kit.acknowledged.clear()  # as where it was killed before its acknowledgement was committed
    async with kit.guarding():
        await kit.until_acknowledged()
    first, second = kit.published()
    assert first["uuid"] == second["uuid"]
    assert len(kit.given.take(first, second)) == 1


async def test_records_behind_a_check_are_acknowledged_after_it(kit: GuardKit) -> None:
    kit.conversations = [None]
    await kit.bound()
    await kit.write(kit.given.take(assistant("m2", read=9_000)))
    async with kit.guarding():
        await until(lambda: kit.asked_conversations > 2)
        assert not kit.acknowledged.get(0)
        kit.conversations = [LOST]
        await kit.until_acknowledged()
    assert len(kit.published()) == 1
