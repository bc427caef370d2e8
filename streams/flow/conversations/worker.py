"""The worker that keeps conversations: a group of its own over `agent.messages`.

It shares nothing with the derive workers but the log, so it cannot slow them down.
"""

import asyncio
from collections.abc import Coroutine, Mapping

from contextgauge.errors import ConfigError
from streams.flow.common.membership import Membership, stay_member
from streams.flow.common.topic_watch import KnownTopic, known_topics, watch_topics
from streams.flow.conversations.config import ConversationsPorts
from streams.flow.conversations.partition import ConversationPartition

_CANCEL_TIMEOUT_S = 3.0
"""Closing a reader takes one round trip; the group waits for longer."""


async def run_conversations(ports: ConversationsPorts) -> None:
    """Keep conversations until `stop` is set, then leave the group.

    A log or store that is away is waited for with a back-off. Raises StopError where going on
    would be wrong: a missing topic, conversations for another number of partitions.
    """
    ports.telemetry.count("worker_retries", 0, service="kafka")
    ports.telemetry.count("worker_retries", 0, service="redis")
    await stay_member(lambda: _ConversationsMember(ports), ports)


class _ConversationsMember(Membership):
    worker = "conversations"

    def __init__(self, ports: ConversationsPorts) -> None:
        config = ports.config
        super().__init__(ports, ports.log, config.messages_topic, config.group, config.instance_id)
        self._ports = ports
        self._topics: Mapping[str, KnownTopic] = {}
        self._kept: list[ConversationPartition] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def _prepare(self) -> int:
        """Wait for the store. Raises ConfigError where topics do not fit."""
        ports = self._ports
        await ports.retry.run(ports.store.start)
        names = [ports.config.messages_topic, ports.config.commands_topic]
        self._topics = await known_topics(ports.log, ports.clock, names)
        messages, commands = (self._topics[name].partitions for name in names)
        if messages != commands:
            raise ConfigError(
                f"{names[0]} has {messages} partitions and {names[1]} {commands}: a session's "
                "must have the same number in both; see `contextgauge doctor`"
            )
        return messages

    def _background(self) -> list[Coroutine[None, None, None]]:
        return [watch_topics(self._log, self._ports.clock, self._topics)]

    def _take(self, partitions: frozenset[int]) -> None:
        topic_id = self._topics[self._topic].id
        for partition in sorted(partitions):
            for name in ("rereads", "losses", "deletions", "expired"):
                self._ports.telemetry.count(f"conversations_{name}", 0, partition=str(partition))
            own = ConversationPartition(
                self._ports, self._reader, partition, self._partitions, topic_id
            )
            self._kept.append(own)
            self._tasks.append(self._spawn(own.run()))

    async def _release(self) -> None:
        """End all partitions' work at once: a batch that was cut off is read again."""
        self.has_worked = self.has_worked or any(each.has_written for each in self._kept)
        self._kept.clear()
        tasks, self._tasks = set(self._tasks), []
        while tasks:
            # Repeated if needed: a library may swallow a cancellation.
            for task in tasks:
                task.cancel()
            _, tasks = await asyncio.wait(tasks, timeout=_CANCEL_TIMEOUT_S)
