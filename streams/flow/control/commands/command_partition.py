"""One partition of the compaction service: its log, and the commands that are carried out.

    own the log ─▶ follow it ─▶ act on what has changed: finish, accept, carry out ─▶ store views

A command is carried out by a job of its own; a partition that is lost ends all of them, and its
next owner goes on from the log.
"""

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any, Final

import structlog

from contextgauge.backoff import first_of
from contextgauge.errors import RetryError
from schemas.commands import (
    CommandAccepted,
    CommandEntry,
    CommandFinished,
    CompactRequested,
    ControlView,
)
from streams.core.control.log import Finish, UnfinishedCommand, actions
from streams.core.control.messages import step_id
from streams.core.control.plan import SessionPolicy
from streams.core.control.service import SERVICE
from streams.core.control.thresholds import Subject
from streams.flow.common.retry import RetryLoop
from streams.flow.control.commands.command_job import CommandJob, OutcomeError
from streams.flow.control.commands.command_log import CommandLog
from streams.flow.control.commands.command_ports import CommandPorts
from streams.flow.control.commands.driver_job import DriverJob
from streams.flow.control.commands.ineffective import EffectWatch
from streams.flow.control.commands.planning import Planner
from streams.flow.control.commands.restating import restate
from streams.flow.control.commands.service_job import ServiceJob
from streams.flow.control.known_conversation import conversation_at, subject_of
from streams.flow.control.session_owners import Owner
from streams.ports import started

_TICK_S: Final = 1.0
"""How often sessions with open commands are looked at even where nothing has changed."""
_STORED_AT_ONCE: Final = 200
_LONGEST_WAIT_S: Final = 5.0
"""Between looks at whose session it is: what was requested is not cancelled meanwhile."""
_FINISHED_AT_ONCE: Final = 200
"""In one transaction, some ten kilobytes: a command is cancelled or expired in one entry."""
_REPORT_S: Final = 5.0
"""How often the owner reports to the store, changed or not."""

logger = structlog.get_logger()


class _NotKnownYetError(Exception):
    """Nothing is known of a session: what stores it is away, behind, or has lost it."""


class CommandPartition:
    """The partition, from its takeover until it is lost or released."""

    def __init__(self, ports: CommandPorts, number: int, planner: Planner) -> None:
        self._ports, self.number, self._planner = ports, number, planner
        self.log = CommandLog(ports, number)
        self._effects = EffectWatch(ports, self.log)
        self.is_running = False
        """Whether it has been taken over."""
        self._acted_s = ports.clock.monotonic_s()
        self._jobs: dict[str, CommandJob | None] = {}
        """By session: what is carried out; None while the command is examined."""
        self._busy: dict[str, str] = {}
        """By session: the id of that command."""
        self._waits: dict[str, str] = {}
        """By session: the last command of which it was noted that it waits."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._failure: asyncio.Future[None] | None = None

    async def run(self) -> None:
        """Own the partition until cancelled. Raises FencedError, RetryError or StopError."""
        ports = self._ports
        failure = self._failure = asyncio.get_running_loop().create_future()
        began_s = ports.clock.monotonic_s()
        async with self.log.owned():
            logger.info(
                "partition is owned",
                partition=self.number,
                sessions=len(self.log.sessions),
                open=sum(len(state.open) for state in self.log.sessions.values()),
                seconds=round(ports.clock.monotonic_s() - began_s, 3),
            )
            self.is_running = True
            self.log.unstored.update(dict.fromkeys(self.log.sessions))
            works = (self.log.follow(), self._act(), self._store(), self._effects.run())
            for work in (*works, restate(ports, self.log)):
                self._spawn(work)
            try:
                await failure
            finally:
                for task in self._tasks:
                    task.cancel()
                await asyncio.gather(*self._tasks, return_exceptions=True)

    def silent_s(self) -> float:
        """Return for how long it has made no progress, seconds."""
        last_s = min(self._acted_s, self.log.read_s) if self.is_running else self.log.read_s
        return self._ports.clock.monotonic_s() - last_s

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and self._failure is not None and not self._failure.done():
            self._failure.set_exception(error)

    async def _act(self) -> None:
        """Do what the log demands, whenever it has changed."""
        log, clock = self.log, self._ports.clock
        log.changed.update(dict.fromkeys(log.sessions))
        while True:
            self._acted_s = clock.monotonic_s()
            changed = list(log.changed)
            log.changed.clear()
            log.news.clear()
            finished: list[CommandEntry] = []
            for session_id in changed:
                finished += self._act_on(session_id)
            for begin in range(0, len(finished), _FINISHED_AT_ONCE):
                await log.append(finished[begin : begin + _FINISHED_AT_ONCE])
            if finished:
                continue
            await first_of(log.news.wait(), clock.sleep(_TICK_S))
            log.changed.update(
                (session_id, None) for session_id, state in log.sessions.items() if state.open
            )

    def _act_on(self, session_id: str) -> list[CommandEntry]:
        """Begin what is to be begun; return the entries of what is finished at once."""
        state, now_ms = self.log.state(session_id), self._ports.clock.now_ms()
        busy = self._busy.get(session_id)
        job = self._jobs.get(session_id)
        self._effects.note(state)
        if busy is not None and job is not None:
            command = state.of(busy)
            if command is not None and command.cancelled is not None:
                job.cancel()
            elif command is not None and command.request.urgent:
                job.hurry()
        finished = []
        for action in actions(state, now_ms, self._ports.plan.max_age_ms, busy=busy):
            if isinstance(action, Finish):
                finished.append(self._finished(action))
            else:
                self._busy[session_id] = action.command.id
                self._jobs[session_id] = None
                self._spawn(self._serve(action.command))
        return finished

    def _finished(self, action: Finish) -> CommandEntry:
        command = action.command
        data = CommandFinished(
            session_id=command.request.session_id,
            command_id=command.id,
            outcome=action.outcome,
            attempt=command.attempt,
            reason=action.reason,
        )
        return self._entry(command.id, data)

    def _entry(self, command_id: str, data: CommandAccepted | CommandFinished) -> CommandEntry:
        return CommandEntry(step_id(command_id, 0, data.kind), self._ports.clock.now_ms(), data)

    async def _serve(self, requested: UnfinishedCommand) -> None:
        """Carry a command out; whatever becomes of it, another one may be begun afterwards."""
        session_id = requested.request.session_id
        try:
            try:
                session = await self._examined(requested)
                command = await self._accepted(requested, session)
                job = self._jobs[session_id] = self._job(command, session)
                self.log.changed[session_id] = None  # it may have been cancelled meanwhile
                self.log.news.set()
            except _NotKnownYetError:
                self._note_wait(requested)
                age_s = (self._ports.clock.now_ms() - requested.requested_ms) / 1_000
                await self._ports.clock.sleep(min(max(_TICK_S, age_s / 10), _LONGEST_WAIT_S))
            except OutcomeError as end:
                now = self.log.state(session_id).of(requested.id) or requested
                finish = Finish(now, end.outcome, end.reason)
                if now.cancelled is not None:
                    finish = Finish(now, "cancelled", now.cancelled)
                await self.log.append([self._finished(finish)])
            else:
                await job.run()
        finally:
            self._busy.pop(session_id, None)
            self._jobs.pop(session_id, None)
            self.log.changed[session_id] = None
            self.log.news.set()

    def _note_wait(self, command: UnfinishedCommand) -> None:
        session_id = command.request.session_id
        if self._waits.get(session_id) != command.id:
            self._waits[session_id] = command.id
            logger.info("a request waits until the views have its session", command=command.id)

    async def _examined(self, command: UnfinishedCommand) -> SessionPolicy:
        """Return how the session is compacted. Raises OutcomeError where it is not to be.

        Raises _NotKnownYetError where that is not known yet.
        """
        ports, request = self._ports, command.request
        if command.accepted is not None:
            session, owner = SessionPolicy(opted_in=True, driver=command.accepted.driver), Owner()
        else:
            session, owner = await self._policy(request)
        if not session.opted_in:
            raise OutcomeError(
                "refused",
                "the session has not opted in: name it, its agent or its project in the file of "
                "CONTEXTGAUGE_COMPACTION_FILE",
            )
        if request.trigger != "manual" and not session.automatic:
            raise OutcomeError("refused", "the session is not to be compacted automatically")
        if session.driver == SERVICE and owner.lacks_driver:
            raise OutcomeError(
                "refused",
                f"{owner.runtime} compacts itself, and would not notice a compaction by the "
                "service: name its driver in the file of CONTEXTGAUGE_COMPACTION_FILE, or have its "
                "agent ask for its context (GET /v1/sessions/{id}/context)",
            )
        if session.driver != SERVICE and session.driver not in ports.drivers:
            known = ", ".join(sorted((SERVICE, *ports.drivers)))
            raise OutcomeError(
                "refused", f"no driver {session.driver!r} is configured; there are: {known}"
            )
        return session

    async def _policy(self, request: CompactRequested) -> tuple[SessionPolicy, Owner]:
        """Return what holds for a session, by its view; by its conversation, where that is lacking.

        Without its view it is not known whose it is, nor what runs it. Raises OutcomeError where
        the request is automatic, as it is made again, else _NotKnownYetError.
        """
        ports, owner, is_manual = self._ports, Owner(), request.trigger == "manual"
        with contextlib.suppress(RetryError):
            owner = await ports.owner_of(request.session_id)
        subject = Subject(request.session_id, owner.agent_id, owner.cwd, owner.model)
        session = ports.plan.session(self.log.facts(subject))
        if owner.cwd is not None and session.opted_in:
            return session, owner
        if is_manual and not owner.is_known:
            if session.opted_in and session.driver != SERVICE:
                return session, owner
            raise _NotKnownYetError
        try:
            conversation = await conversation_at(
                ports, request.session_id, self.number, request.upto_offset or 0
            )
        except OutcomeError:
            if session.opted_in and owner.is_known:
                return session, owner
            raise
        if conversation is not None:
            facts = self.log.facts(subject_of(request.session_id, conversation))
            return ports.plan.session(facts), owner
        if not owner.is_known and session.opted_in:
            raise OutcomeError("refused", "it is not known yet whose session it is")
        return session, owner

    async def _accepted(
        self, command: UnfinishedCommand, session: SessionPolicy
    ) -> UnfinishedCommand:
        """Have the command accepted, if it is not yet; return it as the log has it."""
        ports, request = self._ports, command.request
        if command.accepted is None:
            upto = request.upto_offset
            if upto is None:
                topic = ports.messages_topic
                async with started(ports.log.reader(topic, [self.number])) as reader:
                    _, upto = await reader.bounds(self.number)
            data = CommandAccepted(
                session_id=request.session_id,
                command_id=command.id,
                driver=session.driver,
                upto_offset=upto,
            )
            await self.log.append([self._entry(command.id, data)])
        return self.log.state(request.session_id).of(command.id) or command

    def _job(self, command: UnfinishedCommand, session: SessionPolicy) -> CommandJob:
        if session.driver == SERVICE:
            return ServiceJob(self._ports, self.log, command, self._planner)
        return DriverJob(self._ports, self.log, command, self._ports.drivers[session.driver])

    async def _store(self) -> None:
        """Store the views of what has changed, and report each few seconds."""
        log, ports = self.log, self._ports
        retry = RetryLoop(ports, "redis")
        while True:
            log.to_store.clear()
            names = list(log.unstored)[:_STORED_AT_ONCE]
            for name in names:
                del log.unstored[name]
            views: dict[str, ControlView] = {name: log.state(name).view for name in names}
            position = max(log.position, log.written)
            try:
                await retry.run(ports.store.put, self.number, views, position, ports.clock.now_ms())
            except RetryError:
                return  # the worker stops
            if not log.unstored:
                await first_of(log.to_store.wait(), ports.clock.sleep(_REPORT_S))
