"""A control worker that starts late sends what is still so, and not what has passed."""

from tests.core.given import Given, assistant, boundary
from tests.flow.control.control_kit import ControlKit, pressured


async def test_no_alert_on_a_full_window_of_a_session_that_was_compacted_since(
    kit: ControlKit,
) -> None:
    given = Given()
    await kit.write(pressured(90, session="compacted", given=given))
    await kit.write(pressured(90, session="full"))
    await kit.write(given.take(boundary(at=5) | {"session_id": "compacted"}))
    async with kit.running():
        await kit.until_taken(1)
        await kit.until_acknowledged()
        # Full again after its compaction, while the worker runs.
        again = assistant("again", read=190_000, at=9) | {"session_id": "compacted"}
        await kit.write(given.take(again))
        await kit.until_taken(2)
        await kit.until_acknowledged()
    assert [body["session_id"] for body in kit.receivers["ops"].bodies] == ["full", "compacted"]
    assert kit.figures.counts["control_skipped", "compacted_since"] == 1


async def test_a_worker_that_follows_sends_before_the_compaction_comes(kit: ControlKit) -> None:
    given = Given()
    async with kit.running():
        await kit.write(pressured(90, given=given))
        await kit.until_taken(1)
        await kit.write(given.take(boundary(at=5) | {"session_id": "s1"}))
        await kit.until_acknowledged()
    assert ("control_skipped", "compacted_since") not in kit.figures.counts
