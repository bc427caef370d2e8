"""`contextgauge replay --topic` over a real Kafka: what was derived live, again."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient

from contextgauge.kafka.options import KafkaOptions
from contextgauge.partitioner import partition_of
from schemas.messages import OBSERVED_HEADER, OBSERVED_LIVE
from streams import codec
from streams.edge.kafka.log import KafkaLog
from streams.ports import NewRecord
from tests.commands import Command
from tests.e2e.test_same_everywhere import COMPARED
from tests.flow.derive_kit import DeriveKit, samples
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.extended

MESSAGES = samples(7)
SESSION = MESSAGES[0].session_id
PARTITIONS = 4
COMPACTION = [
    {"type": "system", "subtype": "status", "status": "compacting", "uuid": "1"},
    {"type": "system", "subtype": "compact_boundary", "uuid": "2",
     "compact_metadata": {"trigger": "manual", "pre_tokens": 90_000}},
]  # fmt: skip
"""Without times: only Kafka's can say how long it took."""


@pytest.fixture
def settings(kafka: str, prefix: str) -> dict[str, str]:
    """Names of this test's own on the real broker."""
    return {"BOOTSTRAP_SERVERS": kafka, "TOPIC_PREFIX": prefix, "GROUP_PREFIX": prefix}


async def derived(command: Command, settings: dict[str, str]) -> list[dict[str, Any]]:
    """Publish messages, let a worker derive them, and return the records in the log."""
    log = KafkaLog(KafkaOptions(settings["BOOTSTRAP_SERVERS"]))
    kit = DeriveKit(log, settings["TOPIC_PREFIX"])
    kit.config = kit.renamed(f"{settings['GROUP_PREFIX']}contextgauge-derive")
    await kit.create_topics()
    try:
        worker = command.start("derive", **settings)
        await kit.publish(MESSAGES)
        live = partition_of("live", PARTITIONS)
        topic, headers = kit.config.messages_topic, ((OBSERVED_HEADER, OBSERVED_LIVE),)
        for message in COMPACTION:
            await kit.append([NewRecord(topic, live, b"live", codec.dumps(message), headers)])
            await asyncio.sleep(0.01)  # of two in the same millisecond no duration is known
        await kit.append([NewRecord(topic, live, b"live", b"{")])
        await kit.caught_up()
        worker.terminate()
        worker.wait(timeout=PATIENCE_S)
        records = await kit.events()
    finally:
        await log.stop()
    return [json.loads(codec.to_structured(record)) for part in records for record in part]


async def groups(settings: dict[str, str]) -> set[str]:
    admin = AIOKafkaAdminClient(bootstrap_servers=settings["BOOTSTRAP_SERVERS"])
    await admin.start()
    try:
        return {group for group, *_ in await admin.list_consumer_groups()}
    finally:
        await admin.close()


def test_topics_are_replayed_as_they_were_derived(
    command: Command, settings: dict[str, str], tmp_path: Path
) -> None:
    live = asyncio.run(derived(command, settings))
    before = asyncio.run(groups(settings))
    dead = tmp_path / "dead.jsonl"

    records = command("replay", "--topic", "records", **settings)
    assert (records.returncode, records.stderr) == (0, "")
    lines = records.stdout.splitlines()
    assert [json.loads(line) for line in lines] == live

    messages = command("replay", "--topic", "messages", "--dead", str(dead), **settings)
    assert messages.returncode == 0
    again = [json.loads(line) for line in messages.stdout.splitlines()]
    assert [{name: event.get(name) for name in COMPARED} for event in again] == [
        {name: event.get(name) for name in COMPARED} for event in live
    ]
    assert messages.stdout == records.stdout  # `rules` too: the settings are the same
    (took,) = [
        event["data"]["duration_ms"]
        for event in again
        if event["source"] == "/sessions/live" and ".compact_boundary." in event["type"]
    ]
    assert took is not None
    (letter,) = [json.loads(line) for line in dead.read_text().splitlines()]
    origin = f"{settings['TOPIC_PREFIX']}agent.messages-{partition_of('live', PARTITIONS)}"
    assert (letter["reason"], letter["file"], letter["text"]) == ("not_json", origin, "{")
    assert messages.stderr.startswith(f"{origin}:{letter['line']}: not JSON\n")
    # None was made, by either. A broker forgets those whose topics other tests deleted.
    assert asyncio.run(groups(settings)) <= before

    check_selections(command, settings, live)


def check_selections(
    command: Command, settings: dict[str, str], live: list[dict[str, Any]]
) -> None:
    """Sessions, ranges and views of the same topics."""
    own = [event for event in live if event["data"]["session_id"] == SESSION]
    for topic in ("messages", "records"):
        of_session = command("replay", "--topic", topic, "--session", SESSION, **settings)
        assert [json.loads(line) for line in of_session.stdout.splitlines()] == own

        beginning = command("replay", "--topic", topic, "--session", SESSION[:8], **settings)
        assert (beginning.stdout, beginning.stderr) == (of_session.stdout, "")
    sessions = {event["data"]["session_id"] for event in live}
    several = command("replay", "--topic", "records", "--session", "", **settings)
    assert (several.returncode, several.stdout) == (1, "")
    assert f"{len(sessions)} sessions begin with '': give more of the id (" in several.stderr
    for name in ("nobody", SESSION[:-1] + "x"):
        nothing = command("replay", "--topic", "records", "--session", name, **settings)
        assert (nothing.returncode, nothing.stdout) == (1, "")
        assert f"nothing of session {name} in this range of " in nothing.stderr

    for options in (["--topic", "messages"], ["--topic", "records"]):
        views = command("replay", "--view", "--session", SESSION, *options, **settings)
        (view,) = [json.loads(line) for line in views.stdout.splitlines()]
        assert (view["session_id"], view["sequence"]) == (SESSION, len(own))

    partition = partition_of(SESSION, PARTITIONS)
    middle = command("replay", "--topic", "messages", "--from", f"{partition}:20", **settings)
    assert middle.returncode == 0
    assert middle.stderr.count("does not begin with the topic's first message") == 1
    sessions = {json.loads(line)["data"]["session_id"] for line in middle.stdout.splitlines()}
    assert {partition_of(session, PARTITIONS) for session in sessions} == {partition}
    two = command(
        "replay", "--topic", "records", "--from", f"{partition}:0", "--to", "1h", **settings
    )
    assert (two.returncode, two.stdout) == (0, "")
    assert "has nothing in this range" in two.stderr
    recent = command("replay", "--topic", "records", "--from", "1h", **settings)
    assert [json.loads(line) for line in recent.stdout.splitlines()] == live

    strict = command("replay", "--topic", "messages", "--strict", **settings)
    assert strict.returncode == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "name what to replay"),
        (["x.jsonl", "--from", "2h"], "need --topic"),
        (["x.jsonl", "--topic", "records"], "cannot be combined"),
        (["--topic", "records", "--strict"], "use --topic messages"),
        (["--topic", "records", "--dead", "x"], "use --topic messages"),
        (["--topic", "records", "--from", "soon"], "--from 'soon' is not a valid time"),
        (["--topic", "records", "--from", "9", "--to", "9"], "--from 9 is not before --to 9"),
        (["--topic", "records", "--from", "1h", "--to", "2h"], "--from 1h is not before --to 2h"),
        (["--topic", "records", "--from", "0:9", "--to", "1:10"], "name two partitions"),
    ],
)
def test_contradicting_options_are_rejected(
    command: Command, options: list[str], message: str
) -> None:
    done = command("replay", *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_a_partition_must_exist_and_be_the_sessions(
    command: Command, settings: dict[str, str]
) -> None:
    missing = command("replay", "--topic", "messages", **settings)
    assert missing.returncode == 2
    assert "contextgauge topics create" in missing.stderr
    assert command("topics", "create", **settings).returncode == 0
    odd = command("replay", "--topic", "messages", "--from", "4:0", **settings)
    assert (odd.returncode, "partition 4 does not exist" in odd.stderr) == (2, True)
    elsewhere = ["--session", SESSION[:8], "--from", f"{partition_of(SESSION, PARTITIONS)}:0"]
    early = command("replay", "--topic", "messages", *elsewhere, **settings)
    assert (early.returncode, "nothing of session" in early.stderr) == (1, True)
    other = (partition_of(SESSION, PARTITIONS) + 1) % PARTITIONS
    both = ["--session", SESSION, "--from", f"{other}:0"]
    wrong = command("replay", "--topic", "messages", *both, **settings)
    assert (wrong.returncode, f"not on {other}" in wrong.stderr) == (2, True)
    nothing = command("replay", "--topic", "messages", **settings)
    assert (nothing.returncode, nothing.stdout) == (0, "")
    assert "has nothing in this range" in nothing.stderr
