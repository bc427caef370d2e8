"""Titles: where the server has a session's first prompt, the page shows it."""

from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.page.conftest import NARROW, WIDE, stop_clock
from tests.page.pretend import Api
from tests.page.shown import NOW_MS

pytestmark = pytest.mark.asyncio(loop_scope="session")

TITLE = "Move the shop's cart to the new API, and keep <b>checkout</b> as it is: " + "x" * 120


@pytest.mark.extended
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
async def test_a_title_is_shown_in_the_list_and_on_the_sessions_page(
    page: Page, page_url: str, api: Api, sample: Any, size: Any
) -> None:
    await page.set_viewport_size(size)
    api.fill(sample)
    api.many(3)
    name = list(api.sessions)[1]
    api.titles = {name: TITLE}
    view = api.sessions[name]
    main = {**view["chains"]["main"], "model": "claude-opus-4-6"}
    others = {f"a{number}": {**main, "chain": f"a{number}"} for number in range(12)}
    api.sessions[name] = {**view, "chains": {"main": main, **others}}
    await page.goto(page_url)
    rows = page.locator(".rows .row:visible")
    titled = rows.nth(1).locator(".row-title")
    await expect(titled).to_have_text(TITLE)
    await expect(titled).to_be_visible()
    await expect(rows.nth(0).locator(".row-title")).to_be_hidden()
    link = rows.nth(1).locator(".row-link")
    assert TITLE in (await link.get_attribute("title") or "").splitlines()
    boxes = [await rows.nth(number).bounding_box() for number in range(3)]
    assert len({box["height"] for box in boxes if box is not None}) == 1
    inside = await rows.nth(1).evaluate(
        "(row) => [...row.children].every((cell) => cell.scrollHeight <= row.clientHeight)"
    )
    assert inside
    if size == WIDE:
        about = rows.nth(1).locator(".about")
        await expect(about).to_contain_text("12 subagents")
        assert await about.evaluate(
            """(about) => {
              const range = document.createRange();
              const end = about.textContent.indexOf("12 subagents") + "12 subagents".length;
              range.setStart(about.firstChild, 0);
              range.setEnd(about.firstChild, end);
              const { right, bottom } = about.getBoundingClientRect();
              const box = range.getBoundingClientRect();
              return box.right <= right && box.bottom <= bottom + 1;
            }"""
        )
    await link.click()
    await expect(page.locator("h1 + .session-title")).to_have_text(TITLE)
    await page.goto(f"{page_url}#/session/{next(iter(api.sessions))}")
    await expect(page.locator("h1 + .session-title")).to_be_hidden()


@pytest.mark.extended
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
async def test_the_divider_of_silent_sessions_covers_no_line_of_a_titled_row(
    page: Page, page_url: str, api: Api, sample: Any, size: Any
) -> None:
    await page.set_viewport_size(size)
    await stop_clock(page, NOW_MS)
    api.now_ms = NOW_MS
    api.fill(sample)
    api.many(2)
    api.titles = dict.fromkeys(api.sessions, TITLE)
    for view, silent_min in zip(api.sessions.values(), (600, 5), strict=True):
        view["last_ms"] = view["first_ms"] = NOW_MS - silent_min * 60_000
    await page.goto(page_url)
    await expect(page.locator(".row[data-divides] .row-title")).to_be_visible()
    covered = await page.locator(".row[data-divides]").evaluate(
        """(row) => {
          const label = getComputedStyle(row, "::before");
          const { top, left } = row.getBoundingClientRect();
          const y = top + row.clientTop + parseFloat(label.top), x = left + parseFloat(label.left);
          const right = x + parseFloat(label.width), bottom = y + parseFloat(label.height);
          const isUnder = (box) =>
            box.width && box.right > x && box.left < right && box.bottom > y && box.top < bottom;
          return [row.previousElementSibling, row]
            .flatMap((each) => [...each.querySelectorAll("div > *, .more")])
            .filter((each) => isUnder(each.getBoundingClientRect()))
            .map((each) => each.textContent);
        }"""
    )
    assert covered == []


@pytest.mark.extended
async def test_titles_are_searched_where_they_are_shown(
    page: Page, page_url: str, sampled: Api
) -> None:
    sampled.many(3)
    await page.goto(page_url)
    search = page.get_by_role("searchbox")
    await expect(search).to_have_attribute("placeholder", "Search id, folder, model…")
    name = list(sampled.sessions)[1]
    sampled.titles = {name: TITLE}
    await page.reload()
    await expect(search).to_have_attribute("placeholder", "Search title, id, folder…")
    await search.fill("the new API")
    rows = page.locator(".rows .row:visible")
    await expect(rows).to_have_count(1)
    await expect(rows).to_have_attribute("data-id", name)


async def test_a_name_that_reverses_what_follows_is_shown_with_its_characters_escaped(
    page: Page, page_url: str, sampled: Api
) -> None:
    sampled.many(3)
    name = list(sampled.sessions)[1]
    sampled.sessions[name]["identity"]["cwd"] = "/srv/\u202egnp.exe"
    sampled.titles = {name: "Read \u2066this\u2069 \u05e9\u05dc\u05d5\u05dd"}
    await page.goto(page_url)
    row = page.locator(".rows .row:visible").nth(1)
    await expect(row.locator(".row-title")).to_have_text(
        "Read \\u2066this\\u2069 \u05e9\u05dc\u05d5\u05dd"
    )
    await row.locator(".row-link").click()
    await expect(page.locator("h1")).to_be_visible()
    await expect(page.locator("body")).to_contain_text("\\u202egnp.exe", use_inner_text=True)
    shown = await page.evaluate("document.title + document.body.innerText")
    assert not set(shown) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
