"""Which commands are accepted: by whom they were requested, and by what is known of the session."""

from dataclasses import replace

import pytest

from contextgauge.clock import SystemClock
from contextgauge.units import HOUR_MS
from schemas.commands import (
    CancelRequested,
    CommandAccepted,
    CommandPlanned,
    CommandTrigger,
    CompactionDecided,
    CompactRequested,
)
from schemas.records import WindowSource
from streams.flow.control.session_owners import Owner
from tests.flow.control.command_kit import SESSION, CommandKit

MODEL = "claude-sonnet-4-5"


@pytest.fixture
async def kit() -> CommandKit:
    return await CommandKit.created(12)


def decided(
    *, threshold: int, window: int = 200_000, source: WindowSource = "runtime"
) -> CompactionDecided:
    return CompactionDecided(
        session_id=SESSION,
        fired=True,
        reason="above_threshold",
        command_id="command",
        cause_id="cause",
        model=MODEL,
        used_tokens=threshold,
        window=window,
        window_source=source,
        threshold_tokens=threshold,
    )


@pytest.mark.parametrize("is_known", [True, False])
async def test_an_automatic_request_is_refused_where_that_is_off(
    kit: CommandKit, *, is_known: bool
) -> None:
    kit.automatic = False
    kit.owners[SESSION] = Owner(cwd="/srv/secret", is_known=is_known)
    await kit.request(trigger="auto")
    async with kit.worker():
        outcome = await kit.outcome()
        assert (outcome.outcome, outcome.attempt) == ("refused", 0)
        assert "automatically" in (outcome.reason or "")
        await kit.request("by hand")
        assert (await kit.outcome("by hand")).outcome == "completed"


async def test_a_command_that_is_cancelled_while_it_is_examined_ends_as_cancelled(
    kit: CommandKit,
) -> None:
    kit.conversations.held = 0  # whose session it is cannot be learned from its messages
    await kit.request(trigger="auto", upto_offset=1)
    async with kit.worker():
        await kit.until(lambda: kit.conversations.looks)
        await kit.cancel()
        outcome = await kit.outcome()
    assert (outcome.outcome, outcome.reason) == ("cancelled", "cancelled on request")


async def test_an_automatic_request_is_refused_where_nothing_is_known(kit: CommandKit) -> None:
    kit.owners["new"] = Owner()
    outcome = await kit.carry_out("auto", session_id="new", trigger="auto")
    assert outcome.reason == "it is not known yet whose session it is"


@pytest.mark.extended
@pytest.mark.parametrize("is_kept", [True, False])
async def test_what_a_person_asked_for_waits_until_the_session_is_known(
    kit: CommandKit, *, is_kept: bool
) -> None:
    kit.owners[SESSION] = Owner()  # Redis has lost the views, and perhaps the conversations
    kit.opted_in = False  # by what is known
    kit.conversations.is_former = not is_kept
    await kit.request()
    async with kit.worker():
        await kit.until(lambda: kit.asked_owners.count(SESSION) > 1)
        assert not kit.of(CommandAccepted)
        assert not kit.finished()
        kit.owners[SESSION], kit.opted_in = Owner("reviewer", "/srv/shop", is_known=True), True
        kit.conversations.is_former = False
        assert (await kit.outcome()).outcome == "completed"
    await kit.check()


async def test_what_waits_until_its_session_is_known_is_cancelled(kit: CommandKit) -> None:
    kit.owners[SESSION] = Owner()
    await kit.request()
    async with kit.worker():
        await kit.until(lambda: kit.asked_owners)
        await kit.cancel()
        assert (await kit.outcome()).outcome == "cancelled"
    assert kit.boundaries() == []


async def test_what_no_worker_has_read_is_cancelled_or_expires(kit: CommandKit) -> None:
    now_ms = SystemClock().now_ms()
    old = CompactRequested(
        session_id=SESSION, command_id="old", trigger="manual", requested_by="test"
    )
    await kit.send(old, time_ms=now_ms - 2 * HOUR_MS)
    await kit.request("one")
    await kit.request("two")
    await kit.send(CancelRequested(session_id=SESSION, command_id=None, requested_by="test"))
    await kit.send(replace(old, command_id="old later"), time_ms=now_ms - 2 * HOUR_MS)
    await kit.request("three")
    async with kit.worker():
        names = ("old", "one", "two", "old later", "three")
        outcomes = [(await kit.outcome(name)).outcome for name in names]
    assert outcomes == ["cancelled", "cancelled", "cancelled", "expired", "completed"]
    await kit.check()


async def test_a_runtimes_driver_needs_no_view(kit: CommandKit) -> None:
    kit.owners[SESSION], kit.driver = Owner(), "gone"
    await kit.request()
    async with kit.worker():
        assert "'gone'" in ((await kit.outcome()).reason or "")


@pytest.mark.parametrize("trigger", ["manual", "auto"])
async def test_the_service_compacts_no_runtime_that_compacts_itself(
    kit: CommandKit, trigger: CommandTrigger
) -> None:
    owner = Owner("reviewer", "/srv/shop", is_known=True, runtime="claude-code")
    kit.owners[SESSION] = owner
    await kit.request("one", trigger=trigger)
    async with kit.worker():
        outcome = await kit.outcome("one")
        assert outcome.outcome == "refused"
        assert (outcome.reason or "").startswith("claude-code compacts itself")
        assert kit.boundaries() == []
        kit.owners[SESSION] = owner._replace(asks=True)
        await kit.request("two", trigger=trigger)
        assert (await kit.outcome("two")).outcome == "completed"


async def test_rules_are_asked_with_the_model_of_the_view(kit: CommandKit) -> None:
    kit.owners[SESSION] = Owner("reviewer", "/srv/shop", MODEL, 200_000, is_known=True)
    await kit.carry_out()
    first = kit.facts[0]
    assert (first.agent_id, first.project, first.model) == ("reviewer", "/srv/shop", MODEL)


@pytest.mark.parametrize(
    ("model", "window"), [(MODEL, 77_000), ("another", None), (None, None)], ids=str
)
async def test_a_manual_compaction_has_the_window_of_the_view(
    kit: CommandKit, model: str | None, window: int | None
) -> None:
    kit.owners[SESSION] = Owner(model=model, window=77_000, is_known=True)
    await kit.carry_out()
    assert kit.facts[-1].window == window


async def test_an_automatic_compaction_has_the_window_that_it_was_decided_by(
    kit: CommandKit,
) -> None:
    kit.owners[SESSION] = Owner(model=MODEL, window=77_000, is_known=True)
    await kit.send(decided(threshold=10, window=55_000))
    await kit.carry_out(trigger="auto")
    assert kit.facts[-1].window == 55_000


async def test_what_is_below_the_threshold_by_now_is_not_compacted(kit: CommandKit) -> None:
    usage = {"input_tokens": 40_000, "output_tokens": 5}
    message = {"id": "last", "role": "assistant", "content": [], "usage": usage}
    await kit.publish({"type": "assistant", "message": message})  # type: ignore[dict-item]  # as JSON
    await kit.send(decided(threshold=170_000))
    outcome = await kit.carry_out(trigger="auto")
    assert outcome.outcome == "nothing_to_compact"
    assert "170000 is the threshold" in (outcome.reason or "")
    assert not kit.boundaries()


async def test_a_plan_tells_the_size_before(kit: CommandKit) -> None:
    outcome = await kit.carry_out()
    (planned,) = kit.of(CommandPlanned)
    assert outcome.receipt is not None
    assert planned.tokens_before == outcome.receipt["tokens_before"]
