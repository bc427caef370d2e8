"""`contextgauge otel` with a real Kafka: workers are killed, and the collector is away."""

import asyncio
import signal
from datetime import UTC, datetime
from pathlib import Path

import pytest

from contextgauge.kafka.options import KafkaOptions
from schemas.topics import CONTEXT_EVENTS
from streams import codec
from streams.cli.exits import Exit
from streams.edge.kafka.log import KafkaLog
from streams.ports import NewRecord
from streams.settings import load_settings
from tests.commands import Command
from tests.core.given import Given, assistant
from tests.flow.control.control_kit import until_so
from tests.otlp_collector import collecting

pytestmark = pytest.mark.service

PARTITIONS = 2


class Records:
    """Records of now, appended to a topic of the test's own."""

    def __init__(self, log: KafkaLog, topic: str) -> None:
        self._log, self._topic = log, topic
        self.ids: set[str] = set()

    async def write(self, session: str) -> None:
        """Append the records of a session, one transaction for each response."""
        given = Given()
        producer = self._log.transactional_producer(f"{self._topic}-{session}")
        await producer.start()
        for number in range(20):
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            body = assistant(f"r{number}", read=1_000 * number)
            records = given.take(body | {"session_id": session, "timestamp": now})
            self.ids |= {record.id for record in records}
            partition = len(session) % PARTITIONS
            await producer.commit(
                [
                    NewRecord(self._topic, partition, session.encode(), value, headers)
                    for headers, value in map(codec.to_binary, records)
                ]
            )
        await producer.stop()


@pytest.mark.extended
async def test_nothing_is_lost_when_workers_are_killed_and_the_collector_is_away(
    kafka: str, prefix: str, command: Command, tmp_path: Path
) -> None:
    topic = load_settings({"topic_prefix": prefix}).topic(CONTEXT_EVENTS)
    log = KafkaLog(KafkaOptions(kafka))
    await log.start()
    await log.create_topics([topic], PARTITIONS)
    records = Records(log, topic.name)
    settings = {
        "BOOTSTRAP_SERVERS": kafka,
        "TOPIC_PREFIX": prefix,
        "GROUP_PREFIX": prefix,
        "SESSION_TIMEOUT_MS": "6000",
    }
    async with collecting() as collector:
        command.environment |= {
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            "OTEL_EXPORTER_OTLP_TIMEOUT": "1",
        }

        async def has_all() -> None:
            await until_so(lambda: records.ids == set(collector.ids()))

        first = command.start_logging(tmp_path / "first", "otel", **settings)
        await records.write("a")
        await has_all()
        collector.status = 503
        await records.write("bb")
        asked = collector.requests
        await until_so(lambda: collector.requests > asked + 1)
        first.send_signal(signal.SIGKILL)
        await asyncio.to_thread(first.wait)
        second = command.start_logging(tmp_path / "second", "otel", **settings)
        await records.write("ccc")
        asked = collector.requests
        await until_so(lambda: collector.requests > asked + 1)
        collector.status = 200
        await has_all()
        second.terminate()
        assert await asyncio.to_thread(second.wait, 30) == Exit.DONE
        # Its metrics went with its end. What it sent was committed: a third one has nothing to do.
        assert "contextgauge.context.utilization" in collector.figures
        sent = len(collector.events)
        third = command.start_logging(tmp_path / "third", "otel", **settings)
        await records.write("dddd")
        await has_all()
        assert len(collector.ids()[sent:]) == len(set(collector.ids()[sent:])) == 20
        third.terminate()
        assert await asyncio.to_thread(third.wait, 30) == Exit.DONE
    await log.stop()


@pytest.mark.extended
@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "only http/protobuf is spoken"),
        ({"OTEL_LOGS_EXPORTER": "console"}, "OTEL_LOGS_EXPORTER=console: it is otlp, or none"),
        (
            {"OTEL_LOGS_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"},
            "nothing would be exported",
        ),
    ],
)
def test_what_the_variables_cannot_mean_is_refused(
    command: Command, variables: dict[str, str], words: str
) -> None:
    command.environment |= variables
    result = command("otel", BOOTSTRAP_SERVERS="127.0.0.1:1")
    assert result.returncode == Exit.WRONG
    assert words in result.stderr
