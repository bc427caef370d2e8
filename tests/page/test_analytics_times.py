"""Analytics over time: ranges, and what a bar stands for."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.async_api import Page, expect

from tests.page.conftest import DRAWN, stop_clock
from tests.page.pretend import Api
from tests.page.shown import NOW_MS

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.extended
async def test_a_future_hour_hides_no_past_hour(page: Page, page_url: str, filled: Api) -> None:
    hour, counts = next(
        (hour, counts)
        for hour, counts in filled.stats["by"].items()
        if counts["automatic"]["succeeded"]
    )
    filled.stats["by"] = {hour: counts, "2099-01-01T00": counts}
    await page.goto(f"{page_url}#/analytics")
    card = page.locator(".card", has=page.get_by_role("heading", name="Compactions per hour"))
    await card.locator("summary").click()
    await expect(card.locator("tbody tr")).to_have_count(1)
    await expect(card.locator("tbody tr")).not_to_contain_text("2099")
    # With its day and where it ends, though it is today's.
    words = await card.locator("tbody th").inner_text()
    assert re.fullmatch("[0-9]{1,2} [A-Z][a-z]+ 2026, [0-9:]{5} \N{EN DASH} [0-9:]{5}", words)


@pytest.mark.extended
async def test_the_range_is_in_the_address(page: Page, page_url: str, filled: Api) -> None:
    assert filled.sessions
    await page.goto(f"{page_url}#/analytics")
    await page.get_by_role("button", name="7 days").click()
    await expect(page).to_have_url(f"{page_url}#/analytics?range=7d")
    await page.reload()
    await expect(page.get_by_role("button", name="7 days")).to_have_attribute(
        "aria-pressed", "true"
    )


@pytest.mark.extended
@pytest.mark.parametrize(
    ("days", "name"), [(0, "24 hours"), (3, "7 days"), (20, "30 days"), (90, "All"), (900, "All")]
)
async def test_the_chart_begins_with_the_smallest_range_that_has_data(
    page: Page, page_url: str, filled: Api, days: int, name: str
) -> None:
    await stop_clock(page, NOW_MS + 3_600_000 + days * 86_400_000)
    assert filled.sessions
    await page.goto(f"{page_url}#/analytics")
    pressed = page.locator(".segments button[aria-pressed='true']")
    await expect(pressed).to_have_text([name])
    unit = {90: "day", 900: "month"}.get(days, "hour")
    await expect(page.get_by_role("heading", name=f"Compactions per {unit}")).to_be_visible()
    await expect(page.get_by_text("No compaction in this time.")).to_be_hidden()
    await page.get_by_role("button", name="24 hours").click()
    await expect(page).to_have_url(f"{page_url}#/analytics?range=24h")
    await page.reload()
    await expect(pressed).to_have_text(["24 hours"])


@pytest.mark.extended
async def test_the_range_of_all_times_counts_each_compaction_with_a_time(
    page: Page, page_url: str, filled: Api
) -> None:
    counts = next(
        counts for counts in filled.stats["by"].values() if counts["automatic"]["succeeded"]
    )
    one = sum(counts[kind]["succeeded"] for kind in ("manual", "automatic", "unknown_trigger"))
    filled.stats["by"] = dict.fromkeys(["2024-02-29T23", "2024-03-01T12", "2026-09-21T09"], counts)
    filled.stats["by"]["unknown"] = counts
    await page.goto(f"{page_url}#/analytics?range=all")
    card = page.locator(".card", has=page.get_by_role("heading", name="Compactions per month"))
    await card.locator("summary").click()
    rows = card.locator("tbody tr")
    await expect(rows.locator("th").first).to_have_text(re.compile("Sept? 2026"))
    cells = await rows.locator("td").all_inner_texts()
    assert sum(map(int, cells)) == 3 * one
    asked = [path for path in filled.asked if "by=hour" in path]
    assert asked
    assert not [path for path in asked if "since" in path]
    await page.get_by_role("button", name="24 hours").click()
    await expect(page.get_by_role("heading", name="Compactions per hour")).to_be_visible()
    await page.get_by_role("button", name="All", exact=True).click()
    await expect(page).to_have_url(f"{page_url}#/analytics?range=all")
    await expect(card).to_be_visible()


async def test_the_bar_of_an_hour_spans_that_hour(
    page: Page, page_url: str, filled: Api, charts: str
) -> None:
    assert charts
    counts = next(
        counts for counts in filled.stats["by"].values() if counts["automatic"]["succeeded"]
    )
    hour = datetime.fromtimestamp(NOW_MS / 1_000, UTC).replace(minute=0, second=0)
    filled.stats["by"] = {hour.strftime("%Y-%m-%dT%H"): counts}
    await stop_clock(page, (hour + timedelta(hours=2, minutes=20)).timestamp() * 1_000)
    await page.add_init_script(DRAWN)
    await page.goto(f"{page_url}#/analytics")
    await expect(page.locator(".chart-place canvas").first).to_be_visible()
    labels, (start, end), shown = await page.evaluate(
        """(at) => [
          drawn.words.filter(([words]) => /^\\d\\d:00$/.test(words))
            .map(([words, x]) => [x, Number(words.slice(0, 2))]),
          drawn.bars[0],
          new Date(at).getHours() + new Date(at).getMinutes() / 60,
        ]""",
        hour.timestamp() * 1_000,
    )
    (x0, h0), (x1, h1) = sorted({tuple(label) for label in labels})[-2:]
    width = (x1 - x0) / ((h1 - h0) % 24)
    place = x1 - (h1 - shown) % 24 * width
    assert start == pytest.approx(place, abs=width / 8)
    assert end == pytest.approx(place + width, abs=width / 8)
