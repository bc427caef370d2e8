"""The world of one run: a scheduler, servers, and processes that are killed and started again.

What runs in the processes, what is judged and what is missing at the end is its subclasses'.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any, ClassVar

from contextgauge.errors import ContextgaugeError, StopError
from schemas.topics import TOPICS
from streams.flow.common.ports import WorkerPorts
from streams.ports import Health
from tests.simulation.auditor import ViolationError
from tests.simulation.broker import Broker
from tests.simulation.broker_clients import GroupReader
from tests.simulation.coordinator import SESSION_S, Groups
from tests.simulation.process import QUIET, Process, Wire, set_stop
from tests.simulation.schedule import Act, Schedule
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

    def count(self, name: str, amount: float = 1, **labels: str) -> None: ...
    def gauge(self, name: str, value: float, **labels: str) -> None: ...
    def forget(self, name: str, **labels: str) -> None: ...
    def observe(self, name: str, value: float, **labels: str) -> None: ...


class World:
    """Everything of one run."""

    acts: ClassVar[dict[str, Callable[[Any, Act], None]]]
    kinds: ClassVar[tuple[str, ...]]
    """Workers that are started again; others are a second deployment's."""

    def __init__(
        self, schedule: Schedule, partitions: int, trace: Callable[[str], None] | None = None
    ) -> None:
        self.schedule, self.partitions, self.trace = schedule, partitions, trace
        self.scheduler = Scheduler(random.Random(f"{schedule.seed} order"))
        chance = random.Random(f"{schedule.seed} servers")
        self.broker = Broker(self.scheduler, chance)
        self.groups = Groups(self.broker, chance)
        self.processes: list[Process] = []
        self.errors: list[str] = []
        self.started = 0
        self.is_healing = False
        self.violation: str | None = None
        self._restarts = 0

    # What subclasses say

    def wires(self) -> list[Wire]:
        """Return the wires that may be bad, the broker's first."""
        raise NotImplementedError

    def startable(self) -> list[str]:
        """Return the kinds of which another worker may be started."""
        raise NotImplementedError

    def work(self, kind: str, group: str, process: Process, common: WorkerPorts) -> Any:
        """Return what a process does."""
        raise NotImplementedError

    def begin(self, chance: random.Random) -> None:
        """Start what is there at first."""
        raise NotImplementedError

    def is_done(self) -> bool:
        """Return whether everything has arrived."""
        raise NotImplementedError

    def missing(self) -> str | None:
        """Return what is wrong once the run has ended."""
        raise NotImplementedError

    def heal(self) -> None:
        """Bring what is left, and start what is missing."""
        raise NotImplementedError

    def is_replaced(self, process: Process) -> bool:
        """Return whether another worker is started where this one ended."""
        return process.kind in self.kinds

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
        work: Coroutine[Any, Any, None] = self.work(kind, group, process, common)
        process.start(work, self._ended)

    def _ended(self, process: Process) -> None:
        """Start a worker again that ended; note what only a person can mend."""
        if process not in self.processes or process.main is None:
            return
        self.processes.remove(process)
        error = None if process.main.cancelled() else process.main.exception()
        self.note(f"{process.name} ended: {error!r}")
        if error is not None and not isinstance(error, ContextgaugeError):
            self.fail(f"{process.name} ended with {type(error).__name__}: {error}", error)
        if isinstance(error, StopError):
            self.errors.append(f"{process.name}: {type(error).__name__}: {error}")
        if self.is_replaced(process) and self._restarts < MOST_RESTARTS:
            self._restarts += isinstance(error, StopError)
            self.scheduler.after(RESTART_S, self.start_worker, process.kind)

    def fail(self, text: str, error: BaseException | None = None) -> None:
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
        if self.is_replaced(process):
            self.scheduler.after(RESTART_S, self.start_worker, process.kind)

    # The run

    def run(self) -> str | None:
        """Run to the end; return what was wrong, None where all was well."""
        schedule, scheduler = self.schedule, self.scheduler
        for topic in TOPICS:
            self.broker.create_now(topic, self.partitions)
        self.broker.on_misuse = self.fail
        for wire in self.wires():
            wire.rates = schedule.rates
        self.begin(random.Random(f"{schedule.seed} begin"))
        for act in schedule.acts:
            scheduler.at(act.at_s, self._act, act)
        scheduler.at(schedule.length_s, self._heal)
        try:
            scheduler.run(schedule.length_s + HEALING_S)
        except (SpinningError, ViolationError) as error:
            self.fail(str(error))
        for process in self.processes:
            process.loop.is_dead = True
        if self.violation is None and (missing := self.missing()) is not None:
            self.violation = missing
            self.note(f"VIOLATION: {missing}")
        return self.violation

    def _act(self, act: Act) -> None:
        if self.is_healing:
            return
        self.note(f"ACT {act.kind} {act.number} {act.amount}")
        self.acts[act.kind](self, act)

    def _look(self) -> None:
        """End the run once everything has arrived."""
        if self.is_done():
            self.scheduler.stop()
        else:
            self.scheduler.after(_LOOK_S, self._look)

    def _heal(self) -> None:
        self.is_healing = True
        for wire in self.wires():
            wire.rates, wire.away_until_s = QUIET, 0.0
        self.broker.marker_delay_s = self.broker.stale_until_s = 0.0
        for process in list(self.processes):
            process.clock.ahead_ms = 0
            process.loop.resume()
            if process.kind not in self.kinds:
                process.loop.call_soon(set_stop, process.stop)
        self._restarts = 0
        self.heal()
        self._look()

    def worker_at(self, number: int) -> Process | None:
        """Return the worker that an act is about."""
        return self.processes[number % len(self.processes)] if self.processes else None

    def members(self) -> list[tuple[Any, GroupReader]]:
        """Return all members of all groups."""
        return [(g, member) for g in self.groups.groups.values() for member in g.members]
