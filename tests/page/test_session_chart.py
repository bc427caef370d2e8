"""A session's chart: what is drawn over what, the legend, and what the pointer shows."""

import pytest
from playwright.async_api import Page, expect

from tests.page.conftest import DRAWN
from tests.page.pretend import Api
from tests.page.shown import NOW_MS, SESSION, Shown

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.extended
async def test_compactions_and_resets_are_drawn_over_the_grid(
    page: Page, shown: Shown, charts: str
) -> None:
    assert charts
    shown.agent.compacting(NOW_MS - 9_000)
    shown.agent.compacted(NOW_MS, 154_000, 9_000, "Short.")
    shown.agent.respond(NOW_MS + 60_000, 30_000)
    shown.agent.cleared(NOW_MS + 90_000)
    shown.fill()
    await page.add_init_script(DRAWN)
    await page.reload()
    await expect(page.locator(".chart-place canvas")).to_be_visible()
    await expect(page.locator(".legend .key:visible")).to_contain_text(
        ["compaction", "cleared or restarted"]
    )
    painted = await page.evaluate(
        "drawn.lines.filter(([x0, , x1]) => x0 === x1).map((line) => line.at(-1))"
    )
    colours = await page.evaluate(
        """() => Object.fromEntries(["green", "text", "line"].map((name) => {
          const probe = document.body.appendChild(document.createElement("i"));
          probe.style.setProperty("color", `var(--${name})`);
          const { color } = getComputedStyle(probe);
          const context = document.createElement("canvas").getContext("2d");
          context.strokeStyle = color;
          return [name, context.strokeStyle];
        }))"""
    )
    last = {name: len(painted) - painted[::-1].index(colour) for name, colour in colours.items()}
    assert last["line"] < last["green"] < last["text"]


async def test_the_legend_names_only_what_is_drawn(page: Page, shown: Shown, api: Api) -> None:
    legend = page.locator(".legend .key:visible")
    words = ["size", "window, 200K", "compaction threshold", "warning below 80% used"]
    await expect(legend).to_have_text(words)
    shown.agent.compacting(NOW_MS - 9_000)
    shown.agent.failed(NOW_MS, "too_few_groups")
    await shown.tell()
    await expect(legend).to_have_text([*words[:3], "failed", words[3]])
    api.sessions[SESSION]["chains"]["main"]["auto_compact_threshold"] = None
    await page.reload()
    await expect(legend).to_have_text([*words[:2], "failed", words[3]])


async def test_warnings_have_the_colours_of_the_bar(page: Page, shown: Shown) -> None:
    for used in (165_000, 181_000):
        shown.agent.respond(NOW_MS, used)
    await shown.tell()
    legend = page.locator(".legend .key:visible")
    await expect(legend).to_have_text(
        [
            "size",
            "window, 200K",
            "compaction threshold",
            "warning below 80% used",
            "warning at 80% used or more",
            "warning at 90% used or more",
        ]
    )
    colours = await legend.evaluate_all(
        "(keys) => keys.map((key) => getComputedStyle(key, '::before').backgroundColor)"
    )
    assert len({*colours[3:]}) == 3
    words = page.locator(".item.warning.critical .warn-line")
    colour = "(e) => getComputedStyle(e).color"
    share = await page.locator(".hero .gauge-share").evaluate(colour)
    assert await words.evaluate(colour) == share == colours[5]


@pytest.mark.extended
async def test_the_chart_marks_the_window(page: Page, shown: Shown, api: Api, charts: str) -> None:
    assert charts
    assert shown.agent.session_id == SESSION
    await page.add_init_script(DRAWN)
    await page.reload()
    await expect(page.locator(".chart-place canvas")).to_be_visible()
    lines = "drawn.lines.filter(([x0, y0, x1, y1, width]) => y0 === y1 && width === 2)"
    ((x0, y, x1, *_),) = await page.evaluate(f"{lines}.slice(-1)")
    box = await page.locator(".chart-place canvas").bounding_box()
    assert box
    assert x1 - x0 > 0.8 * box["width"]
    assert 0 < y < 0.2 * box["height"]  # near the top: the size is 76 % of it
    main = api.sessions[SESSION]["chains"]["main"]
    main.update(window=1_000_000, window_source="default")
    await page.reload()
    key = page.locator(".legend .key.window")
    await expect(key).to_have_text("window, ~1M: above this chart")
    assert await page.evaluate(lines) == []


async def test_the_pointer_shows_the_step_that_it_is_in(
    page: Page, shown: Shown, charts: str
) -> None:
    assert charts
    for after_ms, used in ((0, 156_000), (100_000, 170_000)):
        shown.agent.respond(NOW_MS + after_ms, used)
    await shown.tell()
    await expect(page.locator(".hero .gauge-share")).to_contain_text("85%")
    over = page.locator(".u-over")
    box = await over.bounding_box()
    assert box
    readouts = []
    for share in (0.86, 0.98):  # the latter is nearer to the reading at the end
        await page.mouse.move(box["x"] + share * box["width"], box["y"] + 50)
        await expect(page.locator(".readout")).to_contain_text("tokens")
        readouts.append(await page.locator(".readout").inner_text())
    assert all("156,000 tokens" in words for words in readouts), readouts
