"""The overview: figures in place, nothing made anew, and what is not known said so."""

from typing import Any

import pytest
from playwright.async_api import Page, expect

from streams.core.until_compaction import CompactionPoints
from tests.page.conftest import NARROW, open_live, stop_clock
from tests.page.pretend import Api, entry
from tests.page.shown import NOW_MS

pytestmark = pytest.mark.asyncio(loop_scope="session")


WATCH = """
() => {
  window.made = [];
  window.gone = new Set();
  new MutationObserver((changes) => {
    for (const change of changes) {
      for (const node of change.removedNodes) window.gone.add(node);
      for (const node of change.addedNodes) {
        // A row that only moved was taken out in the same breath.
        if (!window.gone.delete(node)) window.made.push(node.nodeName);
      }
    }
  }).observe(document.querySelector(".sessions"), { childList: true, subtree: true });
}
"""


DRAWN_TO_THE_END = """
() => new Promise((resolve) => {
  // Rows are drawn with the next frame, as many as fit below what stands there by then.
  dispatchEvent(new Event("resize"));
  requestAnimationFrame(() => requestAnimationFrame(resolve));
})
"""


@pytest.mark.extended
async def test_unknown_sizes_are_labelled_and_have_no_bar(
    page: Page, page_url: str, sampled: Api
) -> None:
    for view in sampled.sessions.values():
        view["attempt"] = None
        chain = view["chains"].get("main")
        if chain:
            chain.update(state="unknown", used_tokens=None, used_percent=None, breakdown=None)
            chain.update(until_compaction_tokens=None, pending={"boundary_id": "b", "number": 1})
    await page.goto(page_url)
    row = page.locator(".rows .row:visible").first
    await expect(row.locator(".gauge-share")).to_have_text("unknown")
    await expect(row.locator(".gauge")).to_have_attribute("data-severity", "unknown")
    await expect(row.locator(".state")).to_contain_text("unknown since compaction")
    assert "0%" not in await page.locator(".rows").inner_text()


async def test_a_size_unknown_since_a_clear_is_not_attributed_to_a_compaction(
    page: Page, page_url: str, sampled: Api
) -> None:
    unknown = {"used_tokens": None, "used_percent": None, "breakdown": None, "as_of_ms": NOW_MS}
    compacted, cleared = [
        view
        for view in sampled.sessions.values()
        if [each["outcome"] for each in view["compactions"]["last"][-1:]] == ["succeeded"]
        and view["attempt"] is None
    ][:2]
    for view in (compacted, cleared):
        view["chains"]["main"].update(state="unknown", pending=None, **unknown)
    compacted["compactions"]["last"][-1].update(time_ms=NOW_MS, chain="main")
    cleared["compactions"]["last"][-1].update(time_ms=NOW_MS - 60_000, chain="main")
    await page.goto(page_url)
    state = page.locator(f".row[data-id='{compacted['session_id']}'] .state")
    await expect(state).to_have_text("unknown since compaction")
    state = page.locator(f".row[data-id='{cleared['session_id']}'] .state")
    await expect(state).to_have_text("unknown since cleared")


@pytest.mark.extended
async def test_an_attempt_with_an_unknown_outcome_is_not_shown_as_failed(
    page: Page, page_url: str, sampled: Api
) -> None:
    sampled.many(2)
    for view, outcome in zip(sampled.sessions.values(), ("failed", "unknown"), strict=True):
        brief = {
            "record_id": "r", "chain": "main", "number": None, "outcome": outcome, "error": None,
            "trigger": None, "tokens_before": None, "tokens_after": None, "tokens_saved": None,
            "time_ms": None, "duration_ms": None, "duration_source": None,
            "messages_since_last": None,
        }  # fmt: skip
        view["compactions"] = {**view["compactions"], "failed": 1, "last": [brief]}
    await page.goto(page_url)
    rows = page.locator(".rows .row:visible")
    await expect(rows.nth(1).locator(".c-count .bad")).to_contain_text("1 failed")
    await expect(rows.nth(0).locator(".c-count .bad")).to_contain_text("1 not completed")


async def test_a_session_stops_thrashing_when_the_time_window_ends(
    page: Page, page_url: str, sampled: Api
) -> None:
    sampled.many(2)
    await stop_clock(page, NOW_MS)
    for view, ago_min in zip(sampled.sessions.values(), (10, 12), strict=True):
        brief = {
            "record_id": "r", "chain": "main", "number": 1, "outcome": "succeeded", "error": None,
            "trigger": "auto", "tokens_before": None, "tokens_after": None, "tokens_saved": None,
            "duration_ms": None, "duration_source": None, "messages_since_last": 4,
        }  # fmt: skip
        last = [{**brief, "time_ms": NOW_MS - (ago_min + more) * 60_000} for more in (4, 2, 0)]
        view["compactions"] = {**view["compactions"], "last": last}
    await page.goto(page_url)
    badges = page.locator(".rows .row:visible").get_by_text("thrash")
    await expect(badges).to_have_count(2)
    await expect(badges.nth(1)).to_be_visible()
    await expect(badges.nth(0)).to_be_hidden()


async def test_unreported_parts_are_shown_as_unknown_and_not_0(
    page: Page, page_url: str, sampled: Api
) -> None:
    view = sampled.one()
    view["chains"]["main"]["breakdown"] = {
        "input_tokens": None, "cache_creation_tokens": None, "cache_read_tokens": None,
    }  # fmt: skip
    await page.goto(page_url)
    await page.locator(".rows .row:visible .c-context").hover()
    tip = page.get_by_text("Context window:")
    await expect(tip).to_have_text("Context window: unknown input + unknown cache tokens")


@pytest.mark.extended
@pytest.mark.parametrize("show", ["high", "compacting"])
async def test_a_known_session_appears_once_it_matches_the_filter(
    page: Page, page_url: str, sampled: Api, show: str
) -> None:
    sampled.many(3)
    _, view, there = sampled.sessions.values()  # of 0, 33 and 66 %
    attempt = {
        "attempt_id": "a", "chain": "main", "trigger_reason": None, "started_ms": NOW_MS,
        "last_heartbeat_ms": None, "elapsed_ms": None, "used_tokens": None, "used_percent": None,
    }  # fmt: skip
    there["chains"]["main"]["used_percent"] = 95.0
    there["attempt"] = attempt
    rows = page.locator(".rows .row:visible")
    await page.goto(page_url)
    await expect(rows).to_have_count(3)
    await page.get_by_role("button", name="80%" if show == "high" else "Compacting").click()
    await expect(rows).to_have_count(1)
    view["sequence"] = 2
    if show == "high":
        view["chains"]["main"]["used_percent"] = 90.0
        row = entry(view, 90.0, 2)
    else:
        view["attempt"] = attempt
        row = {**entry(view, 33.0, 2), "kind": "compaction_start", "state": "compacting"}
    await page.evaluate("(e) => pushEntries([e])", row)
    await expect(rows).to_have_count(2)


@pytest.mark.extended
@pytest.mark.parametrize("name", [".", "..", "a/b?c#d", "\0", "\u0436" * 1_500, "half \ud800"])
async def test_a_session_of_any_id_has_a_page(
    page: Page, page_url: str, sampled: Api, name: str
) -> None:
    view = sampled.one()
    view["session_id"] = name
    sampled.sessions = {name: view}
    await page.goto(page_url)
    link = page.locator(".rows .row:visible .row-link")
    view["sequence"] = 2
    view["chains"]["main"]["used_percent"] = 77.0
    await page.evaluate("(e) => pushEntries([e])", entry(view, 77.0, 2))
    await expect(page.locator(".rows .row:visible .gauge-share")).to_have_text("77%")
    await link.click()
    await expect(page.locator(".hero .gauge-share")).to_have_text("77%")
    await page.reload()
    await expect(page.locator(".hero .gauge-share")).to_have_text("77%")


async def test_an_id_of_dots_that_is_entered_opens_its_session(
    page: Page, page_url: str, sampled: Api
) -> None:
    sampled.many(2)
    first, second = sampled.sessions.values()
    for view, name in ((first, ".."), (second, "..more")):
        view["session_id"] = name
    sampled.sessions = {"..": first, "..more": second}
    await page.goto(f"{page_url}#/session/..")
    await expect(page.locator(".hero")).to_be_visible()
    await expect(page.locator(".session-head .id")).to_have_text("..")


@pytest.mark.extended
async def test_an_update_reuses_the_existing_elements(
    page: Page, page_url: str, sampled: Api
) -> None:
    sampled.many(1_000)
    await open_live(page, page_url)
    await expect(page.locator("#summary")).to_contain_text("1,000")
    fullest = sorted(
        sampled.sessions.values(), key=lambda view: -view["chains"]["main"]["used_percent"]
    )[:20]
    await page.evaluate(DRAWN_TO_THE_END)
    await page.evaluate(WATCH)
    for sequence in range(2, 32):
        entries = []
        for place, view in enumerate(fullest):
            percent = 60 + (sequence * 7 + place * 13) % 40
            view["sequence"] = sequence
            view["chains"]["main"]["used_percent"] = percent
            entries.append(entry(view, percent, sequence))
        await page.evaluate("pushEntries", entries)
        await page.wait_for_timeout(50)
    await page.wait_for_timeout(2_000)  # the order follows
    assert await page.evaluate("window.made") == []
    shares = await page.locator(".rows .row:visible .gauge-share").all_inner_texts()
    assert len(shares) > 10


async def test_a_compaction_is_seen_in_the_row_as_it_begins_and_ends(
    page: Page, page_url: str, api: Api, sample: Any
) -> None:
    await stop_clock(page, NOW_MS)
    api.fill(sample)
    api.many(3)
    view = next(iter(api.sessions.values()))
    await page.goto(page_url)
    row = page.locator(f".row[data-id='{view['session_id']}']")
    await expect(row).to_be_visible()
    begun = {**entry(view, 12.0, 2), "kind": "compaction_start", "state": "compacting"}
    view.update(sequence=2)
    view["attempt"] = {
        "attempt_id": "a", "chain": "main", "trigger_reason": None, "used_percent": None,
        "started_ms": NOW_MS - 75_000, "last_heartbeat_ms": NOW_MS - 12_000, "elapsed_ms": 63_000,
        "used_tokens": None,
    }  # fmt: skip
    await page.evaluate("(e) => pushEntries([e])", begun)
    await expect(row.locator(".state")).to_have_text("compacting 1:15")
    await expect(row).to_contain_text("heartbeat 12 s ago")
    ended = {**begun, "kind": "compact_boundary", "state": "unknown", "sequence": 3}
    view.update(sequence=3, attempt=None)
    view["compactions"]["automatic"] += 1
    unknown = {"used_tokens": None, "used_percent": None}
    view["chains"]["main"].update(state="unknown", breakdown=None, **unknown)
    await page.evaluate("(e) => pushEntries([e])", {**ended, **unknown})
    await expect(row.locator(".gauge-share")).to_have_text("unknown")
    await expect(row.locator(".state")).to_contain_text("unknown")


@pytest.mark.extended
async def test_a_long_list_has_few_elements_and_can_be_scrolled_to_its_end(
    page: Page, page_url: str, sampled: Api
) -> None:
    sampled.many(1_000)
    await page.goto(page_url)
    await expect(page.locator("#summary")).to_contain_text("1,000")
    last = "00000000-0000"
    for _ in range(40):
        await page.evaluate("scrollTo(0, document.body.scrollHeight)")
        if await page.locator(f".row[data-id^='{last}']:visible").count():
            break
        await page.wait_for_timeout(100)
    await expect(page.locator(f".row[data-id^='{last}']")).to_be_visible()
    assert await page.locator(".rows .row").count() < 60


async def test_colours_follow_severity(page: Page, page_url: str, sampled: Api) -> None:
    sampled.many(5)
    cases = [
        (79.0, 50_000, "elevated"),
        (80.0, 30_000, "high"),
        (86.0, 4_000, "critical"),
        (73.0, -1_000, "critical"),
        (90.0, None, "critical"),
    ]
    wanted = {}
    for view, (percent, until, level) in zip(sampled.sessions.values(), cases, strict=True):
        chain = view["chains"]["main"]
        chain.update(
            used_percent=percent, used_tokens=int(percent * 2_000), window=200_000,
            auto_compact_threshold=None if until is None else int(percent * 2_000) + until,
        )  # fmt: skip
        wanted[view["session_id"]] = level
    await page.goto(page_url)
    for session, level in wanted.items():
        meter = page.locator(f".row[data-id='{session}'] .gauge")
        await expect(meter).to_have_attribute("data-severity", level)


@pytest.mark.extended
async def test_a_filter_is_kept_in_the_address_and_sent_to_the_server(
    page: Page, page_url: str, sampled: Api
) -> None:
    await page.goto(page_url)
    await page.get_by_role("button", name="80% and more").click()
    await expect(page).to_have_url(f"{page_url}#/?show=high")
    await page.keyboard.press("/")
    await page.keyboard.type("nothing like this")
    await expect(page.get_by_role("heading", name="No matching sessions")).to_be_visible()
    assert any("min_percent=80" in asked and "q=nothing" in asked for asked in sampled.asked)
    await page.reload()
    await expect(page.get_by_role("searchbox")).to_have_value("nothing like this")
    await page.get_by_role("button", name="Show all sessions").click()
    await expect(page.locator(".rows .row:visible")).to_have_count(len(sampled.sessions))
    await expect(page).to_have_url(f"{page_url}#/")


@pytest.mark.extended
async def test_the_tooltip_breaks_the_size_down(page: Page, page_url: str, sampled: Api) -> None:
    view = sampled.one()
    view["chains"]["main"].update(
        window=200_000, used_tokens=143_004, used_percent=71.5, auto_compact_enabled=True,
        breakdown={
            "input_tokens": 4, "cache_creation_tokens": 3_000, "cache_read_tokens": 140_000,
        },
    )  # fmt: skip
    await page.goto(page_url)
    await page.locator(".row .c-context").hover()
    tip = page.get_by_role("tooltip")
    await expect(tip).to_contain_text("Context window: 4 input + 143,000 cache tokens")
    await expect(tip).to_contain_text("Total capacity: 200,000 tokens")
    await expect(tip).to_contain_text("Automatic compaction will trigger when context is low.")
    await expect(tip.locator("tr").nth(2)).to_contain_text("140,000")
    await page.keyboard.press("Escape")
    await expect(tip).to_be_hidden()


@pytest.mark.usefixtures("sampled")
async def test_on_a_phone_nothing_is_wider_than_the_screen(page: Page, page_url: str) -> None:
    await page.set_viewport_size(NARROW)
    await page.goto(page_url)
    await expect(page.locator(".rows .row:visible").first).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]


async def test_an_estimated_point_is_drawn_and_reddens_as_a_reported_one_does(
    page: Page, page_url: str, sampled: Api
) -> None:
    view = sampled.one()
    view["chains"]["main"].update(
        auto_compact_enabled=None, auto_compact_threshold=None, used_tokens=147_000,
        used_percent=73.5, window=200_000, window_source="catalog", model="claude-opus-4-6",
        growth_tokens=9_000,
    )  # fmt: skip
    view["compactions"] = {**view["compactions"], "last": []}
    sampled.points = CompactionPoints(learned=(("claude-opus-4-6", 135_000),))
    await page.goto(page_url)
    gauge = page.locator(".row .gauge:visible")
    await expect(gauge).to_have_attribute("data-severity", "critical")
    await expect(gauge.locator(".triangle")).to_be_visible()
    share = await gauge.locator(".mark").evaluate("(e) => e.style.getPropertyValue('--at')")
    assert float(share) == 135_000 / 200_000
    await expect(page.locator(".row .c-until")).to_have_text("compaction: expected~12K over")
    await page.locator(".row-link:visible").click()
    await expect(page.locator(".hero .facts")).to_contain_text("expected, ~12K over")
