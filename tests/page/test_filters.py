"""The filters: what the server is asked for, and what then still fits."""

from typing import get_args

import pytest
from playwright.async_api import Page, expect

from schemas.records import Runtime
from tests.page.pretend import Api, judged

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.extended
async def test_sessions_of_an_unknown_runtime_can_be_selected(
    page: Page, page_url: str, sampled: Api
) -> None:
    await page.goto(page_url)
    select = page.get_by_label("Runtime")
    options = select.locator("option")
    values = [await option.get_attribute("value") for option in await options.all()]
    assert values == ["", *get_args(Runtime), "unknown"]
    await select.select_option("Unknown runtime")
    await expect(page).to_have_url(f"{page_url}#/?runtime=unknown")
    for _ in range(100):
        if any("runtime=unknown" in asked for asked in sampled.asked):
            break
        await page.wait_for_timeout(50)
    assert any("runtime=unknown" in asked for asked in sampled.asked)
    # What changes in such a session leaves it in the list, and no other one comes into it.
    fits = await page.evaluate(
        """async (views) => {
          const filters = await import(document.querySelector('link[href$="/filters.js"]').href);
          const asked = { show: "", model: "", runtime: "unknown" };
          return views.map((view) => filters.fits(view, asked, 0));
        }""",
        [judged(view) for view in sampled.sessions.values()],
    )
    unknown = [view["identity"]["runtime"] is None for view in sampled.sessions.values()]
    assert fits == unknown
    assert len(set(unknown)) == 2


async def test_an_unknown_runtime_in_the_address_is_ignored(
    page: Page, page_url: str, sampled: Api
) -> None:
    await page.goto(f"{page_url}#/?runtime=bogus")
    await expect(page.get_by_label("Runtime")).to_have_value("")
    assert not any("bogus" in asked for asked in sampled.asked)
