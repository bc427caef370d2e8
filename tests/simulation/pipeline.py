"""One run of derive and project workers by a schedule: the world around them, and its end."""

import asyncio
import random
from collections.abc import Callable
from functools import partial
from typing import Any

from contextgauge.errors import ContextgaugeError, StopError
from schemas.topics import TOPICS
from streams.flow.common.ports import WorkerPorts
from streams.flow.derive.config import DeriveConfig
from streams.flow.derive.partition_task import DerivePorts
from streams.flow.derive.state_store import StateStore
from streams.flow.derive.worker import run_derive
from streams.flow.project.config import ProjectConfig
from streams.flow.project.polling import ProjectPorts
from streams.flow.project.worker import run_project
from streams.ports import Health, NewRecord
from tests.flow.derive_kit import RULES
from tests.simulation.auditor import EVENTS, MESSAGES, STATE, Auditor, ViolationError
from tests.simulation.broker import Broker
from tests.simulation.broker_clients import GroupReader, ProcessLog
from tests.simulation.coordinator import SESSION_S, Groups
from tests.simulation.inputs import input_of
from tests.simulation.process import QUIET, Process, Rates
from tests.simulation.schedule import Act, Schedule
from tests.simulation.view_server import LOSABLE, ProcessViews, ViewServer
from tests.simulation.virtual_loop import Scheduler, SpinningError

HEALING_S = 150.0
"""Within which everything has arrived once nothing is done to the workers any more."""

_LOOK_S = 0.25
"""How often it is looked whether everything has arrived."""

RESTART_S = 1.5
"""A worker that ended is started again by whatever supervises it."""

MOST_RESTARTS = 4
"""A worker that stops again and again is left alone: it has said so."""


class Silent:
    """Telemetry that no one looks at."""

    def count(self, *_given: Any, **_labels: str) -> None: ...
    def gauge(self, *_given: Any, **_labels: str) -> None: ...
    def forget(self, *_given: Any, **_labels: str) -> None: ...
    def observe(self, *_given: Any, **_labels: str) -> None: ...


class Pipeline:
    """Everything of one run."""

    def __init__(self, schedule: Schedule, trace: Callable[[str], None] | None = None) -> None:
        self.schedule = schedule
        self.trace = trace
        self.given = input_of(schedule.input)
        self.scheduler = Scheduler(random.Random(f"{schedule.seed} order"))  # noqa: S311 -- no secret
        chance = random.Random(f"{schedule.seed} servers")  # noqa: S311 -- no secret
        self.broker = Broker(self.scheduler, chance)
        self.groups = Groups(self.broker, chance)
        self.server = ViewServer(self.scheduler)
        self.auditor = Auditor(schedule, self.given, self.broker, self.server)
        self.processes: list[Process] = []
        self.errors = self.auditor.said
        self.started = 0
        self.is_healing = False
        self._restarts = 0
        self._sent = 0
        self._groups_sent = 0
        self._cursor = [0] * self.given.partitions
        self.violation: str | None = None

    # Workers

    def start_worker(self, kind: str, group: str = "") -> None:
        self.started += 1
        name = f"{kind}-{group}{self.started}"
        process = Process(self.scheduler, name, kind + group, self.schedule.seed)
        self.processes.append(process)
        process.stop = asyncio.Event()
        common = WorkerPorts(
            telemetry=Silent(),
            health=Health(name, process.clock, 60.0),
            clock=process.clock,
            stop=process.stop,
        )
        log = ProcessLog(self.broker, self.groups, process)
        work = self._deriver(common, log, group) if kind == "derive" else self._projector(
            common, log, group, process
        )
        process.start(work, self._ended)

    def _deriver(self, common: WorkerPorts, log: Any, group: str) -> Any:
        config = DeriveConfig(
            group=f"derive{group}",
            batch_messages=self.schedule.batch,
            poll_timeout_s=3.0,
            fenced_pause_s=SESSION_S + 2.0,
            allow_dead_letters=True,
        )
        return run_derive(
            DerivePorts(
                **vars(common),
                log=log,
                state_store=StateStore(log, config.state_topic),
                rules=RULES,
                config=config,
            )
        )

    def _projector(self, common: WorkerPorts, log: Any, group: str, process: Process) -> Any:
        config = ProjectConfig(
            group=f"project{group}",
            instance_id=process.name,
            batch_records=self.schedule.batch,
            poll_timeout_s=3.0,
            watch_s=3.0,
            drop_after_s=2.0,
        )
        views: Any = ProcessViews(self.server, process)
        return run_project(ProjectPorts(**vars(common), log=log, store=views, config=config))

    def _ended(self, process: Process) -> None:
        """Start a worker again that ended; note what only a person can mend."""
        if process not in self.processes or process.main is None:
            return
        self.processes.remove(process)
        error = None if process.main.cancelled() else process.main.exception()
        self._note(f"{process.name} ended: {error!r}")
        if error is not None and not isinstance(error, ContextgaugeError):
            self._fail(f"{process.name} ended with {type(error).__name__}: {error}", error)
        if isinstance(error, StopError):
            self.errors.append(f"{process.name}: {type(error).__name__}: {error}")
        if process.kind in ("derive", "project") and self._restarts < MOST_RESTARTS:
            self._restarts += isinstance(error, StopError)
            self.scheduler.after(RESTART_S, self.start_worker, process.kind)

    def _fail(self, text: str, error: BaseException | None = None) -> None:
        if self.violation is None:
            self.violation = text
            self._note(f"VIOLATION: {text}")
            if self.trace is not None and error is not None:
                import traceback  # noqa: PLC0415 -- for a person who looks at one run

                self._note("".join(traceback.format_exception(error)))
        self.scheduler.stop()

    def _note(self, text: str) -> None:
        if self.trace is not None:
            self.trace(f"{self.scheduler.now_s:9.3f}  {text}")

    def _kill(self, process: Process) -> None:
        process.loop.kill()
        self.processes.remove(process)
        for group in self.groups.groups.values():
            for member in group.members:
                if member.log.process is process:
                    self.scheduler.after(SESSION_S, group.expel, member)
        if process.kind in ("derive", "project"):
            self.scheduler.after(RESTART_S, self.start_worker, process.kind)

    # The run

    def run(self) -> str | None:
        """Run to the end; return what was wrong, None where all was well."""
        schedule, scheduler, given = self.schedule, self.scheduler, self.given
        for topic in TOPICS:
            self.broker.create_now(topic, given.partitions)
        self.broker.on_committed = self._committed
        self.server.on_applied = self._applied
        self.server.on_dropped = partial(self._judge, self.auditor.dropped)
        self.server.on_activated = partial(self._judge, self.auditor.activated)
        self.broker.wire.rates = self.server.wire.rates = schedule.rates
        chance = random.Random(f"{schedule.seed} begin")  # noqa: S311 -- no secret
        for _ in range(schedule.derivers):
            scheduler.at(chance.random(), self.start_worker, "derive")
        for _ in range(schedule.projectors):
            scheduler.at(chance.random(), self.start_worker, "project")
        for act in schedule.acts:
            scheduler.at(act.at_s, self._act, act)
        scheduler.at(schedule.length_s, self._heal)
        try:
            scheduler.run(schedule.length_s + HEALING_S)
        except SpinningError as error:
            self._fail(str(error))
        except ViolationError as error:
            self._fail(str(error))
        for process in self.processes:
            process.loop.is_dead = True
        if self.violation is None and not self._is_done() and not self._is_excused():
            self.violation = self._missing()
            self._note(f"VIOLATION: {self.violation}")
        return self.violation

    def _committed(self, state: Any, parts: Any) -> None:
        if self.trace is not None:
            self._note(f"{state.writer} commits as {state.name}, epoch {state.epoch}: {list(parts)}")
        self._judge(self.auditor.committed, state, parts)

    def _applied(self, generation: int, partition: int, who: str) -> None:
        if self.trace is not None:
            stored = self.server.views.partitions[generation, partition].position
            self._note(f"{who} wrote views {generation}:{partition} to {stored and stored.offset}")
        self._judge(self.auditor.applied, generation, partition, who)

    def _judge(self, judge: Callable[..., None], *args: Any) -> None:
        try:
            judge(*args)
        except ViolationError as error:
            self._fail(str(error))

    def _look(self) -> None:
        """End the run once everything has arrived."""
        if self._is_done():
            self.scheduler.stop()
        else:
            self.scheduler.after(_LOOK_S, self._look)

    def _is_done(self) -> bool:
        if self.schedule.derivers and not self.auditor.is_derived():
            return False
        return not self.schedule.projectors or self.auditor.is_projected()

    def _is_excused(self) -> bool:
        """Return whether the ground moved, and a worker stopped and said so."""
        return self.auditor.has_moved and bool(self.errors)

    def _missing(self) -> str:
        auditor, found = self.auditor, []
        if self.schedule.derivers and not auditor.is_derived():
            ends = [self.broker.partition(MESSAGES, p).stable_end() for p in range(self.given.partitions)]
            of = [len(ids) for ids in self.given.ids]
            found.append(
                f"derived {auditor.derived} of {of} records, positions {auditor.positions} of {ends}"
            )
        if self.schedule.projectors and not auditor.is_projected():
            found.append(f"views: {auditor.last_difference()}")
        broken = "; ".join(auditor.broken.values())
        return broken or f"not everything arrived: {'; '.join(found)}; errors: {self.errors}"

    def _heal(self) -> None:
        self.is_healing = True
        for wire in (self.broker.wire, self.server.wire):
            wire.rates, wire.away_until_s = QUIET, 0.0
        self.broker.marker_delay_s = self.broker.stale_until_s = 0.0
        for process in list(self.processes):
            process.clock.ahead_ms = 0
            process.loop.resume()
            if process.kind not in ("derive", "project"):
                process.loop.call_soon(_set, process.stop)
        self._publish(1.0)
        self._restarts = 0
        for kind, most in (("derive", self.schedule.derivers), ("project", self.schedule.projectors)):
            if most and not any(each.kind == kind for each in self.processes):
                self.start_worker(kind)
        self._look()

    # Acts

    def _act(self, act: Act) -> None:
        if self.is_healing:
            return
        self._note(f"ACT {act.kind} {act.number} {act.amount}")
        ACTS[act.kind](self, act)

    def _publish(self, share: float) -> None:
        """Publish a share of what is left: messages, or records where no one derives."""
        if self.schedule.stage == "project":
            groups = self.given.groups
            count = max(1, round(share * len(groups))) if share < 1 else len(groups)
            some = groups[self._groups_sent : self._groups_sent + count]
            self._groups_sent += len(some)
            for group in some:
                self.broker.publish_transaction(group)
        else:
            messages = self.given.messages
            count = max(1, round(share * len(messages))) if share < 1 else len(messages)
            some_messages = messages[self._sent : self._sent + count]
            self._sent += len(some_messages)
            for message in some_messages:
                self.broker.publish([message.record])

    def underived(self, partition: int) -> list[NewRecord]:
        """Return the published messages of a partition that no committed position covers."""
        log = self.broker.partition(MESSAGES, partition)
        entries = log.entries[self.auditor.positions[partition] :]
        records = [entry.record for entry in entries if entry.record is not None]
        return [NewRecord(MESSAGES, partition, each.key, each.value) for each in records]

    def worker_at(self, number: int) -> Process | None:
        """Return the worker that an act is about."""
        return self.processes[number % len(self.processes)] if self.processes else None

    def members(self) -> list[tuple[Any, GroupReader]]:
        """Return all members of all groups."""
        return [(g, member) for g in self.groups.groups.values() for member in g.members]


def _set(stop: asyncio.Event | None) -> None:
    if stop is not None:
        stop.set()


def _kill(world: Pipeline, act: Act) -> None:
    process = world.worker_at(act.number)
    if process is not None:
        world._kill(process)  # noqa: SLF001 -- its own act


def _pause(world: Pipeline, act: Act) -> None:
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


def _stop(world: Pipeline, act: Act) -> None:
    process = world.worker_at(act.number)
    if process is not None:
        process.loop.call_soon(_set, process.stop)


def _start(world: Pipeline, act: Act) -> None:
    kinds = [
        kind
        for kind, count in (
            ("derive", world.schedule.derivers), ("project", world.schedule.projectors)
        )
        if count
    ]
    if len(world.processes) < 5:
        world.start_worker(kinds[act.number % len(kinds)])


def _rebalance(world: Pipeline, act: Act) -> None:
    groups = list(world.groups.groups.values())
    if groups:
        groups[act.number % len(groups)].rebalance()


def _expel(world: Pipeline, act: Act) -> None:
    members = world.members()
    if members:
        group, member = members[act.number % len(members)]
        group.expel(member)


def _member_fails(world: Pipeline, act: Act) -> None:
    members = world.members()
    if members:
        _, member = members[act.number % len(members)]
        member.log.process.loop.call_soon(member.fail)


def _clock(world: Pipeline, act: Act) -> None:
    process = world.worker_at(act.number)
    if process is not None:
        hours = (-48, -1, 1, 30)[act.number % 4]
        process.clock.ahead_ms += int(hours * 3_600_000 * (0.1 + act.amount))


def _leader_moves(world: Pipeline, act: Act) -> None:
    topic = (MESSAGES, EVENTS, STATE)[act.number % 3]
    partition = act.number // 3 % world.given.partitions
    world.broker.move_leader((topic, partition), act.amount)


def _stale_metadata(world: Pipeline, act: Act) -> None:
    world.broker.stale_until_s = world.scheduler.now_s + act.amount


def _wire(world: Pipeline, act: Act) -> None:
    """Have one of the wires be bad for a while."""
    wires = [world.broker.wire]
    if world.schedule.projectors:
        wires.append(world.server.wire)
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


def _mend(world: Pipeline, wire: Any) -> None:
    wire.rates = QUIET if world.is_healing else world.schedule.rates


def _away(name: str) -> Callable[[Pipeline, Act], None]:
    def away(world: Pipeline, act: Act) -> None:
        wire = world.broker.wire if name == "broker" else world.server.wire
        wire.away_until_s = world.scheduler.now_s + act.amount

    return away


def _time_out(world: Pipeline, act: Act) -> None:
    names = [name for name, state in world.broker.ids.items() if state.parts]
    if names:
        world.broker.time_out(names[act.number % len(names)])


def _markers(world: Pipeline, act: Act) -> None:
    broker = world.broker
    broker.marker_delay_s = 0.3 + act.amount / 4
    world.scheduler.after(act.amount, setattr, broker, "marker_delay_s", 0.0)


def _compact(world: Pipeline, act: Act) -> None:
    world.broker.compact(STATE, act.number % world.given.partitions)


def _second(kind: str) -> Callable[[Pipeline, Act], None]:
    def start(world: Pipeline, _act: Act) -> None:
        world.start_worker(kind, "-second-")

    return start


def _lose_key(world: Pipeline, act: Act) -> None:
    active = world.server.views.numbers.active
    partition = act.number % world.given.partitions
    if active is None:
        return
    stored = world.server.views.partitions.get((active, partition))
    if stored is None or stored.position is None:
        return
    kind = LOSABLE[act.number // 3 % len(LOSABLE)]
    if world.server.lose(active, partition, kind, act.number):
        world._note(f"lost one of {kind} of {active}:{partition}")  # noqa: SLF001 -- its own act
        world.auditor.spoilt.add((active, partition, stored.position.build))


def _disaster(topic: str, how: str) -> Callable[[Pipeline, Act], None]:
    """Recreate or truncate a topic; messages that were not derived yet are published again."""

    def strike(world: Pipeline, act: Act) -> None:
        broker, auditor = world.broker, world.auditor
        partitions = range(world.given.partitions)
        if how == "recreate":
            world.auditor.has_moved = True
            auditor.was_cut = True
            undone = [world.underived(partition) for partition in partitions]
            broker.recreate(topic)
            if topic == MESSAGES:
                for records in undone:
                    if records:
                        broker.publish(records)
            return
        partition = act.number % len(partitions)
        log = broker.partition(topic, partition)
        if topic == MESSAGES:
            end = round(act.amount * auditor.positions[partition])
            if end >= auditor.positions[partition]:
                return
        else:
            end = round(act.amount * log.next_offset)
        world.auditor.has_moved = True
        auditor.was_cut = True
        records = world.underived(partition)
        broker.truncate(topic, partition, end)
        if topic == MESSAGES and records:
            broker.publish(records)

    return strike


def _retention(topic: str) -> Callable[[Pipeline, Act], None]:
    def delete(world: Pipeline, act: Act) -> None:
        partition = act.number % world.given.partitions
        log = world.broker.partition(topic, partition)
        if topic == MESSAGES and not world.auditor.positions[partition]:
            return  # where no position is stored, the first message kept is the first
        world.auditor.has_moved = True
        if topic == EVENTS:
            world.auditor.was_cut = True
        elif act.number % 2:
            world._publish(0.2)  # noqa: SLF001 -- messages that no one has had time to derive
        world.broker.delete_before(
            topic, partition, max(log.first, round(act.amount * log.stable_end()))
        )

    return delete


ACTS: dict[str, Callable[[Pipeline, Act], None]] = {
    "publish": lambda world, act: world._publish(act.amount),  # noqa: SLF001 -- its own act
    "kill": _kill,
    "pause": _pause,
    "stop": _stop,
    "start": _start,
    "rebalance": _rebalance,
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
    "compact state": _compact,
    "snapshot": lambda world, _act: world.server.take_snapshot(),
    "set back": lambda world, _act: world.server.go_back() and None,
    "empty store": lambda world, _act: world.server.empty(),
    "lose key": _lose_key,
    "second derivers": _second("derive"),
    "second projectors": _second("project"),
    "recreate messages": _disaster(MESSAGES, "recreate"),
    "recreate events": _disaster(EVENTS, "recreate"),
    "recreate state": _disaster(STATE, "recreate"),
    "truncate messages": _disaster(MESSAGES, "truncate"),
    "truncate events": _disaster(EVENTS, "truncate"),
    "truncate state": _disaster(STATE, "truncate"),
    "retention": _retention(MESSAGES),
    "retention of events": _retention(EVENTS),
}
