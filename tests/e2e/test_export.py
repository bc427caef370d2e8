"""`contextgauge export --topic` over a real Kafka: each record once, whatever ends it."""

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from contextgauge.kafka.options import KafkaOptions
from streams.edge.kafka.log import KafkaLog
from tests.commands import Command
from tests.flow.derive_kit import DeriveKit, samples, until
from tests.flow.export_kit import exported_ids
from tests.patience import PATIENCE_S


@pytest.fixture
def settings(kafka: str, prefix: str) -> dict[str, str]:
    """Names of this test's own on the real broker."""
    return {"BOOTSTRAP_SERVERS": kafka, "TOPIC_PREFIX": prefix, "GROUP_PREFIX": prefix}


async def derive(settings: dict[str, str], seed: int) -> list[str]:
    """Publish messages, derive them, and return the ids of all records in the log."""
    log = KafkaLog(KafkaOptions(settings["BOOTSTRAP_SERVERS"]))
    kit = DeriveKit(log, settings["TOPIC_PREFIX"])
    await kit.create_topics()
    try:
        await kit.publish(samples(seed))
        await kit.run_until_caught_up()
        return sorted(record.id for part in await kit.events() for record in part)
    finally:
        await log.stop()


def answered(command: Command, question: str, folder: Path) -> list[dict[str, Any]]:
    done = command("query", "--format", "ndjson", question, str(folder))
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.extended
def test_a_topic_is_exported_once_and_then_what_is_new(
    command: Command, settings: dict[str, str], tmp_path: Path
) -> None:
    first = asyncio.run(derive(settings, 1))
    done = command("export", "--topic", "--to", str(tmp_path), **settings)
    assert (done.returncode, f"{len(first)} records" in done.stderr.replace(",", "")) == (0, True)
    again = command("export", "--topic", "--to", str(tmp_path), **settings)
    assert "0 records in 0 files" in again.stderr
    both = asyncio.run(derive(settings, 2))
    assert (
        command("export", "--topic", "--merge", "--to", str(tmp_path), **settings).returncode == 0
    )
    assert sorted(exported_ids(tmp_path)) == both
    records = command("replay", "--topic", "records", **settings).stdout.splitlines()
    readings = [
        event for event in map(json.loads, records) if event["type"].endswith("context_reading.v1")
    ]
    (row,) = answered(command, "SELECT sum(used_tokens) AS used FROM context_reading", tmp_path)
    assert row["used"] == sum(event["data"]["used_tokens"] for event in readings)
    sql = "SELECT sum(used_tokens) AS used FROM context_reading"
    done = command("query", "--topic", "--format", "ndjson", sql, **settings)
    assert json.loads(done.stdout) == row
    report = tmp_path / "report.html"
    done = command("report", "--topic", "--out", str(report), **settings)
    assert done.returncode == 0, done.stderr
    text = report.read_text("utf-8")
    assert "the records in Kafka" in text
    assert settings["TOPIC_PREFIX"] not in text
    assert "Unknown: no record is of the content of messages." in text
    assert f"{len(readings):,} responses" in text


@pytest.mark.extended
def test_a_followed_export_that_is_killed_goes_on_without_loss(
    command: Command, settings: dict[str, str], tmp_path: Path
) -> None:
    asyncio.run(derive(settings, 1))

    def follow() -> Any:
        return command.start(
            "export", "--topic", "--follow", "1", "--to", str(tmp_path), **settings
        )

    process = follow()
    asyncio.run(until(lambda: exported_ids(tmp_path)))
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=PATIENCE_S)
    both = asyncio.run(derive(settings, 2))
    process = follow()
    asyncio.run(until(lambda: len(exported_ids(tmp_path)) == len(both)))
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=PATIENCE_S) == 0
    assert sorted(exported_ids(tmp_path)) == both


@pytest.mark.extended
def test_a_missing_topic_is_a_clear_error(
    command: Command, settings: dict[str, str], tmp_path: Path
) -> None:
    done = command("export", "--topic", "--to", str(tmp_path), **settings)
    assert done.returncode == 2
    assert "`contextgauge topics create`" in done.stderr
