"""A command that the service carries out itself: plan, call, swap.

    wait for the conversation ─▶ plan ─▶ call (announced, with heartbeats) ─▶ swap ─▶ finished
                 ▲       summary failed: pause, urgent now │                    │ rejected
                 └──────────────────── next attempt ◀──────┴────────────────────┘

A command that becomes urgent waits for nothing any more: its next attempt calls no model.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import structlog

from contextgauge.backoff import Backoff
from contextgauge.compaction.compactor import Compactor
from contextgauge.compaction.counting import Size
from contextgauge.compaction.engine.compaction_receipt import Trigger
from contextgauge.compaction.engine.extractive import ExtractiveSummariser
from contextgauge.compaction.engine.plan import Plan, digest
from contextgauge.compaction.engine.request_size import ModelCall
from contextgauge.compaction.history import Edit
from contextgauge.compaction.ports import Summariser
from contextgauge.compaction.reading.session_conversation import SessionConversation
from contextgauge.compaction.store.stored_history import store_edit
from contextgauge.compaction.summary_call import NoSummaryError
from contextgauge.errors import RetryError
from contextgauge.json_codec import dumps
from contextgauge.windows import base_name
from schemas.commands import CommandEntry, CommandOutcome, CommandPlanned, DecisionView
from streams.core.control.log import UnfinishedCommand
from streams.core.control.messages import Line
from streams.flow.control.commands.command_job import CommandJob, OutcomeError
from streams.flow.control.commands.command_log import CommandLog
from streams.flow.control.commands.command_ports import CommandPorts
from streams.flow.control.commands.planning import AnnouncedSummariser, Planner, ReadyPlan
from streams.flow.control.commands.swap import Swap, Swapped
from streams.flow.control.known_conversation import check_whole, subject_of, whole_conversation

_Value = TypeVar("_Value")

logger = structlog.get_logger()


class _HurriedError(Exception):
    """The command became urgent: what is under way takes too long."""


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
        self._announced: int | None = None
        """The last attempt whose call was announced."""
        self._tokens_before: int | None = None
        self._hurry = asyncio.Event()
        if command.request.urgent:
            self._hurry.set()

    def hurry(self) -> None:
        """Have the deterministic summary taken at once, whatever model is waited for."""
        self._hurry.set()

    async def _carry_out(self) -> None:
        plan, rejected, failures = self._plan, 0, 0
        conversation = await self._conversation()
        pause = self._backoff(plan.pause_s)
        async with self._heartbeats():
            while True:
                was_urgent = self._hurry.is_set()
                try:
                    ready = await self._unless_hurried(self._planned(conversation))
                except _HurriedError:
                    logger.info("urgent now: no model is waited for", command=self.command_id)
                    conversation = await self._conversation()
                except NoSummaryError as error:
                    failures += 1
                    is_last = failures >= plan.most_failures or error.final
                    if was_urgent or (is_last and not self._hurry.is_set()):
                        raise OutcomeError("failed", f"no summary: {error}") from error
                    self._doing_now = "waiting after a summary that failed"
                    logger.warning("no summary", command=self.command_id, reason=str(error))
                    if not self._hurry.is_set():
                        with contextlib.suppress(_HurriedError):
                            await self._unless_hurried(self._paused(error.retry_after_s, pause))
                    conversation = await self._conversation()
                else:
                    changed = await self._put_into_effect(conversation, ready)
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

    async def _unless_hurried(self, work: Coroutine[Any, Any, _Value]) -> _Value:
        """Return what work returns. Raises _HurriedError where the command becomes urgent first."""
        if self._hurry.is_set():
            return await work
        working = asyncio.ensure_future(work)
        hurried = asyncio.create_task(self._hurry.wait())
        try:
            await asyncio.wait({working, hurried}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            raise _HurriedError
        finally:
            working.cancel()
            hurried.cancel()
            await asyncio.gather(working, hurried, return_exceptions=True)

    async def _paused(self, retry_after_s: float | None, pause: Backoff) -> None:
        await self._ports.clock.sleep(retry_after_s or 0)
        await pause.wait()

    async def _put_into_effect(
        self, conversation: SessionConversation, ready: ReadyPlan
    ) -> SessionConversation | None:
        """Swap. Returns None where the plan is in effect; else the conversation as it is now.

        Raises OutcomeError where the log cannot be read to its end in time again and again.
        """
        backoff = self._backoff()
        for _ in range(self._plan.most_failures):
            swapped = await self._swap(conversation, ready)
            if swapped.done or swapped.changed is not None:
                return swapped.changed
            await backoff.wait()
        raise OutcomeError(
            "failed",
            f"what came meanwhile could not be checked within {self._plan.check_s:g} s, "
            f"{self._plan.most_failures} times: is Kafka too slow?",
        )

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

    async def _planned(self, conversation: SessionConversation) -> ReadyPlan:
        """Work a plan out, in a thread. Raises NoSummaryError, and OutcomeError without one.

        A call that the agent makes meanwhile stays as it is, so it need not be waited for.
        """
        self._doing_now = "being planned"
        request, history = self._command.request, conversation.history
        announced: list[Exception] = []
        attempt = self._attempt

        async def announce() -> None:
            try:
                await self._announce(attempt, conversation, summariser.name)
            except Exception as error:
                announced.append(error)
                raise

        is_urgent = self._hurry.is_set()
        model: Summariser | None = None if is_urgent else self._plan.summariser
        summariser = AnnouncedSummariser(model or ExtractiveSummariser(), announce)
        decision = self._decision()
        window = await self._window(conversation, decision)
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
            size = compactor.size(history, call)
            self._tokens_before = size.tokens
            if trigger == "auto" and decision is not None:
                _check_due(size, decision.threshold_tokens)
            return await compactor.plan(
                history,
                call,
                trigger=trigger,
                instructions=request.instructions,
                must=is_urgent,
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
        return ReadyPlan(plan, stored)

    def _decision(self) -> DecisionView | None:
        """Return the latest decision for the command; None where there is none."""
        decisions = self._log.state(self.session_id).view.decisions
        own = (each for each in reversed(decisions) if each.command_id == self.command_id)
        return next(own, None)

    async def _window(
        self, conversation: SessionConversation, decision: DecisionView | None
    ) -> int | None:
        """Return the window that the compaction was decided by, else the one of the views."""
        if decision is not None and decision.window_source != "default":
            return decision.window
        with contextlib.suppress(RetryError):
            owner = await self._ports.owner_of(self.session_id)
            model = conversation.model and base_name(conversation.model)[0]
            if model is None or model == owner.model:
                return owner.window
        return None

    async def _announce(
        self, attempt: int, conversation: SessionConversation, summariser: str
    ) -> None:
        """Publish that a summary is being written, in one step with what is planned.

        Raises _HurriedError where the attempt was given up meanwhile.
        """
        active = conversation.history.active
        prefix_hash = await asyncio.to_thread(digest, active)
        if attempt != self._attempt:
            raise _HurriedError
        planned = CommandPlanned(
            session_id=self.session_id,
            command_id=self.command_id,
            attempt=self._attempt,
            tokens_before=self._tokens_before,
            covers=len(active),
            last_id=active[-1].id if active else "",
            prefix_hash=prefix_hash,
        )
        entries = [self._step(planned), self._step(self._called(summariser))]
        await self._log.append(entries, self._messages.announced(self._now()))
        self._doing_now = f"waiting for a summary by {summariser}"
        self._called_ms = self._called_ms or self._ports.clock.now_ms()
        self._announced, self._summariser = attempt, summariser

    @asynccontextmanager
    async def _heartbeats(self) -> AsyncIterator[None]:
        """Publish signs of life while an attempt is announced; stop the work where that fails."""
        own = asyncio.current_task()

        async def beat() -> None:
            while True:
                await self._ports.clock.sleep(self._plan.heartbeat_s)
                if self._announced != self._attempt:  # this attempt's summariser is not known yet
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

    async def _swap(self, conversation: SessionConversation, ready: ReadyPlan) -> Swapped:
        """Put a plan into effect, if what it covers is still there. Raises OutcomeError."""
        self._doing_now = "being put into effect"
        took_ms = None if self._called_ms is None else self._now_ms() - self._called_ms

        def outcome(is_calling: bool) -> tuple[list[Line], CommandEntry]:  # noqa: FBT001 -- its one argument
            return self._outcome(ready, took_ms, is_calling=is_calling)

        swap = Swap(self._ports, self._log, self._command, self._hurry)
        swapped = await swap.run(conversation, outcome)
        if swapped.done:
            logger.info(
                "command finished",
                command=self.command_id,
                outcome="completed",
                attempt=self._attempt,
            )
        return swapped

    def _outcome(
        self, ready: ReadyPlan, took_ms: int | None, *, is_calling: bool
    ) -> tuple[list[Line], CommandEntry]:
        """Return the messages and the entry of a compaction. Raises OutcomeError."""
        receipt, most = ready.plan.receipt, self._ports.message_limit_bytes
        if took_ms is not None:
            receipt = replace(receipt, duration_ms=max(0, took_ms))
        compacted = ready.compacted(receipt.duration_ms)._replace(is_calling=is_calling)
        lines = self._messages.completed(compacted, self._now())
        largest = max(len(dumps(line)) for line in lines)
        if largest > most:
            raise OutcomeError(
                "failed", f"the boundary would be a message of {largest} bytes; the limit is {most}"
            )
        return lines, self._finished("completed", None, receipt)

    def _now_ms(self) -> int:
        return self._ports.clock.now_ms()


def _check_due(size: Size, threshold: int | None) -> None:
    """Raise OutcomeError where a conversation is known to be below its threshold by now.

    Without an answer since the last compaction, its size is not known better than when it was
    decided.
    """
    if threshold is not None and size.basis == "reported" and size.tokens < threshold:
        raise OutcomeError(
            "nothing_to_compact",
            f"the conversation has {size.tokens} tokens by now: {threshold} is the threshold",
        )


def _interrupt(work: asyncio.Task[None] | None, beating: asyncio.Task[None]) -> None:
    """End the work whose signs of life cannot be published any more."""
    if work is not None and not beating.cancelled():
        work.cancel()
