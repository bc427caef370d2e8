"""`contextgauge doctor` against a real Kafka and a real Redis that are wrong on purpose."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic, RecordsToDelete
from redis import Redis

from schemas.topics import DAY_MS, TOPICS
from streams.edge.local_stack.stack import LocalStack
from tests.conftest import Command

PATIENCE_S = 60
WORDS = "words-of-a-message"
NOWHERE = "127.0.0.1:1"

Findings = dict[str, list[dict[str, Any]]]


@pytest.fixture
def own_redis(own_stack: Callable[..., LocalStack]) -> Iterator[tuple[str, Any]]:
    """A Redis of this test's own, which it may spoil, and a client of it."""
    address = own_stack("redis").services()["redis"].address
    client: Any = Redis.from_url(address)
    yield address, client
    client.close()


def examine(command: Command, *options: str, **settings: str) -> tuple[int, Findings]:
    """Run it, and return the exit code and the findings by check."""
    done = command("doctor", "--json", *options, **settings)
    assert done.stderr == ""
    document = json.loads(done.stdout)
    assert document["format"] == 1
    assert WORDS not in done.stdout
    found: Findings = {}
    for item in document["checks"]:
        found.setdefault(item["id"], []).append(item)
    counts = document["counts"]
    assert sum(counts.values()) == len(document["checks"])
    return done.returncode, found


def worst(found: Findings, check: str) -> str:
    severity: str = found[check][0]["severity"]
    return severity


def eventually(command: Command, until: Callable[[Findings], bool], **settings: str) -> Findings:
    """Examine again and again until it is as wanted; return the last findings."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        _, found = examine(command, **settings)
        if until(found) or time.monotonic() > deadline:
            return found


def test_a_path_that_works_and_what_comes_when_it_does_not(
    command: Command, settings: dict[str, str]
) -> None:
    code, found = examine(command, **settings)
    assert code == 1
    assert {item["subject"] for item in found["topics.present"]} == {
        settings["TOPIC_PREFIX"] + topic.name for topic in TOPICS
    }
    assert command("topics", "create", **settings).returncode == 0
    assert command("simulate", "--sample", "--publish", **settings).returncode == 0
    code, found = examine(command, **settings)
    assert code == 1
    assert worst(found, "derive.workers") == "error"
    assert found["derive.workers"][0]["figures"]["members"] == 0
    assert found["derive.lag"][0]["figures"]["waiting"] > 1_000
    assert worst(found, "publishers.keys") == "ok"
    assert found["publishers.keys"][0]["figures"]["looked"] > 100

    workers = [command.start(name, **settings) for name in ("derive", "project")]
    found = eventually(
        command,
        lambda seen: (
            all(
                worst(seen, name) == "ok"
                for name in ("derive.workers", "project.workers", "views.generation")
            )
            and all(
                seen[name][0]["figures"].get("waiting") == 0
                for name in ("derive.lag", "project.lag")
            )
        ),
        **settings,
    )
    wrong = [item for items in found.values() for item in items if item["severity"] == "error"]
    assert wrong == []
    assert found["derive.workers"][0]["figures"]["members"] == 1
    assert "2 of 2 partitions begun" in found["derive.position"][0]["found"]
    assert "12 sessions" in found["views.generation"][0]["found"]
    assert found["activity.records"][0]["figures"]["newest_ms"] > 0
    assert examine(command, **settings)[0] == 0

    _stop(workers)
    found = eventually(command, lambda seen: worst(seen, "derive.workers") == "warning", **settings)
    code, found = examine(command, **settings)
    assert (code, worst(found, "project.workers")) == (0, "warning")
    assert examine(command, "--strict", **settings)[0] == 1


def _stop(workers: list["subprocess.Popen[str]"]) -> None:
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.communicate(timeout=30)


async def test_a_position_that_the_log_no_longer_has(
    command: Command, settings: dict[str, str]
) -> None:
    settings |= {"PARTITIONS": "1"}
    assert command("topics", "create", **settings).returncode == 0
    lines = f'{{"type": "system", "session_id": "s", "n": "{WORDS}"}}\n' * 20
    assert command("publish", "-", stdin=lines, **settings).returncode == 0
    worker = command.start("derive", **settings)
    eventually(
        command, lambda seen: seen["derive.lag"][0]["figures"].get("waiting") == 0, **settings
    )
    _stop([worker])
    assert command("publish", "-", stdin=lines, **settings).returncode == 0
    admin = AIOKafkaAdminClient(bootstrap_servers=settings["BOOTSTRAP_SERVERS"])
    await admin.start()
    at = TopicPartition(settings["TOPIC_PREFIX"] + "agent.messages", 0)
    await admin.delete_records({at: RecordsToDelete(before_offset=30)})
    await admin.close()
    code, found = examine(command, **settings)
    assert (code, worst(found, "derive.position")) == (1, "error")
    assert "10 offsets were deleted before they were read" in found["derive.position"][0]["found"]


async def _make(settings: dict[str, str], name: str, partitions: int, **configs: str) -> None:
    """Make a topic by hand; `_` in a setting stands for a dot."""
    admin = AIOKafkaAdminClient(bootstrap_servers=settings["BOOTSTRAP_SERVERS"])
    await admin.start()
    topic_configs = {key.replace("_", "."): value for key, value in configs.items()}
    made = NewTopic(settings["TOPIC_PREFIX"] + name, partitions, 1, topic_configs=topic_configs)
    answer = await admin.create_topics([made])
    await admin.close()
    assert [code for _, code, *_ in answer.topic_errors] == [0]


async def test_topics_that_were_made_wrongly(command: Command, settings: dict[str, str]) -> None:
    await _make(settings, "agent.messages", 3, max_message_bytes="1000000")
    await _make(settings, "context.events", 2, retention_ms=str(7 * DAY_MS))
    await _make(settings, "context.state", 2, cleanup_policy="delete")
    await _make(settings, "agent.messages.dead", 2, cleanup_policy="compact,delete")
    code, found = examine(command, **settings)
    assert code == 1
    for check in ("partitions", "message_size", "cleanup"):
        assert worst(found, f"topics.{check}") == "error"
    assert "1000000" in found["topics.message_size"][0]["found"]
    assert "max.message.bytes=9437184" in found["topics.message_size"][0]["mend"]
    lost = [item for item in found["topics.cleanup"] if item["subject"].endswith("context.state")]
    assert "sessions that are still open" in lost[0]["found"]
    kept = [item for item in found["topics.retention"] if item["subject"].endswith("events")]
    assert kept[0]["severity"] == "warning"
    assert "retention.ms=-1" in kept[0]["mend"]
    assert worst(found, "topics.segments") == "warning"
    assert worst(found, "redis.eviction") == "ok"


async def test_a_producer_that_keys_wrongly(command: Command, settings: dict[str, str]) -> None:
    assert command("topics", "create", **settings).returncode == 0
    producer = AIOKafkaProducer(bootstrap_servers=settings["BOOTSTRAP_SERVERS"])
    await producer.start()
    for number in range(100):
        message = {"type": "user", "session_id": f"session-{number}", "message": WORDS}
        await producer.send_and_wait(
            settings["TOPIC_PREFIX"] + "agent.messages",
            json.dumps(message).encode(),
            headers=[("made_by", WORDS.encode())],
            partition=number % 2,
        )
    await producer.stop()
    code, found = examine(command, **settings)
    assert (code, worst(found, "publishers.keys")) == (1, "error")
    told = found["publishers.keys"][0]
    figures = told["figures"]
    assert figures["looked"] == 100
    assert figures["without_key"] + figures["right_by_chance"] == 100
    assert figures["without_key"] > 20
    assert "made_by" in told["found"]
    assert "session id as the key" in told["mend"]

    worker = command.start("derive", "--allow-dead-letters", **settings)
    found = eventually(
        command,
        lambda seen: (
            seen["derive.lag"][0]["figures"].get("waiting") == 0
            and seen["publishers.dead_letters"][0]["figures"]["looked"] > 0
        ),
        **settings,
    )
    _stop([worker])
    dead = found["publishers.dead_letters"][0]
    assert dead["severity"] == "error"
    assert dead["figures"] == {
        "looked": figures["without_key"],
        "misrouted": figures["without_key"],
    }


def test_a_redis_that_forgets(
    command: Command, settings: dict[str, str], own_redis: tuple[str, Any]
) -> None:
    address, client = own_redis
    for name, value in (
        ("maxmemory-policy", "allkeys-lru"),
        ("maxmemory", "1500000"),
        ("appendonly", "no"),
    ):
        client.config_set(name, value)
    code, found = examine(command, **(settings | {"REDIS_URL": address}))
    assert code == 1
    assert worst(found, "redis.eviction") == "error"
    assert "maxmemory-policy noeviction" in found["redis.eviction"][0]["mend"]
    assert worst(found, "redis.persistence") == "warning"
    assert "a restart empties it" in found["redis.persistence"][0]["found"]
    assert found["redis.memory"][0]["figures"]["limit_bytes"] == 1_500_000
    assert worst(found, "redis.rights") == "ok"
    assert client.dbsize() == 0


def test_a_redis_whose_user_may_not_do_all(
    command: Command, settings: dict[str, str], own_redis: tuple[str, Any]
) -> None:
    address, client = own_redis
    client.config_set("maxmemory-policy", "volatile-lru")
    rights = ["~*", "+@all", "-eval", "-xadd", "-config"]
    client.execute_command("ACL", "SETUSER", "worker", "on", ">secret-word", *rights)
    user = address.replace("redis://", "redis://worker:secret-word@")
    code, found = examine(command, **(settings | {"REDIS_URL": user}))
    assert (code, worst(found, "redis.rights")) == (1, "error")
    assert found["redis.rights"][0]["figures"]["denied"] == 2
    assert "XADD, EVAL refused" in found["redis.rights"][0]["found"]
    assert "volatile-lru" in found["redis.eviction"][0]["found"]  # told by INFO

    wrong = command("doctor", **(settings | {"REDIS_URL": user.replace("secret", "other")}))
    assert wrong.returncode == 1
    assert "invalid username-password pair" in " ".join(wrong.stdout.split())
    assert "other-word" not in wrong.stdout + wrong.stderr


def test_a_replica(command: Command, settings: dict[str, str], own_redis: tuple[str, Any]) -> None:
    address, client = own_redis
    client.replicaof("127.0.0.1", "1")
    code, found = examine(command, **(settings | {"REDIS_URL": address}))
    assert (code, worst(found, "redis.role")) == (1, "error")
    client.replicaof("NO", "ONE")


def test_kafka_away_hides_nothing_of_redis(command: Command, settings: dict[str, str]) -> None:
    code, found = examine(command, **(settings | {"BOOTSTRAP_SERVERS": NOWHERE}))
    assert (code, worst(found, "kafka.reachable")) == (1, "error")
    assert found["kafka.reachable"][0]["subject"] == NOWHERE
    assert worst(found, "topics.present") == "skipped"
    assert worst(found, "redis.persistence") == "ok"
    assert worst(found, "clock.redis") == "ok"


def test_redis_away_hides_nothing_of_kafka(command: Command, settings: dict[str, str]) -> None:
    command("topics", "create", **settings)
    code, found = examine(command, **(settings | {"REDIS_URL": f"redis://{NOWHERE}/0"}))
    assert (code, worst(found, "redis.reachable")) == (1, "error")
    assert worst(found, "topics.present") == "ok"
    assert worst(found, "derive.lag") == "ok"
    assert worst(found, "project.lag") == "skipped"


def test_one_address_of_two_does_not_answer(command: Command, settings: dict[str, str]) -> None:
    both = f"{NOWHERE},{settings['BOOTSTRAP_SERVERS']}"
    _, found = examine(command, **(settings | {"BOOTSTRAP_SERVERS": both}))
    assert [item["subject"] for item in found["kafka.reachable"]] == [NOWHERE]
    assert worst(found, "kafka.reachable") == "warning"
    assert worst(found, "kafka.version") == "ok"


def test_all_away_is_said_and_a_wrong_setting_is_an_error_of_its_own(command: Command) -> None:
    away = command("doctor", REDIS_URL="redis://user:hidden-word@127.0.0.1:1/0")
    assert away.returncode == 1
    assert "2 errors" in away.stdout
    assert "contextgauge stack up" in away.stdout.replace("\n", " ").replace("  ", " ")
    assert "hidden-word" not in away.stdout + away.stderr
    assert "Traceback" not in away.stderr
    wrong = command("doctor", PARTITIONS="none")
    assert wrong.returncode == 2
    assert "CONTEXTGAUGE_PARTITIONS" in wrong.stderr


@pytest.mark.parametrize("columns", ["40", "80", "200"])
def test_no_line_is_wider_than_the_screen(command: Command, columns: str) -> None:
    command.environment = {"COLUMNS": columns}
    done = command("doctor", "--problems")
    assert done.returncode == 1
    assert max(map(len, done.stdout.splitlines())) <= int(columns)
    assert "reachable" in done.stdout
