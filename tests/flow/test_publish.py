"""`publish`: each line's bytes, under its session's key, on its session's partition."""

import asyncio
import json
import signal
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path

import pytest
from aiokafka.partitioner import DefaultPartitioner

from contextgauge.clock import SystemClock
from contextgauge.containers import Line
from contextgauge.delivery.outgoing import headers_of
from contextgauge.delivery.shorten import MARK
from contextgauge.errors import ConfigError, RetryError
from contextgauge.kafka.options import KafkaOptions
from contextgauge.normalise.signals import InputMessage
from contextgauge.partitioner import partition_of
from contextgauge.window_catalog import bundled
from schemas.messages import DeadLetter
from schemas.records import Record
from schemas.topics import AGENT_MESSAGES, MESSAGE_LIMIT_BYTES, MIB, Topic
from streams import codec
from streams.core.derivation.rules_config import Rules
from streams.edge.files import reading as files
from streams.edge.files.folders import write_folder
from streams.edge.kafka.log import KafkaLog
from streams.edge.local_stack.stack import LocalStack
from streams.edge.memory.log import MemoryLog
from streams.flow.derive.deriver import Deriver
from streams.flow.publish.follow import in_thread
from streams.flow.publish.publish import PublishConfig, PublishCounts, paced, publish
from streams.flow.replay.replay import replay
from streams.flow.simulator import SimulationOptions, sample_sessions
from streams.ports import Log, LogRecord, NewRecord
from tests.commands import Command
from tests.patience import PATIENCE_S

TOPIC = Topic("messages", "session id", "delete", -1, 9 * MIB)
PARTITIONS = 4
CONFIG = PublishConfig(topic=TOPIC.name, partitions=PARTITIONS)


class Refused(list[tuple[int, str]]):
    """What could not be sent: line numbers and reasons."""

    def __call__(self, line: Line, letter: DeadLetter) -> None:
        self.append((line.number, letter.reason))


async def blocks_of(lines: Iterable[Line]) -> AsyncIterator[Sequence[Line]]:
    yield list(lines)


def lines_of(*values: bytes, hint: str | None = None) -> list[Line]:
    return [Line("f", number, value, len(value), hint) for number, value in enumerate(values, 1)]


async def sent(
    *values: bytes, hint: str | None = None, config: PublishConfig = CONFIG
) -> tuple[PublishCounts, Refused, list[LogRecord]]:
    log = MemoryLog(SystemClock())
    await log.create_topics([TOPIC], PARTITIONS)
    refused = Refused()
    producer = log.producer()
    await producer.start()
    lines = lines_of(*values, hint=hint)
    done = await publish(producer, config, blocks_of(lines), refused, lambda _: None)
    return done, refused, [record for _, record in await everything(log, TOPIC.name)]


async def everything(
    log: Log, topic: str, partitions: int = PARTITIONS
) -> list[tuple[int, LogRecord]]:
    """Return all records with their partitions."""
    reader = log.reader(topic, range(partitions))
    await reader.start()
    records = []
    for partition in range(partitions):
        begin, end = await reader.bounds(partition)
        reader.seek(partition, begin)
        while begin < end:
            batch = await reader.poll(partition, 500, 5.0)
            records += [(partition, record) for record in batch.records]
            begin = batch.position
    await reader.stop()
    return records


async def test_bytes_are_published_unchanged_under_the_messages_session() -> None:
    line = b'{"b" : 1.0, "session_id":"own", "type":"user"}'
    done, refused, (record,) = await sent(line, hint="container")
    assert (record.value, record.key, record.headers) == (line, b"own", ())
    assert (done.messages, done.sessions, refused) == (1, {"own"}, [])
    assert abs(record.timestamp_ms - time.time() * 1_000) < 60_000


async def test_a_session_known_only_from_the_container_is_the_key() -> None:
    done, _, records = await sent(b'{"type":"user"}', b"not json", b"\xff", hint="seß")
    assert {record.key for record in records} == {"seß".encode()}
    assert [record.value for record in records] == [b'{"type":"user"}', b"not json", b"\xff"]
    assert done.messages == 3


async def test_lines_that_cannot_be_keyed_are_refused_or_ignored() -> None:
    done, refused, records = await sent(
        b'{"type":"summary"}',
        b'{"type":"user","message":"hello"}',
        b"",
        b"  ",
        b"no json",
        b'{"type":"user","session_id":"s"}',
    )
    assert [record.key for record in records] == [b"s"]
    assert refused == [(2, "no_session"), (5, "not_json")]
    assert (done.messages, done.ignored, done.refused) == (1, 1, 2)


async def test_a_long_line_is_shortened_and_garbage_of_its_size_refused() -> None:
    limit = 4_096
    config = PublishConfig(topic=TOPIC.name, partitions=PARTITIONS, limit_bytes=limit)
    long = codec.dumps({"type": "user", "session_id": "s", "message": "x" * limit})
    done, refused, (record,) = await sent(long, b"x" * (limit + 1), hint="h", config=config)
    assert record.value is not None
    assert len(record.value) <= limit
    assert json.loads(record.value)[MARK]["bytes"] == len(long)
    assert (done.shortened, done.refused) == (1, 1)
    assert refused == [(2, "too_large")]


async def test_lines_that_give_no_figures_are_noticed_however_many_they_are() -> None:
    done, _, _ = await sent(*[b'{"type":"my_event"}'] * 200, hint="s")
    assert "none of the first 200 messages" in str(done.check.end())
    assert (await sent(b'{"type":"user","message":"hi"}', hint="s"))[0].check.end() is None


async def test_live_messages_and_tasks_are_marked_in_headers() -> None:
    config = PublishConfig(
        topic=TOPIC.name,
        partitions=PARTITIONS,
        is_live=True,
        task_id="t1",
        agent_id="a1",
    )
    _, _, (record,) = await sent(b'{"session_id":"s"}', config=config)
    assert record.headers == (("observed", b"live"), ("task_id", b"t1"), ("agent_id", b"a1"))


@pytest.mark.parametrize("name", ["", "n" * 1_025])
def test_a_name_that_the_deriver_would_reject_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"agent_id has {len(name)} characters"):
        headers_of(is_live=False, task_id=None, agent_id=name)


async def test_partitions_match_the_default_kafka_partitioner() -> None:
    sessions = [f"session-{number}" for number in range(200)]
    log = MemoryLog(SystemClock())
    await log.create_topics([TOPIC], PARTITIONS)
    producer = log.producer()
    await producer.start()
    lines = lines_of(*(codec.dumps({"session_id": session}) for session in sessions))
    await publish(producer, CONFIG, blocks_of(lines), Refused(), lambda _: None)
    choose = DefaultPartitioner()
    partitions = list(range(PARTITIONS))
    records = await everything(log, TOPIC.name)
    assert len(records) == len(sessions)
    assert all(
        partition == choose(record.key, partitions, partitions) for partition, record in records
    )


class Away:
    """A producer whose broker goes away."""

    async def start(self) -> None: ...

    async def send(self, record: NewRecord) -> None: ...

    async def flush(self) -> None:
        raise RetryError("the broker is away")

    async def stop(self) -> None: ...


async def test_unacknowledged_messages_are_not_reported_as_sent() -> None:
    with pytest.raises(RetryError):
        await publish(
            Away(), CONFIG, blocks_of(lines_of(b'{"session_id":"s"}')), Refused(), lambda _: None
        )


class Hands:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.at_s = 0.0

    def now_ms(self) -> int:
        return int(self.at_s * 1_000)

    def monotonic_s(self) -> float:
        return self.at_s

    async def sleep(self, seconds: float) -> None:
        self.at_s += seconds


async def test_a_pace_is_even_and_ends_in_time() -> None:
    clock = Hands()
    source = iter(lines_of(*[b"{}"] * 10_000))
    times = []
    async for block in paced(source, 100, 2.0, clock):
        times += [clock.at_s] * len(block)
    assert 190 <= len(times) <= 210
    assert all(abs(at_s - index / 100) <= 0.1 for index, at_s in enumerate(times))
    assert len(list(source)) == 10_000 - len(times)


async def test_a_pace_below_one_message_a_second_is_kept() -> None:
    clock = Hands()
    blocks = [block async for block in paced(iter(lines_of(*[b"{}"] * 9)), 0.5, 10.0, clock)]
    assert 5 <= sum(map(len, blocks)) <= 6


@pytest.mark.parametrize("number", [0, 1, 999, 1_000, 2_500])
async def test_without_a_pace_all_lines_are_returned_once(number: int) -> None:
    source = lines_of(*[b"{}"] * number)
    blocks = [block async for block in paced(iter(source), 0, None, Hands())]
    assert [line for block in blocks for line in block] == source


async def test_reading_in_a_thread_gives_the_same_blocks() -> None:
    blocks = [lines_of(b"a"), lines_of(b"b", b"c")]
    assert [block async for block in in_thread(blocks)] == blocks


def by_session(records: Iterable[Record]) -> dict[str, list[tuple[object, ...]]]:
    sessions: dict[str, list[tuple[object, ...]]] = defaultdict(list)
    for record in records:
        sessions[record.data.session_id].append(
            (record.id, record.type, record.subject, record.time_ms, record.sequence, record.data)
        )
    return sessions


async def through(log: Log, topic: str, folder: Path) -> dict[str, list[tuple[object, ...]]]:
    """Publish a folder to a log, read it back and derive by key, partition by partition."""
    config = PublishConfig(topic=topic, partitions=PARTITIONS)
    producer = log.producer()
    await producer.start()
    blocks = in_thread(files.read(files.expand([str(folder)])))
    refused = Refused()
    await publish(producer, config, blocks, refused, lambda _: None)
    await producer.stop()
    assert refused == []
    funnels = [Deriver(Rules(bundled())) for _ in range(PARTITIONS)]
    records: list[Record] = []
    for partition, record in await everything(log, topic):
        assert record.key is not None
        assert record.value is not None
        hint = record.key.decode("utf-8", "surrogatepass")
        records += funnels[partition].derive(InputMessage(record.value, hint)).records
    return by_session(records)


def folder_with_all(folder: Path) -> Path:
    """Return a folder with the simulator's sample, and a line over the limit."""
    options = SimulationOptions(seed=5)
    write_folder(folder, ((each.file, each.value) for each in sample_sessions(options)))
    usage = {"input_tokens": 70_000, "output_tokens": 1}
    text = [{"type": "text", "text": "y" * MESSAGE_LIMIT_BYTES}]
    message = {"id": "m", "model": "claude-opus-4-1", "content": text, "usage": usage}
    for name, more in (("with", {"uuid": "u1"}), ("without", {})):
        line = codec.dumps({"type": "assistant", "isSidechain": False, "message": message, **more})
        (folder / f"long-{name}-uuid.jsonl").write_bytes(line + b"\n")
    return folder


@pytest.mark.extended
async def test_golden_5_publishing_and_replaying_give_the_same_records(tmp_path: Path) -> None:
    folder = folder_with_all(tmp_path / "sessions")
    blocks = files.read(files.expand([str(folder)]))
    replayed = [
        record
        for derived in replay(Deriver(Rules(bundled())), blocks)
        for record in derived.records
    ]
    log = MemoryLog(SystemClock())
    await log.create_topics([TOPIC], PARTITIONS)
    assert await through(log, TOPIC.name, folder) == by_session(replayed)
    assert len(by_session(replayed)) == 14


@pytest.mark.extended
async def test_golden_5_through_a_real_kafka(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    folder = folder_with_all(tmp_path / "sessions")
    blocks = files.read(files.expand([str(folder)]))
    replayed = [
        record
        for derived in replay(Deriver(Rules(bundled())), blocks)
        for record in derived.records
    ]
    log = KafkaLog(KafkaOptions(bootstrap_servers=kafka))
    topic = Topic(topic_prefix + "messages", "session id", "delete", -1, 9 * MIB)
    await log.start()
    try:
        await log.create_topics([topic], PARTITIONS)
        assert await through(log, topic.name, folder) == by_session(replayed)
    finally:
        await log.stop()


@pytest.mark.extended
def test_the_command_publishes_and_reports_the_result(
    command: Command, kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    settings = {"BOOTSTRAP_SERVERS": kafka, "TOPIC_PREFIX": topic_prefix, "PARTITIONS": "4"}
    folder = tmp_path / "sessions"
    assert command("simulate", "--sample", "--out", str(folder)).returncode == 0
    missing = command("publish", str(folder), **settings)
    assert f"{topic_prefix}agent.messages is missing" in missing.stderr
    assert "contextgauge topics create" in missing.stderr
    assert command("topics", "create", **settings).returncode == 0
    (folder / "bad.jsonl").write_bytes(b'{"type":"user","message":"whose?"}\n{"a":1}\n')
    result = command("publish", str(folder), **settings)
    assert f"{folder / 'bad.jsonl'}:1: no_session" in result.stderr
    assert "1 could not be sent" in result.stderr
    assert "of 12 sessions" in result.stderr
    again = command("publish", str(folder), "--strict", **settings)
    assert "published 0 messages" in again.stderr
    assert "lines already sent" in again.stderr
    assert (missing.returncode, result.returncode, again.returncode) == (2, 0, 0)
    bad = str(folder / "bad.jsonl")
    assert command("publish", bad, "--again", "--strict", **settings).returncode == 1
    lines = sum(len(path.read_bytes().splitlines()) for path in folder.rglob("*.jsonl"))
    records = asyncio.run(_read_all(kafka, topic_prefix + AGENT_MESSAGES.name))
    assert len(records) == lines - 2


async def _read_all(kafka: str, topic: str) -> list[tuple[int, LogRecord]]:
    log = KafkaLog(KafkaOptions(bootstrap_servers=kafka))
    await log.start()
    try:
        return await everything(log, topic)
    finally:
        await log.stop()


@pytest.mark.extended
def test_the_simulator_publishes_too(command: Command, kafka: str, topic_prefix: str) -> None:
    settings = {"BOOTSTRAP_SERVERS": kafka, "TOPIC_PREFIX": topic_prefix, "PARTITIONS": "4"}
    command("topics", "create", **settings)
    result = command("simulate", "--messages", "500", "--publish", **settings)
    assert result.returncode == 0
    assert "published 500 messages" in result.stderr
    records = asyncio.run(_read_all(kafka, topic_prefix + AGENT_MESSAGES.name))
    assert len(records) == 500
    keys = [(partition, (record.key or b"").decode()) for partition, record in records]
    assert all(partition == partition_of(key, 4) for partition, key in keys)


@pytest.mark.extended
@pytest.mark.parametrize("arguments", [("publish",), ("simulate", "--messages", "1", "--publish")])
def test_an_unavailable_broker_is_reported_and_ctrl_c_stops_the_command(
    command: Command, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"session_id":"s"}\n')
    process = command.start(*arguments, *([str(path)] if arguments == ("publish",) else []))
    assert process.stderr is not None
    problem, remedy, again = (process.stderr.readline() for _ in range(3))
    assert "retrying" in problem.partition("127.0.0.1:1")[2]
    assert "`contextgauge stack up` starts Kafka" in remedy
    assert "retrying" in again  # the remedy is shown once
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=PATIENCE_S)
    assert process.returncode != 0
    assert not any(word in problem + rest for word in ("Traceback", "aiokafka"))


@pytest.mark.extended
def test_publishing_resumes_when_the_broker_returns(
    command: Command, killable_kafka: LocalStack, prefix: str, tmp_path: Path
) -> None:
    address = killable_kafka.services()["kafka"].address
    settings = {"BOOTSTRAP_SERVERS": address, "TOPIC_PREFIX": prefix}
    assert command("topics", "create", **settings).returncode == 0
    killable_kafka.kill("kafka")
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"session_id":"s"}\n')
    process = command.start("publish", str(path), **settings)
    assert process.stderr is not None
    assert "retrying" in process.stderr.readline()
    killable_kafka.start(["kafka"])
    _, rest = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, rest
    assert "published 1 message " in rest
