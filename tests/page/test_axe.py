"""No serious accessibility fault on any page, light or dark, wide or narrow."""

from itertools import product
from typing import Any, Literal

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from streams.serve.api.totals import added_up
from tests.page.conftest import NARROW, WIDE
from tests.page.pretend import Api

pytestmark = [pytest.mark.extended, pytest.mark.asyncio(loop_scope="session")]

_SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")

SERIOUS = """
async () => {
  const found = await axe.run(document, { resultTypes: ["violations"] });
  return found.violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html }) => html).join(" ")}`);
}
"""


@pytest_asyncio.fixture(loop_scope="session")
async def filled(api: Api, sample: Any) -> Api:
    """An API that tells of the sample."""
    api.fill(sample)
    api.stats = added_up([sample.stats], "hour")
    return api


@pytest.mark.parametrize("view", ["overview", "session", "analytics", "figures", "empty"])
async def test_axe_finds_nothing_serious(
    page: Page, page_url: str, filled: Api, axe: str, view: str
) -> None:
    """On any screen, in any colours."""
    await page.emulate_media(reduced_motion="reduce")
    session = max(filled.sessions, key=lambda name: len(filled.compactions.get(name, [])))
    fragments = {
        "overview": "",
        "session": f"#/session/{session}",
        "analytics": "#/analytics",
        "figures": "#/figures",
    }
    if view == "empty":
        filled.sessions.clear()
    await page.goto(page_url + fragments.get(view, ""))
    shown = {
        "session": ".item.compaction",
        "analytics": ".tiles",
        "figures": ".sources",
        "empty": ".note",
    }
    if view == "session":
        await page.locator(".what-if summary").first.click()
        await expect(page.locator(".what-if table").first).to_be_visible()
    for size, scheme in product((WIDE, NARROW), _SCHEMES):
        await page.set_viewport_size(size)
        await page.emulate_media(color_scheme=scheme)
        await expect(page.locator(shown.get(view, ".rows .row:visible")).first).to_be_visible()
        await page.evaluate(axe)
        assert await page.evaluate(SERIOUS) == [], (size, scheme)
