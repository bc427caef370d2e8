"""Analytics: the figures are those of the aggregates, and trouble is named."""

from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from streams.serve.totals import added_up
from tests.page.pretend import Api, folded, records_of, sample_lines

pytestmark = pytest.mark.asyncio(loop_scope="session")

NOW_MS = 1_790_000_000_000


@pytest.fixture(scope="module")
def sample() -> Any:
    """The simulator's sample as the projection leaves it."""
    return folded(records_of(sample_lines(NOW_MS)))


@pytest_asyncio.fixture(loop_scope="session")
async def filled(page: Page, api: Api, sample: Any) -> Api:
    """An API that tells of the sample, an hour after it."""
    await page.clock.install(time=NOW_MS / 1_000 + 3_600)
    api.fill(sample)
    api.stats = added_up([sample.stats], "hour")
    return api


async def test_figures_are_those_of_the_aggregates(page: Page, page_url: str, filled: Api) -> None:
    total = filled.stats["total"]
    kinds = ("manual", "automatic", "untold")
    succeeded = sum(total[kind]["succeeded"] for kind in kinds)
    total["manual"].update(failed=3, blocked=1)
    total["untold"]["unknown"] = 2
    failed, blocked, unknown = (
        sum(total[kind][name] for kind in kinds) for name in ("failed", "blocked", "unknown")
    )
    ended = succeeded + failed + blocked + unknown
    await page.goto(f"{page_url}#/analytics")
    tile = page.locator(".tiles > div")
    await expect(tile.nth(0)).to_contain_text(f"Compactions{succeeded}")
    await expect(tile.nth(5)).to_contain_text(
        f"{failed} of {ended} attempts · {blocked} blocked · {unknown} not told"
    )
    heads = page.locator(".card h2")
    assert await heads.all_inner_texts() == [
        "Compactions per hour", "Size before compaction", "Duration",
        "What remains after compaction", "Thrash", "Stalled compactions", "By model",
    ]  # fmt: skip
    table = page.locator(".card", has_text="Size before compaction").locator("details")
    await table.locator("summary").click()
    await expect(table.locator("tbody tr").first).to_be_visible()
    counts = await table.locator("tbody td").all_inner_texts()
    assert sum(int(count) for count in counts) == total["pre_tokens"]["count"]


async def test_an_hour_to_come_hides_none_that_was(page: Page, page_url: str, filled: Api) -> None:
    hour, told = next(
        (hour, told) for hour, told in filled.stats["by"].items() if told["automatic"]["succeeded"]
    )
    filled.stats["by"] = {hour: told, "2099-01-01T00": told}
    await page.goto(f"{page_url}#/analytics")
    card = page.locator(".card", has=page.get_by_role("heading", name="Compactions per hour"))
    await card.locator("summary").click()
    await expect(card.locator("tbody tr")).to_have_count(1)
    await expect(card.locator("tbody tr")).not_to_contain_text("2099")


async def test_figures_of_two_generations_are_never_side_by_side(
    page: Page, page_url: str, filled: Api
) -> None:
    api = filled
    api.stats["generation"] = 2  # the sessions' answers are of 1 still
    await page.goto(f"{page_url}#/analytics")
    for _ in range(100):
        if sum(path.startswith("/v1/stats") for path in api.asked) >= 4:
            break  # asked again
        await page.wait_for_timeout(50)
    await expect(page.locator(".tiles")).to_have_count(0)
    api.generation = 2
    await page.clock.run_for(1_000)
    await expect(page.locator(".tiles > div").first).to_contain_text("Compactions")


async def test_thrash_and_stalled_compactions_are_named(
    page: Page, page_url: str, filled: Api
) -> None:
    thrashing, stalled, *_ = filled.sessions.values()
    brief = {
        "record_id": "r", "chain": "main", "number": 1, "outcome": "succeeded", "trigger": "auto",
        "error": None, "tokens_before": 100_000, "tokens_after": 90_000, "tokens_saved": 10_000,
        "duration_ms": 9_000, "messages_since_last": 4,
    }  # fmt: skip
    thrashing["compactions"]["last"] = [
        {**brief, "time_ms": NOW_MS + minute * 60_000} for minute in (0, 2, 5)
    ]
    stalled["attempt"] = {
        "attempt_id": "a", "chain": "main", "trigger_reason": None, "started_ms": NOW_MS,
        "last_heartbeat_ms": None, "elapsed_ms": None, "used_tokens": None, "used_percent": None,
    }  # fmt: skip
    await page.goto(f"{page_url}#/analytics")
    thrash = page.locator(".card", has=page.get_by_role("heading", name="Thrash"))
    await expect(thrash.locator("a")).to_have_attribute(
        "href", f"#/session/{thrashing['session_id']}"
    )
    await expect(thrash).to_contain_text("3 compactions within 5 min")
    quiet = page.locator(".card", has=page.get_by_role("heading", name="Stalled"))
    await expect(quiet).to_contain_text("silent for 1 h")


async def test_the_range_is_in_the_address(page: Page, page_url: str, filled: Api) -> None:
    assert filled.sessions
    await page.goto(f"{page_url}#/analytics")
    await page.get_by_role("button", name="7 days").click()
    await expect(page).to_have_url(f"{page_url}#/analytics?range=7d")
    await page.reload()
    await expect(page.get_by_role("button", name="7 days")).to_have_attribute(
        "aria-pressed", "true"
    )
