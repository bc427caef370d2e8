"""Facts in, findings out: each thing that can be wrong is found, told and mended."""

import re
from dataclasses import replace
from typing import Any

import pytest
import typer.main
from hypothesis import given
from hypothesis import strategies as st

from schemas.topics import HOUR_MS, MIB
from streams.cli.app import app
from streams.flow.doctor import CHECKS, Facts, judge
from streams.flow.doctor.facts import DeadLetters
from streams.ports import Generations, ViewPosition
from streams.ports.inspection import TopicFacts
from streams.settings import Settings
from tests.doctor.cases import CLUSTER, EXPECTED, HEALTHY, NOW, STORE, facts, found, redis, views
from tests.doctor.wrong import AWAY, CASES, CONFIG_REFUSED, REFUSED


@pytest.mark.parametrize(
    ("check", "given_facts", "severity", "words"),
    CASES,
    ids=[f"{number}-{case[0]}" for number, case in enumerate(CASES)],
)
def test_what_is_wrong_is_found(check: str, given_facts: Facts, severity: str, words: str) -> None:
    told = [item for item in found(given_facts, check) if words in item.found]
    assert [item.severity for item in told] == [severity] * len(told)
    assert told, [item.found for item in found(given_facts, check)]
    assert all(item.mend for item in told)
    assert all(item.severity in {"ok", "skipped"} for item in found(HEALTHY, check))


def test_a_healthy_installation_has_no_finding() -> None:
    told = judge(HEALTHY, EXPECTED)
    assert {item.severity for item in told} == {"ok", "skipped"}
    assert [item.check for item in told if item.severity == "skipped"] == ["clock.kafka"]


SILENT = facts(
    bootstrap=AWAY,
    cluster=AWAY,
    derive_group=AWAY,
    project_group=AWAY,
    keying=AWAY,
    dead=AWAY,
    derive=AWAY,
    project=AWAY,
    newest_record_ms=AWAY,
)

_PARTS: dict[str, list[Any]] = {
    name: [getattr(HEALTHY, name), *[case[1].__getattribute__(name) for case in CASES], AWAY]
    for name in (
        "bootstrap",
        "cluster",
        "derive_group",
        "keying",
        "dead",
        "derive",
        "store",
        "views",
    )
}


@given(st.fixed_dictionaries({name: st.sampled_from(items) for name, items in _PARTS.items()}))
def test_every_check_has_a_finding_whatever_the_facts(parts: dict[str, Any]) -> None:
    told = judge(facts(**parts), EXPECTED)
    assert {item.check for item in told} == set(CHECKS)
    order = list(CHECKS)
    assert [order.index(item.check) for item in told] == sorted(
        order.index(item.check) for item in told
    )
    assert all(item.mend for item in told if item.severity not in {"ok", "skipped"})


def test_kafka_away_hides_nothing_of_redis() -> None:
    told = {item.check: item for item in judge(SILENT, EXPECTED)}
    assert told["kafka.reachable"].severity == "error"
    assert told["topics.cleanup"].severity == "skipped"
    assert told["redis.eviction"].severity == "ok"
    assert told["clock.redis"].severity == "ok"


def test_redis_away_hides_nothing_of_kafka() -> None:
    told = {item.check: item for item in judge(facts(store=AWAY, views=AWAY), EXPECTED)}
    assert told["redis.reachable"].severity == "error"
    assert told["redis.memory"].severity == "skipped"
    assert told["topics.cleanup"].severity == "ok"
    assert told["derive.lag"].severity == "ok"


def test_a_topic_whose_configuration_is_not_told_is_not_called_right() -> None:
    silent = {
        name: replace(there, configs=REFUSED)
        for name, there in CLUSTER.topics.items()
        if isinstance(there, TopicFacts)
    }
    told = facts(cluster=replace(CLUSTER, topics=silent))
    assert [item.severity for item in found(told, "topics.cleanup")] == ["skipped"]
    assert [item.severity for item in found(told, "kafka.access")] == ["note"]


def test_a_redis_without_config_and_multi_is_judged_by_info() -> None:
    managed = redis(configs=CONFIG_REFUSED, denied=CONFIG_REFUSED)
    assert [item.severity for item in found(managed, "redis.eviction")] == ["ok"]
    assert [item.severity for item in found(managed, "redis.rights")] == ["skipped"]
    blind = facts(store=replace(STORE, info=CONFIG_REFUSED))
    assert [item.severity for item in found(blind, "redis.memory")] == ["skipped"]


def test_a_build_that_nobody_returns_to_is_told_how_to_end() -> None:
    begun = f"{NOW - 3 * HOUR_MS}-rebuild"
    for held, all_ready in ((True, True), (True, False), (False, True)):
        at = ViewPosition(9, 0, 2, caught_up=all_ready, build=begun)
        left = views(generations=Generations(1, 2, begun, held=held), building={0: at})
        (told,) = found(left, "views.generation")
        assert told.mend is not None
        assert ("--abandon" in told.mend) == (held and all_ready)
        assert told.figures["held"] == held


def test_a_rebuild_that_is_under_way_has_found_its_room() -> None:
    full = redis({"used_memory": str(600 * MIB)})
    assert found(full, "redis.memory")[0].severity == "warning"
    building = views(generations=Generations(1, 2, "build"), building={}).views
    assert found(replace(full, views=building), "redis.memory")[0].severity == "ok"


def test_what_is_said_to_mend_exists() -> None:
    """Every command and every setting that a finding names is there."""
    mends = [item.mend for case in CASES for item in judge(case[1], EXPECTED) if item.mend]
    commands = set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]  # a group
    spoken = {name for text in mends for name in re.findall(r"`contextgauge ([a-z-]+)", text)}
    variables = {
        name for text in mends for name in re.findall(r"CONTEXTGAUGE_([A-Z_]+[A-Z])", text)
    }
    assert {"topics", "derive", "project"} <= spoken <= commands
    assert "TOPIC_PREFIX" in variables
    assert variables <= {name.upper() for name in Settings.model_fields}


@pytest.mark.parametrize(
    ("reasons", "begin"),
    [({"misrouted": 1, "odd": 1}, "Mend the publisher: key messages"), ({"odd": 1}, "`contextg")],
)
def test_dead_letters_are_mended_and_sent_again(reasons: dict[str, int], begin: str) -> None:
    found = judge(facts(dead=DeadLetters(2, 2, reasons, NOW)), EXPECTED)
    (mend,) = [item.mend for item in found if item.check == "publishers.dead_letters"]
    assert mend.startswith(begin)
    assert "contextgauge dead redrive" in mend
