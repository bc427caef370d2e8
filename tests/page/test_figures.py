"""Where figures come from is the rules' table; durations have the form of the terminal."""

import re
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from streams.cli.screen.figures import duration
from tests.page.pretend import Api

pytestmark = pytest.mark.asyncio(loop_scope="session")

RULES = Path(__file__).parents[2] / "docs" / "RULES.md"


async def test_the_figures_by_runtime_are_those_of_the_rules(
    page: Page, page_url: str, api: Api
) -> None:
    assert api.sessions == {}
    await page.goto(page_url)
    await page.get_by_role("button", name="Help").click()
    await page.get_by_role("link", name="Where the figures come from").click()
    await expect(page).to_have_url(f"{page_url}#/figures")
    rows = page.locator(".sources tr")
    await expect(rows.first).to_be_visible()
    shown = [await row.locator("th, td").all_inner_texts() for row in await rows.all()]
    section = RULES.read_text(encoding="utf-8").split("## Figures by runtime\n", 1)[1]
    lines = re.findall(r"^\| (.*) \|$", section.split("\n## ", 1)[0], re.MULTILINE)
    assert shown == [line.split(" | ") for line in lines]
    assert len(shown) > 10


async def test_a_duration_has_the_form_of_the_terminal(page: Page, page_url: str) -> None:
    given = [0, 27, 949, 999, 1_000, 1_049, 7_000, 22_151, 59_949, 59_950, 60_000, 3_600_000]
    given += [3_069, 64_499, 64_500, 7_199_499, 7_199_500, 86_399_999, 360_000_000]
    await page.goto(page_url)
    shown = await page.evaluate(
        """async (given) => {
          const link = document.querySelector('link[href$="/format.js"]').href;
          return given.map((await import(link)).duration);
        }""",
        given,
    )
    assert shown == [duration(each) for each in given]
