"""What the page says when something is wrong, and that it finds back by itself."""

from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.page.conftest import HASTE, open_live
from tests.page.pretend import Api

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.extended
@pytest.mark.usefixtures("hasty")
async def test_without_sessions_instructions_are_shown(
    page: Page, page_url: str, api: Api, sample: Any
) -> None:
    await page.goto(page_url)
    await expect(page.get_by_role("heading", name="No sessions yet")).to_be_visible()
    await expect(page.locator(".note pre")).to_contain_text("contextgauge project")
    api.fill(sample)
    await expect(page.locator(".rows .row:visible")).to_have_count(len(api.sessions))


async def test_a_loading_state_is_shown(page: Page, page_url: str, api: Api) -> None:
    api.is_open.clear()
    await page.goto(page_url)
    await expect(page.locator(".skeleton")).to_be_visible()
    await expect(page.get_by_text("Loading")).to_be_attached()
    api.is_open.set()
    await expect(page.get_by_role("heading", name="No sessions yet")).to_be_visible()


@pytest.mark.extended
async def test_an_error_is_shown_with_a_remedy(
    page: Page, page_url: str, api: Api, sample: Any
) -> None:
    api.problem = (503, "Redis does not answer: ask again in a moment.")
    await page.goto(page_url)
    await expect(page.get_by_role("heading", name="cannot be read now")).to_be_visible()
    await expect(page.locator(".note")).to_contain_text("Redis does not answer")
    await expect(page.locator(".note")).to_contain_text("contextgauge doctor")
    api.problem = None
    api.fill(sample)
    await page.get_by_role("button", name="Retry").click()
    await expect(page.locator(".rows .row:visible")).to_have_count(len(api.sessions))


@pytest.mark.extended
@pytest.mark.usefixtures("hasty")
async def test_an_unavailable_server_is_reported_and_the_rows_stay(
    page: Page, page_url: str, sampled: Api
) -> None:
    await open_live(page, page_url)
    rows = page.locator(".rows .row:visible")
    await expect(rows).to_have_count(len(sampled.sessions))
    sampled.gone = True
    await page.evaluate("feedGone = true; cutFeed()")
    await expect(page.locator(".notice.bad")).to_contain_text("The server does not answer")
    await expect(rows).to_have_count(len(sampled.sessions))
    sampled.gone = False
    await expect(page.locator(".notice.bad")).to_have_count(0)


@pytest.mark.extended
@pytest.mark.usefixtures("hasty")
async def test_unreadable_figures_are_reported_and_not_shown_as_live(
    page: Page, page_url: str, sampled: Api
) -> None:
    await page.goto(page_url)
    live = page.locator(".live")
    await expect(live).to_have_attribute("data-state", "live")
    rows = page.locator(".rows .row:visible")
    await expect(rows).to_have_count(len(sampled.sessions))
    sampled.problem = (503, "Redis does not answer: ask again in a moment.")
    notice = page.locator(".notice.bad")
    await expect(notice).to_contain_text("cannot be read: Redis does not answer")
    await expect(notice).to_contain_text("What you see is as of")
    await expect(live).to_have_attribute("data-state", "old")
    await expect(live).to_contain_text("standing still")
    await expect(rows).to_have_count(len(sampled.sessions))
    sampled.many(3)  # what the feed could not tell
    sampled.problem = None
    await expect(live).to_have_attribute("data-state", "live")
    await expect(notice).to_have_count(0)
    await expect(page.locator("#summary")).to_contain_text("3 in all")


async def feed_requests(page: Page, count: int) -> list[str | None]:
    """Return where the page resumed the feed, once it has asked so often or five seconds passed."""
    for _ in range(50):
        asked: list[str | None] = await page.evaluate("window.feedRequests")
        if len(asked) >= count:
            break
        await page.wait_for_timeout(100)
    return asked


@pytest.mark.usefixtures("hasty")
async def test_the_feed_resumes_where_it_stopped(page: Page, page_url: str, sampled: Api) -> None:
    await open_live(page, page_url)
    session = next(iter(sampled.sessions))
    entry = {"session_id": session, "chain": "main", "kind": "context_warning", "sequence": 0}
    await page.evaluate("(e) => pushEntries([e])", entry)
    await page.wait_for_timeout(50)
    await page.evaluate("cutFeed()")
    assert await feed_requests(page, 2) == ["1:0", "1"]


@pytest.mark.usefixtures("hasty")
async def test_a_line_separator_in_an_id_does_not_interrupt_the_feed(
    page: Page, page_url: str, sampled: Api
) -> None:
    await open_live(page, page_url)
    entry = {"chain": "main", "kind": "context_warning", "sequence": 0}
    for session in ("a\u2028b", next(iter(sampled.sessions))):
        await page.evaluate("(e) => pushEntries([e])", entry | {"session_id": session})
    await page.wait_for_timeout(50)
    await page.evaluate("cutFeed()")
    assert await feed_requests(page, 2) == ["1:0", "2"]


@pytest.mark.extended
@pytest.mark.usefixtures("hasty", "sampled")
async def test_repeated_feed_disconnects_increase_the_retry_delay(
    page: Page, page_url: str
) -> None:
    await open_live(page, page_url)
    cut = """async () => {
      const before = feedRequests.length;
      const at = performance.now();
      pushRaw("retry: 1000\\n\\nevent: cut_off\\ndata: {}\\n\\n");
      setTimeout(cutFeed, 200);
      while (feedRequests.length === before) await new Promise((done) => setTimeout(done, 10));
      return performance.now() - at;
    }"""
    waited = [await page.evaluate(cut) for _ in range(4)]
    assert min(waited) >= 1_000 / HASTE  # as the server asked
    assert waited[3] >= 2_000 / HASTE  # being let in is no sign that it works: the wait has grown


async def test_a_reset_reloads_everything(page: Page, page_url: str, sampled: Api) -> None:
    sampled.many(3)
    await page.goto(page_url)
    await expect(page.locator("#summary")).to_contain_text("3 in all")
    sampled.many(5)
    for view in sampled.sessions.values():  # of a log that was made anew
        view["sequence"] = 0
        view["chains"]["main"]["used_percent"] = 77.0
    await page.evaluate("pushRaw('event: reset\\ndata: {}\\n\\n')")
    await expect(page.locator("#summary")).to_contain_text("5 in all")
    shares = page.locator(".rows .row:visible .gauge-share")
    assert {share.split()[0] for share in await shares.all_inner_texts()} == {"77%"}


async def test_an_answer_from_before_a_reset_is_dropped(
    page: Page, page_url: str, sampled: Api
) -> None:
    view = sampled.one()
    await open_live(page, page_url)
    await page.evaluate("""() => {
      const native = window.fetch;
      window.release = {};
      window.held = async (name) => {
        while (!window.release[name]) await new Promise((done) => setTimeout(done, 10));
      };
      window.fetch = async (path, options) => {
        const list = /^v1\\/sessions\\?(id=)?/.exec(path);
        if (list === null) return native(path, options);
        const answer = await native(path, options);
        const body = await answer.json();
        await new Promise((done) => { window.release[list[1] ? "changed" : "list"] = done; });
        return Object.assign(answer, { json: () => Promise.resolve(body) });
      };
    }""")
    view["sequence"] = 9
    entry = {"session_id": view["session_id"], "chain": "main", "kind": "context_warning"}
    await page.evaluate("(e) => pushEntries([e])", entry | {"sequence": 9})
    await page.evaluate("held('changed')")
    view["sequence"] = 0  # of a log that was recreated
    view["chains"]["main"]["used_percent"] = 77.0
    await page.evaluate("pushRaw('event: reset\\ndata: {}\\n\\n')")
    await page.evaluate("held('list')")
    await page.evaluate(
        "release.changed(); new Promise((done) => setTimeout(done)).then(release.list)"
    )
    await expect(page.locator(".rows .gauge-share").first).to_contain_text("77%")


async def test_a_stalled_projector_is_reported(page: Page, page_url: str, sampled: Api) -> None:
    sampled.stale_ms = 95_000
    await page.goto(page_url)
    await expect(page.locator(".notice.warn")).to_contain_text("1 min 35 s behind")
    await expect(page.locator(".notice.warn")).to_contain_text("contextgauge project")


@pytest.mark.extended
async def test_a_token_is_requested_and_kept_out_of_the_address(
    page: Page, page_url: str, sampled: Api
) -> None:
    sampled.token = "of-this-test"  # noqa: S105 -- nobody's
    await page.goto(page_url)
    await page.get_by_role("dialog").get_by_label("Token").fill(sampled.token)
    await page.get_by_role("button", name="Continue").click()
    await expect(page.locator(".rows .row:visible")).to_have_count(len(sampled.sessions))
    await page.evaluate("sessionStorage.clear()")
    await page.goto("about:blank")
    await page.goto(f"{page_url}#token={sampled.token}")
    await expect(page.locator(".rows .row:visible")).to_have_count(len(sampled.sessions))
    assert page.url == f"{page_url}#/"


@pytest.mark.extended
async def test_a_refused_token_is_reported_at_its_input_field(
    page: Page, page_url: str, sampled: Api
) -> None:
    sampled.token = "of-this-test"  # noqa: S105 -- nobody's
    await page.goto(page_url)
    dialog = page.get_by_role("dialog")
    field = dialog.get_by_label("Token")
    await expect(field).to_be_visible()
    assert await field.get_attribute("aria-invalid") is None
    await expect(dialog.get_by_role("alert")).to_have_count(0)
    await field.fill("wrong")
    await page.keyboard.press("Enter")
    await expect(dialog.get_by_role("alert")).to_have_text("This token is not known here.")
    await expect(field).to_have_attribute("aria-invalid", "true")
    await expect(field).to_have_accessible_description("This token is not known here.")
    await expect(field).to_be_focused()
    await field.fill(sampled.token)
    await page.keyboard.press("Enter")
    await expect(page.locator(".rows .row:visible")).to_have_count(len(sampled.sessions))
    await expect(dialog).to_have_count(0)


async def test_a_token_with_invalid_percent_encoding_is_used_verbatim(
    page: Page, page_url: str, sampled: Api
) -> None:
    sampled.token = "50%"  # noqa: S105 -- nobody's
    await page.goto(f"{page_url}#token={sampled.token}")
    await expect(page.locator(".rows .row:visible")).to_have_count(len(sampled.sessions))
    assert page.url == f"{page_url}#/"


@pytest.mark.usefixtures("hasty")
async def test_a_missing_session_is_reported(page: Page, page_url: str, sampled: Api) -> None:
    await page.goto(f"{page_url}#/session/nothing")
    await expect(page.get_by_role("heading", name="Session not found")).to_be_visible()
    note = page.locator(".note")
    await expect(note).to_contain_text(
        "No session with this id. It may have been removed, or its messages have not arrived yet."
    )
    assert "GET" not in await note.inner_text()
    element = await note.element_handle()
    await page.wait_for_timeout(3_500 / HASTE)  # it is asked for again, and what is said stays
    assert await page.evaluate("(e) => e.isConnected", element)
    await page.get_by_role("link", name="Show all sessions").click()
    await expect(page.locator(".rows .row:visible")).to_have_count(len(sampled.sessions))


@pytest.mark.extended
async def test_an_id_prefix_opens_the_session_or_lists_all_matches(
    page: Page, page_url: str, sampled: Api
) -> None:
    sampled.many(20)  # 00000000-… to 00000013-…
    one = "0000000a-0000-4000-8000-000000000000"
    await page.goto(page_url)
    await page.goto(f"{page_url}#/session/0000000a")
    await expect(page.locator(".hero")).to_be_visible()
    assert page.url == f"{page_url}#/session/{one}"
    await page.go_back()
    await expect(page.locator(".rows")).to_be_visible()  # and not the beginning again
    await page.goto(f"{page_url}#/session/0000001")
    await expect(page.get_by_role("heading", name="Several sessions match")).to_be_visible()
    await expect(page.locator(".note li")).to_have_count(4)
    await page.locator(".note li a").first.click()
    await expect(page.locator(".hero")).to_be_visible()


async def test_an_unknown_address_shows_page_not_found(page: Page, page_url: str, api: Api) -> None:
    assert api.sessions == {}
    await page.goto(f"{page_url}#/bogus")
    await expect(page.get_by_role("heading", name="Page not found")).to_be_visible()
    await page.get_by_role("link", name="Show all sessions").click()
    await expect(page.get_by_role("heading", name="No sessions yet")).to_be_visible()


@pytest.mark.extended
@pytest.mark.usefixtures("hasty")
async def test_an_unavailable_server_is_reported_once_where_nothing_is_shown(
    page: Page, page_url: str, sampled: Api
) -> None:
    await page.goto(page_url)
    await expect(page.locator(".rows .row:visible")).to_have_count(len(sampled.sessions))
    sampled.gone = True
    await page.evaluate("feedGone = true; cutFeed()")
    await expect(page.locator(".notice.bad")).to_be_visible()
    await page.get_by_role("link", name="Analytics").click()
    await expect(page.get_by_role("heading", name="The server does not answer")).to_be_visible()
    note = await page.locator(".note").element_handle()
    asked = len(sampled.asked)
    while len(sampled.asked) < asked + 8:  # more than one time, of all that it asks for
        await page.wait_for_timeout(200)
    whole = await page.locator("body").inner_text()
    assert whole.count("does not answer") == 1
    assert "as of" not in whole
    assert await page.evaluate("(e) => e.isConnected", note)
    sampled.problem, sampled.gone = (503, "Redis does not answer."), False
    await expect(page.get_by_role("heading", name="cannot be read now")).to_be_visible()
    sampled.problem = None
    await page.get_by_role("link", name="Overview", exact=True).click()
    await expect(page.locator(".rows .row:visible")).to_have_count(len(sampled.sessions))


@pytest.mark.extended
@pytest.mark.usefixtures("hasty", "sampled")
async def test_the_feed_of_an_unavailable_server_is_retried_every_few_seconds(
    page: Page, page_url: str
) -> None:
    await open_live(page, page_url)
    waits = await page.evaluate("""async () => {
      const { fetch, setTimeout } = window;
      const waits = [];
      let ended = 0;
      window.setTimeout = (call, ms) => setTimeout(() => { ended = ms; call(); }, ms);
      window.fetch = (path, options) => {
        if (!String(path).startsWith("v1/stream")) return fetch(path, options);
        waits.push(ended);
        return Promise.reject(new TypeError("Failed to fetch"));
      };
      cutFeed();
      while (waits.length < 7) await new Promise((done) => setTimeout(done, 10));
      return waits;
    }""")
    assert 2_250 <= max(waits) <= 3_750  # not 10 s, however long it is away


@pytest.mark.extended
async def test_without_the_chart_library_the_table_is_shown(
    page: Page, page_url: str, sampled: Api
) -> None:
    await page.route("**/vendor/**", lambda route: route.fulfill(status=404))
    session = next(
        name for name, view in sampled.sessions.items() if view["chains"]["main"]["peak_tokens"]
    )
    await page.goto(f"{page_url}#/session/{session}")
    await expect(page.locator(".chart-missing")).to_contain_text("make page")
    await page.get_by_text("Show as table").first.click()
    await expect(page.locator("details.data tbody tr").first).to_be_visible()


async def test_the_switch_sets_a_theme_and_a_reload_keeps_it(
    page: Page, page_url: str, api: Api
) -> None:
    assert api.sessions == {}
    await page.emulate_media(color_scheme="light")
    await page.goto(page_url)
    background = "getComputedStyle(document.body).backgroundColor"
    light = await page.evaluate(background)
    await page.get_by_role("button", name="Theme").click()  # light
    assert await page.evaluate(background) == light
    await page.get_by_role("button", name="Theme: light").click()
    dark = await page.evaluate(background)
    assert dark != light
    await page.reload()
    assert await page.evaluate(background) == dark
    await page.get_by_role("button", name="Theme: dark").click()
    assert await page.evaluate(background) == light
