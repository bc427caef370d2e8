"""Faults at the edges: a publisher that follows files, and the webhooks of alerts."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Final

from aiohttp import web

from streams import codec
from streams.core.alerts.watch import Watch
from streams.edge.alerts.rules_file import read_plan
from tests.chaos.faults import fault
from tests.chaos.oracle import ViolationError
from tests.chaos.workers import WorkerProcess
from tests.chaos.world import ENDED, World
from tests.web_kit import web_server

_RULES: Final = """
max_age = "7d"
memory = "redis"

[[targets]]
name = "slow"
url = "{url}/slow"
timeout = "2s"

[[rules]]
name = "used"
when = "pressure"
at_percent = 20
targets = ["slow"]
"""


async def _read_up_to_end(world: World, size: int) -> None:
    """Wait until the publisher has read the file to its end."""
    checkpoint = world.folder / "checkpoint.json"
    inode = (world.folder / "input" / "log.jsonl").stat().st_ino

    def so() -> bool:
        if not checkpoint.exists():
            return False
        positions = codec.loads(checkpoint.read_bytes())["files"]
        return any(
            position["inode"] == inode and position["offset"] == size for position in positions
        )

    await world.until(so, "the publisher reads the file")


async def _followed(world: World, act: str) -> None:
    """Let a publisher follow a file that grows, and is rotated or cut, while it is killed."""
    await world.stop_publishing()
    folder = world.folder / "input"
    folder.mkdir()
    file, lines = folder / "log.jsonl", list[tuple[str, bytes]]()
    checkpoint = str(world.folder / "checkpoint.json")
    publisher = world.fleet.add(
        "publish-1", "-f", "--no-live", "--checkpoint", checkpoint, str(folder)
    )
    for turn in range(6):
        lines += _write(world, file)
        await world.pause(0.05, 0.5)
        world.note("kill the publisher")
        publisher.crash()
        if act == "rotated":
            publisher.start_again()
            await _read_up_to_end(world, file.stat().st_size)
            file.rename(folder / f"log.{turn}.jsonl")
            world.note("rotated")
        elif act == "truncated" and turn % 2:
            publisher.start_again()
            await _read_up_to_end(world, file.stat().st_size)
            with file.open("r+b") as target:
                target.truncate(0)
            world.note("truncated to nothing")
        else:
            publisher.start_again()
    lines += _write(world, file)
    await _read_up_to_end(world, file.stat().st_size)
    codes = await world.fleet.end("publish")
    assert set(codes.values()) == {0}, codes
    world.sent += lines


def _write(world: World, file: Path) -> list[tuple[str, bytes]]:
    """Append some messages to a file; return them."""
    messages = [world.next_message() for _ in range(world.dice.randrange(20, 60))]
    lines = [(message.session_id, message.named()) for message in messages]
    with file.open("ab") as target:
        target.write(b"".join(value + b"\n" for _, value in lines))
    return lines


@fault("publisher killed", "edges")
async def _publisher_killed(world: World) -> None:
    await _followed(world, "killed")


@fault("input rotated", "edges")
async def _rotated(world: World) -> None:
    await _followed(world, "rotated")


@fault("input truncated", "edges")
async def _truncated(world: World) -> None:
    await _followed(world, "truncated")


class _Receiver:
    """A webhook server that may hang."""

    def __init__(self) -> None:
        self.taken: Counter[str] = Counter()
        self.hangs = 0
        self.go = asyncio.Event()

    async def handle(self, request: web.Request) -> web.Response:
        await request.read()
        if not self.go.is_set():
            self.hangs += 1
            await self.go.wait()
        self.taken[request.headers["webhook-id"]] += 1
        return web.Response()


def _expected(world: World) -> set[str]:
    plan = read_plan(world.folder / "alerts.toml")
    watches = [Watch(plan) for _ in world.oracle.records]
    return {
        alert.id
        for watch, records in zip(watches, world.oracle.records, strict=True)
        for record in records
        for alert in watch.observe(record, record.time_ms or 0, record.time_ms or 0)
        if alert.time_ms is not None  # one without a time is never sent
    }


@fault("webhook hangs", "edges", outcome="each alert comes at least once (ALERTS, guarantees)")
async def _webhook(world: World) -> None:
    receiver = _Receiver()
    async with web_server(receiver.handle) as url:
        rules = world.folder / "alerts.toml"
        rules.write_text(_RULES.format(url=url))
        control: WorkerProcess = world.fleet.add("control-1", ALERTS_FILE=str(rules))
        await world.until(lambda: receiver.hangs > 0, "a webhook is called")
        world.note("the webhook hangs")
        await world.out_for(4.0, 6.0)
        control.kill()
        world.note("kill the control worker")
        await world.out_for(1.0, 2.0)
        receiver.go.set()
        world.note("it answers")
        await world.stop_publishing()
        await world.arrived()
        wanted = _expected(world)
        if not wanted:
            raise ViolationError("no alert is expected: the rules fit nothing")
        try:
            await world.until(lambda: wanted <= set(receiver.taken), "all alerts arrive")
        except ViolationError as error:
            lacking = wanted - set(receiver.taken)
            raise ViolationError(f"{error}: {len(lacking)} of {len(wanted)}: {lacking}") from None
        codes = await world.fleet.end("control")
        assert set(codes.values()) <= ENDED, codes
        unexpected = set(receiver.taken) - wanted
        if unexpected:
            raise ViolationError(f"{len(unexpected)} alerts that no one asked for")
        world.note(f"{len(wanted)} alerts, {receiver.taken.total() - len(wanted)} sent again")
