"""One run of derive and project workers by a schedule: what they do, and what must arrive."""

import random
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any, ClassVar

from streams.flow.common.ports import WorkerPorts
from streams.flow.derive.config import DeriveConfig
from streams.flow.derive.partition_task import DerivePorts
from streams.flow.derive.state_store import StateStore
from streams.flow.derive.worker import run_derive
from streams.flow.project.config import ProjectConfig
from streams.flow.project.polling import ProjectPorts
from streams.flow.project.worker import run_project
from streams.ports import NewRecord
from tests.flow.derive_kit import RULES
from tests.simulation.acts import ACTS
from tests.simulation.auditor import MESSAGES, Auditor, ViolationError
from tests.simulation.broker_clients import ProcessLog
from tests.simulation.coordinator import SESSION_S
from tests.simulation.inputs import input_of
from tests.simulation.process import Process, Wire, set_stop
from tests.simulation.publisher import PublishedFile, run_publisher
from tests.simulation.schedule import Schedule
from tests.simulation.view_server import ProcessViews, ViewServer
from tests.simulation.world import HEALING_S, World


class Pipeline(World):
    """Derive and project workers over an input."""

    acts: ClassVar = ACTS
    kinds: ClassVar = ("derive", "project", "publish")

    def __init__(self, schedule: Schedule, trace: Callable[[str], None] | None = None) -> None:
        self.given = input_of(schedule.input)
        super().__init__(schedule, self.given.partitions, trace)
        self.server = ViewServer(self.scheduler)
        self.auditor = Auditor(schedule, self.given, self.broker, self.server)
        self.errors = self.auditor.said
        self.file = PublishedFile(self.given.messages)
        self._sent = self._groups_sent = 0

    # Workers

    def wires(self) -> list[Wire]:
        wires = [self.broker.wire, self.server.wire]
        return wires if self.schedule.projectors else wires[:1]

    def startable(self) -> list[str]:
        counts = {"derive": self.schedule.derivers, "project": self.schedule.projectors}
        return [kind for kind, number in counts.items() if number]

    def work(self, kind: str, group: str, process: Process, common: WorkerPorts) -> Any:
        log = ProcessLog(self.broker, self.groups, process)
        match kind:
            case "derive":
                return self._deriver(common, log, group)
            case "project":
                return self._projector(common, log, group, process)
            case _:
                return run_publisher(self.file, log, process.clock, self.partitions, self.fail)

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

    # The run

    def begin(self, chance: random.Random) -> None:
        self.broker.on_committed = self._committed
        self.server.on_applied = self._applied
        self.server.on_dropped = partial(self._judge, self.auditor.dropped)
        self.server.on_activated = partial(self._judge, self.auditor.activated)
        kinds = ["derive"] * self.schedule.derivers + ["project"] * self.schedule.projectors
        if self.schedule.stage == "both":
            kinds.append("publish")
        for kind in kinds:
            self.scheduler.at(chance.random(), self.start_worker, kind)

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
            self.fail(str(error))

    def is_done(self) -> bool:
        if self.schedule.stage == "both" and self.file.settled < len(self.given.messages):
            return False
        if self.schedule.derivers and not self.auditor.is_derived():
            return False
        return not self.schedule.projectors or self.auditor.is_projected()

    def _is_excused(self) -> bool:
        """Return whether the ground moved, and a worker stopped and said so."""
        return self.auditor.moved_s is not None and bool(self.errors)

    def missing(self) -> str | None:
        if self.is_done() or self._is_excused():
            return None
        auditor, found = self.auditor, []
        if self.schedule.derivers and not auditor.is_derived():
            ends = [
                self.broker.partition(MESSAGES, p).stable_end()
                for p in range(self.given.partitions)
            ]
            of = [len(ids) for ids in self.given.ids]
            positions = auditor.positions
            found.append(f"derived {auditor.derived} of {of} records, at {positions} of {ends}")
        if self.schedule.projectors and not auditor.is_projected():
            found.append(f"views: {auditor.last_difference()}")
        broken = "; ".join(auditor.broken.values())
        return broken or f"not everything arrived: {'; '.join(found)}; errors: {self.errors}"

    def heal(self) -> None:
        self.publish(1.0)
        for kind, most in (
            ("derive", self.schedule.derivers),
            ("project", self.schedule.projectors),
            ("publish", self.schedule.stage == "both"),
        ):
            if most and not any(each.kind == kind for each in self.processes):
                self.start_worker(kind)
        self.scheduler.after(HEALING_S / 2, self._replace_derivers)

    def _replace_derivers(self) -> None:
        """Replace derivers that idle after a commit of which the ground lost a part.

        They had nothing more to commit, and so nothing to notice it by; who takes over must.
        """
        if self.auditor.broken:
            for process in self.processes:
                if process.kind == "derive":
                    process.loop.call_soon(set_stop, process.stop)

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
