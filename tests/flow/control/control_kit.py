"""A control worker under test: records in, and what its targets were sent."""

import asyncio
import json
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from contextgauge.clock import SystemClock
from contextgauge.errors import RetryError
from schemas.records import Record
from schemas.topics import CONTEXT_EVENTS
from streams import codec
from streams.core.alerts.rules import (
    AlertPlan,
    Condition,
    Format,
    Patterns,
    Pressure,
    Rule,
    Target,
)
from streams.edge.memory.log import MemoryLog
from streams.flow.common.ports import WorkerPorts
from streams.flow.common.together import together
from streams.flow.common.topic_watch import KnownTopic, known_topics
from streams.flow.control.alerts.alert_partition import ControlPorts
from streams.flow.control.alerts.alert_worker import ControlWorker
from streams.flow.control.session_owners import Owner
from streams.flow.control.topics_watch import watch_until_stopped
from streams.ports import AlertMemory, NewRecord, WebhookResult
from tests.core.given import START_MS, Given, assistant
from tests.doubles.alerts import MemoryAlertMemory
from tests.doubles.record_stream import MemoryRecordStream
from tests.flow.derive_kit import Figures, board, until
from tests.patience import PATIENCE_S

TOPIC = CONTEXT_EVENTS.name
DELIVERED = WebhookResult("delivered", "it answered 200")
AWAY = WebhookResult("retry", "it cannot be reached (OSError)")
REFUSED = WebhookResult("refused", "it answered 410")


class GivenClock(SystemClock):
    """The world's time is what a test says, as the records' is; pauses are over soon."""

    def __init__(self) -> None:
        self.at_ms = START_MS

    def now_ms(self) -> int:
        return self.at_ms

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, 0.005))


class Receiver:
    """A target's other side: it answers what it is asked to, and keeps what it took."""

    def __init__(self) -> None:
        self.answers: list[WebhookResult] = []
        self.always: WebhookResult = DELIVERED
        self.calls: list[str] = []
        self.sent: list[bytes] = []
        self.taken: list[str] = []
        self.bodies: list[dict[str, object]] = []
        self.gate: asyncio.Event | None = None

    async def call(self, alert_id: str, body: bytes) -> WebhookResult:
        self.calls.append(alert_id)
        self.sent.append(body)
        if self.gate is not None:
            await self.gate.wait()
        answer = self.answers.pop(0) if self.answers else self.always
        if answer.outcome == "delivered":
            self.taken.append(alert_id)
            self.bodies.append(json.loads(body))
        return answer

    async def stop(self) -> None:
        """Nothing."""


def target(name: str, form: Format = "json", give_up_after_ms: int = 3_600_000) -> Target:
    return Target(
        name=name,
        format=form,
        url="https://hooks.example/x",
        url_env=None,
        url_file=None,
        secret_env=None,
        secret_file=None,
        ca_file=None,
        timeout_ms=1_000,
        give_up_after_ms=give_up_after_ms,
    )


def rule(
    condition: Condition | None = None,
    name: str = "full",
    to: Sequence[str] = ("ops",),
    **more: Patterns,
) -> Rule:
    return Rule(name=name, condition=condition or Pressure(80), targets=tuple(to), **more)


def pressured(*percents: float, session: str = "s1", given: Given | None = None) -> list[Record]:
    """Return the records of a session whose responses use so many percent."""
    given = given or Given()
    return given.take(
        *(
            {
                **assistant(f"r{number}-{percent}", read=int(2_000 * percent), at=number),
                "session_id": session,
            }
            for number, percent in enumerate(percents, 1)
        )
    )


class ControlKit:
    """A topic of two partitions, receivers, and workers over them, one after the other."""

    def __init__(self) -> None:
        self.clock = GivenClock()
        self.log = MemoryLog(self.clock)
        self.topics: Mapping[str, KnownTopic] = {}
        self.memory: AlertMemory = MemoryAlertMemory()
        self.acknowledged: dict[int, int] = {}
        self.receivers: defaultdict[str, Receiver] = defaultdict(Receiver)
        self.figures = Figures()
        self.health = board()
        self.agents: dict[str, str] = {}
        self.folders: dict[str, str] = {}
        self.agents_are_away = False
        self.agents_gate: asyncio.Event | None = None
        self.asked: list[str] = []
        self.plan = AlertPlan(max_age_ms=900_000, targets=(target("ops"),), rules=(rule(),))

    async def create(self) -> None:
        await self.log.create_topics([CONTEXT_EVENTS], 2)
        self.topics = await known_topics(self.log, self.clock, [TOPIC])

    def by(self, *rules: Rule, targets: Sequence[Target] = (target("ops"),)) -> None:
        self.plan = replace(self.plan, rules=rules, targets=tuple(targets))

    async def write(
        self, records: Sequence[Record], partition: int = 0, logged_ms: int | None = None
    ) -> None:
        """Append records as a deriver does; their Kafka time is their own, or what is given."""
        producer = self.log.producer()
        await producer.start()
        for record in records:
            headers, value = codec.to_binary(record)
            key = codec.key_bytes(record.data.session_id)
            time_ms = logged_ms or record.time_ms or self.clock.at_ms
            await producer.send(NewRecord(TOPIC, partition, key, value, headers, time_ms))
        await producer.flush()
        await producer.stop()

    def worker(self, stop: asyncio.Event | None = None) -> ControlWorker:
        stream = self.stream = MemoryRecordStream(
            self.log,
            TOPIC,
            (0, 1),
            self.acknowledged,
            lambda: self.clock.at_ms - self.plan.max_age_ms,
            lambda: self.clock.at_ms - self.plan.pending_ms,
        )
        return ControlWorker(
            self.plan,
            TOPIC,
            ControlPorts(
                stream=stream,
                log=self.log,
                webhooks={found.name: self.receivers[found.name] for found in self.plan.targets},
                memory=self.memory,
                owner_of=self._owner_of,
                telemetry=self.figures,
                health=self.health,
                clock=self.clock,
                stop=stop or asyncio.Event(),
                dice=random.Random(1),  # noqa: S311 -- for pauses, not for secrets
            ),
        )

    def _watch(self, stop: asyncio.Event) -> Coroutine[None, None, None]:
        ports = WorkerPorts(telemetry=self.figures, health=self.health, clock=self.clock, stop=stop)
        return watch_until_stopped(ports, self.log, self.topics)

    async def _owner_of(self, session_id: str) -> Owner:
        self.asked.append(session_id)
        if self.agents_gate is not None:
            await self.agents_gate.wait()
        if self.agents_are_away:
            raise RetryError("away")
        return Owner(self.agents.get(session_id), self.folders.get(session_id))

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Running"]:
        """Run a worker meanwhile; it is asked to stop at the end, unless it was killed."""
        stop = asyncio.Event()
        found = Running(self.worker(stop), self._watch(stop), stop)
        try:
            yield found
            await found.stop()
        finally:
            found.kill()
            await asyncio.gather(found.task, return_exceptions=True)

    async def until_acknowledged(self) -> None:
        """Wait until all that is on the first partition is acknowledged."""
        end = self.log.partition(TOPIC, 0).stable_end()
        await until_so(lambda: self.acknowledged.get(0, 0) >= end)

    async def until_taken(self, count: int, name: str = "ops") -> list[str]:
        """Wait until a target took so many alerts; return their ids."""
        await until_so(lambda: len(self.receivers[name].taken) >= count)
        return self.receivers[name].taken


class Running:
    """A worker that runs as a task."""

    def __init__(
        self, worker: ControlWorker, watching: Coroutine[None, None, None], stop: asyncio.Event
    ) -> None:
        self._stop, self.worker = stop, worker
        self.task = asyncio.create_task(together([worker.run(), watching]))

    async def stop(self) -> None:
        if not self.task.cancelled():
            self._stop.set()
            await asyncio.wait_for(self.task, PATIENCE_S)

    def kill(self) -> None:
        """End it as a crash does: at once, wherever it is."""
        self.task.cancel()


Check = Callable[[], bool]


async def until_so(check: Check) -> None:
    """Wait until something is so."""

    async def holds() -> bool:
        return check()

    await until(holds)
