"""The page of a real `contextgauge view`: sessions appear, and grow as their transcripts do."""

import re
import time
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.commands import Command
from tests.flow.local_view_kit import write_sample
from tests.page.agent import Agent
from tests.page.pretend import Api

pytestmark = pytest.mark.asyncio(loop_scope="session")

SESSION = "5f0d8a31-1111-4222-8333-00000000abcd"


def now_ms() -> int:
    return int(time.time() * 1_000)


@pytest.mark.extended
async def test_sessions_of_transcripts_appear_and_grow(
    page: Page, command: Command, tmp_path: Path
) -> None:
    folder = write_sample(tmp_path / "projects")
    view = command.start("view", str(folder), "--port", "0", STATE_FOLDER=str(tmp_path / "state"))
    assert view.stdout is not None
    address = re.search(r"http://\S+/", view.stdout.readline())
    assert address is not None
    await page.goto(address[0])
    await expect(page.locator(".row[data-id]")).to_have_count(12)
    await expect(page.locator(".reading")).to_have_count(0)
    await expect(page.locator(".live")).to_have_attribute("data-state", "live")

    agent = Agent(folder / "streams" / f"{SESSION}.jsonl", SESSION)
    agent.begin(now_ms())
    agent.respond(now_ms(), 90_000)
    row = page.locator(f".row[data-id='{SESSION}']")
    await expect(row.locator(".gauge-share")).to_contain_text("45%")
    agent.respond(now_ms(), 161_000)
    await expect(row.locator(".gauge-share")).to_contain_text("80%")

    await row.locator(".row-link").click()
    agent.compacting(now_ms())
    item = page.locator(".item.compaction")
    await expect(item).to_have_attribute("data-status", "running")
    agent.compacted(now_ms(), 161_500, 7_300, "What the orchard was about.")
    agent.respond(now_ms(), 24_000)
    await expect(item).to_contain_text("(137,500 tokens saved)")

    await page.goto(f"{address[0]}#/analytics")
    await expect(page.get_by_text("What the orchard")).to_have_count(0)
    await expect(page.locator("main")).to_contain_text("claude-sonnet-4-5")

    (folder / "streams" / f"{SESSION}.jsonl").unlink()
    await page.goto(f"{address[0]}#/")
    await page.mouse.move(0, 0)  # a list that is pointed at stays as it is
    await expect(page.locator("#summary")).to_contain_text("12 in all")
    await expect(row).to_be_hidden()


async def test_a_bar_shows_how_much_of_the_transcripts_has_been_read(
    page: Page, page_url: str, api: Api
) -> None:
    api.reading = {"files": 1_024, "read_files": 0, "bytes": 2_000, "read_bytes": 0}
    await page.goto(page_url)
    await expect(page.get_by_role("heading", name="Reading transcripts")).to_be_visible()
    bar = page.get_by_role("progressbar", name="Transcripts read")
    await expect(bar).to_have_attribute("value", "0")
    api.reading |= {"read_files": 312, "read_bytes": 500}
    await expect(page.locator(".reading")).to_have_text("312 of 1,024 transcripts")
    await expect(bar).to_have_attribute("value", "500")
    api.reading |= {"read_files": 1_024, "read_bytes": 2_000}
    await expect(bar).to_have_count(0)
    await expect(page.get_by_role("heading", name="No sessions yet")).to_be_visible()
    await expect(page.locator(".note")).to_contain_text("as soon as its runtime writes")
