"""Analytics: the figures are those of the aggregates, and trouble is named."""

import re
from typing import Any

import pytest
from playwright.async_api import Page, expect

from schemas.views import bucket
from streams.serve.api.totals import added_up
from tests.page.pretend import Api
from tests.page.shown import NOW_MS

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.extended
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
    await expect(tile.filter(has_text="attempts")).to_contain_text(
        f"{failed} of {ended} attempts · {blocked} blocked · {unknown} unknown outcome"
    )
    heads = page.locator(".card h2")
    assert await heads.all_inner_texts() == [
        "Compactions per hour", "Size before compaction", "Duration",
        "What remains after compaction", "Manual and automatic", "Thrash", "Stalled compactions",
        "By model",
    ]  # fmt: skip
    table = page.locator(".card", has_text="Size before compaction").locator("details")
    await table.locator("summary").click()
    await expect(table.locator("tbody tr").first).to_be_visible()
    counts = await table.locator("tbody td").all_inner_texts()
    assert sum(int(count) for count in counts) == total["pre_tokens"]["count"]


@pytest.mark.extended
@pytest.mark.parametrize(
    "reading", [None, {"files": 0, "read_files": 0, "bytes": 0, "read_bytes": 0}]
)
async def test_without_sessions_there_are_no_compactions_yet(
    page: Page, page_url: str, api: Api, reading: dict[str, int] | None
) -> None:
    api.reading = reading
    api.stats = added_up([], "hour")
    await page.goto(f"{page_url}#/analytics?range=7d")
    await expect(page.get_by_role("heading", name="No compactions yet")).to_be_visible()
    await expect(page.locator(".note")).to_contain_text("No session so far")


async def test_an_error_of_the_page_itself_is_named_as_such(
    page: Page, page_url: str, api: Api
) -> None:
    api.stats = {}  # figures of another shape
    await page.goto(f"{page_url}#/analytics")
    await expect(page.get_by_role("heading", name="This page failed")).to_be_visible()
    await expect(page.locator(".note")).to_contain_text("an error in contextgauge itself")
    await expect(page.locator(".note")).not_to_contain_text("doctor")


@pytest.mark.extended
async def test_averages_and_percentiles_are_one_figure_each(
    page: Page, page_url: str, filled: Api
) -> None:
    total = filled.stats["total"]
    total["pre_tokens"].update(count=9, mean=151_234, p50=166_900, p95=171_000)
    total["duration_ms"].update(count=2, mean=71_400, p50=70_100, p95=88_000, p99=88_000)
    total["pre_tokens"]["exact"] = [95, 99]
    await page.goto(f"{page_url}#/analytics")
    tiles = page.locator(".tiles > div")
    size = tiles.filter(has_text=re.compile("^Size before"))
    await expect(size.locator(".tile-figure")).to_have_text("151K")
    await expect(size).to_contain_text("on average · median ~167K · p95 171K")
    took = tiles.filter(has_text="Duration")
    await expect(took.locator(".tile-figure")).to_have_text("1 min 11 s")
    await expect(took).to_contain_text(
        "on average · median 1 min 10 s · p95 1 min 28 s · p99 1 min 28 s · known for 2"
    )
    card = page.locator(".card", has=page.get_by_role("heading", name="Size before compaction"))
    await expect(card).to_contain_text("average 151K · median ~167K · p95 171K")


@pytest.mark.extended
async def test_messages_between_compactions_and_saved_tokens_are_shown(
    page: Page, page_url: str, filled: Api
) -> None:
    total = filled.stats["total"]
    count = _succeeded(total)
    total.update(
        messages=3 * count - 1,
        measured=3,
        measured_before_tokens=400_000,
        saved_tokens=300_000,
    )
    await page.goto(f"{page_url}#/analytics")
    tiles = page.locator(".tiles > div")
    await expect(tiles.filter(has_text="Messages between compactions")).to_contain_text(
        f"compactions{3 - 1 / count:.1f}"
    )
    saved = tiles.filter(has_text="Tokens saved")
    await expect(saved.locator(".tile-figure")).to_have_text("300K")
    await expect(saved).to_contain_text(
        "by 3 measured compactions · 25% of the size before remains"
    )


@pytest.mark.extended
async def test_bars_have_the_edges_of_the_servers_buckets(
    page: Page, page_url: str, filled: Api
) -> None:
    assert filled.sessions
    values = [0, 7, 49, 50, 900, 30_000, 161_803, 167_000, 1_234_567, 98_765_432_100]
    await page.goto(page_url)
    bars = await page.evaluate(
        """async (buckets) => {
          const stats = await import(document.querySelector('link[href$="/stats.js"]').href);
          return stats.barsOf({ buckets }, 10_000).filter(({ count }) => count > 0);
        }""",
        {bucket(value): 1 for value in values},
    )
    assert [str(bar["upTo"]) for bar in bars] == [bucket(value) for value in values]
    assert all(
        bar["above"] < value <= bar["upTo"] for bar, value in zip(bars[1:], values[1:], strict=True)
    )


@pytest.mark.extended
async def test_manual_compactions_are_compared_with_automatic_ones(
    page: Page, page_url: str, filled: Api
) -> None:
    total = filled.stats["total"]
    for name, took, size in (("manual", 25_000, 60_000), ("automatic", 31_000, 167_000)):
        total[name]["succeeded"] = 4
        total[name]["duration_ms"].update(count=3, mean=took, p50=took, p95=took, max=took)
        total[name]["pre_tokens"].update(count=2, mean=size, p50=size, p95=size)
    await page.goto(f"{page_url}#/analytics")
    card = page.locator(".card", has=page.get_by_role("heading", name="Manual and automatic"))
    await expect(card).to_contain_text(
        "Manual compactions are faster: 25.0 s on average, automatic ones 31.0 s."
    )
    rows = card.locator("tbody tr")
    await expect(rows.nth(0)).to_contain_text("Automatic")
    cells = await rows.nth(1).locator("td").all_inner_texts()
    assert cells == [
        "4", "60K", "60K", "60K", "25.0 s · of 3 known", "25.0 s", "25.0 s", "25.0 s"
    ]  # fmt: skip


@pytest.mark.extended
async def test_durations_are_compared_only_from_three_known_ones_of_each(
    page: Page, page_url: str, filled: Api
) -> None:
    total = filled.stats["total"]
    for name, took, known in (("manual", 111_000, 1), ("automatic", 65_000, 3)):
        total[name]["succeeded"] = 4
        total[name]["duration_ms"].update(count=known, mean=took, p50=took, p95=took, max=took)
    await page.goto(f"{page_url}#/analytics")
    card = page.locator(".card", has=page.get_by_role("heading", name="Manual and automatic"))
    cell = card.locator("tbody tr").nth(1).locator("td").nth(4)
    await expect(cell).to_have_text("1 min 51 s · of 1 known")
    await expect(card).not_to_contain_text("slower")
    model = page.locator("table.models tbody tr").first.locator("td").nth(3)
    await expect(model).to_contain_text(re.compile(r"of \d+ known"))


async def test_compactions_that_are_not_in_the_chart_are_accounted_for(
    page: Page, page_url: str, filled: Api
) -> None:
    by, total = filled.stats["by"], filled.stats["total"]
    untimed = sum(
        by["unknown"][name]["succeeded"] for name in ("manual", "automatic", "unknown_trigger")
    )
    assert untimed > 0
    timed = _succeeded(total) - untimed
    await page.goto(f"{page_url}#/analytics")
    card = page.locator(".card", has=page.get_by_role("heading", name="Compactions per hour"))
    await expect(card).to_contain_text(
        f"{timed} of {timed + untimed} compactions are in this chart · "
        f"{untimed} {'has' if untimed == 1 else 'have'} no time"
    )
    await expect(page.locator(".tiles > div").first).to_contain_text(str(timed + untimed))


def _succeeded(aggregates: dict[str, Any]) -> int:
    kinds = ("manual", "automatic", "unknown_trigger")
    return sum(int(aggregates[kind]["succeeded"]) for kind in kinds)


@pytest.mark.extended
async def test_the_table_by_model_adds_up_is_sorted_and_fits(
    page: Page, page_url: str, filled: Api, sample: Any
) -> None:
    stats: Any = added_up([sample.stats], "model")
    filled.stats = stats
    await page.goto(f"{page_url}#/analytics")
    table = page.locator("table.models")
    await expect(table).to_be_visible()
    host = page.locator(".table-scroll", has=table)
    assert await host.evaluate("(e) => e.scrollWidth <= e.clientWidth")
    rows = table.locator("tbody tr")
    await expect(rows).to_have_count(len(stats["by"]))
    assert len(stats["by"]) > 1
    for row in await rows.all():
        aggregates = stats["by"][await row.locator("th").inner_text()]
        cells = await row.locator("td").all_inner_texts()
        assert cells[0].splitlines()[0] == str(_succeeded(aggregates))
        mean = aggregates["pre_tokens"]["mean"]
        assert cells[2].startswith(
            "unknown" if mean is None else f"{mean / 1_000:.3g}".split(".")[0]
        )
    names = sorted(stats["by"])
    head = table.get_by_role("columnheader", name="Model")
    await head.get_by_role("button").click()
    await expect(head).to_have_attribute("aria-sort", "ascending")
    assert await rows.locator("th").all_inner_texts() == names
    await head.get_by_role("button").click()
    assert await rows.locator("th").all_inner_texts() == names[::-1]
    await table.get_by_role("button", name="Compactions").click()
    counts = [_succeeded(stats["by"][name]) for name in await rows.locator("th").all_inner_texts()]
    assert counts == sorted(counts, reverse=True)


async def test_ticks_are_between_bars_and_edges_keep_their_figures(
    page: Page, page_url: str, filled: Api
) -> None:
    assert filled.sessions
    await page.goto(page_url)
    labels = await page.evaluate(
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
    assert labels["ticks"] == [-0.5, 0.5, 1.5, 2.5]
    assert labels["all"] == ["10%", "20%", "30%", None]
    assert labels["some"] == ["10%", None, "30%"]
    assert labels["tokens"] == ["950", "1.25K", "3.15K", "125K", "1M", "1.25M"]
    assert labels["times"] == ["125 ms", "1.25 s", "1.6 s", "31.5 s", "2 min 40 s", "10 min 30 s"]


@pytest.mark.extended
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
    await expect(page.locator(".tiles > div").first).to_contain_text("Compactions")


async def test_thrash_and_stalled_compactions_are_named(
    page: Page, page_url: str, filled: Api
) -> None:
    thrashing, stalled, *_ = filled.sessions.values()
    brief = {
        "record_id": "r", "chain": "main", "number": 1, "outcome": "succeeded", "trigger": "auto",
        "error": None, "tokens_before": 100_000, "tokens_after": 90_000, "tokens_saved": 10_000,
        "duration_ms": 9_000, "duration_source": None, "messages_since_last": 4,
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
    await expect(thrash).to_contain_text("the window fills again at once.")
    quiet = page.locator(".card", has=page.get_by_role("heading", name="Stalled"))
    await expect(quiet).to_contain_text("silent for 1 h")
    await expect(quiet).to_contain_text("Open compactions with no heartbeat for 2 min or more.")


async def test_one_value_is_no_distribution_and_a_background_duration_is_no_missing_report(
    page: Page, page_url: str, filled: Api
) -> None:
    total = filled.stats["total"]
    total["pre_tokens"] = {**total["pre_tokens"], "count": 1}
    total["duration_ms"] = {**total["duration_ms"], "count": 0, "mean": None}
    await page.goto(f"{page_url}#/analytics")
    tiles = page.locator(".tiles > div")
    size = tiles.filter(has_text=re.compile("^Size before"))
    await expect(size).to_contain_text("the only one")
    await expect(size).not_to_contain_text("median")
    took = tiles.filter(has_text=re.compile("^Duration"))
    await expect(took).to_contain_text("none is known of what was waited for")
    await expect(page.locator(".page-head")).to_contain_text("All sessions, at any time")
