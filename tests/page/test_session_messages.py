"""All messages of a session on its page, with markers that expand."""

import re

import pytest
from playwright.async_api import Page, expect

from contextgauge.records import Json
from streams.core.conversation.fold import ConversationFold
from tests.page.pretend import Api
from tests.page.shown import NOW_MS, SESSION, Shown
from tests.serve.kit import GrowingViews, api_over, sample_records
from tests.serve.text_kit import OneConversation

pytestmark = pytest.mark.asyncio(loop_scope="session")

TURNS = 130
LONG = "The importer drops the last row. " * 20
RESULT = "row\n" * 4_000


def turn(number: int, content: Json, role: str = "user") -> dict[str, Json]:
    message = {"role": role, "content": content, "id": f"m{number}"}
    return {"type": role, "uuid": f"{number}", "message": message}


def lines() -> list[dict[str, Json]]:
    """Return turns, a compaction, and what followed it."""
    call: Json = {"type": "tool_use", "id": "c", "name": "Read", "input": {"file_path": "a.csv"}}
    result: Json = {"type": "tool_result", "tool_use_id": "c", "content": RESULT}
    return [
        *(turn(number, f"turn {number}") for number in range(TURNS)),
        {"type": "system", "subtype": "compact_boundary", "uuid": "b"},
        {**turn(500, "## So far\nThe importer is mended."), "isCompactSummary": True},
        turn(501, LONG),
        turn(502, [{"type": "text", "text": "I read it."}, call], "assistant"),
        turn(503, [result]),
    ]


def serve_text(api: Api, *, is_cut: bool = False) -> None:
    """Let the API have the session's text, or only what its model sees of it."""
    fold = ConversationFold()
    for offset, line in enumerate(lines()):
        fold.add(line, offset)
    if is_cut:
        base, fold = fold.base(), ConversationFold()
        fold.begin_with(base, len(lines()))
        fold.miss()
    views = GrowingViews()
    views.add(*sample_records())
    api.texts = api_over(views, conversations=OneConversation(SESSION, fold.result))


@pytest.mark.extended
async def test_all_messages_are_shown_with_markers_that_expand(
    page: Page, shown: Shown, api: Api
) -> None:
    serve_text(api)
    shown.agent.compacted(NOW_MS, 154_000, 9_000, "The importer is mended.")
    shown.agent.respond(NOW_MS + 1_000, 31_000)
    await shown.tell()
    await expect(page.locator(".compaction .receipt")).to_contain_text("123,000 tokens freed")
    section = page.locator("details", has=page.get_by_role("heading", name="Messages"))
    await section.locator("summary").first.click()
    await expect(section).to_contain_text("4 messages in the context")
    messages = section.locator(".message")
    await expect(messages).to_have_count(100)
    marker = section.locator(".message.marker")
    await expect(marker.locator("summary")).to_have_text(
        "Context compacted #1 · 123,000 tokens freed · ## So far The importer is mended."
    )
    summary = marker.locator("pre")
    await expect(summary).to_be_hidden()
    await marker.locator("summary").click()
    await expect(summary).to_have_text("## So far\nThe importer is mended.")

    turns = section.locator(".message:not(.archived, .marker)")
    await expect(turns.nth(0).locator("summary")).to_have_text(
        re.compile(r"^The importer .+\.\.\.$")
    )
    await expect(turns.nth(1)).to_contain_text('I read it. [Read {"file_path":"a.csv"}]')
    await expect(turns.nth(2)).to_contain_text("[result of Read: 16,000 characters]")
    await turns.nth(0).locator("summary").click()
    await expect(turns.nth(0).locator("pre")).to_have_text(LONG)

    await expect(messages.first).to_have_class("message archived")
    await expect(messages.first).to_contain_text("turn 34")
    await page.get_by_role("button", name="Show older messages").click()
    await expect(messages).to_have_count(TURNS + 4)
    await expect(messages.first).to_contain_text("turn 0")
    await expect(page.get_by_role("button", name="Show older messages")).to_be_hidden()


@pytest.mark.extended
async def test_what_is_no_longer_kept_is_counted(page: Page, shown: Shown, api: Api) -> None:
    assert shown.agent.session_id == SESSION
    serve_text(api, is_cut=True)
    section = page.locator("details", has=page.get_by_role("heading", name="Messages"))
    await section.locator("summary").first.click()
    await expect(section.locator(".message")).to_have_count(4)
    await expect(section.get_by_role("status")).to_have_text(
        "Incomplete: a part of what the model sees is not kept. 130 older messages not kept."
    )
    await expect(page.get_by_role("button", name="Show older messages")).to_be_hidden()


@pytest.mark.extended
async def test_a_session_whose_text_is_not_kept_says_how_to_keep_it(
    page: Page, shown: Shown, api: Api
) -> None:
    serve_text(api)
    assert api.texts is not None
    other = sample_records()[0].data.session_id
    api.sessions[other] = {**api.sessions[SESSION], "session_id": other}
    await page.goto(page.url.replace(shown.agent.session_id, other))
    section = page.locator("details", has=page.get_by_role("heading", name="Messages"))
    await section.locator("summary").first.click()
    await expect(section).to_contain_text("The text of this session is not kept. Name it in")
    await expect(section.locator(".message")).to_have_count(0)


@pytest.mark.usefixtures("hasty")
async def test_a_view_of_transcripts_has_no_messages(page: Page, shown: Shown, api: Api) -> None:
    assert shown.agent.session_id == SESSION
    heading = page.get_by_role("heading", name="Messages")
    await expect(heading).to_be_visible()
    api.reading = {"files": 1, "read_files": 1, "bytes": 1, "read_bytes": 1}
    await expect(heading).to_be_hidden()
