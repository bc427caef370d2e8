"""The receipt of a compaction on a session's page."""

import pytest
from playwright.async_api import Page, expect

from tests.page.pretend import Api
from tests.page.shown import NOW_MS, SESSION, Shown

pytestmark = pytest.mark.asyncio(loop_scope="session")

OWN = {
    "command_id": "c-1",
    "attempt": 2,
    "reason": "above_threshold",
    "cause_id": "0f3c",
    "receipt": {
        "messages_archived": 48,
        "summary_input_tokens": 90_000,
        "summary_cache_read_tokens": 80_000,
        "summary_output_tokens": 2_100,
        "pins": 14,
    },
}


@pytest.mark.extended
async def test_a_receipt_shows_every_figure_and_the_lost_turns(
    page: Page, shown: Shown, api: Api
) -> None:
    shown.agent.compacted(NOW_MS, 154_000, 9_000, "Fixed the importer.", contextgauge=OWN)
    shown.agent.respond(NOW_MS + 1_000, 31_000)
    await shown.tell()
    receipt = page.locator(".compaction .receipt").first
    marker = receipt.locator("summary")
    await expect(marker).to_contain_text(
        "Context compacted #1 · 48 messages archived · 123,000 tokens freed · This session is"
    )
    await marker.click()
    await expect(receipt).to_contain_text("automatic: above threshold")
    await expect(receipt).to_contain_text("90,000 read (80,000 from the cache), 2,100 written")
    await expect(receipt).to_contain_text("c-1, attempt 2")
    await expect(receipt).to_contain_text("User's turnsunknown")
    boundary_id = api.compactions[SESSION][0]["boundary_id"]
    await expect(receipt).to_contain_text(boundary_id)
    shown.agent.checked(NOW_MS + 2_000, boundary_id, 3, ["Never push to main.", "No new packages."])
    await shown.tell()
    await expect(receipt).to_contain_text("~3 kept, ~2 lost")
    await expect(receipt.locator("li")).to_have_text(["Never push to main.", "No new packages."])
    await expect(marker).to_contain_text("~2 turns of the user lost")


async def test_a_receipt_and_its_session_show_what_they_cost(page: Page, shown: Shown) -> None:
    shown.agent.respond(NOW_MS - 1_000, 154_000)
    shown.agent.compacted(NOW_MS, 154_000, 9_000, "Fixed the importer.", contextgauge=OWN)
    shown.agent.respond(NOW_MS + 1_000, 31_000)
    shown.agent.respond(NOW_MS + 2_000, 32_000)
    await shown.tell()
    receipt = page.locator(".compaction .receipt").first
    await receipt.locator("summary").click()
    await expect(receipt).to_contain_text("2,100 written: ~$0.")
    await expect(receipt).to_contain_text("a response, 2 responses since")
    await expect(page.locator(".hero .facts")).to_contain_text("Costat least ~$")


@pytest.mark.extended
async def test_an_output_that_is_not_final_is_unknown_next_to_a_known_input(
    page: Page, shown: Shown
) -> None:
    reads = {"summary_input_tokens": 90_000, "summary_cache_read_tokens": 80_000}
    own = OWN | {"receipt": reads}
    shown.agent.compacted(NOW_MS, 154_000, 9_000, "Fixed the importer.", contextgauge=own)
    await shown.tell()
    receipt = page.locator(".compaction .receipt").first
    await receipt.locator("summary").click()
    await expect(receipt).to_contain_text("90,000 read (80,000 from the cache), output unknown")


@pytest.mark.extended
async def test_an_inherited_compaction_is_none_of_the_sessions_own(
    page: Page, shown: Shown, api: Api
) -> None:
    shown.agent.compacted(NOW_MS, 154_000, 9_000, "Short.")
    shown.fill()
    api.compactions[SESSION][0]["inherited"] = True
    await page.reload()
    item = page.locator(".item.compaction").first
    await expect(item).to_have_attribute("data-status", "inherited")
    head = item.locator(".compaction-head")
    await expect(head).to_contain_text("Inherited compaction")
    await expect(head).to_contain_text("it counts for the session that did it")
    await expect(item.locator(":scope > .facts")).to_contain_text("154,000 →")
    await expect(item.locator(":scope > .facts")).not_to_contain_text("Number")
    await expect(item.locator(":scope > .facts")).not_to_contain_text("messages")
    await expect(item.locator(".receipt summary")).to_contain_text("Inherited compaction · 154,000")
    await expect(page.locator(".key:visible", has_text="size")).to_have_count(1)
    await expect(page.locator(".key.compaction:visible")).to_have_count(0)  # in no chart (R30)


async def test_what_a_runtime_does_not_report_is_unknown(page: Page, shown: Shown) -> None:
    shown.agent.compacted(NOW_MS, 154_000, 9_000, "Short.")
    await shown.tell()
    receipt = page.locator(".compaction .receipt").first
    await expect(receipt.locator("summary")).to_contain_text(
        "Context compacted #1 · 154,000 tokens before"
    )
    await receipt.locator("summary").click()
    for name in ("After", "Writing the summary", "Messages archived", "User's turns"):
        value = receipt.locator(f'dt:text-is("{name}") + dd')
        await expect(value).to_have_text("unknown")
    await expect(receipt.locator("dt:text-is('Command')")).to_have_count(0)
