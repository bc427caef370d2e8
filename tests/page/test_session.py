"""A session: one element for each compaction, whatever becomes of it; records on demand."""

import pytest
from playwright.async_api import Locator, Page, expect

from tests.page.agent import THRESHOLD
from tests.page.conftest import DRAWN, NARROW
from tests.page.pretend import Api
from tests.page.shown import NOW_MS, SESSION, Shown

pytestmark = pytest.mark.asyncio(loop_scope="session")


def compaction(page: Page) -> Locator:
    return page.locator(".item.compaction")


@pytest.mark.extended
async def test_a_compaction_is_one_element_from_running_to_done(page: Page, shown: Shown) -> None:
    agent = shown.agent
    agent.respond(NOW_MS - 100_000, THRESHOLD + 500)
    agent.compacting(NOW_MS - 65_000)
    agent.compacting(NOW_MS - 5_000)
    await shown.tell()
    item = compaction(page)
    await expect(item).to_have_attribute("data-status", "running")
    await expect(item).to_contain_text("Compaction triggered (83% context used), please wait…")
    await expect(item).to_contain_text("1:05")
    await expect(item).to_contain_text("heartbeat 5 s ago")
    await expect(item.locator(".icon[data-name=spinner]")).to_be_visible()
    element = await item.element_handle()
    agent.compacted(NOW_MS, THRESHOLD + 700, 64_200, "The orchard has nine rows.")
    await shown.tell()
    await expect(item).to_have_attribute("data-status", "done")
    await expect(item).to_contain_text("measured by the next response")
    agent.respond(NOW_MS + 1_000, 31_000)
    await shown.tell()
    await expect(item).to_contain_text("(136,700 tokens saved)")
    await expect(item).to_contain_text("167,700 → 31,000")
    await expect(item).to_contain_text("1 min 4 s, reported by the runtime")
    await expect(item).to_contain_text("automatic")
    await item.locator(".summary summary").click()
    await expect(item.locator(".summary-text")).to_contain_text("The orchard has nine rows.")
    assert await page.evaluate("(e) => e.isConnected", element)
    await expect(compaction(page)).to_have_count(1)


@pytest.mark.extended
async def test_a_failed_compaction_shows_the_reason(page: Page, shown: Shown) -> None:
    shown.agent.compacting(NOW_MS - 9_000)
    await shown.tell()
    await expect(compaction(page)).to_have_attribute("data-status", "running")
    shown.agent.failed(NOW_MS, "too_few_groups")
    await shown.tell()
    await expect(compaction(page)).to_have_attribute("data-status", "failed")
    await expect(compaction(page)).to_contain_text("Compaction failed")
    await expect(compaction(page)).to_contain_text("too few messages to compact")
    await expect(compaction(page)).to_contain_text("9.0 s")


async def test_a_compaction_without_a_heartbeat_is_shown_as_stalled(
    page: Page, shown: Shown
) -> None:
    shown.agent.compacting(NOW_MS - 200_000)
    await shown.tell()
    await expect(compaction(page)).to_have_attribute("data-status", "stalled")
    await expect(page.locator(".hero .state")).to_contain_text("stalled")
    await expect(compaction(page)).to_contain_text("no heartbeat for 3 min 20 s")


async def test_a_turn_that_found_no_space_says_so(page: Page, shown: Shown, api: Api) -> None:
    assert shown.agent.session_id == SESSION
    first = api.records[SESSION]["events"][0]
    exhausted = {
        **first, "id": "e", "type": "contextgauge.context_exhausted.v1",
        "data": {
            **{
                name: first["data"][name]
                for name in ("session_id", "model", "task_id", "subagent_type")
            },
            "chain": "main", "reason": "prompt_too_long", "tokens_over": 900,
        },
    }  # fmt: skip
    api.records[SESSION]["events"].append(exhausted)
    await page.reload()
    await expect(page.locator(".item.context_exhausted")).to_contain_text(
        "A turn stopped because the window was full: the prompt is too long, 900 tokens over"
    )


async def test_after_a_compaction_the_size_is_unknown(page: Page, shown: Shown) -> None:
    shown.agent.compacting(NOW_MS - 9_000)
    shown.agent.compacted(NOW_MS, 154_000, 9_000, "Short.")
    await shown.tell()
    await expect(page.locator(".hero .gauge-share")).to_have_text("unknown")
    await expect(page.locator(".hero .state")).to_contain_text("unknown since compaction")
    messages = page.locator("dt:text-is('Messages') + dd")
    await expect(messages).to_contain_text("0 since the last compaction or reset · ")


@pytest.mark.extended
async def test_warnings_use_the_wording_of_the_chat(page: Page, shown: Shown) -> None:
    for used in (170_000, 181_000):
        shown.agent.respond(NOW_MS, used)
    await shown.tell()
    low = page.locator(".item.warning.critical").first
    await expect(low).to_contain_text("90% used · 10% context remaining")
    await expect(low.locator(".icon[data-name=warning]")).to_be_visible()
    await page.locator(".item.steps summary").first.click()
    for words in ("48% used · 52% context remaining", "76% used"):
        calm = page.locator(".item.warning", has_text=words)
        await expect(calm.first).to_be_visible()
        await expect(calm.locator(".icon")).to_have_count(0)
    await low.locator("button").hover()
    tip = page.get_by_role("tooltip")
    await expect(tip).to_contain_text("Context window: 4 input + 180,996 cache tokens")
    await expect(tip).to_contain_text("Total capacity: 200,000 tokens")
    await expect(tip).to_contain_text("Automatic compaction is due.")


@pytest.mark.extended
@pytest.mark.parametrize(
    ("enabled", "words"),
    [
        (True, "Automatic compaction will trigger when context is low."),
        (False, "Automatic compaction is off."),
        (None, "Unknown whether compaction is automatic."),
    ],
)
async def test_automatic_compaction_is_described_only_as_reported(
    page: Page, shown: Shown, api: Api, enabled: object, words: str
) -> None:
    shown.agent.respond(NOW_MS, 160_000)
    shown.fill()
    api.sessions[SESSION]["chains"]["main"]["auto_compact_enabled"] = enabled
    await page.reload()
    await expect(page.locator(".hero")).to_contain_text(words)
    await page.locator(".hero-gauge").hover()
    tip = page.get_by_role("tooltip")
    await expect(tip).to_contain_text(words)
    await page.locator(".item.warning button").first.hover()
    await expect(tip).to_contain_text("Thresholds crossed")
    await expect(tip).to_contain_text(words)


async def test_a_compaction_that_is_due_does_not_wait_until_context_is_low(
    page: Page, shown: Shown, api: Api
) -> None:
    shown.agent.respond(NOW_MS, 170_000)
    shown.fill()
    view = api.sessions[SESSION]
    view["chains"]["main"].update(auto_compact_enabled=True, auto_compact_threshold=160_000)
    await page.reload()
    hero = page.locator(".hero")
    await expect(hero).to_contain_text("Automatic compaction is due.")
    await expect(hero).not_to_contain_text("when context is low")


@pytest.mark.extended
async def test_automatic_compactions_that_were_seen_are_named(
    page: Page, shown: Shown, api: Api
) -> None:
    shown.agent.respond(NOW_MS, 170_000)
    shown.fill()
    view = api.sessions[SESSION]
    view["chains"]["main"]["auto_compact_enabled"] = None
    view["compactions"] = {**view["compactions"], "automatic": 1}
    await page.reload()
    words = "This session has compacted automatically."
    await expect(page.locator(".hero")).to_contain_text(words)
    await expect(page.locator(".hero")).not_to_contain_text("Unknown whether")
    tip = page.get_by_role("tooltip")
    for target in (page.locator(".hero-gauge"), page.locator(".item.warning button").first):
        await target.hover()
        await expect(tip).to_contain_text(words)


async def test_used_and_remaining_percentages_add_up(page: Page, shown: Shown) -> None:
    shown.agent.respond(NOW_MS, 177_334)  # 88.667 %, of which 11.333 % remain
    await shown.tell()
    await expect(page.locator(".hero .gauge-line")).to_contain_text("88%")
    await expect(page.locator(".hero .gauge-line")).to_contain_text("used · 12% context remaining")
    await expect(page.locator(".item.warning").first).to_contain_text(
        "88% used · 12% context remaining"
    )


@pytest.mark.extended
async def test_subagents_have_their_own_lanes(page: Page, shown: Shown) -> None:
    for number in range(3):
        shown.agent.respond(
            NOW_MS - 90_000 + number * 30_000, 8_000 + number * 4_000, agent_id="ab1"
        )
    await shown.tell()
    lane = page.locator(".lane")
    await expect(lane).to_have_count(1)
    await expect(lane).to_contain_text("explorer")
    await expect(lane).to_contain_text("16K")
    overflow = "(e) => e.scrollHeight - e.clientHeight"
    assert await page.locator(".lanes").evaluate(overflow) <= 0  # no scrollbar
    await lane.hover()
    await expect(page.get_by_role("tooltip")).to_contain_text("4 input + 15,996 cache tokens")
    await expect(page.locator(".hero .gauge-share")).to_contain_text("76%")


@pytest.mark.extended
async def test_a_subagent_has_one_name_and_all_lanes_one_labelled_scale(
    page: Page, shown: Shown, api: Api
) -> None:
    for number, agent in enumerate(("ab1-long-enough-to-be-cut", "cd2")):
        for size in (8_000, 44_000 - number * 30_000):
            shown.agent.respond(NOW_MS - 90_000 + number * 30_000 + size, size, agent_id=agent)
    shown.agent.respond(NOW_MS, 150_000, agent_id="cd2")
    shown.fill()
    boundary = next(
        record
        for record in api.records[SESSION]["events"]
        if record["type"] == "contextgauge.context_warning.v1" and record["subject"] == "cd2"
    )
    start = {
        **boundary, "id": "a-start", "type": "contextgauge.compaction_start.v1",
        "data": {
            **boundary["data"], "attempt_id": "a-start", "trigger_reason": None,
            "used_tokens": None, "context_used_percent": None,
        },
    }  # fmt: skip
    api.records[SESSION]["events"].append(start)
    await page.reload()
    names = page.locator(".lane strong")
    await expect(names).to_have_text(["explorer ab1-long", "explorer cd2"])
    badges = set(await page.locator(".item .badge").all_inner_texts())
    assert badges == {"explorer ab1-long", "explorer cd2"}
    await expect(compaction(page).locator(".badge")).to_have_text("explorer cd2")
    await expect(page.locator(".lane-scale").nth(0)).to_have_text("150K0")
    await expect(page.locator(".lane-scale").nth(1)).to_have_text("150K0")
    await expect(page.get_by_role("heading", name="Subagents")).to_contain_text(
        "each from 0 to 150K tokens"
    )
    heights = await page.locator(".lane-strip path").evaluate_all(
        "(paths) => paths.map((path) => path.getBBox().height)"
    )
    assert heights[0] == pytest.approx(heights[1] * 44 / 150, rel=0.02)


async def test_the_chart_is_drawn_and_has_its_figures_in_a_table(
    page: Page, shown: Shown, charts: str
) -> None:
    assert charts
    await expect(page.locator(".chart-place canvas")).to_be_visible()
    await page.get_by_text("Show as table").first.click()
    rows = page.locator("details.data tbody tr")
    await expect(rows).to_have_count(8)
    await expect(rows.first).to_contain_text("153,000")
    assert shown.agent.session_id == SESSION


@pytest.mark.extended
async def test_no_two_ticks_of_a_short_session_have_the_same_label(
    page: Page, page_url: str, shown: Shown, api: Api, charts: str
) -> None:
    assert charts
    for stream in api.records[SESSION].values():
        for number, record in enumerate(stream):
            record["time"] = f"2026-09-21T10:32:05.{number * 900 // len(stream):03d}Z"
    await page.add_init_script(DRAWN)
    await page.reload()
    await expect(page.locator(".chart-place canvas")).to_be_visible()
    labels = await page.evaluate("drawn.words.map(([words]) => words)")
    times = [words for words in labels if words.count(":") == 2]
    assert len(times) > 1
    assert len(times) == len(set(times))
    assert shown.agent.session_id == SESSION
    assert page_url in page.url


@pytest.mark.extended
async def test_a_compaction_after_the_last_reading_stands_at_its_own_time(
    page: Page, shown: Shown
) -> None:
    # Readings from 500 to 220 s before the compaction's end, which begins a minute before it.
    shown.agent.compacting(NOW_MS - 60_000)
    shown.agent.compacted(NOW_MS, 154_000, 60_000, "Short.")
    shown.fill()
    await page.add_init_script(DRAWN)
    await page.reload()
    await expect(page.locator(".chart-place canvas")).to_be_visible()
    width = await page.locator(".chart-place canvas").evaluate("(e) => e.width")
    start, end = await page.evaluate("drawn.bands.at(-1)")
    assert 0.08 * width < end - start < 0.14 * width
    assert end < 0.97 * width  # the size after it is unknown, which is a gap


@pytest.mark.extended
async def test_without_times_sizes_are_shown_record_by_record(
    page: Page, shown: Shown, api: Api
) -> None:
    assert shown.agent.session_id == SESSION
    await expect(page.get_by_role("heading", name="Size over time")).to_be_visible()
    for stream in api.records[SESSION].values():
        for record in stream:
            record.pop("time", None)
    await page.reload()
    await expect(page.get_by_role("heading", name="Size by record")).to_be_visible()
    chart = page.get_by_role("img", name="Size of the main conversation by record")
    await expect(chart).to_be_visible()


@pytest.mark.extended
async def test_records_are_shown_on_demand(page: Page, shown: Shown) -> None:
    await expect(page.locator(".raw-card pre")).to_be_empty()
    await page.get_by_role("heading", name="Raw records").click()
    await expect(page.locator(".raw-card pre")).to_contain_text('"specversion":"1.0"')
    await page.get_by_label("Which records").select_option("readings")
    await expect(page.locator(".raw-card pre")).to_contain_text("contextgauge.context_reading.v1")
    await page.locator(".item.warning .raw-of summary").first.click()
    await expect(page.locator(".item.warning pre").first).to_contain_text("context_warning")
    assert shown.agent.session_id == SESSION


@pytest.mark.extended
async def test_a_reload_keeps_the_session_and_its_filter(page: Page, shown: Shown) -> None:
    await page.get_by_role("button", name="Warnings").click()
    await page.reload()
    await expect(page.locator(".hero .gauge-share")).to_contain_text("76%")
    await expect(page.get_by_role("button", name="Warnings")).to_have_attribute(
        "aria-pressed", "true"
    )
    assert SESSION in page.url
    assert shown.agent.session_id in await page.title() or "orchard" in await page.title()


async def test_on_a_phone_nothing_is_wider_than_the_screen(page: Page, shown: Shown) -> None:
    shown.agent.compacting(NOW_MS - 9_000)
    shown.agent.compacted(NOW_MS, 154_000, 9_000, "Short.")
    await page.set_viewport_size(NARROW)
    await shown.tell()
    await expect(compaction(page)).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
