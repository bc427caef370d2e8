"""Requests and decisions on real services: each is in the log of commands, and is shown."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiohttp import web

from contextgauge.kafka.options import KafkaOptions
from contextgauge.partitioner import partition_of
from schemas.commands import (
    CommandEntry,
    CommandView,
    CompactionDecided,
    CompactRequested,
    ControlView,
    ThresholdsSet,
)
from schemas.records import Runtime
from schemas.topics import CONTEXT_COMMANDS
from streams.codec.commands import read_entry
from streams.edge.kafka.log import KafkaLog
from streams.edge.redis.control import RedisControlStore
from streams.edge.telemetry.server import listening, port_of
from streams.settings import load_settings
from tests.commands import Command
from tests.core.given import assistant, init
from tests.e2e.test_control import RULES
from tests.flow.derive_kit import until
from tests.patience import PATIENCE_S
from tests.serve.redis_kit import Served
from tests.web_kit import web_server

PARTITIONS = 2
SESSION = "5b1f0c2e-0000-4000-8000-000000000001"
MODEL = "claude-sonnet-4-5"
FILE = """
[[sessions]]
agents = ["reviewer"]
automatic = true
compact_at = "80%"
"""


def lines(session: str, *used: int, runtime: Runtime = "other") -> str:
    """Return a session of now, whose responses use so many tokens."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    bodies: list[dict[str, Any]] = [init(MODEL, runtime=runtime)]
    bodies += [assistant(f"r{each}", read=each, model=MODEL) for each in used]
    return "".join(
        json.dumps(body | {"session_id": session, "timestamp": now}) + "\n" for body in bodies
    )


class Commands:
    """What is in the log of commands."""

    def __init__(self, address: str, prefix: str) -> None:
        self.log = KafkaLog(KafkaOptions(address))
        self._topic = load_settings({"topic_prefix": prefix}).topic(CONTEXT_COMMANDS).name

    async def entries(self) -> list[CommandEntry]:
        found = []
        for partition in range(PARTITIONS):
            reader = self.log.reader(self._topic, [partition])
            await reader.start()
            position, end = await reader.bounds(partition)
            reader.seek(partition, position)
            while position < end:
                batch = await reader.poll(partition, 1_000, 0.1)
                found += [read_entry(each.headers, each.value or b"") for each in batch.records]
                position = batch.position
            await reader.stop()
        return found

    async def requests(self) -> list[CompactRequested]:
        entries = [entry.data for entry in await self.entries()]
        return [data for data in entries if isinstance(data, CompactRequested)]

    async def decisions(self) -> list[CompactionDecided]:
        entries = [entry.data for entry in await self.entries()]
        return [data for data in entries if isinstance(data, CompactionDecided)]


@pytest.mark.extended
async def test_a_session_is_compacted_by_its_threshold_and_on_request(
    command: Command, settings: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "compaction.toml"
    file.write_text(FILE)
    given = settings | {"PARTITIONS": str(PARTITIONS), "COMPACTION_FILE": str(file)}
    shown = command("control", "--check", str(file))
    assert "agents reviewer: automatic, at 80%" in shown.stdout
    assert command("topics", "create", **given).returncode == 0
    for worker in ("derive", "project"):
        command.start(worker, **given)
    control = command.start("control", **given)
    commands = Commands(settings["BOOTSTRAP_SERVERS"], settings["TOPIC_PREFIX"])
    await commands.log.start()

    async def publish(session: str, *used: int, agent: str, runtime: Runtime = "other") -> None:
        text = lines(session, *used, runtime=runtime)
        done = await asyncio.to_thread(
            lambda: command(
                "publish", "--no-live", "--agent-id", agent, "-", stdin=text, **settings
            )
        )
        assert done.returncode == 0, done.stderr

    await publish("claude", 100_000, 165_000, agent="reviewer", runtime="claude-code")

    async def is_decided() -> bool:
        return bool(await commands.decisions())

    await until(is_decided)
    (decided,) = await commands.decisions()
    assert (decided.session_id, decided.reason) == ("claude", "no_driver")
    await publish(SESSION, 100_000, 165_000, agent="reviewer")
    await publish("another", 100_000, 165_000, agent="other")

    async def is_requested() -> bool:
        return bool(await commands.requests())

    await until(is_requested)
    (request,) = await commands.requests()
    assert (request.session_id, request.trigger) == (SESSION, "auto")
    assert {each.reason for each in await commands.decisions()} == {"no_driver", "above_threshold"}

    set_ = await asyncio.to_thread(
        lambda: command("thresholds", "--agent", "other", "--automatic", **settings)
    )
    assert set_.returncode == 0, set_.stderr
    entries = [entry.data for entry in await commands.entries()]
    assert len([each for each in entries if isinstance(each, ThresholdsSet)]) == PARTITIONS
    await publish("another", 175_000, agent="other")

    async def is_other_requested() -> bool:
        return "another" in {each.session_id for each in await commands.requests()}

    await until(is_other_requested)
    control.terminate()
    await asyncio.to_thread(control.communicate)
    assert control.returncode == 0
    await _request(command, settings, given, commands)
    await commands.log.stop()


async def _request(
    command: Command, settings: dict[str, str], given: dict[str, str], commands: Commands
) -> None:
    """Request compactions over the API and on the command line, and look at what is shown."""
    with listening("127.0.0.1", 0) as listener:
        port = port_of(listener)
    served = Served(command, port, **given, SERVE_CONTROL="true")
    await served.start()
    path = f"/v1/sessions/{SESSION}"
    async with httpx.AsyncClient(base_url=served.url, timeout=PATIENCE_S) as client:

        async def is_projected() -> bool:
            return (await client.get(path)).status_code == 200

        await until(is_projected)
        answer = await client.post(f"{path}/compact", json={"instructions": "keep the API"})
        assert answer.status_code == 202, answer.text
        done = await asyncio.to_thread(lambda: command("compact", SESSION, "--json", **settings))
        assert done.returncode == 0, done.stderr
        asked = {each.command_id: each for each in await commands.requests()}
        assert asked[answer.json()["command_id"]].instructions == "keep the API"
        assert json.loads(done.stdout)["command_id"] in asked
        assert len(asked) == 4
        await _show(command, settings, client, path)


async def _show(
    command: Command, settings: dict[str, str], client: httpx.AsyncClient, path: str
) -> None:
    """Let a control worker report, and look at what is shown."""
    store = RedisControlStore(settings["REDIS_URL"], settings["KEY_PREFIX"])
    known = CommandView(
        command_id="c-1",
        trigger="manual",
        requested_by="cli:ada",
        instructions=None,
        cause_id=None,
        state="called",
        requested_ms=1,
        summariser="extractive",
    )
    view = ControlView(session_id=SESSION, commands=(known,))
    now_ms = int(datetime.now(UTC).timestamp() * 1_000)
    await store.put(partition_of(SESSION, PARTITIONS), {SESSION: view}, 10_000, now_ms)
    await store.stop()
    body = (await client.get(f"{path}/control")).json()
    assert body["worker"]["is_working"]
    assert body["control"]["commands"][0]["command_id"] == "c-1"
    why = await asyncio.to_thread(lambda: command("why", SESSION[:8], **settings))
    assert "under way" in why.stdout
    cancelled = await asyncio.to_thread(lambda: command("compact", SESSION, "--cancel", **settings))
    assert "Cancelling c-1: waiting for the summary without a model" in cancelled.stderr


@pytest.mark.extended
async def test_alerts_in_one_process_and_the_service_in_another_each_see_all_sessions(
    command: Command, settings: dict[str, str], tmp_path: Path
) -> None:
    alerts, service = tmp_path / "alerts.toml", tmp_path / "compaction.toml"
    service.write_text(FILE.replace('"reviewer"', '"*"'))
    given = settings | {"PARTITIONS": str(PARTITIONS)}
    assert command("topics", "create", **given).returncode == 0
    for worker in ("derive", "project"):
        command.start(worker, **given)
    sessions = {f"session-{number}" for number in range(6)}
    assert {partition_of(each, PARTITIONS) for each in sessions} == {0, 1}
    alerted: set[str] = set()

    async def take(request: web.Request) -> web.Response:
        alerted.add((await request.json())["session_id"])
        return web.Response()

    async with web_server(take) as url:
        alerts.write_text(RULES.format(url=url))
        state = {"STATE_FOLDER": str(tmp_path / "state")}
        command.start("control", "--rules", str(alerts), **given, **state)
        command.start("control", **given, COMPACTION_FILE=str(service))
        text = "".join(lines(each, 100_000, 165_000) for each in sorted(sessions))
        done = await asyncio.to_thread(
            lambda: command(
                "publish", "--no-live", "--agent-id", "any", "-", stdin=text, **settings
            )
        )
        assert done.returncode == 0, done.stderr
        commands = Commands(settings["BOOTSTRAP_SERVERS"], settings["TOPIC_PREFIX"])
        await commands.log.start()
        decided: set[str] = set()

        async def are_seen() -> bool:
            entries = [entry.data for entry in await commands.entries()]
            decided.update(
                each.session_id for each in entries if isinstance(each, CompactionDecided)
            )
            return alerted == decided == sessions

        await until(are_seen)
        await commands.log.stop()
