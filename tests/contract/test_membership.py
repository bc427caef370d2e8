"""Members of a group with different configurations: one of them works, the others are named."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from contextgauge.kafka.options import KafkaOptions
from schemas.topics import MIB, Topic
from streams.edge.faust.stream import FaustStream
from streams.edge.kafka.inspector import KafkaInspector
from streams.edge.kafka.log import KafkaLog
from streams.edge.kafka.membership import GroupConfiguration
from streams.ports.inspection import Group
from tests.contract.test_record_stream import Taking, until
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.extended, pytest.mark.service]


class Members:
    """Streams of one group over a topic of four partitions."""

    def __init__(self, options: KafkaOptions, topic: str, group: str) -> None:
        self._options, self._topic, self._group = options, topic, group

    @asynccontextmanager
    async def member(self, digest: str | None) -> AsyncIterator["Member"]:
        """Run a member meanwhile; without a digest, as a build before configurations."""
        given = Member(digest)
        stream = FaustStream(
            self._options,
            self._topic,
            self._group,
            None,
            lambda: 0,
            lambda: 0,
            membership=given.membership,
        )
        stop = asyncio.Event()
        task = asyncio.create_task(stream.run(given, stop))
        try:
            yield given
            stop.set()
            await asyncio.wait_for(task, PATIENCE_S)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    @asynccontextmanager
    async def leading(self, member: "Member") -> AsyncIterator[None]:
        """Go on once a member has all partitions: others that join find it as their leader."""
        await until(lambda: len(member.positions) == 4)
        yield

    async def stable_group(self) -> Group:
        """Return the group, which Kafka describes in full while it does not rebalance."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                inspector = KafkaInspector(self._options)
                await inspector.bootstrap()
                await inspector.cluster([])
                group = await inspector.group(self._group)
                await inspector.stop()
                if isinstance(group, Group) and group.state == "Stable":
                    return group


class Member(Taking):
    """A handler, and what its group said of its configuration."""

    def __init__(self, digest: str | None) -> None:
        super().__init__()
        self.refusals: list[str] = []
        self.membership = (
            None if digest is None else GroupConfiguration(digest, self.refusals.append)
        )

    @property
    def is_refused(self) -> bool:
        return bool(self.refusals and self.refusals[-1])


@pytest.fixture
async def members(kafka: str, prefix: str) -> AsyncIterator[Members]:
    options = KafkaOptions(kafka, session_timeout_ms=6_000)
    log = KafkaLog(options)
    topic = Topic(prefix + "records", "any", "delete", -1, 9 * MIB)
    await log.start()
    await log.create_topics([topic], 4)
    yield Members(options, topic.name, prefix + "group")
    await log.stop()


async def test_a_member_with_another_configuration_gets_nothing_and_is_named(
    members: Members,
) -> None:
    async with (
        members.member("aaaa") as first,
        members.leading(first),
        members.member("bbbb") as other,
        members.member("aaaa") as same,
    ):
        await until(lambda: other.is_refused and len(first.positions) == len(same.positions) == 2)
        assert not other.positions
        assert "has another configuration" in other.refusals[-1]
        assert not any(first.refusals + same.refusals)
        configurations = (await members.stable_group()).configurations
        assert {digest: len(hosts) for digest, hosts in configurations.items()} == {
            "aaaa": 2,
            "bbbb": 1,
        }


async def test_who_was_refused_takes_over_when_the_leader_has_left(members: Members) -> None:
    async with AsyncExitStack() as others:
        async with members.member("aaaa") as first, members.leading(first):
            other = await others.enter_async_context(members.member("bbbb"))
            await until(lambda: other.is_refused)
        await until(lambda: len(other.positions) == 4)
        assert not other.is_refused


async def test_a_member_without_a_configuration_shares_the_partitions(members: Members) -> None:
    async with (
        members.member("aaaa") as first,
        members.leading(first),
        members.member(None) as older,
    ):
        await until(lambda: len(older.positions) == len(first.positions) == 2)
        assert list((await members.stable_group()).configurations) == ["aaaa"]
