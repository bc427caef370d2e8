"""A session's timeline: in the order of time, with small steps folded."""

import pytest
from playwright.async_api import Page, expect

from tests.page.pretend import Api
from tests.page.shown import NOW_MS, SESSION, Shown

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.extended
async def test_small_steps_are_folded_between_compactions_resets_and_warnings(
    page: Page, shown: Shown
) -> None:
    # So far 19, 29 … 67 and 76 % were used, so thresholds of 10 to 60 and of 70 % were crossed.
    items = page.locator(".timeline:not(.timeline .timeline) > .item")
    steps = page.locator(".item.steps")
    await expect(steps).to_have_count(1)
    await expect(steps.locator("summary").first).to_contain_text("6 steps10% to 60% used")
    zone = await page.evaluate("Intl.DateTimeFormat().resolvedOptions().timeZone")
    title = page.locator("#timeline-title")
    await expect(title).to_have_text(f"Timeline latest first, by time ({zone})")
    await expect(page.locator(".item.warning:visible")).to_have_count(1)
    folded = await steps.locator("summary .when").first.inner_text()
    await steps.locator("summary").first.click()
    await expect(page.locator(".item.warning:visible")).to_have_count(7)
    latest = page.locator(".item.steps .item.warning .when").first
    await expect(latest).to_have_text(folded)
    count = await items.count()
    shown.agent.compacting(NOW_MS - 9_000)
    shown.agent.compacted(NOW_MS, 154_000, 9_000, "Short.")
    shown.agent.respond(NOW_MS + 1_000, 31_000)
    await shown.tell()
    # One alone stays as it is: a warning of 10 % after the compaction.
    await expect(items).to_have_count(count + 2)
    await expect(steps).to_have_count(1)
    shown.agent.respond(NOW_MS + 2_000, 61_000)
    await shown.tell()
    await expect(steps).to_have_count(2)
    await expect(steps.first.locator("summary").first).to_contain_text("2 steps")
    await page.get_by_role("button", name="Warnings").click()
    await expect(steps).to_have_count(0)
    await expect(page.locator(".item.warning:visible")).to_have_count(9)


async def test_the_timeline_is_in_the_order_of_time(page: Page, shown: Shown) -> None:
    """A subagent's transcript is read after the main one: its records come later in the log."""
    shown.agent.respond(NOW_MS, 170_000)
    for number, used in enumerate((15_000, 22_000)):
        shown.agent.respond(NOW_MS - 30_000 + number, used, agent_id="ab1")
    await shown.tell()
    items = page.locator(".timeline:not(.timeline .timeline) > .item:not(.info)")
    await expect(items.nth(0)).to_contain_text("85% used")
    await expect(items.nth(1)).to_contain_text("explorer ab1")
    await expect(items.nth(2)).to_contain_text("76% used")
    times = [time for time in await items.locator("time").all_inner_texts() if time]
    assert times == sorted(times, reverse=True)
    heading = page.get_by_role("heading", name="Timeline")
    await expect(heading).to_contain_text("Timeline latest first, by time (")


@pytest.mark.extended
async def test_entries_without_a_time_keep_their_place_in_the_log(
    page: Page, shown: Shown, api: Api
) -> None:
    shown.agent.respond(NOW_MS, 170_000)
    shown.agent.respond(NOW_MS + 1_000, 181_000)
    shown.fill()
    *_, timeless, last = [
        record
        for record in api.records[SESSION]["events"]
        if record["type"] == "contextgauge.context_warning.v1"
    ]
    del timeless["time"]
    await page.reload()
    items = page.locator(".item.warning:visible")
    await expect(items.nth(0)).to_contain_text("90% used")
    await expect(items.nth(1)).to_contain_text("time unknown")
    assert last["time"]
    heading = page.get_by_role("heading", name="Timeline")
    await expect(heading).to_contain_text("; entries without a time in the order of the log")


async def test_folded_steps_have_the_time_of_the_latest_and_one_share_once(
    page: Page, shown: Shown
) -> None:
    shown.agent.respond(NOW_MS - 30_000, 21_000, agent_id="ab1")
    shown.agent.respond(NOW_MS - 20_000, 22_000, agent_id="cd2")
    await shown.tell()
    steps = page.locator(".item.steps").first.locator("summary").first
    await expect(steps).to_contain_text("2 steps")
    await expect(steps).to_contain_text("at 10% used")
    latest = await page.evaluate(
        "(at) => new Date(at).toLocaleTimeString('en-GB')", NOW_MS - 20_000
    )
    await expect(steps.locator("time")).to_have_text(latest)
