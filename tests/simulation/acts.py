"""What can happen in a run: to workers, the wire, the servers, and the ground they stand on."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from schemas.topics import AGENT_MESSAGES, CONTEXT_EVENTS, CONTEXT_STATE
from tests.simulation.coordinator import SESSION_S
from tests.simulation.process import QUIET, Rates, set_stop
from tests.simulation.schedule import Act
from tests.simulation.view_server import LOSABLE

if TYPE_CHECKING:
    from tests.simulation.pipeline import Pipeline
    from tests.simulation.world import World

MESSAGES, EVENTS, STATE = AGENT_MESSAGES.name, CONTEXT_EVENTS.name, CONTEXT_STATE.name


def _kill(world: "World", act: Act) -> None:
    process = world.worker_at(act.number)
    if process is not None:
        world.kill(process)


def _pause(world: "World", act: Act) -> None:
    process = world.worker_at(act.number)
    if process is None or process.loop.is_paused:
        return
    process.loop.pause()
    seconds = act.amount * 2
    world.scheduler.after(seconds, process.loop.resume)
    if seconds > SESSION_S:
        for group, member in world.members():
            if member.log.process is process:
                world.scheduler.after(SESSION_S, group.expel, member)


def _stop(world: "World", act: Act) -> None:
    process = world.worker_at(act.number)
    if process is not None:
        process.loop.call_soon(set_stop, process.stop)


def _start(world: "World", act: Act) -> None:
    kinds = world.startable()
    if len(world.processes) < 5:
        world.start_worker(kinds[act.number % len(kinds)])


def _rebalance(world: "World", act: Act) -> None:
    groups = list(world.groups.groups.values())
    if groups:
        groups[act.number % len(groups)].rebalance()


def _stop_in_rebalance(world: "World", act: Act) -> None:
    """Stop a worker while a rebalance takes its partitions, as where all of them are replaced."""
    members = world.members()
    if members:
        group, member = members[act.number % len(members)]
        member.stops_after_s = act.amount / 20
        group.rebalance()


def _expel(world: "World", act: Act) -> None:
    members = world.members()
    if members:
        group, member = members[act.number % len(members)]
        group.expel(member)


def _member_fails(world: "World", act: Act) -> None:
    members = world.members()
    if members:
        _, member = members[act.number % len(members)]
        member.log.process.loop.call_soon(member.fail)


def _clock(world: "World", act: Act) -> None:
    process = world.worker_at(act.number)
    if process is not None:
        hours = (-48, -1, 1, 30)[act.number % 4]
        process.clock.ahead_ms += int(hours * 3_600_000 * (0.1 + act.amount))


def _leader_moves(world: "World", act: Act) -> None:
    topic = (MESSAGES, EVENTS, STATE)[act.number % 3]
    partition = act.number // 3 % world.partitions
    world.broker.move_leader((topic, partition), act.amount)


def _stale_metadata(world: "World", act: Act) -> None:
    until_s = world.scheduler.now_s + act.amount
    world.broker.stop_learning(until_s, knows_topics=act.number % 2 == 1)


def _wire(world: "World", act: Act) -> None:
    """Have one of the wires be bad for a while."""
    wires = world.wires()
    wire = wires[act.number % len(wires)]
    wire.rates = _BAD[act.number // 2 % len(_BAD)]
    world.scheduler.after(act.amount, _mend, world, wire)


_BAD = (
    Rates(0.5, lost_reply=0.1),
    Rates(0.1, lost_request=0.3),
    Rates(0.1, lost_reply=0.4),
    Rates(0.2, late=0.3),
    Rates(0.1, twice=0.4),
)


def _mend(world: "World", wire: Any) -> None:
    wire.rates = QUIET if world.is_healing else world.schedule.rates


def _away(name: str) -> "Callable[[World, Act], None]":
    def away(world: "World", act: Act) -> None:
        wire = world.broker.wire if name == "broker" else world.wires()[-1]
        wire.away_until_s = world.scheduler.now_s + act.amount

    return away


def _time_out(world: "World", act: Act) -> None:
    names = [name for name, state in world.broker.ids.items() if state.parts]
    if names:
        world.broker.time_out(names[act.number % len(names)])


def _markers(world: "World", act: Act) -> None:
    broker = world.broker
    broker.marker_delay_s = 0.3 + act.amount / 4
    world.scheduler.after(act.amount, setattr, broker, "marker_delay_s", 0.0)


def _compact(world: "Pipeline", act: Act) -> None:
    world.broker.compact(STATE, act.number % world.partitions)


def _second(kind: str) -> "Callable[[Pipeline, Act], None]":
    def start(world: "Pipeline", _act: Act) -> None:
        world.start_worker(kind, "-second-")

    return start


def _lose_key(world: "Pipeline", act: Act) -> None:
    active = world.server.views.numbers.active
    partition = act.number % world.partitions
    if active is None:
        return
    stored = world.server.views.partitions.get((active, partition))
    if stored is None or stored.position is None:
        return
    kind = LOSABLE[act.number // 3 % len(LOSABLE)]
    if world.server.lose(active, partition, kind, act.number):
        world.note(f"lost one of {kind} of {active}:{partition}")
        world.auditor.spoilt.add((active, partition, stored.position.build))


def _recreate(topic: str) -> "Callable[[Pipeline, Act], None]":
    """Recreate a topic; messages that were not derived yet are published again."""

    def strike(world: "Pipeline", _act: Act) -> None:
        world.auditor.moved_s = world.scheduler.now_s
        world.auditor.was_cut = True
        undone = [world.underived(partition) for partition in range(world.partitions)]
        world.broker.recreate(topic)
        if topic == MESSAGES:
            for records in undone:
                if records:
                    world.broker.publish(records)

    return strike


def _truncate(topic: str) -> "Callable[[Pipeline, Act], None]":
    """Cut a partition's end; messages that were not derived yet are published again."""

    def strike(world: "Pipeline", act: Act) -> None:
        broker, auditor = world.broker, world.auditor
        partition = act.number % world.partitions
        log = broker.partition(topic, partition)
        if topic == MESSAGES:
            end = round(act.amount * auditor.positions[partition])
            if end >= auditor.positions[partition]:
                return
        else:
            end = round(act.amount * log.next_offset)
        auditor.moved_s = world.scheduler.now_s
        auditor.was_cut = True
        records = world.underived(partition)
        broker.truncate(topic, partition, end)
        if topic == EVENTS:
            auditor.forget_events(partition)
        elif topic == STATE:
            auditor.lost_state.add(partition)
        elif records:
            broker.publish(records)

    return strike


def _retention(topic: str) -> "Callable[[Pipeline, Act], None]":
    def delete(world: "Pipeline", act: Act) -> None:
        partition = act.number % world.partitions
        log = world.broker.partition(topic, partition)
        if topic == MESSAGES and not world.auditor.positions[partition]:
            return  # where no position is stored, the first message kept is the first
        world.auditor.moved_s = world.scheduler.now_s
        if topic == EVENTS:
            world.auditor.was_cut = True
            world.auditor.see_events(partition)
        elif act.number % 2:
            world.publish(0.2)
        world.broker.delete_before(
            topic, partition, max(log.first, round(act.amount * log.stable_end()))
        )

    return delete


OF_ANY: "dict[str, Callable[[Any, Act], None]]" = {
    "kill": _kill,
    "pause": _pause,
    "stop": _stop,
    "start": _start,
    "rebalance": _rebalance,
    "stop in rebalance": _stop_in_rebalance,
    "expel": _expel,
    "member fails": _member_fails,
    "clock": _clock,
    "leader moves": _leader_moves,
    "stale metadata": _stale_metadata,
    "wire": _wire,
    "broker away": _away("broker"),
    "store away": _away("store"),
    "time out": _time_out,
    "markers": _markers,
}
"""What may be done to any workers."""

ACTS: "dict[str, Callable[[Any, Act], None]]" = {
    **OF_ANY,
    "publish": lambda world, act: world.publish(act.amount),
    "compact state": _compact,
    "snapshot": lambda world, _act: world.server.take_snapshot(),
    "set back": lambda world, _act: world.server.go_back(),
    "empty store": lambda world, _act: world.server.empty(),
    "lose key": _lose_key,
    "second derivers": _second("derive"),
    "second projectors": _second("project"),
    "recreate messages": _recreate(MESSAGES),
    "recreate events": _recreate(EVENTS),
    "recreate state": _recreate(STATE),
    "truncate messages": _truncate(MESSAGES),
    "truncate events": _truncate(EVENTS),
    "truncate state": _truncate(STATE),
    "retention": _retention(MESSAGES),
    "retention of events": _retention(EVENTS),
}
