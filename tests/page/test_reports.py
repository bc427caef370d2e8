"""Files that are given to others, in a real browser: nothing is asked for, nothing is wrong."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from playwright.async_api import Browser, ViewportSize, expect

from contextgauge.records import Record
from streams.cli.asked import opened
from streams.cli.inputs import sources_of
from streams.cli.report.answers import Answers
from streams.cli.report.page import ReportOrigin, page
from streams.cli.share.share_page import share_page
from streams.cli.share.shared import shared
from streams.cli.transcripts import Replay
from streams.edge.files.folders import write_folder
from streams.flow.simulator import SimulationOptions, sample_sessions
from tests.page.conftest import NARROW, WIDE, Said

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A report of the sample, and its session with most compactions."""
    folder = tmp_path_factory.mktemp("reports")
    write_folder(
        folder / "projects",
        ((each.file, each.value) for each in sample_sessions(SimulationOptions())),
    )
    with opened([str(folder / "projects")]) as asked:
        report = page(Answers(asked.engine), ReportOrigin("sample", 0))
    replayed = Replay(sources_of([str(folder / "projects")]), processes=1)
    sessions: dict[str, list[Record]] = {}
    for record in _flat(replayed.records()):
        sessions.setdefault(record.data.session_id, []).append(record)
    made = max(map(shared, sessions.values()), key=lambda each: len(each.events("compaction")))
    made.steps[0].texts.append({"of": "user", "text": "<b>Hello</b>"})
    contents = {"report": report, "share": share_page(made)}
    for name, content in contents.items():
        (folder / f"{name}.html").write_bytes(content)
    return {name: folder / f"{name}.html" for name in contents}


_TALL = """[
    ...[...document.querySelectorAll("article > .table-scroll")]
        .filter((each) => each.scrollHeight > each.clientHeight),
    ...[...document.querySelectorAll("article")]
        .filter((each) => each.getBoundingClientRect().bottom
            > each.lastElementChild.getBoundingClientRect().bottom + 24),
].map((each) => each.closest("article").id)"""
"""Cards whose table has a bar to scroll down, or that are taller than what they have."""


def _flat(blocks: Iterable[Iterable[Record]]) -> Iterable[Record]:
    return (record for block in blocks for record in block)


@pytest.mark.extended
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["report", "share"])
async def test_files_ask_for_nothing_and_are_accessible(
    browser: Browser, axe: str, files: dict[str, Path], name: str, scheme: str
) -> None:
    context = await browser.new_context(
        viewport=WIDE,
        color_scheme="dark" if scheme == "dark" else "light",
        bypass_csp=True,  # for axe: the policy itself is tested below
    )
    tab = await context.new_page()
    said = Said(tab)
    await tab.goto(files[name].as_uri())
    await tab.evaluate("document.querySelectorAll('details').forEach((each) => each.open = true)")
    await tab.add_script_tag(content=axe)
    result = await tab.evaluate("axe.run({ resultTypes: ['violations'] })")
    faults = [
        (fault["id"], [node["target"] for node in fault["nodes"]][:3])
        for fault in result["violations"]
    ]
    assert faults == []
    assert said.errors == []
    assert said.addresses == {files[name].as_uri()}
    await context.close()


@pytest.mark.extended
@pytest.mark.parametrize("size", [WIDE, NARROW])
async def test_files_fit_and_their_policy_forbids_connections(
    browser: Browser, files: dict[str, Path], size: ViewportSize
) -> None:
    context = await browser.new_context(viewport=size)
    for path in files.values():
        tab = await context.new_page()
        said = Said(tab)
        await tab.goto(path.as_uri())
        assert await tab.evaluate("document.documentElement.scrollWidth") <= size["width"]
        assert await tab.evaluate(_TALL) == []
        assert said.errors == []
        tried = "fetch('http://127.0.0.1:1/').then(() => 'sent', () => 'refused')"
        assert await tab.evaluate(tried) == "refused"
        assert any("Content Security Policy" in error for error in said.errors)
    await context.close()


@pytest.mark.extended
async def test_a_shared_session_is_replayed_step_by_step(
    browser: Browser, files: dict[str, Path]
) -> None:
    tab = await browser.new_page()
    said = Said(tab)
    await tab.goto(files["share"].as_uri())
    steps = await tab.evaluate("JSON.parse(document.getElementById('steps').textContent)")

    async def shown(element: str) -> str:
        return (await tab.locator(element).inner_text()).strip()

    assert await shown("#number") == f"{len(steps):,} of {len(steps):,}"
    await tab.locator("#step").focus()
    await tab.keyboard.press("Home")
    assert await shown("#used") == f"{steps[0]['used']:,} tokens"
    assert await shown("#texts p") == "<b>Hello</b>"
    await tab.locator("#play").click()
    await expect(tab.locator("#number")).not_to_have_text(f"1 of {len(steps):,}")
    await tab.locator("#play").click()
    event = tab.locator(".events button.compaction").first
    await event.click()
    index = next(
        number
        for number, step in enumerate(steps)
        if any(each["kind"] == "compaction" for each in step.get("events", []))
    )
    assert await shown("#used") == f"{steps[index]['used']:,} tokens"
    assert "Compaction 1" in await shown("#happened")
    assert said.errors == []
    await tab.close()
