"""What if: a session under another trigger or window, on its page."""

import pytest
from playwright.async_api import Locator, Page, expect

from tests.page.conftest import NARROW
from tests.page.pretend import Api
from tests.page.shown import NOW_MS, SESSION, Shown

pytestmark = pytest.mark.asyncio(loop_scope="session")

PATH = f"/v1/sessions/{SESSION}/what-if"


def grown(shown: Shown) -> None:
    """Tell of a context that was compacted twice at 168 000 tokens, by a trigger of 167 000."""
    at_ms = NOW_MS - 4_000_000
    for _ in range(2):
        for used in range(40_000, 168_000, 4_000):
            at_ms += 20_000
            shown.agent.respond(at_ms, used)
        shown.agent.compacted(at_ms + 1_000, 168_000, 36_000, "Fixed the importer.")
    shown.agent.respond(at_ms + 20_000, 36_000)


async def opened(page: Page) -> Locator:
    part = page.locator(".what-if")
    await part.locator("summary").first.click()
    await expect(part.locator("table").first).to_be_visible()
    return part


def row(part: Locator, name: str) -> Locator:
    return part.locator(f'tr:has(th:text-is("{name}")) td')


async def test_another_size_is_compared_with_what_was_recorded(
    page: Page, shown: Shown, api: Api
) -> None:
    grown(shown)
    await shown.tell()
    assert not any(PATH in each for each in api.asked)  # it is asked only when it is opened
    part = await opened(page)
    await part.get_by_role("button", name="60%").click()
    await expect(row(part, "Compacted at")).to_have_text(["167,000", "120,000"])
    await expect(row(part, "Compactions")).to_have_text(["2", "3+1"])
    await expect(row(part, "Cost").nth(1)).to_contain_text(" to ")
    # Nothing reports the output of the last response yet.
    await expect(row(part, "Cost").first).to_contain_text("at least ~$")
    await expect(row(part, "with a cache always cold").nth(1)).to_contain_text("~\N{MINUS SIGN}$")
    await expect(row(part, "Paid off after, median").first).to_contain_text("responses")
    await expect(part.locator(".what-if-advice")).to_contain_text("autoCompactWindow")
    await expect(part.locator(".what-if-lines")).to_contain_text(
        "The recorded trigger gives 2 compactions in their places."
    )
    await part.get_by_role("button", name="90%").click()
    await expect(row(part, "Compactions").nth(1)).to_have_text("1\N{MINUS SIGN}1")
    await part.locator("details.data > summary").click()
    rules = part.locator("tr", has_text="compact_boundary")
    await expect(rules).to_have_text("compact_boundaryR1921")


@pytest.mark.extended
async def test_an_own_size_and_another_window(page: Page, shown: Shown, api: Api) -> None:
    grown(shown)
    await shown.tell()
    part = await opened(page)
    size = part.get_by_label("Another size")
    await size.fill("100_000")
    await size.press("Enter")
    await expect(row(part, "Compacted at").nth(1)).to_have_text("100,000")
    await part.get_by_label("Window", exact=True).select_option("1M")
    await part.get_by_role("button", name="60%").click()
    await expect(row(part, "Compacted at").nth(1)).to_have_text("600,000")
    await expect(row(part, "Compactions").nth(1)).to_have_text("0\N{MINUS SIGN}2")
    api.problem = (422, "trigger: 'x' is neither")
    await size.fill("x")
    await size.press("Enter")
    await expect(part.get_by_role("status")).to_have_text("trigger: 'x' is neither")
    await expect(part.get_by_role("button", name="x", exact=True)).to_have_count(0)


async def test_a_session_without_compactions_says_why_nothing_differs(
    page: Page, shown: Shown
) -> None:
    shown.agent.respond(NOW_MS - 2_000, 190_000)
    shown.agent.respond(NOW_MS - 1_000, 195_000)
    await shown.tell()
    part = await opened(page)
    await expect(part).to_contain_text("1 chain as recorded: no compaction was recorded")
    await expect(part.locator(".what-if-advice")).to_contain_text("No advice")
    await page.set_viewport_size(NARROW)
    wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    assert not await page.evaluate(wide)
    assert not await part.locator(".table-scroll").first.evaluate(
        "(box) => box.scrollWidth > box.clientWidth + 1"
    )
