"""Faults of three brokers, and of the wires to them."""

import asyncio
import contextlib
import json
import signal
import subprocess
from functools import partial
from pathlib import Path
from typing import Final

from tests.chaos.brokers import Broker, run_java, until_answers
from tests.chaos.faults import fault
from tests.chaos.wire import (
    ADD_PARTITIONS,
    END_TRANSACTION,
    FETCH,
    INIT_PRODUCER,
    JOIN_GROUP,
    PRODUCE,
    Direction,
    Weather,
)
from tests.chaos.world import World

_TRANSACTION_S: Final = 4.0
_DISK_MIB: Final = 96

broker_fault = partial(fault, group="brokers", needs_brokers=True)


async def _leader(world: World) -> Broker:
    topic = world.topics[world.dice.choice(["context.events", "context.state", "agent.messages"])]
    node = await world.services.brokers.leader(topic, world.dice.randrange(world.kit.partitions))
    return world.services.brokers.nodes[node]


async def _coordinator(world: World) -> Broker:
    group = world.kit.config.group
    return world.services.brokers.nodes[await world.services.brokers.coordinator(group)]


async def _back(world: World, broker: Broker) -> None:
    broker.start()
    await until_answers(world.services.brokers, broker.node)


async def _kill_for_a_while(world: World, broker: Broker, role: str) -> None:
    world.note(f"kill broker {broker.node}, {role}")
    broker.kill()
    await world.out_for(3.0, 8.0)
    await _back(world, broker)


@broker_fault("broker of a partition's leader killed")
async def _leader_killed(world: World) -> None:
    await _kill_for_a_while(world, await _leader(world), "a leader")


@broker_fault("broker of the group's coordinator killed")
async def _coordinator_killed(world: World) -> None:
    await _kill_for_a_while(world, await _coordinator(world), "the coordinator")


@broker_fault("all brokers killed")
async def _all_killed(world: World) -> None:
    brokers = world.services.brokers.nodes.values()
    world.note("kill all brokers")
    for broker in brokers:
        broker.kill()
    await world.out_for(0.5, 4.0)
    for broker in brokers:
        broker.start()
    for broker in brokers:
        await until_answers(world.services.brokers, broker.node)


@broker_fault("brokers restarted in turn")
async def _rolled(world: World) -> None:
    for broker in world.services.brokers.nodes.values():
        world.note(f"restart broker {broker.node} in good order")
        await asyncio.to_thread(broker.stop)
        await _back(world, broker)
        await world.services.brokers.heal()


@broker_fault("broker paused")
async def _paused(world: World) -> None:
    broker = await _leader(world)
    world.note(f"pause broker {broker.node}")
    broker.signal(signal.SIGSTOP)
    await world.out_for(6.0, 10.0)
    broker.signal(signal.SIGCONT)


@broker_fault("all brokers paused")
async def _all_paused(world: World) -> None:
    world.note("pause all brokers")
    for broker in world.services.brokers.nodes.values():
        broker.signal(signal.SIGSTOP)
    await world.out_for(6.0, 10.0)
    for broker in world.services.brokers.nodes.values():
        broker.signal(signal.SIGCONT)


@broker_fault("broker lost its disk")
async def _disk_lost(world: World) -> None:
    broker = await _leader(world)
    world.note(f"broker {broker.node} is killed, and starts with an empty disk")
    broker.kill()
    await asyncio.to_thread(broker.format)
    await _back(world, broker)


def _lacks_namespaces() -> str:
    try:
        done = subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False)
    except OSError:
        return "no `unshare` for a small file system of the broker's own"
    return "" if done.returncode == 0 else "user namespaces are not allowed here"


class _SmallDisk:
    """A file system of a few MiB, which only processes inside of it see: no rights are needed."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        mount = (
            f"mount -t tmpfs -o size={_DISK_MIB}m none '{folder}' && echo ready && exec sleep 999"
        )
        self._holder = subprocess.Popen(
            ["unshare", "-rm", "sh", "-c", f"{mount} && echo ready && exec sleep 999"],
            stdout=subprocess.PIPE,
            text=True,
        )
        self._filler = Path(f"/proc/{self._holder.pid}/root{folder}/filler")
        self.pid = self._holder.pid

    def wait(self) -> None:
        """Wait until it is there."""
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == "ready\n"

    def fill(self) -> None:
        """Take all of its room."""
        with contextlib.suppress(OSError), self._filler.open("wb", buffering=0) as target:
            while True:
                target.write(bytes(65_536))

    def empty(self) -> None:
        """Give the room back."""
        self._filler.unlink()

    def discard(self) -> None:
        """Let it go, with all that is in it."""
        self._holder.kill()
        self._holder.wait()


@broker_fault("broker's disk full", lacks=_lacks_namespaces)
async def _disk_full(world: World) -> None:
    broker = await _leader(world)
    world.note(f"broker {broker.node} moves to a disk of {_DISK_MIB} MiB")
    disk = _SmallDisk(broker.data)
    try:
        await asyncio.to_thread(disk.wait)
        await asyncio.to_thread(broker.stop)
        broker.live_in(disk.pid)
        await asyncio.to_thread(broker.format)
        await _back(world, broker)
        await world.services.brokers.heal()
        world.note("the disk is full")
        disk.fill()
        await world.out_for(6.0, 10.0)
        world.note(f"broker {broker.node} {'runs' if broker.is_alive() else 'has ended'}")
        broker.kill()
        disk.empty()
        await _back(world, broker)
        await world.services.brokers.heal()
    finally:
        broker.kill()
        broker.live_in(0)
        disk.discard()
    world.note("and back to its own disk")
    await asyncio.to_thread(broker.format)
    await _back(world, broker)


@broker_fault("leaders moved")
async def _moved(world: World) -> None:
    brokers = world.services.brokers
    moves, elected = world.folder / "moves.json", world.folder / "elected.json"
    for turn in range(2):
        order = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
        first = world.dice.randrange(3)
        places = [
            {"topic": topic, "partition": p, "replicas": order[(first + p + turn) % 3]}
            for topic in world.topics.values()
            for p in range(world.kit.partitions)
        ]
        moves.write_text(json.dumps({"version": 1, "partitions": places}))
        named = [{name: place[name] for name in ("topic", "partition")} for place in places]
        elected.write_text(json.dumps({"partitions": named}))
        base = ("--bootstrap-server", brokers.direct)
        await asyncio.to_thread(
            run_java,
            "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
            *base,
            "--reassignment-json-file",
            str(moves),
            "--execute",
        )
        await asyncio.to_thread(
            run_java,
            "org.apache.kafka.tools.LeaderElectionCommand",
            *base,
            "--election-type",
            "preferred",
            "--path-to-json-file",
            str(elected),
        )
        world.note("leaders of all partitions moved")
        await world.progress()


async def _held(directions: frozenset[Direction], share: str, world: World) -> None:
    wires = list(world.services.brokers.wires.values())
    if share == "one":
        wires = [world.services.brokers.wires[(await _leader(world)).node]]
    world.note(f"nothing arrives {' or '.join(sorted(directions))}, of {share} of the brokers")
    for wire in wires:
        wire.weather.held = directions
    await world.out_for(6.0, 12.0)
    cut = world.dice.random() < 0.5
    world.note("it arrives late" if not cut else "the connections are cut")
    for wire in wires:
        if cut:
            wire.reset()
        wire.clear()


_UP: Final[frozenset[Direction]] = frozenset({"up"})
_DOWN: Final[frozenset[Direction]] = frozenset({"down"})
for _name, _directions, _share in (
    ("one broker behind a black hole", _UP | _DOWN, "one"),
    ("all brokers behind a black hole", _UP | _DOWN, "all"),
    ("one-way black hole to the brokers", _UP, "all"),
    ("one-way black hole from the brokers", _DOWN, "all"),
):
    broker_fault(_name)(partial(_held, _directions, _share))


@broker_fault("connections to brokers reset")
async def _resets(world: World) -> None:
    for _ in range(10):
        node, wire = world.dice.choice(list(world.services.brokers.wires.items()))
        world.note(f"reset connections to broker {node}")
        wire.reset()
        await world.pause(0.05, 0.6)


@broker_fault("slow link to brokers")
async def _slow(world: World) -> None:
    world.note("150 ms each way")
    for wire in world.services.brokers.wires.values():
        wire.weather.delay_s = 0.15
    await world.out_for(6.0, 9.0)
    for wire in world.services.brokers.wires.values():
        wire.clear()


async def _answers_lost(request: int, world: World) -> None:
    wires = world.services.brokers.wires.values()
    before = sum(wire.lost for wire in wires)
    for wire in wires:
        wire.weather = Weather(lost_answers=2, of_request=request)
    if request == JOIN_GROUP:
        world.fleet.of("derive")[0].kill()
        world.fleet.of("project")[0].kill()
    if request == INIT_PRODUCER:
        world.fleet.of("derive")[0].kill()

    def some() -> bool:
        return sum(wire.lost for wire in wires) > before

    await world.until(some, "an answer is lost")
    await world.out_for(1.0, 3.0)
    for wire in wires:
        wire.clear()
    world.note(f"{sum(wire.lost for wire in wires) - before} answers lost")


for _name, _request in (
    ("answer to a commit lost", END_TRANSACTION),
    ("answer to a write lost", PRODUCE),
    ("answer to a fetch lost", FETCH),
    ("answer to a transaction's begin lost", ADD_PARTITIONS),
    ("answer to a producer's start lost", INIT_PRODUCER),
    ("answer to joining the group lost", JOIN_GROUP),
):
    broker_fault(_name)(partial(_answers_lost, _request))


@broker_fault("transaction times out in its commit")
async def _timed_out(world: World) -> None:
    for worker in world.fleet.of("derive"):
        await worker.end()
        short = str(int(_TRANSACTION_S * 1_000) - 1_000)
        worker.start_again({"CONTEXTGAUGE_TRANSACTION_TIMEOUT_MS": short})
    await world.progress()
    wires = world.services.brokers.wires.values()
    world.note(f"commits arrive {_TRANSACTION_S} s late")
    for wire in wires:
        wire.weather = Weather(of_request=END_TRANSACTION, late_s=_TRANSACTION_S)
    await world.out_for(5.0, 7.0)
    for wire in wires:
        wire.clear()


async def _denied(arguments: tuple[str, ...], world: World) -> None:
    acl = "org.apache.kafka.tools.AclCommand"
    base = ("--bootstrap-server", world.services.brokers.direct)
    rights = ("--deny-principal", "User:worker", *arguments, "--topic", world.prefix)
    pattern = ("--resource-pattern-type", "prefixed")
    world.fleet.tolerated = frozenset({1, 2})
    world.note(f"denied: {' '.join(arguments)}")
    await asyncio.to_thread(run_java, acl, *base, "--add", *rights, *pattern)
    await world.out_for(3.0, 6.0)
    await asyncio.to_thread(run_java, acl, *base, "--remove", "--force", *rights, *pattern)


for _name, _operation in (
    ("right to write taken away", ("--operation", "Write")),
    ("right to read taken away", ("--operation", "Read")),
):
    broker_fault(_name, outcome="workers end with 2 (RUNBOOK, exit codes) and start again")(
        partial(_denied, _operation)
    )
