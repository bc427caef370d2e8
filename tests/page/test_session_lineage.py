"""A session's checkpoints with the commands that fork it, its origin and its forks."""

import copy

import pytest
from playwright.async_api import Locator, Page, expect

from tests.page.conftest import NARROW
from tests.page.pretend import Api
from tests.page.shown import NOW_MS, SESSION, Shown

pytestmark = [pytest.mark.extended, pytest.mark.asyncio(loop_scope="session")]

FORK = "7d1f4c52-aaaa-4bbb-8ccc-000000000002"
COPIED = (
    "(() => { navigator.clipboard.writeText = async (words) => { window.copied = words; }; })()"
)


def lineage(page: Page) -> Locator:
    return page.locator("section[aria-labelledby=lineage-title]")


def compact_twice(shown: Shown) -> None:
    for number in (1, 2):
        shown.agent.compacting(NOW_MS - 90_000 + number)
        shown.agent.compacted(NOW_MS - 80_000 + number, 160_000 + number, 9_000, "Short.")
        shown.agent.respond(NOW_MS - 70_000 + number, 30_000)


async def test_each_compaction_is_a_checkpoint_with_commands_to_copy(
    page: Page, shown: Shown
) -> None:
    await expect(lineage(page)).to_be_hidden()
    compact_twice(shown)
    shown.agent.cleared(NOW_MS)
    await shown.tell()
    stops = lineage(page).locator(".lineage-row > li")
    await expect(stops).to_have_text(["Checkpoint 1", "Checkpoint 2", "Cleared", "now"])
    commands = lineage(page).locator("code")
    await expect(commands.first).to_have_text(f"contextgauge fork {SESSION} 2 --install")
    await lineage(page).get_by_role("button", name="Checkpoint 1").click()
    await expect(lineage(page).locator(".checkpoint > p").first).to_contain_text(
        "#1 automatic · 160,001 → 30,000 tokens · 9.0 s"
    )
    await page.evaluate(COPIED)
    await lineage(page).get_by_role("button", name="After it").click()
    command = f"contextgauge fork {SESSION} 1 --after --install"
    await expect(commands.last).to_have_text(command)
    assert await page.evaluate("window.copied") == command


async def test_a_session_leads_to_its_forks_and_they_to_their_origin(
    page: Page, shown: Shown, api: Api
) -> None:
    compact_twice(shown)
    shown.fill()
    fork = copy.deepcopy(api.sessions[SESSION])
    fork["session_id"] = FORK
    fork["identity"]["forked_from"] = SESSION
    fork["compactions"] |= {"automatic": 0, "inherited": 1}
    inherited = [{**api.compactions[SESSION][-1], "inherited": True}]
    api.sessions[FORK], api.records[FORK] = fork, {"events": [], "readings": []}
    api.compactions[FORK] = inherited
    await page.reload()
    forks = lineage(page).locator(".lineage-forks > li")
    await expect(forks).to_contain_text(["after #1"])
    box, second = (
        await forks.bounding_box(),
        await lineage(page).locator("button").nth(1).bounding_box(),
    )
    assert box is not None
    assert second is not None
    assert abs(box["x"] - second["x"]) < 2  # it branches off before the second
    await forks.get_by_role("link").click()
    await expect(page.locator(".id")).to_have_text(FORK)
    await expect(lineage(page).locator("[data-inherited]")).to_have_text("Checkpoint 1")
    await lineage(page).get_by_role("link", name=SESSION[:8]).click()
    await expect(page.locator(".id")).to_have_text(SESSION)


async def test_many_checkpoints_scroll_within_their_card(page: Page, shown: Shown) -> None:
    for _ in range(6):
        compact_twice(shown)
    await page.set_viewport_size(NARROW)
    await shown.tell()
    await expect(lineage(page).get_by_role("button", name="Checkpoint 12")).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
