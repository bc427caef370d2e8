"""What a row says and how one finds it: names, words that have room, models, the way back."""

import re
from typing import Any

import pytest
from playwright.async_api import Page, expect

from streams.core.until_compaction import CompactionPoints
from tests.cases.short_tokens import SHORT_TOKENS
from tests.page.conftest import NARROW, stop_clock
from tests.page.pretend import Api
from tests.page.shown import NOW_MS

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_sessions_with_similar_ids_are_distinguishable(
    page: Page, page_url: str, sampled: Api
) -> None:
    sampled.many(3)
    ids = ["11111111-2222-4000-8000-1", "11111111-9222-4000-8000-1", "22222222-2222-4000-8000-1"]
    for view, session_id in zip(list(sampled.sessions.values()), ids, strict=True):
        view["session_id"] = session_id
    await page.goto(page_url)
    for session_id, short in zip(ids, ["11111111-2", "11111111-9", "22222222"], strict=True):
        link = page.locator(f".row[data-id='{session_id}'] .row-link .mono")
        await expect(link).to_have_text(short)


async def test_sessions_of_one_folder_are_distinguishable(
    page: Page, page_url: str, api: Api, sample: Any
) -> None:
    await stop_clock(page, NOW_MS)
    api.fill(sample)
    api.many(3)
    hour_ms = 3_600_000
    folders = ["/srv/one/shop/", "C:\\two\\shop", "/srv/one/shop/"]
    for view, folder, ago_ms in zip(
        api.sessions.values(), folders, (hour_ms, 40 * hour_ms, 9_000 * hour_ms), strict=True
    ):
        view["identity"]["cwd"] = folder
        view["first_ms"] = NOW_MS - ago_ms
    await page.goto(page_url)
    names = {"one/shop": 2, "two/shop": 1}
    rows = page.locator(".rows .row:visible")
    await expect(rows).to_have_count(3)
    for name, count in names.items():
        await expect(page.locator(".row-name", has_text=name)).to_have_count(count)
    first, second, third = (
        page.locator(f".row[data-id='{name}'] .c-state .more") for name in api.sessions
    )
    await expect(first).to_have_text(re.compile(r"began \d\d:\d\d$"))
    await expect(second).to_have_text(re.compile(r"began \d+ Sept?, \d\d:\d\d$"))
    await expect(third).to_have_text(re.compile(r"began \d+ Sept? 2025$"))
    await rows.first.locator(".row-link").click()
    await expect(page).to_have_title(re.compile(r"^shop 0000000\d · contextgauge$"))


async def test_labels_fit_and_truncated_text_is_in_the_title(
    page: Page, page_url: str, sampled: Api
) -> None:
    view = sampled.one()
    view["chains"]["main"].update(
        state="unknown", used_tokens=None, used_percent=None, breakdown=None,
        pending={"boundary_id": "b", "number": 1}, growth_tokens=13_100,
    )  # fmt: skip
    view["chains"]["toolu_1"] = {**view["chains"]["main"], "chain": "toolu_1"}
    view["identity"]["publisher_agent_id"] = "an-agent-with-quite-a-long-name"
    view["chains"] = {"main": view["chains"]["main"], "toolu_1": view["chains"]["toolu_1"]}
    await page.set_viewport_size({"width": 1280, "height": 800})
    await page.goto(page_url)
    row = page.locator(".rows .row:visible")
    for part in (".state > span", ".c-growth .more"):
        whole = row.locator(part)
        assert await whole.evaluate("(e) => e.scrollWidth <= e.clientWidth + 1"), part
    title = await row.locator(".row-link").get_attribute("title") or ""
    for words in ("1 subagent", "+13K a response", "unknown since compaction"):
        assert words in title


@pytest.mark.extended
async def test_going_back_from_a_session_focuses_its_row(
    page: Page, page_url: str, sampled: Api
) -> None:
    sampled.many(60)
    await page.goto(page_url)
    await page.locator(".row-link").first.focus()
    for _ in range(39):
        await page.keyboard.press("ArrowDown")
    left = await page.evaluate("document.activeElement.closest('.row').dataset.id")
    await page.keyboard.press("Enter")
    await expect(page.locator(".hero")).to_be_visible()
    await page.go_back()
    row = page.locator(f".row[data-id='{left}'] .row-link")
    await expect(row).to_be_focused()
    await expect(row).to_be_in_viewport()


@pytest.mark.extended
async def test_removed_models_are_no_longer_offered(
    page: Page, page_url: str, sampled: Api
) -> None:
    await page.goto(page_url)
    models = page.get_by_label("Model").locator("option")
    await expect(page.locator(".rows .row:visible")).to_have_count(len(sampled.sessions))
    assert await models.count() > 2
    sampled.sessions.clear()
    await page.evaluate("pushRaw('event: reset\\ndata: {}\\n\\n')")
    await expect(page.get_by_role("heading", name="No sessions yet")).to_be_visible()
    await expect(models).to_have_text(["All models"])


async def test_the_source_of_a_window_is_short_with_an_explanation(
    page: Page, page_url: str, sampled: Api
) -> None:
    view = sampled.one()
    view["chains"]["main"]["window_source"] = "catalog"
    await page.goto(page_url)
    await expect(page.locator(".row .gauge-sizes:visible")).to_contain_text("· by model name")
    await page.locator(".row .c-context").hover()
    tip = page.get_by_role("tooltip")
    await expect(tip).to_contain_text("The window is from the model's name, by the table")


async def test_a_doubtful_window_is_marked_and_its_tooltip_says_why(
    page: Page, page_url: str, sampled: Api
) -> None:
    view = sampled.one()
    main = view["chains"]["main"]
    main.update(window=1_000_000, window_source="catalog", used_tokens=150_000, used_percent=15.0)
    brief = {**view["compactions"]["last"][-1], "chain": "main", "outcome": "succeeded"}
    brief.update(trigger="auto", tokens_before=167_000, model=main["model"], window=1_000_000)
    view["compactions"]["last"] = [brief, brief]
    await page.goto(page_url)
    gauge = page.locator(".row .gauge:visible")
    await expect(gauge).to_contain_text("~15%")
    await expect(gauge).to_contain_text("150K of ~1M")
    await page.locator(".row .c-context").hover()
    tip = page.get_by_role("tooltip")
    await expect(tip).to_contain_text("doubtful: automatic compactions come far below it")


async def test_a_window_that_the_size_passed_is_unknown_in_plain_words(
    page: Page, page_url: str, sampled: Api
) -> None:
    view = sampled.one()
    main = view["chains"]["main"]
    main.update(window=None, window_source="exceeded", used_percent=None, passed_window=200_000)
    await page.goto(page_url)
    gauge = page.locator(".row .gauge:visible")
    await expect(gauge).to_contain_text("window unknown · the size passed the assumed 200K")


@pytest.mark.extended
async def test_an_estimate_is_marked_and_its_tooltip_names_the_source(
    page: Page, page_url: str, sampled: Api
) -> None:
    view = sampled.one()
    view["chains"]["main"].update(
        auto_compact_enabled=None, auto_compact_threshold=None, until_compaction_tokens=None,
        used_tokens=100_000, growth_tokens=3_000, window=200_000, differences=[1_000, 5_000],
    )  # fmt: skip
    last = {
        "record_id": "r", "chain": "main", "number": 1, "outcome": "succeeded", "trigger": "auto",
        "error": None, "time_ms": None, "tokens_before": 167_094, "tokens_after": 30_000,
        "tokens_saved": 137_094, "duration_ms": None, "duration_source": None,
        "messages_since_last": 4,
    }  # fmt: skip
    view["compactions"] = {**view["compactions"], "last": [last]}
    await page.goto(page_url)
    cell = page.locator(".row .c-until")
    await expect(cell.locator(".more")).to_have_text("~22 responses")
    await expect(cell.locator(".figure")).to_contain_text("~67K")
    await cell.hover()
    words = "Estimated: the last automatic compaction of this session began at 167,094 tokens."
    await expect(page.get_by_role("tooltip")).to_contain_text(words)
    rate = "Responses are estimated by the growth: +3K a response, mean of the last 2."
    await expect(page.get_by_role("tooltip")).to_contain_text(rate)
    await cell.click()
    await expect(page.locator(".hero .facts")).to_contain_text("+3K a response, mean of the last 2")
    await expect(page.locator(".hero .facts")).to_contain_text("~67K · ~22 responses")
    await expect(page.locator(".hero")).to_contain_text(words)
    view["chains"]["main"].update(used_tokens=None, used_percent=None, breakdown=None)
    await page.reload()
    await expect(page.locator(".hero .facts")).to_contain_text("Until compactionunknown")
    await expect(page.locator(".hero")).not_to_contain_text("Estimated")
    await page.locator(".hero-gauge").hover()
    await expect(page.get_by_role("tooltip")).to_contain_text("The size is unknown")
    await expect(page.get_by_role("tooltip")).not_to_contain_text("Estimated")


@pytest.mark.extended
@pytest.mark.usefixtures("hasty")
async def test_estimates_follow_what_they_rest_on(page: Page, page_url: str, sampled: Api) -> None:
    sampled.many(300)
    for view in sampled.sessions.values():
        view["chains"]["main"].update(
            auto_compact_enabled=None, auto_compact_threshold=None, until_compaction_tokens=None,
            used_tokens=10_000, window=200_000, model="claude-opus-4-6",
        )  # fmt: skip
        view["compactions"] = {**view["compactions"], "last": []}
    await page.goto(page_url)
    last = page.locator(".row[data-id^='00000000-']:visible")
    while not await last.count():
        await page.evaluate("scrollTo(0, document.body.scrollHeight)")
        await page.wait_for_timeout(50)
    await expect(last.locator(".c-until .figure")).to_contain_text("unknown")
    sampled.points = CompactionPoints(learned=(("claude-opus-4-6", 167_000),))
    await expect(last.locator(".c-until .figure")).to_contain_text("~157K")
    await page.evaluate("scrollTo(0, 0)")
    first = page.locator(f".row[data-id='{list(sampled.sessions)[-1]}']:visible")
    await expect(first.locator(".c-until .figure")).to_contain_text("~157K")
    await first.locator(".row-link").click()
    await expect(page.locator(".hero .facts")).to_contain_text("~157K")
    sampled.points = CompactionPoints(learned=(("claude-opus-4-6", 100_000),))
    await expect(page.locator(".hero .facts")).to_contain_text("~90K")
    asked = len(sampled.asked)
    await page.wait_for_timeout(300)  # what is up to date is not asked for
    again = [path for path in sampled.asked[asked:] if "/v1/sessions" in path]
    assert not [path for path in again if "/control" not in path]


async def test_the_tooltip_says_that_a_configured_percentage_is_of_an_assumed_window(
    page: Page, page_url: str
) -> None:
    await page.goto(page_url)
    shown = await page.evaluate(
        """async () => {
          const link = document.querySelector('link[href$="/gauge.js"]').href;
          const { untilMeaning } = await import(link);
          const until = { source: "configured", threshold_tokens: 160_000 };
          return [true, false].map((estimated) => untilMeaning({ ...until, estimated }));
        }"""
    )
    assert shown == [
        (
            "Configured as a part of the window, which is assumed or doubtful: "
            "at about 160,000 tokens."
        ),
        "Configured: compaction is expected at 160,000 tokens.",
    ]


async def test_a_due_compaction_has_the_words_of_the_terminal(
    page: Page, page_url: str, sampled: Api
) -> None:
    sampled.many(2)
    for view, over in zip(sampled.sessions.values(), (131_072, 0), strict=True):
        view["chains"]["main"].update(used_tokens=150_000, auto_compact_threshold=150_000 - over)
        view["chains"]["main"].update(auto_compact_enabled=True, window=1_048_576)
    await page.goto(page_url)
    first, second = (page.locator(f".row[data-id='{each}'] .c-until") for each in sampled.sessions)
    await expect(first.locator(".figure")).to_contain_text("due")
    await expect(first.locator(".more")).to_have_text("131K over")
    await expect(second.locator(".more")).to_have_text("")
    await first.click()
    await expect(page.locator(".hero .facts")).to_contain_text("due, 131K over")
    await expect(page.locator(".hero")).to_contain_text("150K of 1.05M")


async def test_short_counts_are_those_of_the_terminal(page: Page, page_url: str) -> None:
    await page.goto(page_url)
    shown = await page.evaluate(
        """async (counts) => {
          const link = document.querySelector('link[href$="/format.js"]').href;
          const format = await import(link);
          return counts.map(format.tokens);
        }""",
        list(SHORT_TOKENS),
    )
    assert shown == list(SHORT_TOKENS.values())


async def test_a_card_on_a_phone_names_its_figures(page: Page, page_url: str, sampled: Api) -> None:
    sampled.many(4)
    tellings = [
        (True, 20_000, 0, "until compaction: 20K", "0 compactions"),
        (True, None, 1, "until compaction: unknown", "1 compaction"),
        (True, -500, 2, "compaction: due", "2 compactions"),
        (False, None, 1, "automatic compaction: off", "1 compaction"),
    ]
    for view, (enabled, until, count, _, _) in zip(
        sampled.sessions.values(), tellings, strict=True
    ):
        view["compactions"] = {
            **view["compactions"],
            "automatic": count,
            "manual": 0,
            "unknown_trigger": 0,
            "last": [],
        }
        main = view["chains"]["main"]
        main.update(
            auto_compact_enabled=enabled, window=200_000, used_tokens=150_000,
            auto_compact_threshold=None if until is None else 150_000 + until,
        )  # fmt: skip
    await page.set_viewport_size(NARROW)
    await page.goto(page_url)
    for session, (*_, until_words, count_words) in zip(sampled.sessions, tellings, strict=True):
        row = page.locator(f".row[data-id='{session}']")
        await expect(row.locator(".c-until .figure")).to_have_text(until_words)
        figure = await row.locator(".c-count .figure").evaluate(
            "(e) => e.firstChild.data + e.children[0].textContent"
        )
        assert figure == count_words


@pytest.mark.extended
async def test_models_subagents_and_attempts_are_whole_at_1440_pixels(
    page: Page, page_url: str, sampled: Api
) -> None:
    view = sampled.one()
    main = view["chains"]["main"]
    main.update(model="claude-opus-4-6", window=200_000, used_tokens=152_000, used_percent=76.0)
    view["identity"]["runtime"] = "claude-code"
    view["chains"] = {"main": main}
    for number in range(12):
        view["chains"][f"toolu_{number}"] = {**main, "chain": f"toolu_{number}"}
    view["compactions"] = {
        **view["compactions"], "automatic": 12, "manual": 3, "unknown_trigger": 1, "failed": 1,
        "last": [],
    }  # fmt: skip
    await page.goto(page_url)
    row = page.locator(".rows .row:visible")
    await expect(row).to_contain_text("claude-opus-4-6 · 12 subagents · claude-code")
    await expect(row).to_contain_text("12 auto · 3 manual · 1 unknown trigger · 1 not completed")
    for part in (".c-session .about", ".c-count .more", ".gauge-sizes", ".c-state .more"):
        cut = await row.locator(part).evaluate(
            "(e) => [e.scrollWidth - e.clientWidth, e.scrollHeight - e.clientHeight]"
        )
        assert max(cut) <= 1, part
        box, whole = await row.locator(part).bounding_box(), await row.bounding_box()
        assert box
        assert whole
        assert whole["y"] <= box["y"]
        assert box["y"] + box["height"] <= whole["y"] + whole["height"], part
