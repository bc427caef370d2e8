"""What the control plane knows of a session, on its page."""

import re
from dataclasses import asdict
from typing import Any

import pytest
from playwright.async_api import Page, expect

from schemas.commands import CommandView, DecisionView
from streams.core.control.reasons import REASONS
from streams.serve.api.page import FOLDER
from tests.page.agent import WINDOW
from tests.page.pretend import Api
from tests.page.shown import NOW_MS, SESSION, Shown

pytestmark = pytest.mark.asyncio(loop_scope="session")


def decision(reason: str, *, fired: bool) -> dict[str, Any]:
    return asdict(
        DecisionView(
            id="d", time_ms=NOW_MS, fired=fired, reason=reason, command_id=None, cause_id=None,
            model="m", used_tokens=153_000, window=WINDOW, window_source="runtime",
            threshold_tokens=160_000,
        )
    )  # fmt: skip


def command(**more: Any) -> dict[str, Any]:
    known = CommandView(
        command_id="c", trigger="manual", requested_by="cli", instructions=None, cause_id=None,
        state="requested", requested_ms=NOW_MS, **more,
    )  # fmt: skip
    return asdict(known)


@pytest.mark.extended
@pytest.mark.usefixtures("hasty")
async def test_the_latest_decision_and_command_are_shown(
    page: Page, shown: Shown, api: Api
) -> None:
    assert shown.agent.session_id == SESSION
    main = api.sessions[SESSION]["chains"]["main"]
    main.update(auto_compact_enabled=None, auto_compact_threshold=None)
    await page.reload()
    section = page.get_by_role("region", name="Compaction service")
    hero = page.locator(".hero")
    await expect(hero).to_contain_text("Unknown whether compaction is automatic.")
    await expect(section).to_have_count(0)
    no_driver = decision("no_driver", fired=False)
    refused = command(outcome="refused", reason="claude-code compacts itself")
    api.control[SESSION] = {"decisions": [no_driver], "commands": [refused]}
    await expect(section).to_contain_text(
        "Not compacted at 153K: its runtime compacts itself, and no driver is named"
    )
    await expect(section).to_contain_text("refused: claude-code compacts itself")
    await expect(hero).to_contain_text("Until compactionunknown")
    fired = decision("above_threshold", fired=True)
    api.control[SESSION] = {"decisions": [no_driver, fired], "commands": [refused, command()]}
    await expect(section).to_contain_text("Requested at 153K: the size reached its threshold")
    await expect(section).to_contain_text("waiting · asked for by cli")
    await expect(hero).to_contain_text("The compaction service compacts this session.")
    await expect(hero).to_contain_text("It does so at 160,000 tokens.")
    await expect(hero.locator(".facts")).to_contain_text("Until compaction7K")
    await expect(hero.locator(".mark")).to_be_visible()
    await expect(page.locator(".legend .key.threshold")).to_be_visible()


async def test_each_reason_has_words() -> None:
    script = (FOLDER / "control.js").read_text(encoding="utf-8")
    words = re.search(r"const REASONS = \{\n(.*?)\n\};", script, re.DOTALL)
    assert words
    assert re.findall(r"^  (\w+):", words[1], re.MULTILINE) == list(REASONS)
