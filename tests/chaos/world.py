"""One round: topics, workers and a stream of messages, through one fault, and what came of it."""

import asyncio
import contextlib
import random
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from contextgauge.kafka.producer import KafkaProducer
from contextgauge.partitioner import partition_of
from streams import codec
from streams.edge.kafka.log import KafkaLog
from streams.edge.redis.view_store import RedisViews
from streams.flow.simulator import SimulatedMessage, SimulationOptions, simulate
from streams.ports import LogRecord, NewRecord, started
from tests.chaos.oracle import (
    Oracle,
    ViolationError,
    compare_records,
    compare_views,
    read_records,
)
from tests.chaos.services import Services
from tests.chaos.workers import SESSION_TIMEOUT_MS, STOPPED_S, TRACEBACK, Fleet
from tests.commands import command_environment
from tests.flow.derive_kit import DeriveKit
from tests.patience import PATIENCE, pause_s

PATIENCE_S: Final = 120.0 * PATIENCE
"""After this, what did not come is missing. Nothing waits nearly so long on an idle machine."""

WORKERS: Final = ("derive-1", "derive-2", "project-1", "project-2")
ENDED: Final = frozenset({0, -15})
"""Exit codes of what was asked to end; one that has just started does not listen yet."""

_SESSIONS: Final = 16
_FIRST: Final = 240
"""Messages before the fault."""
_PORTION: Final = 10
_PAUSE_S: Final = 0.08
_BROKEN_EVERY: Final = 97
"""One in so many messages is none, and becomes a dead letter."""
_DAY_S: Final = 86_400
_DERIVE: Final = "contextgauge-derive"


@dataclass
class Outcome:
    """What one round came to."""

    fault: str
    seed: int
    violations: list[str] = field(default_factory=list)
    recovery_s: float = 0.0
    took_s: float = 0.0
    messages: int = 0
    schedule: list[str] = field(default_factory=list)
    warnings: Counter[str] = field(default_factory=Counter)


class World:
    """Everything that a fault may do something to."""

    def __init__(self, services: Services, seed: int, name: str, folder: Path) -> None:
        self.services, self.dice = services, random.Random(f"{seed} {name}")
        self.folder = folder
        self.prefix = f"{name}-{seed}-"
        self.schedule: list[str] = []
        self.to_end = False
        """Whether only the last records are still on the topic: a fault that deletes sets it."""
        self.has_faked_clocks = False
        """Whether libfaketime is at work, which breaks Python's own `time.sleep`."""
        self._began_s = time.monotonic()
        yesterday_ms = (int(time.time()) // _DAY_S - 1) * _DAY_S * 1_000
        options = SimulationOptions(seed=seed, sessions=_SESSIONS, start_ms=yesterday_ms)
        self._stream = simulate(options, sys.maxsize)
        self._number = 0
        self.sent: list[tuple[str, bytes]] = []
        """All messages of which the broker acknowledged that it has them, in their order."""
        self.counts_dead = True
        """Whether all dead letters are still on their topic."""
        self._publishing: asyncio.Task[None] | None = None
        self._is_over = asyncio.Event()
        self.log = KafkaLog(services.options)
        self.fleet = Fleet({}, folder)
        self._name_everything()

    def _name_everything(self) -> None:
        self.key_prefix = self.prefix.rstrip("-")
        self.kit = DeriveKit(self.log, self.prefix)
        self.kit.config = self.kit.renamed(self.prefix + _DERIVE)
        self.views = RedisViews(self.services.redis_url, self.key_prefix)
        self.oracle = Oracle(self.kit)
        self.fleet.environment = command_environment(self.settings) | self.services.environment()

    @property
    def settings(self) -> dict[str, str]:
        """The settings of this round's workers, without where they connect to."""
        return {
            "TOPIC_PREFIX": self.prefix,
            "GROUP_PREFIX": self.prefix,
            "KEY_PREFIX": self.key_prefix,
            "SESSION_TIMEOUT_MS": str(SESSION_TIMEOUT_MS),
            "BATCH_MESSAGES": "50",
            "LOG_FORMAT": "json",
            "STATE_FOLDER": str(self.folder / "state"),
        }

    @property
    def topics(self) -> dict[str, str]:
        """The names of the four topics of the pipeline."""
        config = self.kit.config
        names = (config.messages_topic, config.events_topic, config.state_topic, config.dead_topic)
        return {name.removeprefix(self.prefix): name for name in names}

    def note(self, what: str) -> None:
        """Add a line to the schedule."""
        self.schedule.append(f"{time.monotonic() - self._began_s:6.1f} s  {what}")

    # Beginning and ending

    async def begin(self) -> None:
        """Create topics, start workers, and wait until they have worked."""
        await self.kit.create_topics()
        await self.views.start()
        for name in WORKERS:
            self.fleet.add(name)
        await self.publish(_FIRST)
        await self.arrived()
        await self.start_publishing()

    async def start_publishing(self) -> None:
        """Begin the steady stream."""
        self._is_over.clear()
        producer = self.log.producer()
        await producer.start()
        self._publishing = asyncio.create_task(self._publish_steadily(producer))

    async def stop_publishing(self) -> None:
        """End the steady stream; all of it is acknowledged then."""
        publishing, self._publishing = self._publishing, None
        if publishing is not None:
            self._is_over.set()
            async with asyncio.timeout(PATIENCE_S):
                await publishing

    async def close(self) -> None:
        """Leave nothing behind."""
        self.fleet.discard()
        if self._publishing is not None:
            self._publishing.cancel()
            await asyncio.wait([self._publishing])
        with contextlib.suppress(Exception):
            async with asyncio.timeout(20 * PATIENCE):
                async with self.log.asking("deleting the round's topics") as admin:
                    await admin.delete_topics([topic.name for topic in self.kit.topics])
        await self.views.stop()
        await self.log.stop()

    # The stream of messages

    async def publish(self, count: int) -> None:
        """Publish so many messages, and wait until they are acknowledged."""
        async with started(self.log.producer()) as producer:
            await self._publish(producer, count)

    async def _publish_steadily(self, producer: KafkaProducer) -> None:
        try:
            while not self._is_over.is_set():
                await self._publish(producer, _PORTION)
                await asyncio.sleep(_PAUSE_S)
        finally:
            await producer.stop()

    async def _publish(self, producer: KafkaProducer, count: int) -> None:
        taken = self.take(count)
        await self._send(producer, taken)
        self.sent += taken

    async def _send(self, producer: KafkaProducer, messages: Sequence[tuple[str, bytes]]) -> None:
        for session, value in messages:
            topic, partition = self.kit.config.messages_topic, self.partition(session)
            await producer.send(NewRecord(topic, partition, codec.key_bytes(session), value))
        await producer.flush()

    def take(self, count: int) -> list[tuple[str, bytes]]:
        """Return the stream's next messages."""
        taken = []
        for _ in range(count):
            message = self.next_message()
            value = message.named()
            if self._number % _BROKEN_EVERY == 0:
                value = b"no message: %d" % self._number
            taken.append((message.session_id, value))
        return taken

    def next_message(self) -> SimulatedMessage:
        """Return the stream's next message."""
        self._number += 1
        return next(self._stream)

    def partition(self, session: str) -> int:
        """Return the partition of a session."""
        return partition_of(session, self.kit.partitions)

    @contextlib.asynccontextmanager
    async def silence(self) -> AsyncIterator[None]:
        """Publish nothing meanwhile."""
        await self.stop_publishing()
        yield
        await self.start_publishing()

    # Waiting

    async def until(self, done: Callable[[], Awaitable[bool] | bool], what: str) -> None:
        """Wait until something is so, while the supervisor looks after the workers."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            began_s = time.monotonic()
            self.fleet.tend()
            try:
                async with asyncio.timeout(20 * PATIENCE):
                    is_done = done()
                    if is_done if isinstance(is_done, bool) else await is_done:
                        return
            except ViolationError:
                raise
            except Exception as error:  # noqa: BLE001 -- whatever is away now may come back
                reason = f" ({error!r})"
            else:
                reason = ""
            if time.monotonic() > deadline:
                raise ViolationError(f"not within {PATIENCE_S:.0f} s: {what}{reason}")
            await asyncio.sleep(pause_s(time.monotonic() - began_s, 0.05))

    async def arrived(self) -> None:
        """Wait until all messages are derived and in the views."""

        async def so() -> bool:
            await self.oracle.update()
            return await self.oracle.last_ids_are_in(self.views)

        await self.until(so, "all messages are derived and projected")

    async def positions(self) -> list[int]:
        """Return how far the views are."""
        active = (await self.views.generations()).active
        if active is None:
            return []
        found = [await self.views.position(active, p) for p in range(self.kit.partitions)]
        return [position.offset if position is not None else -1 for position in found]

    async def progress(self) -> None:
        """Wait until every partition has moved since now: the fault before has been got over."""
        before: list[int] = []

        async def moved() -> bool:
            now = await self.positions()
            if not before:
                before.extend(now)
            return bool(before) and all(a > b for a, b in zip(now, before, strict=False))

        await self.until(moved, "every partition moves on")

    async def pause(self, least_s: float = 0.05, most_s: float = 1.0) -> None:
        """Let things go on for a moment that the seed chooses."""
        await asyncio.sleep(self.dice.uniform(least_s, most_s))

    async def out_for(self, least_s: float = 2.0, most_s: float = STOPPED_S) -> None:
        """Wait as long as something is away."""
        await asyncio.sleep(self.dice.uniform(least_s, most_s))

    # Remedies of docs/RUNBOOK.md

    async def move(self) -> None:
        """Take new prefixes, and publish all that was published: «Change the number of partitions».

        Workers have ended; the former topics are left alone.
        """
        self.note("remedy: new prefixes, everything is published again")
        await self.stop_publishing()
        self.prefix = f"moved-{self.prefix}"
        self.fleet.discard()
        self.fleet.workers.clear()
        await self.views.stop()
        self._name_everything()
        await self.kit.create_topics()
        await self.views.start()
        async with started(self.log.producer()) as producer:
            await self._send(producer, self.sent)
        self.fleet.stopping = frozenset()
        for name in WORKERS:
            self.fleet.add(name)

    # Checking

    async def check(self) -> list[str]:
        """End the workers; return what is wrong with records, dead letters and views."""
        codes = await self.fleet.end()
        problems = [
            f"{name} ended with {code}" for name, code in codes.items() if code not in ENDED
        ]
        if self.fleet.warnings()[TRACEBACK] and not self.has_faked_clocks:
            problems.append("a worker wrote a traceback")
        await self.kit.settle()
        await self.oracle.update()
        placed = await read_records(self.kit)
        problems += compare_records(placed, self.oracle.records, to_end=self.to_end)
        problems += await compare_views(placed, self.views)
        dead = sum([len(await self._dead(p)) for p in range(self.kit.partitions)])
        if self.counts_dead and dead != self.oracle.dead:
            problems.append(f"{dead} dead letters instead of {self.oracle.dead}")
        lacking = len({value for _, value in self.sent} - set(self.oracle.values))
        if lacking:
            problems.append(f"{lacking} acknowledged messages are not on the topic")
        return problems

    async def _dead(self, partition: int) -> Sequence[LogRecord]:
        return await self.kit.read(self.kit.config.dead_topic, partition)
