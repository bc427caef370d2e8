"""From a message to an answer over HTTP: the whole chain, each part as users start it."""

import asyncio
import json
import signal
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from streams.edge.telemetry.server import listening, port_of
from tests.commands import Command
from tests.patience import PATIENCE_S
from tests.serve.redis_kit import Served, become, listen

pytestmark = pytest.mark.extended

AGENT = "reviewer"


def _figures(view: dict[str, Any]) -> Any:
    """Return a view's figures, without whose it is and where its records lie."""
    chains = {
        name: {field: value for field, value in chain.items() if field != "last_sequence"}
        for name, chain in view["chains"].items()
    }
    return chains, view["compactions"]["manual"], view["compactions"]["automatic"]


async def _asked(
    client: httpx.AsyncClient,
    path: str,
    is_enough: Callable[[httpx.Response], bool],
    **headers: str,
) -> httpx.Response:
    """Ask each tenth of a second until the answer is enough."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            answer = await client.get(path, headers=headers)
            if is_enough(answer):
                return answer
            await asyncio.sleep(0.1)


async def test_from_publishing_to_the_answers(command: Command, settings: dict[str, str]) -> None:
    lines = command("simulate", "--sample").stdout
    replayed = command("replay", "--view", "-", stdin=lines).stdout.splitlines()
    expected = {view["session_id"]: _figures(view) for view in map(json.loads, replayed)}
    assert command("topics", "create", **settings).returncode == 0
    command.start("derive", **settings)
    project = command.start("project", **settings)
    with listening("127.0.0.1", 0) as listener:
        port = port_of(listener)
    served = Served(command, port, **settings)
    await served.start()
    heard: list[dict[str, Any]] = []

    async def hear() -> None:
        async for kind, _, document in listen(served.url):
            assert kind in ("", "record")
            if kind == "record":
                heard.append(document)

    async with httpx.AsyncClient(base_url=served.url, timeout=PATIENCE_S) as client:
        await _asked(client, "/v1/projection", lambda found: bool(found.json()["partitions"]))
        hearing = asyncio.create_task(hear())
        await _asked(
            client, "/metrics", lambda found: "contextgauge_serve_stream_readers 1.0" in found.text
        )
        done = await asyncio.to_thread(
            lambda: command(
                "publish", "--no-live", "--agent-id", AGENT, "-", stdin=lines, **settings
            )
        )
        assert done.returncode == 0, done.stderr

        def is_all(found: httpx.Response) -> bool:
            views = found.json()["sessions"]
            return {view["session_id"]: _figures(view) for view in views} == expected

        listed = (await _asked(client, "/v1/sessions?limit=100", is_all)).json()
        assert not listed["as_of"]["stale"]
        assert {view["identity"]["publisher_agent_id"] for view in listed["sessions"]} == {AGENT}
        # Every record is sent, once.
        records = sum(view["sequence"] for view in listed["sessions"])
        await become(lambda: len(heard) >= records)
        assert len({document["record_id"] for document in heard}) == len(heard) == records
        events = (await client.get(f"/api/agents/{AGENT}/events")).json()
        kinds = {event["type"] for event in events}
        assert kinds == {"context_warning", "compaction_start", "compaction_complete"}
        # A projector that stands still is reported, also to readers that have it all.
        tag = (await client.get("/v1/sessions")).headers["etag"]
        project.send_signal(signal.SIGSTOP)
        await _asked(
            client,
            "/v1/sessions",
            lambda found: found.status_code == 200 and found.json()["as_of"]["stale"],
            **{"If-None-Match": tag},
        )
        project.send_signal(signal.SIGCONT)
        await _asked(client, "/v1/sessions", lambda found: not found.json()["as_of"]["stale"])
        hearing.cancel()
    assert served.end(signal.SIGTERM) == 0
