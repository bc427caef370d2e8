"""The overview's keys: between sessions, in the search, and the list of them."""

import pytest
from playwright.async_api import Page, expect

from tests.page.pretend import Api

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.extended
async def test_arrow_keys_move_between_sessions(page: Page, page_url: str, sampled: Api) -> None:
    sampled.many(300)
    await page.goto(page_url)
    await page.locator(".row-link").first.focus()
    for _ in range(30):
        await page.keyboard.press("ArrowDown")
    index = await page.evaluate(
        "document.activeElement.closest('.row').getAttribute('aria-rowindex')"
    )
    assert index == "32"  # the head is the first, the first session the second
    await expect(page.locator(":focus")).to_be_in_viewport()


async def test_arrow_keys_work_from_anywhere_and_a_question_mark_lists_the_keys(
    page: Page, page_url: str, sampled: Api
) -> None:
    sampled.many(30)
    await page.goto(page_url)
    rows = page.locator(".rows .row:visible")
    await expect(rows.first).to_be_visible()
    await page.keyboard.press("ArrowDown")
    await expect(rows.nth(0).locator(".row-link")).to_be_focused()
    await page.get_by_role("button", name="80% and more").focus()
    await page.keyboard.press("j")
    await expect(rows.nth(0).locator(".row-link")).to_be_focused()
    await page.get_by_role("searchbox").focus()
    await page.keyboard.press("ArrowDown")
    await expect(rows.nth(0).locator(".row-link")).to_be_focused()
    await page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keys")
    await expect(dialog).to_contain_text("open the first match")
    await page.keyboard.press("ArrowDown")  # not behind the list
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    await expect(rows.nth(0).locator(".row-link")).to_be_focused()
    await page.get_by_role("searchbox").focus()
    await page.keyboard.type("?")
    await expect(dialog).to_have_count(0)


@pytest.mark.extended
async def test_enter_in_the_search_opens_the_first_match(
    page: Page, page_url: str, sampled: Api
) -> None:
    sampled.many(30)
    await page.goto(page_url)
    await expect(page.locator(".rows .row:visible").first).to_be_visible()
    await page.keyboard.press("/")
    await page.keyboard.type("00000007-0000")
    await page.keyboard.press("Enter")  # before the list has followed
    await expect(page).to_have_url(f"{page_url}#/session/00000007-0000-4000-8000-000000000000")
    await page.goto(page_url)
    await page.get_by_role("searchbox").fill("nothing like this")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="No matching sessions")).to_be_visible()
    assert "session/" not in page.url
