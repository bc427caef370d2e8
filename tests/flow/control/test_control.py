"""The control worker over the twins in memory: what is sent, when it is acknowledged, who waits."""

import asyncio
import json
from dataclasses import replace

import pytest

from contextgauge.clock import SystemClock
from contextgauge.errors import RetryError, VersionError, WrongServerError
from streams.core.alerts.alert import Who
from streams.core.alerts.rules import Failed, Patterns, Pressure, Stalled
from streams.edge.memory.log import MemoryLog
from streams.edge.memory.view_store import MemoryViews
from streams.flow.control.alerts import alert_worker
from streams.flow.control.alerts import sent_alerts as remembering
from streams.flow.control.alerts import webhook_delivery as delivery
from streams.flow.control.session_owners import AgentLookup, Owner
from streams.ports import Generations, Health, NewRecord, WebhookResult
from tests.core.given import SESSION, START_MS, Given, assistant, compacting, failed, init
from tests.doubles.alerts import MemoryAlertMemory
from tests.doubles.asked_contexts import MemoryAskedContexts
from tests.flow.control.control_kit import (
    AWAY,
    REFUSED,
    TOPIC,
    ControlKit,
    pressured,
    rule,
    target,
    until_so,
)
from tests.flow.project_kit import ProjectKit
from tests.patience import PATIENCE_S


async def test_an_alert_is_sent_and_its_record_acknowledged(kit: ControlKit) -> None:
    await kit.write(pressured(50, 81, 85))
    async with kit.running():
        (alert,) = await kit.until_taken(1)
        await kit.until_acknowledged()
    (body,) = kit.receivers["ops"].bodies
    assert body["id"] == alert
    assert (body["rule"], body["kind"], body["session_id"]) == ("full", "pressure", "s1")
    assert body["time"] == "2026-11-01T12:00:02.000Z"
    assert isinstance(body["text"], str)
    assert "81% of" in body["text"]
    assert kit.figures.counts["control_deliveries", "ops", "delivered"] == 1
    assert kit.figures.gauges["control_queued_alerts", "ops"] == 0


async def test_a_restart_continues_without_sending_twice(kit: ControlKit) -> None:
    given = Given()
    await kit.write(pressured(81, given=given))
    async with kit.running():
        await kit.until_taken(1)
        await kit.until_acknowledged()
    await kit.write(given.take({**assistant("z", read=190_000, at=9), "session_id": "s1"}))
    await kit.write(pressured(99, session="s2"))
    async with kit.running():
        taken = await kit.until_taken(2)
        await kit.until_acknowledged()
    assert len(set(taken)) == 2
    assert kit.figures.counts["control_skipped", "sent_before"] == 1


async def test_unsent_alerts_are_sent_by_the_next_worker(kit: ControlKit) -> None:
    kit.receivers["ops"].always = AWAY
    await kit.write(pressured(81))
    async with kit.running() as running:
        await until_so(lambda: len(kit.receivers["ops"].calls) >= 3)
        running.kill()
        await asyncio.gather(running.task, return_exceptions=True)
    assert kit.acknowledged.get(0, 0) < kit.log.partition(TOPIC, 0).stable_end()
    kit.receivers["ops"].always = WebhookResult("delivered", "")
    async with kit.running():
        await kit.until_taken(1)
        await kit.until_acknowledged()
    assert len(set(kit.receivers["ops"].calls)) == 1


async def test_a_crash_after_the_call_sends_the_same_id_again(kit: ControlKit) -> None:
    class Forgetful(MemoryAlertMemory):
        async def remember(self, key: str) -> None:
            del key
            await asyncio.Event().wait()

    kit.memory = Forgetful()
    await kit.write(pressured(81))
    async with kit.running() as running:
        await kit.until_taken(1)
        running.kill()
        await asyncio.gather(running.task, return_exceptions=True)
    kit.memory = MemoryAlertMemory()
    async with kit.running():
        taken = await kit.until_taken(2)
    assert len(set(taken)) == 1


async def test_a_dead_target_delays_no_other(kit: ControlKit) -> None:
    kit.by(rule(to=["dead", "ops"]), targets=[target("dead"), target("ops")])
    kit.receivers["dead"].always = AWAY
    for number in range(20):
        await kit.write(pressured(90, session=f"s{number}"))
    async with kit.running() as running:
        await kit.until_taken(20)
        assert kit.acknowledged[0] == 1  # what came before the first reading
        running.kill()
        await asyncio.gather(running.task, return_exceptions=True)
    async with kit.running():
        kit.receivers["dead"].always = WebhookResult("delivered", "")
        await kit.until_taken(20, "dead")
        await kit.until_acknowledged()
    assert len(kit.receivers["ops"].taken) == 20


async def test_an_undeliverable_alert_is_given_up_in_time(kit: ControlKit) -> None:
    kit.by(rule(), targets=[target("ops", give_up_after_ms=1_000)])
    kit.receivers["ops"].always = AWAY
    await kit.write(pressured(90))
    async with kit.running():
        await kit.until_acknowledged()
    assert kit.figures.counts["control_deliveries", "ops", "given_up"] == 1
    assert kit.figures.counts["control_deliveries", "ops", "failed"] >= 2


async def test_a_permanently_refused_alert_is_not_retried(kit: ControlKit) -> None:
    kit.receivers["ops"].answers = [REFUSED]
    await kit.write(pressured(90))
    await kit.write(pressured(90, session="s2"))
    async with kit.running():
        await kit.until_taken(1)
        await kit.until_acknowledged()
    assert len(kit.receivers["ops"].calls) == 2


async def test_a_full_queue_gives_up_new_alerts(
    kit: ControlKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "MOST_QUEUED", 2)
    kit.receivers["ops"].gate = gate = asyncio.Event()
    for number in range(5):
        await kit.write(pressured(90, session=f"s{number}"))
    async with kit.running():
        await until_so(lambda: kit.figures.counts["control_deliveries", "ops", "given_up"] == 3)
        gate.set()
        await kit.until_taken(2)
        await kit.until_acknowledged()


async def test_the_number_of_records_waiting_behind_an_alert_is_limited(
    kit: ControlKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alert_worker, "MOST_WAITING", 10)
    kit.receivers["ops"].always = AWAY
    await kit.write(pressured(90, *[50] * 5))
    async with kit.running():
        await until_so(lambda: len(kit.receivers["ops"].calls) >= 1)
        await kit.write(pressured(*[50] * 20, session="s2"))
        await kit.until_acknowledged()
    assert kit.figures.counts["control_deliveries", "ops", "given_up"] == 1


async def test_a_backfill_sends_no_alerts(kit: ControlKit) -> None:
    kit.clock.at_ms = START_MS + 901_000 + 5_000
    records = pressured(90, 95)
    kit.acknowledged[0] = 0
    await kit.write(
        [record for record in records if record.time_ms is not None], logged_ms=kit.clock.at_ms
    )
    given = Given()
    undated = given.take({**assistant("x", read=190_000), "session_id": "s3"})
    await kit.write(undated)
    fresh = Given().take({**assistant("y", read=190_000, at=905), "session_id": "s4"})
    await kit.write(fresh)
    async with kit.running():
        await kit.until_taken(1)
        await kit.until_acknowledged()
    assert [body["session_id"] for body in kit.receivers["ops"].bodies] == ["s4"]
    assert kit.figures.counts["control_skipped", "no_time"] == 1


async def test_a_stalled_attempt_is_alerted_once(kit: ControlKit) -> None:
    kit.by(rule(Stalled(60_000), "silent"))
    await kit.write(Given().take(compacting(at=0)))
    async with kit.running():
        await kit.until_acknowledged()
        assert kit.receivers["ops"].calls == []
        kit.clock.at_ms = START_MS + 60_000
        await kit.until_taken(1)
    kit.clock.at_ms += 30_000
    async with kit.running():
        await until_so(lambda: kit.figures.counts["control_skipped", "sent_before"] == 1)
    assert len(kit.receivers["ops"].calls) == 1


async def test_an_attempt_that_began_before_a_restart_is_known(kit: ControlKit) -> None:
    kit.by(rule(Stalled(60_000), "silent"), rule(Failed(frozenset({"failed"})), "failed"))
    given = Given()
    await kit.write(given.take(compacting(at=0)))
    async with kit.running():
        await kit.until_acknowledged()
    kit.clock.at_ms = START_MS + 61_000
    async with kit.running():
        await kit.until_taken(1)
        await kit.write(given.take(failed(at=61)))
        await kit.until_taken(2)
    assert [body["kind"] for body in kit.receivers["ops"].bodies] == ["stalled", "failed"]


async def test_the_agent_is_looked_up_if_the_records_name_none(kit: ControlKit) -> None:
    kit.by(rule(agents=Patterns(("builder",))))
    kit.agents = {"s1": "builder", "s2": "tester"}
    await kit.write(pressured(90))
    await kit.write(pressured(90, session="s2"))
    given = Given()
    named = given.take({**init(at=0), "session_id": "s3"}, agent_id="builder")
    await kit.write([*named, *pressured(90, session="s3", given=given)])
    async with kit.running():
        await kit.until_taken(2)
        await kit.until_acknowledged()
    sessions = [(body["session_id"], body["agent_id"]) for body in kit.receivers["ops"].bodies]
    assert sessions == [("s1", "builder"), ("s3", "builder")]
    assert kit.figures.counts["control_skipped", "other_agent"] == 1


async def test_an_alert_contains_the_folder_and_a_link_to_the_session(
    kit: ControlKit,
) -> None:
    kit.by(rule(to=["ops", "slack"]), targets=[target("ops"), target("slack", "slack")])
    kit.plan = replace(kit.plan, page="https://ctx.example/a&b")
    kit.folders = {"a/b c|<x>": "app"}
    kit.receivers["slack"].answers = [AWAY, AWAY]
    await kit.write(pressured(90, session="a/b c|<x>"))
    async with kit.running():
        await kit.until_taken(1)
        await kit.until_taken(1, "slack")
    (body,), (slack,) = kit.receivers["ops"].bodies, kit.receivers["slack"].bodies
    address = "https://ctx.example/a&b/#/session/a%2Fb%20c%7C%3Cx%3E"
    assert (body["folder"], body["link"]) == ("app", address)
    assert str(body["text"]).startswith("session a/b c|<x> in app (")
    text = json.dumps(slack["blocks"])
    assert f"<{address.replace('&', '&amp;')}|open the session>" in text
    assert "session a/b c|&lt;x&gt; in app (" in text
    assert len(set(kit.receivers["slack"].sent)) == 1, "the same bytes whenever it is tried"
    assert len(kit.receivers["slack"].sent) == 3


async def test_an_alert_is_sent_even_if_the_agent_lookup_fails(kit: ControlKit) -> None:
    kit.by(rule(agents=Patterns(("builder",))))
    kit.agents_are_away = True
    await kit.write(pressured(90))
    async with kit.running():
        await kit.until_taken(1)
    (body,) = kit.receivers["ops"].bodies
    assert (body["agent_id"], body["folder"], body["link"]) == (None, None, None)


async def test_agents_are_looked_up_in_the_views_with_a_pause_after_an_error() -> None:
    class Asked(MemoryViews):
        asked = 0

        async def generations(self) -> Generations:
            self.asked += 1
            raise RetryError("away")

    views = Asked()
    lookup = AgentLookup(views, SystemClock())
    for _ in range(3):
        with pytest.raises(RetryError):
            await lookup.owner_of("s1")
    assert views.asked == 1
    assert await AgentLookup(MemoryViews(), SystemClock()).owner_of("s1") == Owner()

    folded = ProjectKit(MemoryLog(SystemClock()), MemoryViews())
    await folded.create_topic()
    async with folded.running() as running:
        await folded.append(Given().take(init(at=0), agent_id="builder"))
        await folded.caught_up(running)
        found = AgentLookup(folded.store, SystemClock())
        assert await found.owner_of("another") == Owner()
        owner = await found.owner_of(SESSION)
        assert Who.of(owner.agent_id, owner.cwd) == Who("builder", "repo")
        # Its runtime compacts itself, so it matters whether its agent asks for its context.
        assert owner.lacks_driver
        asked = MemoryAskedContexts(SystemClock())
        found = AgentLookup(folded.store, SystemClock(), asked)
        assert (await found.owner_of(SESSION)).lacks_driver
        await asked.note(SESSION, "m1", 0)
        assert not (await found.owner_of(SESSION)).lacks_driver


async def test_an_unavailable_memory_delays_no_alert(
    kit: ControlKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembering, "REST_S", 0.05)
    memory = MemoryAlertMemory()
    kit.memory = memory
    memory.is_away = True
    await kit.write(pressured(90))
    async with kit.running():
        await kit.until_taken(1)
        await kit.until_acknowledged()
        assert not kit.health.ready().ok
        memory.is_away = False
        await until_so(lambda: len(memory.keys) == 1)
        await until_so(lambda: kit.health.ready().ok)
    assert kit.figures.counts["worker_retries", "redis"] >= 1


async def test_a_memory_that_is_the_wrong_server_for_long_makes_the_worker_not_live(
    kit: ControlKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembering, "REST_S", 0.05)
    kit.memory = memory = MemoryAlertMemory()
    kit.health = Health("control", SystemClock(), 0.1)
    memory.is_away, memory.error = True, WrongServerError("READONLY")
    await kit.write(pressured(90))
    async with kit.running():
        await until_so(lambda: not kit.health.live().ok)
        memory.is_away = False
        await until_so(lambda: kit.health.live().ok and kit.health.ready().ok)


async def test_a_record_that_cannot_be_read_ends_the_worker_unacknowledged(
    kit: ControlKit,
) -> None:
    await kit.write(pressured(50))
    async with kit.running():
        await kit.until_acknowledged()
    before = dict(kit.acknowledged)
    producer = kit.log.producer()
    await producer.start()
    headers = (("ce_specversion", b"1.0"), ("ce_type", b"contextgauge.novelty.v9"))
    await producer.send(NewRecord(TOPIC, 0, b"s", b"{}", headers, START_MS))
    await producer.flush()
    await producer.stop()
    await kit.write(pressured(90, session="s2"))
    with pytest.raises(VersionError):
        await asyncio.wait_for(kit.worker().run(), PATIENCE_S)
    assert kit.acknowledged == before


async def test_several_rules_and_formats(kit: ControlKit) -> None:
    kit.by(
        rule(to=["ops", "slack"]),
        rule(Pressure(90), "very <full>", to=["slack"]),
        targets=[target("ops"), target("slack", "slack")],
    )
    await kit.write(pressured(95, session="<s&1>"))
    async with kit.running():
        await kit.until_taken(1)
        await kit.until_taken(2, "slack")
    first, second = kit.receivers["slack"].bodies
    assert kit.receivers["ops"].taken[0] == kit.receivers["slack"].taken[0]
    assert "session &lt;s&amp;1&gt;" in str(first["text"])
    assert "*very &lt;full&gt;*" in json.dumps(second["blocks"])


async def test_stopping_finishes_the_call_in_progress(kit: ControlKit) -> None:
    kit.receivers["ops"].gate = gate = asyncio.Event()
    await kit.write(pressured(90))
    await kit.write(pressured(50, session="s2"))
    async with kit.running() as running:
        await until_so(lambda: len(kit.receivers["ops"].calls) == 1)
        stopping = asyncio.create_task(running.stop())
        await asyncio.sleep(0.02)
        assert not running.task.done()
        gate.set()
        await stopping
    assert kit.acknowledged[0] == kit.log.partition(TOPIC, 0).stable_end()
