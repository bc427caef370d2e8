"""SASL sessions that expire (KIP-368): clients prove again who they are, and no one notices."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from contextgauge.errors import RetryError
from streams.edge.kafka.log import KafkaLog
from streams.settings import Settings
from streams.wiring import kafka_log
from tests.commands import Command
from tests.patience import PATIENCE_S
from tests.secure.services import SESSION_MS, Secured

pytestmark = pytest.mark.extended

_LIFETIMES = 3
"""For so many sessions one after the other there is traffic."""

_PIECE_S = 0.5


def _until(log: Path, words: str, times: int = 1) -> int:
    """Wait until a log has words so often; return how long it is by then."""
    deadline = time.monotonic() + PATIENCE_S
    while (text := log.read_text()).count(words) < times:
        assert time.monotonic() < deadline, text
        time.sleep(0.2)
    return len(text)


def test_workers_and_publishers_whose_sessions_expire_go_on_without_a_warning(
    secured_kafka: Secured,
    redis_url: str,
    command: Command,
    prefix: str,
    tmp_path: Path,
) -> None:
    names = ("TOPIC_PREFIX", "GROUP_PREFIX", "KEY_PREFIX")
    settings = dict.fromkeys(names, prefix) | {
        **secured_kafka.kafka_settings("sessions", "admin", "PLAIN"),
        "REDIS_URL": redis_url,
        "PARTITIONS": "2",
        "LOG_FORMAT": "json",
        "LOG_LEVEL": "debug",  # with what the Kafka client logs itself
        "STATE_FOLDER": str(tmp_path / "state"),
    }
    assert command("topics", "create", **settings).returncode == 0
    stream = tmp_path / "stream.jsonl"
    stream.touch()
    derive, project, publish = (tmp_path / name for name in ("derive", "project", "publish"))
    command.start_logging(derive, "derive", **settings)
    command.start_logging(project, "project", **settings)
    begun = {
        derive: _until(derive, "partition is running", 2),
        project: _until(project, '"following"', 2),
        publish: 0,
    }
    command.start_logging(publish, "publish", "--follow", str(stream), **settings)
    lines = command("simulate", "--sample").stdout.splitlines(keepends=True)
    settled = dict(begun)
    pieces = round(_LIFETIMES * SESSION_MS / 1_000 / _PIECE_S)
    for number in range(pieces):
        if number == pieces // _LIFETIMES:  # by then each has all connections that it works with
            settled = {log: log.stat().st_size for log in begun}
        first, last = (len(lines) * part // pieces for part in (number, number + 1))
        with stream.open("a") as file:
            file.writelines(lines[first:last])
        time.sleep(_PIECE_S)  # the broker's clock is what this test waits for

    def sessions() -> set[str]:
        shown = command("sessions", "--json", **settings).stdout
        return {view["session_id"] for view in json.loads(shown)}

    replayed = command("replay", "--view", "-", stdin="".join(lines)).stdout
    wanted = {json.loads(line)["session_id"] for line in replayed.splitlines()}
    deadline = time.monotonic() + PATIENCE_S
    while sessions() != wanted:
        assert time.monotonic() < deadline
        time.sleep(0.5)
    for log, begin in begun.items():
        text = log.read_text()[begin:]
        entries = [json.loads(line) for line in text.splitlines() if line[:1] == "{"]
        assert [entry for entry in entries if entry["level"] in {"warning", "error"}] == []
        renewed = sum("Authenticated as admin" in entry["event"] for entry in entries)
        assert renewed >= _LIFETIMES or log is publish
        later = log.read_bytes()[settled[log] :]
        assert b"Initiating connection" not in later or log is publish


@pytest.fixture
async def log(secured_kafka: Secured, command: Command, prefix: str) -> AsyncIterator[KafkaLog]:
    """A log whose session expires, with topics of the test's own."""
    settings = secured_kafka.kafka_settings("sessions", mechanism="SCRAM-SHA-256")
    settings["TOPIC_PREFIX"] = prefix
    assert command("topics", "create", **settings).returncode == 0
    chosen: dict[str, object] = {name.lower(): value for name, value in settings.items()}
    log = kafka_log(Settings.model_validate(chosen))
    await log.start()
    await log.partition_counts([])  # connects to the broker by the name that it advertises
    yield log
    await log.stop()


def _connection(log: KafkaLog) -> Any:  # aiokafka is not typed
    assert log._admin is not None  # noqa: SLF001 -- its connection is to last
    (connection,) = log._admin._client._conns.values()  # noqa: SLF001 -- as above
    return connection


async def test_requests_at_once_wait_for_the_renewal_of_their_connection(
    log: KafkaLog, prefix: str
) -> None:
    topic, connection = prefix + "agent.messages", _connection(log)
    began_s = time.monotonic()
    while time.monotonic() - began_s < 1.5 * SESSION_MS / 1_000:
        counts = await asyncio.gather(*[log.partition_counts([topic]) for _ in range(5)])
        assert {count[topic] for count in counts} == {4}
        await asyncio.sleep(0.1)
    await asyncio.sleep(1.2 * SESSION_MS / 1_000)  # it ends while nothing is asked
    assert (await log.partition_counts([topic]))[topic] == 4
    assert _connection(log) is connection


async def test_a_renewal_that_is_refused_closes_the_connection(log: KafkaLog, prefix: str) -> None:
    topic, connection = prefix + "agent.messages", _connection(log)
    connection._sasl_plain_password = "another"  # noqa: S105, SLF001 -- as one that was changed
    await asyncio.sleep(SESSION_MS / 1_000)
    with pytest.raises(RetryError):
        await log.topic_ids([topic])
    assert not connection.connected()
    assert (await log.topic_ids([topic]))[topic]
