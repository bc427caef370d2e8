"""Facts in, findings out: everything that can be wrong is reported with a remedy."""

import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import typer.main
from hypothesis import given
from hypothesis import strategies as st

from schemas.topics import DAY_MS, MIB
from streams.cli.app import app
from streams.flow.doctor import CHECKS, SEVERITIES, Facts, Finding, judge
from streams.flow.doctor.facts import DeadLetters, KafkaFacts, known
from streams.ports import Generations
from streams.ports.inspection import ClusterFacts, TopicFacts
from streams.settings import Settings
from tests.doctor.cases import (
    AWAY,
    BROKERS,
    CLUSTER,
    EXPECTED,
    HEALTHY,
    NOW,
    REFUSED,
    TOPICS,
    facts,
    open_on,
    partitions,
    redis,
    topic,
    views,
    with_partitions,
)
from tests.doctor.problems import PROBLEMS, UNKNOWN
from tests.doctor.redis_problems import NO_CONFIG

NAMES = [check.name for check in CHECKS]
DOCUMENT = (Path(__file__).parents[2] / "docs" / "DOCTOR.md").read_text(encoding="utf-8")


def findings(given_facts: Facts, check: str) -> list[Finding]:
    return [item for item in judge(given_facts, EXPECTED) if item.check == check]


def severities(given_facts: Facts, check: str) -> set[str]:
    return {item.severity for item in findings(given_facts, check)}


@pytest.mark.parametrize(
    ("check", "severity", "given_facts", "words"),
    PROBLEMS + UNKNOWN,
    ids=[f"{number}-{case[0]}" for number, case in enumerate(PROBLEMS + UNKNOWN)],
)
def test_problem_is_reported(check: str, severity: str, given_facts: Facts, words: str) -> None:
    reported = [item for item in findings(given_facts, check) if words in item.message]
    assert {item.severity for item in reported} == {severity}, findings(given_facts, check)
    assert all(item.remedy or severity == "skipped" for item in reported)


def test_a_healthy_installation_has_no_problem() -> None:
    reported = judge(HEALTHY, EXPECTED)
    assert [item.check for item in reported] == NAMES
    assert [item.check for item in reported if item.severity != "ok"] == ["clock.kafka"]
    assert severities(HEALTHY, "clock.kafka") == {"skipped"}


def test_every_check_has_a_case() -> None:
    cases = {check for check, *_ in PROBLEMS}
    assert [name for name in NAMES if name not in cases] == [
        "activity.messages",
        "activity.records",
        "activity.views",
    ]


_KAFKA = {field.name for field in fields(KafkaFacts)}
_PARTS: dict[str, list[Any]] = {
    name: [getattr(case.kafka if name in _KAFKA else case, name) for _, _, case, _ in PROBLEMS]
    + [AWAY, REFUSED]
    for name in (
        "bootstrap",
        "cluster",
        "derive_group",
        "keying",
        "dead",
        "derive",
        "project",
        "commands",
        "unsettled",
        "conversations",
        "store",
        "views",
        "ingest",
        "transcripts",
    )
}


@given(st.fixed_dictionaries({name: st.sampled_from(items) for name, items in _PARTS.items()}))
def test_every_check_has_a_finding_whatever_the_facts(parts: dict[str, Any]) -> None:
    reported = judge(facts(**parts), EXPECTED)
    assert list(dict.fromkeys(item.check for item in reported)) == NAMES
    assert all(item.remedy for item in reported if item.severity not in {"ok", "skipped"})


def test_a_service_that_is_down_hides_nothing_of_the_other() -> None:
    kafka = KafkaFacts(*[AWAY] * len(fields(KafkaFacts)))
    without_kafka = replace(HEALTHY, kafka=kafka, project=AWAY, conversations=AWAY)
    without_redis = facts(store=AWAY, views=AWAY, project=AWAY)
    for check in (name for name in NAMES if name not in {"ingest.ready", "transcripts.readable"}):
        of_redis = check.partition(".")[0] == "redis" or check == "clock.redis"
        assert of_redis == (severities(without_kafka, check) == {"ok"}) or "views" in check
        if of_redis and check != "redis.reachable":
            assert severities(without_redis, check) == {"skipped"}
        if check.startswith(("kafka", "topics", "publishers", "derive")):
            assert severities(without_redis, check) == {"ok"}
    assert severities(without_kafka, "kafka.reachable") == {"error"}
    assert severities(without_redis, "redis.reachable") == {"error"}


def test_a_topic_of_unknown_configuration_is_not_called_correct() -> None:
    hidden = {name: replace(actual, configs=REFUSED) for name, actual in TOPICS.items()}
    given_facts = facts(cluster=replace(CLUSTER, topics=CLUSTER.topics | hidden))  # type: ignore[operator]  # a dict
    (skipped,) = findings(given_facts, "topics.cleanup")
    assert (skipped.severity, skipped.subject) == ("skipped", ", ".join(TOPICS))
    assert severities(given_facts, "kafka.access") == {"note"}


def test_records_that_are_not_kept_forever_are_noted_even_if_configured() -> None:
    events = replace(EXPECTED.events, retention_ms=7 * DAY_MS)
    limited = topic("context.events", retention_ms=str(7 * DAY_MS))
    (note,) = [
        item
        for item in judge(limited, replace(EXPECTED, events=events))
        if item.check == "topics.retention"
    ]
    assert (note.severity, note.message[:24]) == ("note", "kept 7 d, as configured:")


def test_a_transaction_that_is_under_way_is_no_problem() -> None:
    recent = {"started_ms": NOW - 9_000, "timeout_ms": 60_000}
    assert severities(open_on("context.events", 0, **recent), "topics.transactions") == {"ok"}


def test_who_holds_a_partition_and_what_to_do_is_reported() -> None:
    (finding,) = findings(open_on("agent.messages", 0, 1), "topics.transactions")
    assert finding.subject == "agent.messages"
    assert finding.figures == {
        "waiting": 80,
        "producer_id": 4_000,
        "transactional_id": "their-app",
        "open_ms": 70_000,
    }
    assert finding.remedy == (
        "Stop that producer, or wait: Kafka aborts its transaction in 2 min (its timeout is 4 "
        "min). To end it now: `kafka-transactions.sh --bootstrap-server kafka:9092 abort "
        "--topic agent.messages --partition 0 --start-offset 20`; partition 1: --start-offset 20"
    )
    (activity,) = findings(open_on("agent.messages", 0), "activity.messages")
    assert "not counting what is behind an open transaction" in activity.message
    (activity,) = findings(open_on("agent.messages", 0), "activity.records")
    assert "transaction" not in activity.message


def test_a_single_broker_is_only_noted() -> None:
    one_copy = partitions(replicas=1, in_sync=1)
    least: Any = {"min.insync.replicas": "1"}
    topics = {
        name: TopicFacts(one_copy, {**known(actual.configs), **least})
        for name, actual in TOPICS.items()
    }
    single = facts(cluster=ClusterFacts("cluster", BROKERS[:1], topics))
    problems = {item.check: item.severity for item in judge(single, EXPECTED)}
    assert {check for check, severity in problems.items() if severity not in {"ok", "skipped"}} == {
        "topics.replication"
    }
    assert problems["topics.replication"] == "note"


def test_two_problems_of_one_topic_are_both_reported() -> None:
    parts = [*partitions(1, leader=None), replace(partitions(2)[1], in_sync=1)]
    reported = findings(with_partitions("context.state", parts), "topics.health")
    assert [item.severity for item in reported] == ["error", "warning"]


def test_a_managed_redis_is_examined_by_info() -> None:
    managed = redis(configs=NO_CONFIG, denied=NO_CONFIG)
    assert severities(managed, "redis.eviction") == {"ok"}
    assert severities(managed, "redis.rights") == {"skipped"}


def test_a_rebuild_in_progress_has_its_memory() -> None:
    full = redis({"used_memory": str(600 * MIB)})
    assert severities(full, "redis.memory") == {"warning"}
    building = views(generations=Generations(1, 2, "build"), building={}).views
    assert severities(replace(full, views=building), "redis.memory") == {"ok"}


def test_commands_and_settings_in_remedies_exist() -> None:
    remedies = [item.remedy for _, _, case, _ in PROBLEMS for item in judge(case, EXPECTED)]
    commands = set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]  # a group
    named = {name for text in remedies for name in re.findall(r"`contextgauge ([a-z-]+)", text)}
    variables = {
        name for text in remedies for name in re.findall(r"CONTEXTGAUGE_([A-Z_]+[A-Z])", text)
    }
    assert {"topics", "derive", "project"} <= named <= commands
    assert "TOPIC_PREFIX" in variables
    assert variables <= {name.upper() for name in Settings.model_fields}


@pytest.mark.parametrize(
    ("reasons", "begin"),
    [({"misrouted": 1, "odd": 1}, "Fix the publisher: key messages"), ({"odd": 1}, "`contextg")],
)
def test_dead_letters_are_fixed_and_resent(reasons: dict[str, int], begin: str) -> None:
    dead = facts(dead=DeadLetters(2, 2, reasons, NOW))
    (finding,) = findings(dead, "publishers.dead_letters")
    assert finding.remedy.startswith(begin)
    assert "contextgauge dead redrive" in finding.remedy
    assert finding.figures == {"looked": 2, **reasons}


def test_the_document_lists_all_checks_and_severities() -> None:
    rows = re.findall(r"^\| `([a-z]+\.[a-z_]+)` \| (.*) \|$", DOCUMENT, re.MULTILINE)
    assert rows == [(check.name, check.why) for check in CHECKS]
    assert tuple(re.findall(r"^\| `([a-z]+)` \|", DOCUMENT, re.MULTILINE)) == SEVERITIES
