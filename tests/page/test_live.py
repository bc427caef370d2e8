"""The page over the real stack: a session is published live, and what happens is seen at once."""

import re
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.commands import Command
from tests.page.agent import THRESHOLD, Agent

pytestmark = pytest.mark.asyncio(loop_scope="session")

SESSION = "5f0d8a31-1111-4222-8333-00000000abcd"


def now_ms() -> int:
    return int(time.time() * 1_000)


@pytest.fixture
def stack(  # noqa: PLR0917 -- names of its own for all that is shared
    command: Command,
    kafka: str,
    redis_url: str,
    topic_prefix: str,
    group_prefix: str,
    key_prefix: str,
    tmp_path: Path,
) -> Callable[..., "subprocess.Popen[str]"]:
    """Start a command of the stack; derive, project and a follower of `agent.jsonl` run."""
    settings = {
        "BOOTSTRAP_SERVERS": kafka,
        "REDIS_URL": redis_url,
        "TOPIC_PREFIX": topic_prefix,
        "GROUP_PREFIX": group_prefix,
        "KEY_PREFIX": key_prefix,
        "PARTITIONS": "2",
        "STATE_FOLDER": str(tmp_path / "state"),
        "METRICS_PORT": "0",
    }
    created = command("topics", "create", **settings)
    assert created.returncode == 0, created.stderr

    def start(*arguments: str, **more: str) -> "subprocess.Popen[str]":
        name = arguments[0]
        return command.start_logging(tmp_path / f"{name}.log", *arguments, **settings, **more)

    (tmp_path / "agent.jsonl").touch()
    start("derive")
    start("project")
    start("publish", "--follow", str(tmp_path / "agent.jsonl"))
    return start


async def test_a_session_is_seen_live_from_its_first_message_to_its_compaction(
    page: Page, stack: Callable[..., "subprocess.Popen[str]"], tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    server = stack("serve", SERVE_PORT=port)
    await _answers(page, port)
    agent = Agent(tmp_path / "agent.jsonl", SESSION)
    await expect(page.get_by_role("heading", name="No sessions yet")).to_be_visible()

    agent.begin(now_ms())
    agent.respond(now_ms(), 90_000)
    row = page.locator(f".row[data-id='{SESSION}']")
    await expect(row.locator(".gauge-share")).to_contain_text("45%")
    await expect(row.locator(".gauge")).to_have_attribute("data-severity", "normal")
    await expect(page.locator(".live")).to_have_attribute("data-state", "live")
    element = await row.element_handle()
    width = await _bar(page)

    agent.respond(now_ms(), 161_000)
    await expect(row.locator(".gauge")).to_have_attribute("data-severity", "high")
    await expect(row).to_contain_text("6K")
    await page.wait_for_timeout(500)  # the bar grows in a third of a second
    assert await _bar(page) > width
    assert await page.evaluate("(e) => e.isConnected", element)

    await row.locator(".row-link").click()
    await expect(page.locator(".hero .gauge-share")).to_contain_text("80%")
    await expect(page.locator(".item.warning.high")).to_contain_text("20% context remaining")
    began_ms = now_ms()
    agent.compacting(began_ms)
    item = page.locator(".item.compaction")
    await expect(item).to_have_attribute("data-status", "running")
    await expect(item.locator(".icon[data-name=spinner]")).to_be_visible()
    await expect(item).to_contain_text(re.compile(r"0:0[2-9]"))
    running = await item.element_handle()
    agent.compacted(now_ms(), 161_500, 7_300, "What the orchard was about.")
    agent.respond(now_ms(), 24_000)
    await expect(item).to_have_attribute("data-status", "done")
    await expect(item).to_contain_text("(137,500 tokens saved)")
    await expect(item).to_contain_text("7.3 s, reported by the runtime")
    assert await page.evaluate("(e) => e.isConnected", running)

    await page.reload()
    await expect(item).to_contain_text("(137,500 tokens saved)")
    await expect(page.locator(".hero .gauge-share")).to_contain_text("12%")

    server.kill()
    server.wait()
    await expect(page.locator(".notice.bad")).to_be_visible()
    await expect(page.locator(".hero .gauge-share")).to_contain_text("12%")
    agent.respond(now_ms(), THRESHOLD)
    stack("serve", SERVE_PORT=port)
    await expect(page.locator(".hero .gauge-share")).to_contain_text("83%")
    await expect(page.locator(".notice")).to_have_count(0)
    await expect(page.locator(".live")).to_have_attribute("data-state", "live")


async def _answers(page: Page, port: str) -> None:
    """Open the page as soon as the server answers."""
    for _ in range(300):
        with socket.socket() as asking:
            if asking.connect_ex(("127.0.0.1", int(port))) == 0:
                break
        await page.wait_for_timeout(100)
    await page.goto(f"http://127.0.0.1:{port}/")


async def _bar(page: Page) -> float:
    box = await page.locator(f".row[data-id='{SESSION}'] .fill").bounding_box()
    assert box is not None
    return box["width"]
