"""The compaction service on a real Kafka and Redis, its process killed at steps of commands.

Each command has one outcome, each boundary its effect, no message is lost, and what is kept as the
conversation is what the log gives. `make test-long` kills more often.
"""

import asyncio
import logging
import os
import random
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from redis.asyncio import Redis

from contextgauge.kafka.options import KafkaOptions
from contextgauge.partitioner import key_bytes
from schemas.commands import (
    CancelRequested,
    CommandFinished,
    CompactRequested,
)
from schemas.topics import TOPICS
from streams.core.conversation.fold import ConversationFold
from streams.edge.kafka.log import KafkaLog
from streams.edge.local_stack.stack import LocalStack
from streams.edge.redis.conversations import RedisConversations
from streams.flow.control.commands.message_tail import lines_of
from streams.settings import load_settings
from tests.chaos.compaction_kit import PARTITIONS, ServiceUnderTest, SummaryServer
from tests.chaos.workers import SESSION_TIMEOUT_MS, WorkerProcess
from tests.conftest import LONG
from tests.flow.derive_kit import until
from tests.web_kit import web_server

logger = logging.getLogger("chaos")
pytestmark = [pytest.mark.extended, pytest.mark.has_long_form, pytest.mark.service]

ROUNDS = 24
SHORT = (
    *("called", "swap", "late answer", "other owner", "conversations", "requested"),
    "redis emptied before",
)
LONGEST_S = float(os.environ.get("CHAOS_S", "3000"))
TURNS = 12
FILE = """
[conversations]
sessions = ["*"]

[summariser]
provider = "compatible"
model = "test"
url = "{url}"

[[sessions]]
projects = ["/srv/*"]
"""


@pytest.fixture
async def model() -> AsyncIterator[SummaryServer]:
    server = SummaryServer()
    async with web_server(server.handle) as server.url:
        yield server


@pytest.fixture
def stack(own_stack: Callable[..., LocalStack]) -> LocalStack:
    return own_stack("kafka", "redis")


@pytest.fixture
async def service(stack: LocalStack, prefix: str) -> AsyncIterator[ServiceUnderTest]:
    log = KafkaLog(KafkaOptions(stack.services()["kafka"].address))
    await log.start()
    settings = load_settings({"topic_prefix": prefix})
    await log.create_topics([settings.topic(topic) for topic in TOPICS], PARTITIONS)
    yield ServiceUnderTest(log, prefix)
    await log.stop()


@pytest.fixture
def workers(
    service: ServiceUnderTest,  # noqa: ARG001 -- the topics are there before the workers
    model: SummaryServer,
    stack: LocalStack,
    prefix: str,
    key_prefix: str,
    tmp_path: Path,
) -> Iterator[dict[str, WorkerProcess]]:
    file = tmp_path / "compaction.toml"
    file.write_text(FILE.format(url=model.url))
    environment = {
        "CONTEXTGAUGE_COMPACTION_FILE": str(file),
        "CONTEXTGAUGE_BOOTSTRAP_SERVERS": stack.services()["kafka"].address,
        "CONTEXTGAUGE_REDIS_URL": stack.services()["redis"].address,
        "CONTEXTGAUGE_KEY_PREFIX": key_prefix,
        "CONTEXTGAUGE_TOPIC_PREFIX": prefix,
        "CONTEXTGAUGE_GROUP_PREFIX": prefix,
        "CONTEXTGAUGE_SESSION_TIMEOUT_MS": str(SESSION_TIMEOUT_MS),
    }
    processes = {
        name: WorkerProcess(
            command,
            {
                **environment,
                "CONTEXTGAUGE_INSTANCE_ID": name,
                "CONTEXTGAUGE_STATE_FOLDER": str(tmp_path / f"state-{name}"),
            },
            tmp_path / f"{name}.log",
        )
        for name, command in (
            ("conversations", "conversations"),
            ("control", "control"),
            ("second", "control"),
            ("derive", "derive"),
            ("project", "project"),
        )
    }
    yield processes
    for worker in processes.values():
        worker.discard()
        logger.warning("%s", worker.log()[-4_000:])


async def check(service: ServiceUnderTest, kept: RedisConversations, sessions: list[str]) -> None:
    """Check what must be so whatever was killed when."""
    entries = await service.entries()
    requested = {each.command_id for each in entries if isinstance(each, CompactRequested)}
    outcomes = [each for each in entries if isinstance(each, CommandFinished)]
    assert Counter(each.command_id for each in outcomes) == dict.fromkeys(requested, 1)
    records = await service.read(service.messages)
    for session in sessions:
        own = [each for each in records if each.key == key_bytes(session)]
        fold, lines = ConversationFold(), []
        for offset, line in lines_of(own, session):
            fold.add(line, offset)
            lines.append(line)
        boundaries = [each["uuid"] for each in lines if each.get("subtype") == "compact_boundary"]
        completed = [
            each.boundary_uuid
            for each in outcomes
            if each.session_id == session and each.outcome == "completed"
        ]
        assert boundaries == completed
        history = fold.result.history
        assert len(history.receipts) == len(boundaries)
        there = {each.id for each in (*history.active, *history.archived)}
        said = {
            each["uuid"]
            for each in lines
            if each.get("type") in ("user", "assistant") and not each.get("isCompactSummary")
        }
        assert said
        assert said <= there

        async def same(session: str = session, active: Any = history.active) -> bool:
            conversation = await kept.conversation(session)
            return conversation is not None and list(conversation.history.active) == list(active)

        await until(same)


FAULTS = (
    "requested",
    "called",
    "swap",
    "late answer",
    "summariser away",
    "conversations",
    "other owner",
    "stopped owner",
    "redis emptied",
    "redis emptied before",
    "broker stopped",
)
STOPPED_S = SESSION_TIMEOUT_MS / 1_000 + 1.5


class Course:
    """One fault after another, each in the course of a command."""

    def __init__(
        self,
        service: ServiceUnderTest,
        model: SummaryServer,
        workers: dict[str, WorkerProcess],
        stack: LocalStack,
        key_prefix: str,
    ) -> None:
        self.service, self.model, self.workers = service, model, workers
        self.stack, self.key_prefix = stack, key_prefix
        self.chance = random.Random(1)
        self.sessions: list[str] = []
        self.recovery_s: dict[str, list[float]] = {}
        self.outcomes: dict[str, Counter[str]] = {}
        self.signals: Counter[str] = Counter()

    def kill(self, name: str) -> None:
        self.workers[name].kill()
        self.signals["SIGKILL"] += 1

    async def one(self, number: int, fault: str) -> None:
        """Have a command meet a fault, and wait for its outcome."""
        service, model = self.service, self.model
        session, command = f"session-{number}", f"command-{number}"
        self.sessions.append(session)
        await service.say(session, TURNS)
        calls = model.calls
        if fault != "swap":
            model.go.clear()
        model.is_away = fault == "summariser away"
        if fault == "redis emptied before":  # nothing is known of the session
            await self._empty_redis()
        await service.request(session, command)
        if fault == "requested":
            await asyncio.sleep(self.chance.uniform(0.0, 0.5))
        else:
            await until(partial(model.was_called, calls))
        await service.say(session, 1)
        await self._strike(fault, session, command)
        began_s = asyncio.get_running_loop().time()
        model.go.set()

        async def finished() -> bool:
            for worker in self.workers.values():
                worker.check()
            return await service.outcome(command) is not None

        try:
            await until(finished)
        except TimeoutError:
            logs = "\n".join(worker.log()[-4_000:] for worker in self.workers.values())
            pytest.fail(f"no outcome of {command} ({fault})\n{logs}")
        took_s = asyncio.get_running_loop().time() - began_s
        self.recovery_s.setdefault(fault, []).append(took_s)
        outcome = await service.outcome(command)
        assert outcome is not None
        self.outcomes.setdefault(fault, Counter())[outcome.outcome] += 1
        expected = "cancelled" if fault == "late answer" else "completed"
        assert outcome.outcome == expected, (fault, outcome)

    async def _strike(self, fault: str, session: str, command: str) -> None:
        both = ("control", "second")
        if fault in ("requested", "called", "swap"):
            await asyncio.sleep(self.chance.uniform(0.0, 0.2) if fault == "swap" else 0)
            self.kill(self.chance.choice(both))
        elif fault == "other owner":  # both at once: who comes first is the owner
            for name in both:
                self.kill(name)
        elif fault == "late answer":
            cancel = CancelRequested(session_id=session, command_id=command, requested_by="test")
            await self.service.send(cancel)
            await asyncio.sleep(self.chance.uniform(0.0, 0.3))
            self.model.go.set()
            self.kill(self.chance.choice(both))
        elif fault == "summariser away":
            self.model.go.set()
            await asyncio.sleep(1.0)
            self.kill(self.chance.choice(both))
            self.model.is_away = False
        elif fault == "conversations":
            self.kill("conversations")
        elif fault == "stopped owner":
            self.signals["SIGSTOP"] += 1
            await self.workers[self.chance.choice(both)].sleep(STOPPED_S)
        elif fault == "redis emptied":
            self.kill("conversations")
            await self._empty_redis()
            self.kill(self.chance.choice(both))
        elif fault == "broker stopped":
            pid = self.stack.services()["kafka"].process.pid
            os.kill(pid, signal.SIGSTOP)
            self.signals["SIGSTOP"] += 1
            try:
                await asyncio.sleep(STOPPED_S)
            finally:
                os.kill(pid, signal.SIGCONT)

    async def _empty_redis(self) -> None:
        redis = Redis.from_url(self.stack.services()["redis"].address)
        await redis.flushall()
        await redis.aclose()

    def table(self) -> str:
        """Return fault, number, outcomes and recovery."""
        rows = [f"{'fault':16} {'count':>5}  {'p50 s':>6} {'max s':>6}  outcomes"]
        for fault, times in self.recovery_s.items():
            outcomes = dict(self.outcomes.get(fault, {}))
            rows.append(
                f"{fault:16} {len(times):5}  {median(times):6.2f} {max(times):6.2f}  {outcomes}"
            )
        return "\n".join([*rows, f"signals: {dict(self.signals)}"])


async def test_faults_leave_one_outcome_of_each_command(
    service: ServiceUnderTest,
    model: SummaryServer,
    workers: dict[str, WorkerProcess],
    stack: LocalStack,
    key_prefix: str,
) -> None:
    course = Course(service, model, workers, stack, key_prefix)
    faults = FAULTS * ROUNDS if LONG else SHORT
    end_s = asyncio.get_running_loop().time() + LONGEST_S
    try:
        for number, fault in enumerate(faults):
            await course.one(number, fault)
            print(number, fault, f"{course.recovery_s[fault][-1]:.2f} s", flush=True)  # noqa: T201 -- the long form's progress
            if asyncio.get_running_loop().time() > end_s:
                break
        conversations = RedisConversations(stack.services()["redis"].address, key_prefix)
        await conversations.start()
        await check(service, conversations, course.sessions)
        await conversations.stop()
    finally:
        print(course.table(), flush=True)  # noqa: T201 -- the long form's figures
    for worker in workers.values():
        worker.check()
