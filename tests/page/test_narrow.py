"""On a phone nothing is wider than the screen, in any state; a table that scrolls says so."""

from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from streams.serve.api.doc_pages import of_api
from streams.serve.api.totals import added_up
from tests.page.conftest import NARROW, open_live, stop_clock
from tests.page.pretend import Api
from tests.page.shown import NOW_MS
from tests.serve.kit import GrowingViews, api_over

pytestmark = pytest.mark.asyncio(loop_scope="session")

LONG = "an-uninterrupted-name-" * 12
ID = "0" * 300

TOO_WIDE = """
(width) => [...document.querySelectorAll("body *")]
  .filter((each) => each.getBoundingClientRect().right > width + 0.5)
  .filter((each) => {
    // What a box of its own scrolls or cuts off is not in the way.
    for (let host = each.parentElement; host !== document.body; host = host.parentElement) {
      if (getComputedStyle(host).overflowX !== "visible") return false;
    }
    return each.checkVisibility() && getComputedStyle(each).clipPath === "none";
  })
  .map((each) => `${each.tagName} ${each.className} ${each.id}`)
"""


@pytest_asyncio.fixture(loop_scope="session")
async def long(page: Page, api: Api, sample: Any) -> Api:
    """An API whose names are all as long as they may be, asked by a phone."""
    await page.set_viewport_size(NARROW)
    await stop_clock(page, NOW_MS)
    api.fill(sample)
    name = max(api.sessions, key=lambda each: len(api.compactions.get(each, [])))
    view = api.sessions[name]
    view["session_id"] = ID
    view["identity"].update(cwd=f"/srv/{LONG}", publisher_agent_id=LONG, task_id=LONG)
    view["chains"]["main"]["model"] = LONG
    api.sessions[ID] = api.sessions.pop(name)
    api.records[ID], api.compactions[ID] = api.records[name], api.compactions[name]
    api.titles = {ID: LONG}
    for each in api.compactions[ID]:
        each["summary"] = LONG
    stats: Any = added_up([sample.stats], "model")
    stats["by"][LONG] = next(iter(stats["by"].values()))
    api.stats = stats
    return api


async def fits(page: Page, state: str) -> None:
    """Fail if anything is wider than the screen."""
    assert await page.evaluate(TOO_WIDE, NARROW["width"]) == [], state
    assert await page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"], state


@pytest.mark.extended
@pytest.mark.usefixtures("hasty")
async def test_the_list_fits_in_every_state(page: Page, page_url: str, long: Api) -> None:
    long.reading = {"files": 10_024, "read_files": 5_000, "bytes": 2_000, "read_bytes": 1_000}
    long.stale_ms = 95_000
    await open_live(page, page_url)
    await expect(page.locator(".rows .row:visible").first).to_be_visible()
    await expect(page.locator(".reading")).to_be_visible()
    await expect(page.locator(".notice.warn")).to_be_visible()
    await fits(page, "live, reading and behind")
    await page.get_by_label("Model").select_option(LONG)
    await page.locator(".row-link").first.focus()
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("ArrowUp")
    await expect(page.get_by_role("tooltip")).to_be_visible()
    await fits(page, "a tooltip")
    await page.get_by_label("Model").select_option("")
    await page.keyboard.press("?")
    await fits(page, "the keys")
    await page.keyboard.press("Escape")
    long.problem = (503, f"Redis does not answer: {LONG}")
    await expect(page.locator(".live")).to_contain_text("standing still")
    await expect(page.locator(".notice.bad")).to_be_visible()
    await fits(page, "standing still")
    await page.evaluate("feedGone = true; cutFeed()")
    await expect(page.locator(".live")).to_contain_text("reconnecting")
    await fits(page, "reconnecting")
    await page.reload()
    await expect(page.get_by_role("heading", name="cannot be read now")).to_be_visible()
    await fits(page, "an error")
    long.problem, long.token = None, "of-this-test"
    await page.reload()
    await expect(page.get_by_role("dialog")).to_be_visible()
    await fits(page, "a token is needed")
    long.token, long.reading = None, None
    long.sessions.clear()
    await page.reload()
    await expect(page.get_by_role("heading", name="No sessions yet")).to_be_visible()
    await fits(page, "no sessions")


@pytest.mark.extended
async def test_a_session_fits_in_every_state(page: Page, page_url: str, long: Api) -> None:
    await page.goto(f"{page_url}#/session/{ID}")
    await expect(page.locator(".item.compaction").first).to_be_visible()
    await fits(page, "a session")
    for summary in await page.locator("summary:visible").all():
        await summary.click()
    await fits(page, "everything expanded")
    long.sessions |= {f"00{number}{ID}": long.sessions[ID] for number in range(2)}
    for name, view in long.sessions.items():
        long.sessions[name] = {**view, "session_id": name}
    await page.goto(f"{page_url}#/session/0")
    await expect(page.get_by_role("heading", name="Several sessions match")).to_be_visible()
    await fits(page, "several sessions")


@pytest.mark.extended
async def test_analytics_fits_and_its_tables_say_that_they_scroll(
    page: Page, page_url: str, long: Api
) -> None:
    thrash = {"time_ms": NOW_MS, "outcome": "succeeded", "chain": "main"}
    last = long.sessions[ID]["compactions"]["last"]
    long.sessions[ID]["compactions"]["last"] = [{**last[-1], **thrash} for _ in range(3)]
    await page.goto(f"{page_url}#/analytics")
    await expect(page.locator(".tiles")).to_be_visible()
    for summary in await page.locator("summary:visible").all():
        await summary.click()
    await fits(page, "analytics")
    by_model = page.locator(".card", has=page.locator("table.models"))
    words = by_model.get_by_text("This table scrolls sideways")
    await expect(words).to_be_visible()
    await page.goto(f"{page_url}#/figures")
    await expect(page.get_by_text("This table scrolls sideways.")).to_be_visible()
    await fits(page, "figures")
    await page.set_viewport_size({"width": 1440, "height": 900})
    await expect(page.get_by_text("This table scrolls")).to_be_hidden()


CUT = """
() => [...document.querySelectorAll(".rows .row")].flatMap((row) =>
  [".gauge-sizes", ".c-state .more", ".c-until .figure", ".c-count .figure"]
    .map((part) => row.querySelector(part))
    .filter((part) => part.checkVisibility() && part.clientWidth)
    .filter((part) => part.scrollWidth > part.clientWidth + 1
      || part.scrollHeight > row.clientHeight)
    .map((part) => part.textContent))
"""


@pytest.mark.extended
async def test_no_figure_of_the_list_is_cut_or_covered_at_any_width(
    page: Page, page_url: str, api: Api, sample: Any
) -> None:
    await stop_clock(page, NOW_MS)
    api.fill(sample)
    api.many(3)
    for view, percent in zip(api.sessions.values(), (99.0, 50.0, 85.0), strict=True):
        view["chains"]["main"].update(
            used_percent=percent, used_tokens=int(percent * 2_000), window=200_000,
            window_source="catalog", auto_compact_enabled=None, auto_compact_threshold=None,
        )  # fmt: skip
        view.update(last_ms=NOW_MS - 3_600_000, first_ms=NOW_MS - 7_200_000)
        view["compactions"] = {**view["compactions"], "last": []}
    await page.goto(page_url)
    await expect(page.locator(".rows .row:visible")).to_have_count(3)
    for width in (1440, 1400, 1240, 1100, 1000, 900, 730, 390, 320):
        await page.set_viewport_size({"width": width, "height": 900})
        await page.wait_for_timeout(50)
        assert await page.evaluate(CUT) == [], width
        assert await page.evaluate(TOO_WIDE, width) == [], width
        inside = "(e) => e.scrollWidth <= e.clientWidth"
        assert await page.locator(".segments").evaluate(inside), width


async def test_the_description_of_the_api_fits_a_phone(page: Page) -> None:
    serving = api_over(GrowingViews())
    document = await serving.json("/openapi.json")
    await page.set_viewport_size(NARROW)
    await page.set_content(of_api(document))
    assert await page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
