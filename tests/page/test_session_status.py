"""The page draws the verdict of each case: in the list, and on the session's own page."""

from dataclasses import replace
from typing import Any

import pytest
from playwright.async_api import Page, expect

from streams import codec
from streams.core.session_status import THRESHOLDS
from tests.cases.session_status import CASES, HALF, NOW_MS, Case, session
from tests.page.conftest import stop_clock
from tests.page.pretend import Api

pytestmark = pytest.mark.asyncio(loop_scope="session")

WORDS = {
    "unknown": ("unknown since cleared", "unknown since compaction", "not measured yet"),
    "stale": ("quiet for ",),
}
"""What a state begins with, where that is not its name."""


def fill(api: Api) -> dict[str, Case]:
    """Let the API serve all cases; return them by session id."""
    cases = {f"case-{number:03}": case for number, case in enumerate(CASES)}
    for name, case in cases.items():
        view = replace(case.view, session_id=name)
        api.sessions[name] = codec.loads(codec.dumps(view))
    return cases


ROWS = """
() => Object.fromEntries([...document.querySelectorAll(".rows .row:not([hidden])")].map((row) => [
  row.dataset.id,
  {
    state: row.dataset.state,
    words: row.querySelector(".state > span").innerText,
    severity: row.querySelector(".gauge").dataset.severity,
    share: row.querySelector(".gauge-share").firstChild.data,
    triangle: getComputedStyle(row.querySelector(".triangle")).display !== "none",
    thrash: !row.querySelector(".badge").hidden,
  },
]))
"""


def expected(case: Case) -> dict[str, Any]:
    share = case.view.chains[case.leading].used_percent if case.leading else None
    return {
        "state": case.state,
        "severity": case.severity,
        "share": "unknown" if share is None else f"{int(share)}%",
        "triangle": case.severity in {"high", "critical"},
        "thrash": case.thrashing,
    }


@pytest.mark.extended
async def test_each_row_shows_its_verdict(page: Page, page_url: str, api: Api) -> None:
    cases = fill(api)
    await stop_clock(page, NOW_MS)
    await page.set_viewport_size({"width": 1440, "height": 6_000})
    await page.goto(page_url)
    await expect(page.locator(".rows .row:visible")).to_have_count(len(cases))
    rows = await page.evaluate(ROWS)
    assert set(rows) == set(cases)
    for name, case in cases.items():
        words = rows[name].pop("words")
        assert rows[name] == expected(case), case.name
        assert words.startswith(WORDS.get(case.state, (case.state,))), case.name


@pytest.mark.extended
async def test_each_session_shows_its_verdict(page: Page, page_url: str, api: Api) -> None:
    cases = fill(api)
    await stop_clock(page, NOW_MS)
    for name, case in cases.items():
        await page.goto(f"{page_url}#/session/{name}")
        await expect(page.locator(".id")).to_have_text(name)
        hero = page.locator(".hero")
        await expect(hero.locator(".state")).to_have_attribute("data-state", case.state)
        await expect(hero.locator(".gauge")).to_have_attribute("data-severity", case.severity)
        wanted = "the main conversation" if case.leading in {None, "main"} else "subagent"
        label = await hero.locator(".hero-gauge").get_attribute("aria-label")
        assert label is not None
        assert wanted in label, case.name


@pytest.mark.own_context
async def test_a_verdict_changes_at_its_instant_without_an_answer(
    page: Page, page_url: str, api: Api
) -> None:
    view = session(HALF, silent=0)
    api.sessions["case"] = codec.loads(codec.dumps(view))
    await page.clock.install(time=NOW_MS / 1_000)
    await page.goto(page_url)
    row = page.locator(".rows .row:visible")
    await expect(row).to_have_attribute("data-state", "measured")
    api.gone = True
    await page.clock.fast_forward(THRESHOLDS.stale_after_ms)
    await expect(row).to_have_attribute("data-state", "stale")
    await expect(row.locator(".c-state")).to_contain_text("quiet for ")
