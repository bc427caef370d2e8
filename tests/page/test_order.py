"""The order of the overview: live sessions first, then by a column."""

from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.page.conftest import stop_clock
from tests.page.pretend import Api, entry
from tests.page.shown import NOW_MS

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_sessions_are_listed_the_fullest_first(
    page: Page, page_url: str, sampled: Api
) -> None:
    await page.goto(page_url)
    rows = page.locator(".rows .row:visible")
    await expect(rows).to_have_count(len(sampled.sessions))
    shares = await rows.locator(".gauge-share").all_inner_texts()
    known = [int(share.split("%")[0].strip("<")) for share in shares if "%" in share]
    assert known == sorted(known, reverse=True)
    assert known


async def test_live_sessions_come_before_silent_ones(
    page: Page, page_url: str, api: Api, sample: Any
) -> None:
    await stop_clock(page, NOW_MS)
    api.now_ms = NOW_MS
    api.fill(sample)
    api.many(6)  # of 0, 16, 33 … 82 %
    views = list(api.sessions.values())
    for number, view in enumerate(views):
        silent_min = 600 if number % 2 else 5
        view["last_ms"] = view["first_ms"] = NOW_MS - silent_min * 60_000
        view["identity"]["cwd"] = f"/srv/{'cabefd'[number]}"
    await page.goto(page_url)
    rows = page.locator(".rows .row:visible")
    names = rows.locator(".row-name")
    await expect(names).to_have_text(["f", "b", "c", "d", "e", "a"])
    await expect(page.locator("#summary")).to_have_text("6 in all · 3 live")
    divided = page.locator(".row[data-divides]")
    await expect(divided).to_have_count(1)
    await expect(divided.locator(".row-name")).to_have_text("d")
    await expect(divided).to_have_attribute("data-divides", "silent for 30 min or more")
    # The fullest of the silent ones is heard of again: it rises above all.
    views[5].update(sequence=2, last_ms=NOW_MS)
    await page.evaluate("(e) => pushEntries([e])", entry(views[5], 82.5, 2))
    await expect(names).to_have_text(["d", "f", "b", "c", "e", "a"])


@pytest.mark.extended
async def test_sessions_without_times_are_not_live(
    page: Page, page_url: str, api: Api, sample: Any
) -> None:
    await stop_clock(page, NOW_MS)
    api.now_ms = NOW_MS
    api.fill(sample)
    api.many(3)  # of 0, 33 and 66 %
    for name, view in zip("abc", api.sessions.values(), strict=True):
        view["identity"]["cwd"] = f"/srv/{name}"
        view["last_ms"] = view["first_ms"] = NOW_MS if name == "a" else None
    await page.goto(page_url)
    rows = page.locator(".rows .row:visible")
    await expect(rows.locator(".row-name")).to_have_text(["a", "c", "b"])
    await expect(page.locator("#summary")).to_have_text("3 in all · 1 live")
    await expect(rows.nth(1).locator(".c-state")).to_contain_text("time unknown")
    await expect(rows.nth(1)).to_have_attribute("data-past", "")
    await expect(rows.nth(1)).to_have_attribute("data-divides", "time unknown")
    colours = [
        await rows.nth(index).locator(".state .icon").evaluate("(e) => getComputedStyle(e).color")
        for index in range(3)
    ]
    assert colours[0] != colours[1] == colours[2]
    await rows.nth(1).locator(".row-link").click()
    await expect(page.locator(".facts").first).to_contain_text("Last activityunknown")


@pytest.mark.extended
@pytest.mark.own_context
async def test_a_click_on_a_head_sorts_by_its_column(
    page: Page, page_url: str, sampled: Api
) -> None:
    sampled.many(4)
    await page.clock.install(time=NOW_MS / 1_000)
    for name, view in zip("cadb", sampled.sessions.values(), strict=True):
        view["identity"]["cwd"] = f"/srv/{name}"
    await page.goto(page_url)
    names = page.locator(".rows .row:visible .row-name")
    await expect(names).to_have_text(["b", "d", "a", "c"])
    head = page.get_by_role("columnheader", name="Session")
    context = page.get_by_role("columnheader", name="Context")
    await expect(context).to_have_attribute("aria-sort", "descending")
    await head.get_by_role("button").click()
    await expect(names).to_have_text(["a", "b", "c", "d"])
    await expect(head).to_have_attribute("aria-sort", "ascending")
    assert await context.get_attribute("aria-sort") is None
    await expect(page).to_have_url(f"{page_url}#/?sort=folder")
    await expect(page.get_by_label("Order")).to_have_value("folder")
    await page.clock.run_for(3_000)  # the page itself sorts too, in the same order
    await expect(names).to_have_text(["a", "b", "c", "d"])
    await head.get_by_role("button").click()
    await expect(names).to_have_text(["b", "d", "a", "c"])
