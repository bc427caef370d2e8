"""Commands that a runtime carries out itself, steered by a driver."""

import asyncio

import pytest

from contextgauge.records import Json
from schemas.commands import CommandCalled
from streams.ports import DriverResult
from tests.flow.control.command_kit import CommandKit


@pytest.fixture
async def kit() -> CommandKit:
    return await CommandKit.created()


class Runtime:
    """A driver that answers as it is asked to."""

    name = "runtime"

    def __init__(self, *answers: DriverResult) -> None:
        self.answers = list(answers)
        self.calls = 0

    async def compact(self, session_id: str, instructions: str | None) -> DriverResult:  # noqa: ARG002 -- the port's
        self.calls += 1
        return self.answers.pop(0)

    async def stop(self) -> None:
        pass


async def drive(kit: CommandKit, *answers: DriverResult) -> Runtime:
    runtime = Runtime(*answers)
    kit.drivers["runtime"] = runtime
    kit.driver = "runtime"
    await kit.say(1)
    await kit.request()
    return runtime


async def test_a_runtime_that_has_compacted_is_done(kit: CommandKit) -> None:
    runtime = await drive(kit, DriverResult("retry", "away"), DriverResult("done", ""))
    async with kit.worker():
        assert (await kit.outcome()).outcome == "completed"
    assert runtime.calls == 2
    assert len(kit.lines()) == 2


async def test_a_runtime_that_has_started_is_done_with_its_boundary(kit: CommandKit) -> None:
    await drive(kit, DriverResult("started", ""))
    async with kit.worker():
        await kit.until(lambda: kit.of(CommandCalled))
        await asyncio.sleep(0.05)
        assert not kit.finished()
        await kit.publish({"type": "system", "subtype": "compact_boundary"})
        assert (await kit.outcome()).outcome == "completed"


async def test_a_runtime_that_refuses_and_one_that_is_silent(kit: CommandKit) -> None:
    kit.change(driver_s=0.1)
    runtime = await drive(
        kit, DriverResult("refused", "no such thread"), DriverResult("started", "")
    )
    async with kit.worker():
        outcome = await kit.outcome()
        assert (outcome.outcome, outcome.reason) == ("refused", "no such thread")
        await kit.request("again")
        assert (await kit.outcome("again")).outcome == "failed"
    assert runtime.calls == 2


@pytest.mark.parametrize("has_ended", [False, True])
async def test_a_runtime_that_an_owner_before_asked_is_not_asked_again(
    kit: CommandKit, *, has_ended: bool
) -> None:
    runtime = await drive(kit, DriverResult("started", ""))
    async with kit.worker():
        await kit.until(lambda: runtime.calls)
    await kit.publish({"type": "system", "subtype": "status", "status": "compacting"})
    if has_ended:
        await kit.publish({"type": "system", "subtype": "compact_boundary"})
    async with kit.worker():
        if not has_ended:
            await kit.until(lambda: len({each.attempt for each in kit.of(CommandCalled)}) == 2)
            await asyncio.sleep(0.05)  # nothing must happen
            await kit.publish({"type": "system", "subtype": "compact_boundary"})
        assert (await kit.outcome()).outcome == "completed"
    assert runtime.calls == 1


async def test_a_runtime_whose_compaction_failed_is_asked_again(kit: CommandKit) -> None:
    runtime = await drive(kit, DriverResult("started", ""), DriverResult("done", ""))
    async with kit.worker():
        await kit.until(lambda: runtime.calls)
    failed: dict[str, Json] = {"status": None, "compact_result": "failed", "compact_error": "no"}
    await kit.publish(
        {"type": "system", "subtype": "status", "status": "compacting"},
        {"type": "system", "subtype": "status", **failed},
    )
    async with kit.worker():
        assert (await kit.outcome()).outcome == "completed"
    assert runtime.calls == 2


async def test_a_command_whose_driver_is_gone_keeps_its_attempts_number(kit: CommandKit) -> None:
    runtime = await drive(kit, DriverResult("started", ""))
    async with kit.worker():
        await kit.until(lambda: runtime.calls)
    kit.drivers.clear()
    async with kit.worker():
        outcome = await kit.outcome()
    assert (outcome.outcome, outcome.attempt) == ("refused", 1)
    assert "no driver 'runtime' is configured" in (outcome.reason or "")


async def test_an_accepted_command_needs_no_conversation_to_be_gone_on_with(
    kit: CommandKit,
) -> None:
    runtime = await drive(kit, DriverResult("started", ""))
    async with kit.worker():
        await kit.until(lambda: runtime.calls)
    await kit.publish({"type": "system", "subtype": "compact_boundary"})
    kit.opted_in = False

    async def gone(_partition: int) -> None:
        return None

    kit.conversations.mark = gone  # type: ignore[method-assign,assignment]
    async with kit.worker():
        assert (await kit.outcome()).outcome == "completed"


async def test_messages_that_are_not_in_the_log_fail_the_command_alone(kit: CommandKit) -> None:
    runtime = kit.drivers["runtime"] = Runtime(DriverResult("done", ""))
    kit.driver = "runtime"
    await kit.say(1)
    await kit.request("beyond", upto_offset=10_000)
    async with kit.worker():
        outcome = await kit.outcome("beyond")
        assert outcome.outcome == "failed"
        assert "offset 10000 is beyond the end of" in (outcome.reason or "")
        await kit.request("after")
        assert (await kit.outcome("after")).outcome == "completed"
    assert runtime.calls == 1
