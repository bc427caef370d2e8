"""Analytics: the figures are those of the aggregates, and trouble is named."""

import re
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from streams.serve.api.totals import added_up
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


async def test_figures_match_the_aggregates(page: Page, page_url: str, filled: Api) -> None:
    total = filled.stats["total"]
    kinds = ("manual", "automatic", "unknown_trigger")
    succeeded = sum(total[kind]["succeeded"] for kind in kinds)
    total["manual"].update(failed=3, blocked=1)
    total["unknown_trigger"]["unknown"] = 2
    failed, blocked, unknown = (
        sum(total[kind][name] for kind in kinds) for name in ("failed", "blocked", "unknown")
    )
    ended = succeeded + failed + blocked + unknown
    await page.goto(f"{page_url}#/analytics")
    tile = page.locator(".tiles > div")
    await expect(tile.nth(0)).to_contain_text(f"Compactions{succeeded}")
    await expect(tile.nth(5)).to_contain_text(
        f"{failed} of {ended} attempts · {blocked} blocked · {unknown} unknown outcome"
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


def _told(found: dict[str, int], unit: int, sign: str) -> str:
    """Return a range as the page tells it, where its edges have three figures at most."""
    low, high = (f"{found[name] / unit:.3g} {sign}".replace(" K", "K") for name in found)
    return low if low == high else f"{low} \N{EN DASH} {high}"


async def test_range_edges_are_not_shown_as_measured_figures(
    page: Page, page_url: str, filled: Api
) -> None:
    total = filled.stats["total"]
    total["pre_tokens"]["p50"] = {"at_least": 160_000, "at_most": 200_000}
    total["duration_ms"].update(
        p50={"at_least": 63_000, "at_most": 80_000}, p95={"at_least": 88_000, "at_most": 88_000}
    )
    await page.goto(f"{page_url}#/analytics")
    tile = page.locator(".tiles > div").nth(3)
    await expect(tile.locator(".tile-figure")).to_have_text("63 s \N{EN DASH} 80 s")
    await expect(tile).to_contain_text("median · p95 88 s · p99")
    await expect(page.locator("main")).to_contain_text("are counted by range")
    card = page.locator(".card", has=page.get_by_role("heading", name="Size before compaction"))
    await expect(card).to_contain_text("median 160K \N{EN DASH} 200K · p95 ")
    card = page.locator(".card", has=page.get_by_role("heading", name="Duration"))
    await card.locator("summary").click()
    assert await card.locator("thead th").first.inner_text() == "Above \N{EN DASH} up to"
    words = await card.locator("tbody th").all_inner_texts()
    for each in words:
        low, high = each.split(" \N{EN DASH} ")
        assert low != high


async def test_a_models_figures_add_up_and_are_ranges(
    page: Page, page_url: str, filled: Api, sample: Any
) -> None:
    stats: Any = added_up([sample.stats], "model")
    filled.stats = stats
    await page.goto(f"{page_url}#/analytics")
    table = page.locator("table.figures")
    await expect(table).to_be_visible()
    heads = await table.locator("thead th").all_inner_texts()
    assert len(stats["by"]) > 1
    await expect(table.locator("tbody tr")).to_have_count(len(stats["by"]))
    unknown = 0
    for row in await table.locator("tbody tr").all():
        name = await row.locator("th").inner_text()
        cells = dict(zip(heads[1:], await row.locator("td").all_inner_texts(), strict=True))
        counts = [int(cells[head]) for head in ("Automatic", "Manual", "Unknown trigger")]
        assert sum(counts) == int(cells["Compactions"]), name
        unknown += counts[2]
        known = stats["by"][name]["pre_tokens"]["p50"]
        told = "unknown" if known is None else _told(known, 1_000, "K")
        assert cells["Before, median"] == told, name
    assert unknown == stats["total"]["unknown_trigger"]["succeeded"] > 0


async def test_ticks_are_between_bars_and_edges_keep_their_figures(
    page: Page, page_url: str, filled: Api
) -> None:
    assert filled.sessions
    await page.goto(page_url)
    found = await page.evaluate(
        """async () => {
          const link = document.querySelector('link[href$="/stats.js"]').href;
          const stats = await import(link);
          const share = (value) => `${value}%`;
          const bars = [[10, 20], [20, 30], [30, null]].map(([above, upTo]) => ({ above, upTo }));
          const ticks = stats.edgeTicks(bars);
          return {
            ticks,
            all: stats.edgeWords(bars, ticks, 1, share),
            some: stats.edgeWords(bars.slice(0, 2), ticks.slice(0, 3), 2, share),
            tokens: [950, 1_250, 3_150, 125_000, 999_900, 1_250_000].map(stats.tokensEdge),
            times: [125, 1_250, 1_600, 31_500, 160_000, 630_000].map(stats.durationEdge),
          };
        }"""
    )
    # The bar of 10 to 20 % stands at 0, between its edges.
    assert found["ticks"] == [-0.5, 0.5, 1.5, 2.5]
    assert found["all"] == ["10%", "20%", "30%", None]
    assert found["some"] == ["10%", None, "30%"]
    assert found["tokens"] == ["950", "1.25K", "3.15K", "125K", "1M", "1.25M"]
    assert found["times"] == ["0.125 s", "1.25 s", "1.6 s", "31.5 s", "160 s", "10 min 30 s"]


async def test_a_future_hour_hides_no_past_hour(page: Page, page_url: str, filled: Api) -> None:
    hour, told = next(
        (hour, told) for hour, told in filled.stats["by"].items() if told["automatic"]["succeeded"]
    )
    filled.stats["by"] = {hour: told, "2099-01-01T00": told}
    await page.goto(f"{page_url}#/analytics")
    card = page.locator(".card", has=page.get_by_role("heading", name="Compactions per hour"))
    await card.locator("summary").click()
    await expect(card.locator("tbody tr")).to_have_count(1)
    await expect(card.locator("tbody tr")).not_to_contain_text("2099")
    # With its day and where it ends, though it is today's.
    words = await card.locator("tbody th").inner_text()
    assert re.fullmatch("[0-9]{1,2} [A-Z][a-z]+ 2026, [0-9:]{5} \N{EN DASH} [0-9:]{5}", words)


async def test_figures_of_two_generations_are_never_mixed(
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
