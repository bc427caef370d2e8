"""How the page's files are served: kept for ever by their hash, and under a strict policy."""

import re
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette

from streams.serve.api.page import FOLDER, page_routes, read_page

LINK = re.compile(r'(?:src|href)="([^"#]+)"')


@pytest.fixture
def client() -> httpx.AsyncClient:
    """Ask an application that has the page and nothing else."""
    app = Starlette(routes=page_routes())
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://localhost")


async def test_the_index_references_existing_files(client: httpx.AsyncClient) -> None:
    first = await client.get("/")
    assert first.headers["content-type"] == "text/html; charset=utf-8"
    assert first.headers["cache-control"] == "no-cache"
    links = LINK.findall(first.text)
    assert len(links) >= 5
    for link in links:
        answer = await client.get(f"/{link}")
        assert answer.status_code == 200, link
        assert "immutable" in answer.headers["cache-control"]


async def test_the_policy_allows_the_pages_own_files_and_nothing_inline(
    client: httpx.AsyncClient,
) -> None:
    policy = (await client.get("/")).headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy


async def test_unchanged_content_is_not_sent_again(client: httpx.AsyncClient) -> None:
    first = await client.get("/")
    again = await client.get("/", headers={"If-None-Match": first.headers["etag"]})
    assert again.status_code == 304
    assert again.content == b""
    other = await client.get("/", headers={"If-None-Match": '"other"'})
    assert other.status_code == 200


async def test_a_page_from_before_an_update_still_gets_its_files(client: httpx.AsyncClient) -> None:
    answer = await client.get("/page/0123456789abcdef/app.js")
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("name", ["nothing.js", "index.html", "%2e%2e/page.py", "..%2fpage.py"])
async def test_nothing_else_is_served(client: httpx.AsyncClient, name: str) -> None:
    assert (await client.get(f"/page/0123456789abcdef/{name}")).status_code == 404


def test_the_address_changes_with_any_file(tmp_path: Path) -> None:
    for path in FOLDER.glob("*.*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    before = read_page(tmp_path)
    (tmp_path / "base.css").write_text("body { color: red; }")
    after = read_page(tmp_path)
    assert before.base != after.base
    assert after.base.encode() in after.first
    assert b"@@" not in after.first


def test_no_file_references_another_host() -> None:
    hosts = re.compile(r"https?://(?!www\.w3\.org/)|//[a-z]+\.[a-z]+/")
    named = [
        f"{path.name}: {match.group()}"
        for path in FOLDER.glob("*.*")
        for match in hosts.finditer(path.read_text())
    ]
    assert named == []


def test_modules_are_short() -> None:
    long = {
        path.name: count
        for path in FOLDER.glob("*.*s")
        if (count := len(path.read_text().splitlines())) > 400
    }
    assert long == {}
