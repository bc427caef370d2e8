"""A command that the service carries out itself: plan, call, swap.

    wait for the conversation ─▶ plan ─▶ call (announced, with heartbeats) ─▶ swap ─▶ finished
                 ▲                  summary failed: pause │                     │ rejected
                 └──────────────────── next attempt ◀─────┴─────────────────────┘

The swap is one transaction over two topics. Before it is committed, the conversation is read up to
the transaction's own first message, and the boundary applied to it; and the log of commands up to
the outcome, so that a cancellation that is there before the outcome is honoured.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

import structlog

from contextgauge.compaction.compactor import Compactor
from contextgauge.compaction.extractive import ExtractiveSummariser
from contextgauge.compaction.history import Edit
from contextgauge.compaction.measuring import ModelCall
from contextgauge.compaction.plan import Plan, PlanRejectedError, digest
from contextgauge.compaction.ports import Summariser
from contextgauge.compaction.receipts import Trigger
from contextgauge.compaction.stored import store_edit
from contextgauge.compaction.writing import NoSummaryError
from contextgauge.errors import PositionError, RetryError
from contextgauge.json_codec import dumps
from contextgauge.records import Json
from schemas.commands import CommandEntry, CommandOutcome, CommandPlanned
from streams.core.control.log import UnfinishedCommand
from streams.core.control.messages import Compacted, Line
from streams.core.conversation.fold import ConversationFold
from streams.flow.control.command_job import CommandJob, OutcomeError, receipt_json
from streams.flow.control.command_log import CommandLog
from streams.flow.control.command_ports import CommandPorts
from streams.flow.control.conversations import check_whole, subject_of, whole_conversation
from streams.flow.control.planning import AnnouncedSummariser, Planner
from streams.flow.control.tails import MessageTail
from streams.ports import PartitionReader, SessionConversation, started

_QUIET_LOOK_S = 0.1

logger = structlog.get_logger()


class _Ready:
    """A plan, and what a boundary says of it, as JSON; made in the planner's thread."""

    def __init__(self, plan: Plan, edit: Json) -> None:
        self.plan = plan
        self.edit = edit


class ServiceJob(CommandJob):
    """Compacts a conversation by the engine."""

    def __init__(
        self,
        ports: CommandPorts,
        log: CommandLog,
        command: UnfinishedCommand,
        planner: Planner,
    ) -> None:
        super().__init__(ports, log, command)
        self._planner = planner
        self._doing_now = "waiting for the conversation"
        self._called_ms: int | None = None

    async def _carry_out(self) -> None:
        plan, rejected, failures = self._plan, 0, 0
        conversation = await self._conversation()
        pause = self._backoff(plan.pause_s)
        async with self._heartbeats():
            while True:
                try:
                    ready = await self._planned(conversation)
                except NoSummaryError as error:
                    failures += 1
                    if failures >= plan.most_failures or self._command.request.urgent:
                        raise OutcomeError("failed", f"no summary: {error}") from error
                    self._doing_now = "waiting after a summary that failed"
                    logger.warning("no summary", command=self.command_id, reason=str(error))
                    await self._ports.clock.sleep(error.retry_after_s or 0)
                    await pause.wait()
                    conversation = await self._conversation()
                else:
                    changed = await self._swap(conversation, ready)
                    if changed is None:
                        return
                    rejected += 1
                    if rejected >= plan.most_plans:
                        raise OutcomeError(
                            "failed", f"the conversation changed under each of {rejected} plans"
                        )
                    check_whole(changed)
                    conversation = changed
                self._attempt += 1
                self._beats = 0

    def _doing(self) -> str:
        return f"attempt {self._attempt} was {self._doing_now}"

    def _last_lines(self, outcome: CommandOutcome, reason: str) -> Sequence[Line]:
        """End the runtime's attempt: what was announced must not stay open."""
        state = self._state
        if outcome == "failed" or (state is not None and state.is_called):
            return [self._messages.failed(reason, self._now())]
        return []

    async def _conversation(self) -> SessionConversation:
        self._doing_now = "waiting for the conversation"
        accepted = self._command.accepted
        return await whole_conversation(
            self._ports,
            self.session_id,
            self._log.partition,
            accepted.upto_offset if accepted else 0,
        )

    async def _planned(self, conversation: SessionConversation) -> _Ready:
        """Work a plan out, in a thread. Raises NoSummaryError, and OutcomeError without one.

        A call that the agent makes meanwhile stays as it is, so it need not be waited for.
        """
        self._doing_now = "being planned"
        request, history = self._command.request, conversation.history
        announced: list[Exception] = []

        async def announce() -> None:
            try:
                await self._announce(conversation, summariser.name)
            except Exception as error:
                announced.append(error)
                raise

        chosen: Summariser | None = None if request.urgent else self._plan.summariser
        summariser = AnnouncedSummariser(chosen or ExtractiveSummariser(), announce)
        window = self._window()
        facts = self._log.facts(subject_of(self.session_id, conversation), window)
        session = self._plan.session(facts)
        compactor = Compactor(
            profile=session.profile,
            overrides=session.overrides,
            summariser=summariser,
            deadline_s=self._plan.call_s,
            now_ms=self._ports.clock.now_ms,
        )
        call = ModelCall(
            model=conversation.model,
            window_tokens=window,
            project=conversation.project,
            agent=conversation.agent_id,
        )
        trigger: Trigger = "manual" if request.trigger == "manual" else "auto"

        async def work() -> Plan | None:
            return await compactor.plan(
                history,
                call,
                trigger=trigger,
                instructions=request.instructions,
                must=request.urgent,
                during_call=True,
            )

        try:
            plan = await self._planner.plan(work)
        except NoSummaryError:
            if announced:  # the summary failed because the log did
                raise announced[0] from None
            raise
        if plan is None:
            reason = await asyncio.to_thread(compactor.why_not, history, call)
            raise OutcomeError("nothing_to_compact", reason)
        edit = Edit(plan.covers, plan.replacement, plan.receipt)
        stored = await asyncio.to_thread(store_edit, edit, history)
        return _Ready(plan, stored)

    def _window(self) -> int | None:
        """Return the window by which the compaction was decided, if it was."""
        view = self._log.state(self.session_id).view
        for decision in reversed(view.decisions):
            if decision.command_id == self.command_id and decision.window_source != "default":
                return decision.window
        return None

    async def _announce(self, conversation: SessionConversation, summariser: str) -> None:
        """Publish that a summary is being written, in one step with what is planned."""
        active = conversation.history.active
        planned = CommandPlanned(
            session_id=self.session_id,
            command_id=self.command_id,
            attempt=self._attempt,
            covers=len(active),
            last_id=active[-1].id if active else "",
            prefix_hash=await asyncio.to_thread(digest, active),
        )
        entries = [self._step(planned), self._step(self._called(summariser))]
        await self._log.append(entries, self._messages.announced(self._now()))
        self._doing_now = f"waiting for a summary by {summariser}"
        self._called_ms = self._called_ms or self._ports.clock.now_ms()
        self._summariser = summariser

    @asynccontextmanager
    async def _heartbeats(self) -> AsyncIterator[None]:
        """Publish signs of life while an attempt is announced; stop the work where that fails."""
        own = asyncio.current_task()

        async def beat() -> None:
            while True:
                await self._ports.clock.sleep(self._plan.heartbeat_s)
                if self._called_ms is None:
                    continue
                self._beats += 1
                entry = self._step(self._called(self._summariser), self._beats)
                line = self._messages.heartbeat(self._beats, self._now())
                await self._log.append([entry], [line])

        beating = asyncio.create_task(beat())
        beating.add_done_callback(partial(_interrupt, own))
        try:
            yield
        except asyncio.CancelledError:
            if beating.done() and not beating.cancelled():
                beating.result()
            raise
        finally:
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)

    async def _swap(
        self, conversation: SessionConversation, ready: _Ready
    ) -> SessionConversation | None:
        """Put a plan into effect. Returns None where it is; else the conversation as it is now."""
        self._doing_now = "being put into effect"
        ports, partition = self._ports, self._log.partition
        messages, commands = (ports.messages_topic, partition), (ports.commands_topic, partition)
        reader = ports.log.reader(ports.messages_topic, [partition])
        rejected: list[SessionConversation] = []
        try:
            async with started(reader):
                fold = ConversationFold(conversation)
                tail = MessageTail(reader, partition, self.session_id, fold)
                took_ms = None if self._called_ms is None else self._now_ms() - self._called_ms
                await self._until_quiet(reader, tail)
                lines, entry = self._outcome(ready, took_ms)

                async def approve(first: Mapping[tuple[str, int], int]) -> bool:
                    try:
                        async with asyncio.timeout(self._plan.check_s):
                            await tail.read(first[messages])
                            await self._log.reached(first[commands])
                    except TimeoutError:
                        return False
                    state = self._state
                    if state is None or state.cancelled is not None:
                        return False
                    seen = fold.result
                    try:
                        if seen.state == "whole":
                            fold.add(lines[1], first[messages] + 1, strict=True)
                            return True
                    except PlanRejectedError:
                        pass
                    rejected.append(seen)
                    return False

                if await self._log.append([entry], lines, approve):
                    logger.info(
                        "command finished",
                        command=self.command_id,
                        outcome="completed",
                        attempt=self._attempt,
                    )
                    return None
        except PositionError as error:
            raise RetryError(f"the session's messages cannot be read: {error}") from error
        return rejected[0] if rejected else fold.result

    def _outcome(self, ready: _Ready, took_ms: int | None) -> tuple[list[Line], CommandEntry]:
        """Return the messages and the entry of a compaction. Raises OutcomeError."""
        receipt, most = ready.plan.receipt, self._ports.message_limit_bytes
        if took_ms is not None:
            receipt = replace(receipt, duration_ms=max(0, took_ms))
        lines = self._messages.completed(self._compacted(ready, receipt.duration_ms), self._now())
        largest = max(len(dumps(line)) for line in lines)
        if largest > most:
            raise OutcomeError(
                "failed", f"the boundary would be a message of {largest} bytes; the limit is {most}"
            )
        return lines, self._finished("completed", None, receipt)

    def _now_ms(self) -> int:
        return self._ports.clock.now_ms()

    async def _until_quiet(self, reader: PartitionReader, tail: MessageTail) -> None:
        """Read all messages, until the model has answered: at most `quiet_s`, not if it is urgent.

        An answer to what was sent before the swap would report the size of before it.
        """
        clock = self._ports.clock
        until_s = clock.monotonic_s() + (0 if self._command.request.urgent else self._plan.quiet_s)
        before: int | None = None
        while True:
            _, end = await reader.bounds(self._log.partition)
            await tail.read(end)
            active = tail.fold.result.history.active
            answers = sum(message.role == "assistant" for message in active)
            before = answers if before is None else before
            is_quiet = not active or active[-1].role == "assistant" or answers > before
            if is_quiet or clock.monotonic_s() >= until_s:
                return
            await clock.sleep(_QUIET_LOOK_S)

    def _compacted(self, ready: _Ready, duration_ms: int | None) -> Compacted:
        plan = ready.plan
        receipt = plan.receipt
        summaries = (
            message.compaction.summary
            for message in plan.replacement
            if message.compaction is not None and message.compaction.number == receipt.number
        )
        return Compacted(
            tokens_before=receipt.tokens_before,
            tokens_after=receipt.tokens_after,
            duration_ms=duration_ms,
            plan={
                "covers": plan.covers,
                "last_id": plan.last_id,
                "prefix_hash": plan.prefix_hash,
            },
            edit=ready.edit,
            receipt=receipt_json(replace(receipt, duration_ms=duration_ms)),
            summary=None if receipt.number is None else next(summaries, None),
        )


def _interrupt(work: asyncio.Task[None] | None, beating: asyncio.Task[None]) -> None:
    """End the work whose signs of life cannot be published any more."""
    if work is not None and not beating.cancelled():
        work.cancel()
