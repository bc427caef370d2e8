"""What the doctor reads of conversations and commands: positions, their topic, and outcomes."""

from collections.abc import Mapping, Sequence

import pytest

from contextgauge.clock import SystemClock
from schemas.commands import (
    CommandAccepted,
    CommandData,
    CommandEntry,
    CommandFinished,
    CompactionDecided,
    CompactRequested,
)
from schemas.topics import TOPICS
from streams.codec.commands import write_entry
from streams.edge.memory.conversations import MemoryConversations
from streams.flow.doctor import Facts, Services, gather
from streams.flow.doctor import log_facts as module
from streams.flow.doctor.facts import OpenCommands, WorkerProgress
from streams.ports import NewRecord
from streams.ports.conversations import Mark
from streams.ports.inspection import (
    Bootstrap,
    ClusterFacts,
    Failure,
    Group,
    OpenTransactions,
    TopicFacts,
)
from tests.doctor.cases import EXPECTED, partitions
from tests.doubles.log import FaultyLog

NONE = Failure("unset", "not asked")


class Brokers:
    """Brokers that have all topics, with two partitions each."""

    async def bootstrap(self) -> Sequence[Bootstrap]:
        return [Bootstrap("a:1", None)]

    async def cluster(self, topics: Sequence[str]) -> ClusterFacts:
        return ClusterFacts("c", [], {name: TopicFacts(partitions(), {}) for name in topics})

    async def group(self, name: str) -> Group:
        return Group(f"of {name}", [], {})

    async def transactions(self, partitions: Mapping[str, Sequence[int]]) -> OpenTransactions:
        raise AssertionError(f"nothing is open, but {partitions}")

    async def stop(self) -> None: ...


@pytest.fixture
async def log(monkeypatch: pytest.MonkeyPatch) -> FaultyLog:
    monkeypatch.setattr(module, "_POLL_S", 0.01)
    log = FaultyLog(SystemClock())
    await log.create_topics(TOPICS, 2)
    return log


async def examined(log: FaultyLog, store: MemoryConversations | None = None) -> Facts:
    conversations = store or MemoryConversations()
    services = Services(
        brokers=Brokers(),
        log=log,
        store=NONE,
        views=NONE,
        conversations=conversations,
        clock=SystemClock(),
    )
    return await gather(services, EXPECTED)


async def keep(store: MemoryConversations, partition: int, position: int, topic_id: str) -> None:
    await store.apply(
        partition,
        expected=None,
        mark=Mark(position, "stamp", topic_id),
        plan="",
        since_ms=None,
        keep_ms=1,
        changes={},
    )


async def test_positions_of_conversations_are_compared_with_the_present_topic(
    log: FaultyLog,
) -> None:
    name = EXPECTED.messages.name
    for _ in range(3):
        log.write(NewRecord(name, 0, b"s", b"{}", timestamp_ms=7), None)
    store = MemoryConversations()
    topic_id = (await log.topic_ids([name]))[name]
    assert topic_id is not None
    await keep(store, 0, 1, topic_id.hex)
    await keep(store, 1, 9, "former")
    conversations = (await examined(log, store)).conversations
    assert not isinstance(conversations, Failure)
    assert conversations.progress == {
        0: WorkerProgress(0, 3, 1, 7),
        1: WorkerProgress(0, 0, 9, None),
    }
    assert conversations.former == {1}


async def test_where_none_are_kept_there_is_nothing_to_compare(log: FaultyLog) -> None:
    assert (await examined(log)).conversations == Failure("away", "no conversations are kept")


async def test_sessions_that_no_compaction_helps_are_counted(log: FaultyLog) -> None:
    def write(data: CommandData) -> None:
        headers, value = write_entry(CommandEntry(f"{data.kind} {data}", 1, data))
        log.write(NewRecord(EXPECTED.commands.name, 0, b"s", value, headers, 1), None)

    for name in ("undone", "mended", "failed"):
        write(CompactionDecided(session_id=name, fired=False, reason="no_effect"))
    write(CompactionDecided(session_id="terminal", fired=False, reason="no_driver"))
    write(CompactionDecided(session_id="other", fired=False, reason="command_open"))
    for name, outcome in (("mended", "completed"), ("failed", "failed")):
        write(CommandFinished(session_id=name, command_id=name, outcome=outcome, attempt=1))  # type: ignore[arg-type]  # a literal
    assert (await examined(log)).kafka.commands == OpenCommands(0, None, 2, 1)


async def test_commands_without_an_outcome_are_counted(log: FaultyLog) -> None:
    def write(data: CommandData, time_ms: int) -> None:
        headers, value = write_entry(CommandEntry(f"{data.kind} {time_ms}", time_ms, data))
        log.write(NewRecord(EXPECTED.commands.name, 0, b"s", value, headers, time_ms), None)

    for time_ms, name in enumerate(("done", "open", "waits")):
        write(
            CompactRequested(
                session_id="s", command_id=name, trigger="manual", requested_by="a person"
            ),
            time_ms,
        )
    for name in ("done", "open", "older"):
        write(CommandAccepted(session_id="s", command_id=name, driver="service", upto_offset=0), 3)
    write(CommandFinished(session_id="s", command_id="done", outcome="completed", attempt=1), 4)
    log.write(NewRecord(EXPECTED.commands.name, 1, b"s", b"not a command"), None)
    assert (await examined(log)).kafka.commands == OpenCommands(3, 1)
