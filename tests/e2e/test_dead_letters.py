"""`contextgauge dead` over a real Kafka: from a wrong publisher to records that are right."""

import asyncio
import json
import signal
import zlib
from collections import defaultdict

import pytest

from contextgauge.kafka.options import KafkaOptions
from contextgauge.normalise.signals import InputMessage
from contextgauge.partitioner import partition_of
from schemas.records import Record
from streams import codec
from streams.edge.kafka.log import KafkaLog
from streams.flow.dead_letters.letters import misrouted_check
from streams.flow.derive.deriver import Deriver
from streams.ports import NewRecord
from tests.commands import Command
from tests.flow.derive_kit import RULES, DeriveKit, Sent, expected, samples, until
from tests.patience import PATIENCE_S

MESSAGES = samples(7)[:400]
ANONYMOUS = b'{"type":"assistant","message":{"usage":{"input_tokens":5}}}'
WORDS = "words-of-a-message"


@pytest.fixture
def settings(kafka: str, prefix: str) -> dict[str, str]:
    """Names of this test's own on the real broker."""
    return {
        "BOOTSTRAP_SERVERS": kafka,
        "TOPIC_PREFIX": prefix,
        "GROUP_PREFIX": prefix,
        "SESSION_TIMEOUT_MS": "6000",
    }


def _by_session(records: list[list[Record]]) -> dict[str, list[Record]]:
    found: defaultdict[str, list[Record]] = defaultdict(list)
    for partition in records:
        for record in partition:
            found[record.data.session_id].append(record)
    return dict(found)


async def _publish_wrongly(kit: DeriveKit, messages: list[Sent]) -> int:
    """Publish as librdkafka does by default, by the CRC-32 of the key; return how many die."""
    died = 0
    records = []
    for session_id, value in messages:
        key = codec.key_bytes(session_id)
        partition = zlib.crc32(key) % kit.partitions
        records.append(NewRecord(kit.config.messages_topic, partition, key, value))
        deriver = Deriver(RULES, misrouted_check(partition, kit.partitions))
        died += deriver.derive(InputMessage(value, session_id)).dead is not None
    await kit.append(records)
    return died


@pytest.mark.extended
async def test_dead_letters_are_found_shown_and_sent_again(
    command: Command, settings: dict[str, str]
) -> None:
    assert command("topics", "create", **settings).returncode == 0
    nothing = command("dead", "list", **settings)
    assert (nothing.returncode, nothing.stdout, nothing.stderr) == (0, "", "no dead letters\n")
    log = KafkaLog(KafkaOptions(settings["BOOTSTRAP_SERVERS"]))
    kit = DeriveKit(log, settings["TOPIC_PREFIX"])
    await log.start()
    worker = command.start("derive", "--allow-dead-letters", **settings)
    wrong = await _publish_wrongly(kit, MESSAGES)
    assert wrong > 100
    garbage = f"\x1b{{{WORDS}".encode()
    await kit.append(
        [
            NewRecord(kit.config.messages_topic, 0, b"\xff", garbage, (("a", b"b"),)),
            NewRecord(kit.config.messages_topic, 0, None, ANONYMOUS),
        ]
    )
    counts = {"misrouted": wrong, "not_json": 1, "no_session": 1}

    async def summary() -> dict[str, int]:
        done = await asyncio.to_thread(command, "dead", "list", "--summary", "--json", **settings)
        assert done.returncode == 0, done.stderr
        output = [json.loads(line) for line in done.stdout.splitlines()]
        return {line["reason"]: line["letters"] for line in output}

    async def all_are_dead() -> bool:
        return await summary() == counts

    await until(all_are_dead)
    _look(command, settings, garbage)
    expected_records = _by_session(expected(MESSAGES))
    await _redrive(command, settings, wrong)

    async def is_right() -> bool:
        records = _by_session([await _events(kit, partition) for partition in range(4)])
        return {name: records.get(name) for name in expected_records} == expected_records

    await until(is_right)
    before = [len(await _events(kit, partition)) for partition in range(4)]
    again = command("dead", "redrive", "--all", "--yes", **settings)
    assert again.returncode == 1
    assert f"sent {wrong} messages" in again.stdout
    marker = Sent("a-session-of-its-own", ANONYMOUS)
    for partition in range(4):
        name = next(f"m{n}" for n in range(99) if partition_of(f"m{n}", 4) == partition)
        await kit.publish([marker._replace(session_id=name)])

    async def markers_are_derived() -> bool:
        ends = [len(await _events(kit, partition)) for partition in range(4)]
        return all(end > begin for begin, end in zip(before, ends, strict=True))

    # What comes after the letters is derived, so they are; and they gave nothing.
    await until(markers_are_derived)
    assert await is_right()
    assert await summary() == counts
    worker.send_signal(signal.SIGTERM)
    _, output = worker.communicate(timeout=PATIENCE_S)
    assert worker.returncode == 0
    assert WORDS not in output
    await log.stop()


async def _events(kit: DeriveKit, partition: int) -> list[Record]:
    return [
        codec.from_binary(record.headers, record.value or b"")
        for record in await kit.read(kit.config.events_topic, partition)
    ]


def _look(command: Command, settings: dict[str, str], garbage: bytes) -> None:
    listed = command("dead", "list", "--limit", "5", **settings)
    assert len(listed.stdout.splitlines()) == 6
    assert "--limit shows more" in listed.stderr
    one = command("dead", "list", "--reason", "not_json", "--since", "1h", "--json", **settings)
    (line,) = one.stdout.splitlines()
    assert WORDS not in line
    address = json.loads(line)["address"]
    assert command("dead", "list", address, "--until", "1h", **settings).stdout == ""

    shown = command("dead", "show", address, **settings)
    assert f"\\x1b{{{WORDS}" in shown.stdout
    assert "\x1b" not in shown.stdout
    assert "a: b" in shown.stdout
    assert command("dead", "show", address, "--raw", **settings).stdout.encode() == garbage
    missing = command("dead", "show", "0:99999", **settings)
    assert (missing.returncode, missing.stdout) == (1, "")
    assert "no dead letter at 0:99999" in missing.stderr
    for wrong, message in {
        "9:1": "partition 9 does not exist",
        "0:1-2": "selects several",
        "x": "not a valid address",
    }.items():
        done = command("dead", "show", wrong, **settings)
        assert done.returncode == 2
        assert message in done.stderr


async def _redrive(command: Command, settings: dict[str, str], wrong: int) -> None:
    for options, message in (
        (["--all"], "--yes"),
        ([], "select letters"),
        (["--all", "--since", "1h", "--yes"], "--all cannot be combined"),
        (["--all", "--assign-session", "", "--yes"], "--assign-session"),
    ):
        refused = command("dead", "redrive", *options, stdin="y\n", **settings)
        assert refused.returncode == 2
        assert message in refused.stderr

    dry = command("dead", "redrive", "--all", "--dry-run", "--json", **settings)
    document = json.loads(dry.stdout)
    assert dry.returncode == 1
    assert (document["sent"], document["messages"], document["reasons"]) == (
        False,
        wrong,
        {"misrouted": wrong},
    )
    assert {left["reason"]: left["letters"] for left in document["left"]} == {
        "not_json": 1,
        "no_session": 1,
    }
    done = command("dead", "redrive", "--reason", "misrouted", "--yes", **settings)
    assert done.returncode == 0, done.stderr
    assert f"sent {wrong} messages" in done.stdout
    given = command(
        *("dead", "redrive", "--reason", "no_session", "--assign-session", "given", "--yes"),
        **settings,
    )
    assert given.returncode == 0
    assert "1 no_session" in given.stdout
    missing = command("dead", "redrive", "0:99999", "--yes", **settings)
    assert missing.returncode == 1
    assert "no dead letter at 0:99999" in missing.stderr


@pytest.mark.extended
def test_missing_topics_and_a_broker_that_is_down_are_reported(
    command: Command, settings: dict[str, str]
) -> None:
    missing = command("dead", "list", **settings)
    assert missing.returncode == 2
    assert "contextgauge topics create" in missing.stderr
    away = command("dead", "list")
    assert away.returncode == 75
    assert "contextgauge stack up" in away.stderr
