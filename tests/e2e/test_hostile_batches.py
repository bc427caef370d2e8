"""Commands over topics with batches that cannot be read: each says so, and goes on."""

import asyncio
import json
import signal
from typing import Any

import pytest

from contextgauge.partitioner import partition_of
from contextgauge.units import MIB
from tests.commands import Command
from tests.hostile_batches import bomb, damaged, put
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.extended

LINE = '{"type":"assistant","message":{"id":"m","model":"x","usage":{"input_tokens":5}}}'


@pytest.fixture
def settings(settings: dict[str, str]) -> dict[str, str]:
    return {**settings, "MESSAGE_LIMIT_BYTES": "65536", "BATCH_LIMIT_BYTES": str(4 * MIB)}


def test_every_command_reads_past_it_and_names_it(
    command: Command, settings: dict[str, str]
) -> None:
    assert command("topics", "create", **settings).returncode == 0
    messages = f"{settings['TOPIC_PREFIX']}agent.messages"
    partition = partition_of("s", 2)
    batches = bomb("zstd", 300, 60_000), damaged()
    for batch in batches:
        asyncio.run(put(settings["BOOTSTRAP_SERVERS"], messages, partition, batch))
    command("publish", "--session", "s", "-", stdin=LINE, **settings)
    replayed = command("replay", "--topic", "messages", **settings)
    assert "offsets" not in replayed.stdout
    assert f"{messages}-{partition}:0: batch_too_large" in replayed.stderr
    assert f"{messages}-{partition}:300: batch_damaged" in replayed.stderr
    assert "context_reading" in replayed.stdout
    worker = command.start("derive", **settings)
    try:
        listed = _until_listed(command, settings)
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.wait(PATIENCE_S)
    assert {letter["reason"] for letter in listed} == {"batch_too_large", "batch_damaged"}
    assert {letter["source"]["last_offset"] for letter in listed} == {299, 300}
    assert {letter["bytes"] for letter in listed} == {len(batch) for batch in batches}
    doctor = command("doctor", **settings)
    assert "2 batches cannot be read, the first one" in doctor.stdout
    assert "CONTEXTGAUGE_BATCH_LIMIT_BYTES" in doctor.stdout
    # Once the limit is raised, it is redriven message by message.
    raised = {**settings, "BATCH_LIMIT_BYTES": str(64 * MIB)}
    done = command("dead", "redrive", "--all", "--dry-run", "--json", **raised)
    result = json.loads(done.stdout)
    assert (result["messages"], result["meaningless"]) in {(300, 0), (0, 300)}
    assert [left["reason"] for left in result["left"]] == ["batch_damaged"]


def _until_listed(command: Command, settings: dict[str, str]) -> list[dict[str, Any]]:
    for _ in range(100):
        listed = command("dead", "list", "--json", **settings).stdout.splitlines()
        if len(listed) == 2:
            return [json.loads(line) for line in listed]
    raise AssertionError(listed)
