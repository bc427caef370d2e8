"""The worker that keeps conversations as a process, on a real Kafka and Redis."""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from contextgauge.kafka.options import KafkaOptions
from contextgauge.partitioner import key_bytes, partition_of
from schemas.commands import CommandEntry, TextDeleted
from schemas.topics import CONTEXT_COMMANDS
from streams.codec.commands import write_entry
from streams.edge.kafka.log import KafkaLog
from streams.ports import NewRecord
from streams.settings import load_settings
from tests.commands import Command
from tests.flow.derive_kit import until

pytestmark = pytest.mark.extended

PARTITIONS = 2
SESSION = "session-of-this-test"


class Pipeline:
    """Workers on topics and keys of the test's own, and a transcript that grows."""

    def __init__(self, command: Command, settings: dict[str, str], folder: Path) -> None:
        self.command, self.settings, self.folder = command, settings, folder
        self.transcript = folder / f"{SESSION}.jsonl"
        self.lines = self.started = 0
        self.workers: list[subprocess.Popen[str]] = []

    def start(self, name: str) -> "subprocess.Popen[str]":
        self.started += 1
        log = self.folder / f"{name}-{self.started}.log"
        worker = self.command.start_logging(log, name, **self.settings)
        self.workers.append(worker)
        return worker

    def write(self, *texts: str) -> None:
        with self.transcript.open("a") as file:
            for text in texts:
                self.lines += 1
                role = "user" if self.lines % 2 else "assistant"
                line: dict[str, Any] = {
                    "type": role,
                    "sessionId": SESSION,
                    "cwd": "C:/shop",
                    "uuid": f"{self.lines}",
                    "parentUuid": f"{self.lines - 1}" if self.lines > 1 else None,
                    "timestamp": f"2026-11-22T10:00:{self.lines:02d}Z",
                    "message": {"role": role, "content": text},
                }
                if role == "assistant":
                    usage = {"input_tokens": 100 + self.lines, "output_tokens": 5}
                    line["message"] |= {"id": f"m{self.lines}", "model": "claude-x", "usage": usage}
                file.write(json.dumps(line) + "\n")
        done = self.command("publish", str(self.transcript), **self.settings)
        assert done.returncode == 0, done.stderr

    def context(self) -> dict[str, Any] | None:
        done = self.command("context", "--json", SESSION[:12], **self.settings)
        return json.loads(done.stdout) if done.returncode == 0 else None

    async def becomes(self, check: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        shown: list[dict[str, Any]] = []

        async def done() -> bool:
            context = await asyncio.to_thread(self.context)
            if context is not None and check(context):
                shown.append(context)
            return bool(shown)

        await until(done)
        return shown[0]


@pytest.fixture
async def pipeline(
    kafka: str, redis_url: str, prefix: str, key_prefix: str, command: Command, tmp_path: Path
) -> AsyncIterator[Pipeline]:
    file = tmp_path / "compaction.toml"
    file.write_text('[conversations]\nprojects = ["C:/shop"]\n')
    settings = {
        "BOOTSTRAP_SERVERS": kafka,
        "REDIS_URL": redis_url,
        "TOPIC_PREFIX": prefix,
        "GROUP_PREFIX": prefix,
        "KEY_PREFIX": key_prefix,
        "COMPACTION_FILE": str(file),
        "STATE_FOLDER": str(tmp_path / "state"),
        "PARTITIONS": str(PARTITIONS),
        "SESSION_TIMEOUT_MS": "6000",
    }
    pipeline = Pipeline(command, settings, tmp_path)
    assert command("topics", "create", **settings).returncode == 0
    yield pipeline
    for worker in pipeline.workers:
        worker.kill()
        worker.wait()


async def test_a_killed_worker_loses_nothing_and_text_is_deleted_on_request(
    pipeline: Pipeline, kafka: str, prefix: str
) -> None:
    pipeline.start("derive")
    pipeline.start("project")
    worker = pipeline.start("conversations")
    await asyncio.to_thread(pipeline.write, "first", "answer")
    context = await pipeline.becomes(lambda each: each["active"] == 2)
    assert (context["state"], context["model"]) == ("whole", "claude-x")
    assert context["breakdown"]["user"] > 0
    worker.kill()
    worker.wait()
    await asyncio.to_thread(pipeline.write, "second", "answer")
    worker = pipeline.start("conversations")
    context = await pipeline.becomes(lambda each: each["active"] == 4)
    assert (context["state"], context["total"]) == ("whole", 4)
    await delete_text(kafka, prefix)
    context = await pipeline.becomes(lambda each: each["state"] == "incomplete")
    assert context["total"] == 0
    worker.terminate()
    assert await asyncio.to_thread(worker.wait, 30) == 0


async def delete_text(kafka: str, prefix: str) -> None:
    topic = load_settings({"topic_prefix": prefix}).topic(CONTEXT_COMMANDS).name
    log = KafkaLog(KafkaOptions(kafka))
    await log.start()
    producer = log.producer()
    await producer.start()
    data = TextDeleted(session_id=SESSION, requested_by="test")
    headers, value = write_entry(CommandEntry("d", 0, data))
    partition = partition_of(SESSION, PARTITIONS)
    await producer.send(NewRecord(topic, partition, key_bytes(SESSION), value, headers))
    await producer.flush()
    await producer.stop()
    await log.stop()
