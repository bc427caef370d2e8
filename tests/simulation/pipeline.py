"""One run of derive and project workers by a schedule: the world around them, and its end."""

import asyncio
import random
from collections.abc import Callable
from functools import partial
from itertools import count
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
from tests.simulation.acts import ACTS
from tests.simulation.auditor import MESSAGES, Auditor, ViolationError
from tests.simulation.broker import Broker
from tests.simulation.broker_clients import GroupReader, ProcessLog
from tests.simulation.coordinator import SESSION_S, Groups
from tests.simulation.inputs import input_of
from tests.simulation.process import QUIET, Process, set_stop
from tests.simulation.publisher import PublishedFile, run_publisher
from tests.simulation.schedule import Act, Schedule
from tests.simulation.view_server import ProcessViews, ViewServer
from tests.simulation.virtual_loop import Scheduler, SpinningError

HEALING_S = 150.0
"""Within which everything has arrived once nothing is done to the workers any more."""

_LOOK_S = 0.25
"""How often it is looked whether everything has arrived."""

RESTART_S = 1.5
"""A worker that ended is started again by whatever supervises it."""

MOST_RESTARTS = 4
"""A worker that stops again and again is left alone: it has said so."""


KINDS = ("derive", "project", "publish")
"""Workers that are started again; others are a second deployment's."""


class Silent:
    """Telemetry that no one looks at."""

    def count(self, name: str, amount: float = 1, **labels: str) -> None: ...
    def gauge(self, name: str, value: float, **labels: str) -> None: ...
    def forget(self, name: str, **labels: str) -> None: ...
    def observe(self, name: str, value: float, **labels: str) -> None: ...


class Pipeline:
    """Everything of one run."""

    def __init__(self, schedule: Schedule, trace: Callable[[str], None] | None = None) -> None:
        self.schedule = schedule
        self.trace = trace
        self.given = input_of(schedule.input)
        self.scheduler = Scheduler(random.Random(f"{schedule.seed} order"))
        chance = random.Random(f"{schedule.seed} servers")
        self.broker = Broker(self.scheduler, chance)
        self.groups = Groups(self.broker, chance)
        self.server: ViewServer = ViewServer(self.scheduler)
        self.auditor = Auditor(schedule, self.given, self.broker, self.server)
        self.processes: list[Process] = []
        self.errors = self.auditor.said
        self.started = 0
        self.is_healing = False
        self._restarts = 0
        self._sent = 0
        self.file = PublishedFile(self.given.messages)
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
        match kind:
            case "derive":
                work = self._deriver(common, log, group)
            case "project":
                work = self._projector(common, log, group, process)
            case _:
                clock, partitions = process.clock, self.given.partitions
                work = run_publisher(self.file, log, clock, partitions, self._fail)
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
            drop_after_s=5.0,
        )
        views: Any = ProcessViews(self.server, process)
        names = count()
        return run_project(
            ProjectPorts(
                **vars(common),
                log=log,
                store=views,
                config=config,
                new_writer=lambda: f"{process.name} {next(names)}",
            )
        )

    def _ended(self, process: Process) -> None:
        """Start a worker again that ended; note what only a person can mend."""
        if process not in self.processes or process.main is None:
            return
        self.processes.remove(process)
        error = None if process.main.cancelled() else process.main.exception()
        self.note(f"{process.name} ended: {error!r}")
        if error is not None and not isinstance(error, ContextgaugeError):
            self._fail(f"{process.name} ended with {type(error).__name__}: {error}", error)
        if isinstance(error, StopError):
            self.errors.append(f"{process.name}: {type(error).__name__}: {error}")
        if process.kind in KINDS and self._restarts < MOST_RESTARTS:
            self._restarts += isinstance(error, StopError)
            self.scheduler.after(RESTART_S, self.start_worker, process.kind)

    def _fail(self, text: str, error: BaseException | None = None) -> None:
        if self.violation is None:
            self.violation = text
            self.note(f"VIOLATION: {text}")
            if self.trace is not None and error is not None:
                import traceback  # noqa: PLC0415 -- for a person who looks at one run

                self.note("".join(traceback.format_exception(error)))
        self.scheduler.stop()

    def note(self, text: str) -> None:
        if self.trace is not None:
            self.trace(f"{self.scheduler.now_s:9.3f}  {text}")

    def kill(self, process: Process) -> None:
        process.loop.kill()
        self.processes.remove(process)
        for group in self.groups.groups.values():
            for member in group.members:
                if member.log.process is process:
                    self.scheduler.after(SESSION_S, group.expel, member)
        if process.kind in KINDS:
            self.scheduler.after(RESTART_S, self.start_worker, process.kind)

    # The run

    def run(self) -> str | None:
        """Run to the end; return what was wrong, None where all was well."""
        schedule, scheduler, given = self.schedule, self.scheduler, self.given
        for topic in TOPICS:
            self.broker.create_now(topic, given.partitions)
        self.broker.on_committed = self._committed
        self.broker.on_misuse = self._fail
        self.server.on_applied = self._applied
        self.server.on_dropped = partial(self._judge, self.auditor.dropped)
        self.server.on_activated = partial(self._judge, self.auditor.activated)
        self.broker.wire.rates = self.server.wire.rates = schedule.rates
        chance = random.Random(f"{schedule.seed} begin")
        for _ in range(schedule.derivers):
            scheduler.at(chance.random(), self.start_worker, "derive")
        for _ in range(schedule.projectors):
            scheduler.at(chance.random(), self.start_worker, "project")
        if schedule.stage == "both":
            scheduler.at(chance.random(), self.start_worker, "publish")
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
            self.note(f"VIOLATION: {self.violation}")
        return self.violation

    def _committed(self, state: Any, parts: Any) -> None:
        if self.trace is not None:
            self.note(f"{state.writer} commits as {state.name}, epoch {state.epoch}: {list(parts)}")
        self._judge(self.auditor.committed, state, parts)

    def _applied(self, generation: int, partition: int, who: str) -> None:
        if self.trace is not None:
            stored = self.server.views.partitions[generation, partition].position
            self.note(f"{who} wrote views {generation}:{partition} to {stored and stored.offset}")
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
        if self.schedule.stage == "both" and self.file.settled < len(self.given.messages):
            return False
        if self.schedule.derivers and not self.auditor.is_derived():
            return False
        return not self.schedule.projectors or self.auditor.is_projected()

    def _is_excused(self) -> bool:
        """Return whether the ground moved, and a worker stopped and said so."""
        return self.auditor.moved_s is not None and bool(self.errors)

    def _missing(self) -> str:
        auditor, found = self.auditor, []
        if self.schedule.derivers and not auditor.is_derived():
            ends = [
                self.broker.partition(MESSAGES, p).stable_end()
                for p in range(self.given.partitions)
            ]
            of = [len(ids) for ids in self.given.ids]
            at = auditor.positions
            found.append(f"derived {auditor.derived} of {of} records, at {at} of {ends}")
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
            if process.kind not in KINDS:
                process.loop.call_soon(set_stop, process.stop)
        self.publish(1.0)
        self._restarts = 0
        for kind, most in (
            ("derive", self.schedule.derivers),
            ("project", self.schedule.projectors),
            ("publish", self.schedule.stage == "both"),
        ):
            if most and not any(each.kind == kind for each in self.processes):
                self.start_worker(kind)
        self.scheduler.after(HEALING_S / 2, self._replace_derivers)
        self._look()

    def _replace_derivers(self) -> None:
        """Replace derivers that idle after a commit of which the ground lost a part.

        They had nothing more to commit, and so nothing to notice it by; who takes over must.
        """
        if self.auditor.broken:
            for process in self.processes:
                if process.kind == "derive":
                    process.loop.call_soon(set_stop, process.stop)

    # Acts

    def _act(self, act: Act) -> None:
        if self.is_healing:
            return
        self.note(f"ACT {act.kind} {act.number} {act.amount}")
        ACTS[act.kind](self, act)

    def publish(self, share: float) -> None:
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
            if self.schedule.stage == "both":
                self.file.written = self._sent
                return
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
