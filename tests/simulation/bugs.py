# ruff: noqa: SLF001 -- mistakes are planted inside
"""Mistakes that the simulation must find, each planted into the service for some runs."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from contextgauge.errors import FencedError, RetryError
from schemas.commands import CancelRequested
from streams.core.control import log as core
from streams.flow.control.commands import command_job, service_job
from streams.flow.control.commands.command_log import CommandLog
from streams.flow.control.commands.message_tail import MessageTail
from streams.flow.conversations.partition import ConversationPartition
from tests.simulation.control import Control
from tests.simulation.control_worker import ControlProducer

Plant = Callable[[pytest.MonkeyPatch], None]


def _swap_without_approval(patch: pytest.MonkeyPatch) -> None:
    append = CommandLog._append

    async def unapproved(self: CommandLog, make: Any, _approve: Any) -> bool:
        return await append(self, make, None)

    patch.setattr(CommandLog, "_append", unapproved)


def _no_fencing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Control, "has_stable_ids", False)


def _outcome_outside_the_transaction(patch: pytest.MonkeyPatch) -> None:
    commit = ControlProducer.commit

    async def split(self: Any, records: Any, approve: Any = None) -> Any:
        topics = {each.topic for each in records}
        if len(topics) == 1:
            return await commit(self, records, approve)
        first = records[0].topic
        one = [each for each in records if each.topic == first]
        two = [each for each in records if each.topic != first]
        await commit(self, one)
        return await commit(self, two)

    patch.setattr(ControlProducer, "commit", split)


def _resume_forgets_cancellations(patch: pytest.MonkeyPatch) -> None:
    fold = CommandLog._fold

    def forgetful(self: CommandLog, entry: Any, logged_ms: int) -> None:
        if self._producer is not None or not isinstance(entry.data, CancelRequested):
            fold(self, entry, logged_ms)

    patch.setattr(CommandLog, "_fold", forgetful)


def _a_repeated_request_is_a_new_one(patch: pytest.MonkeyPatch) -> None:
    requested = core._requested

    def again(state: Any, data: Any, time_ms: int) -> Any:
        if state.of(data.command_id) is None:
            others = tuple(
                each for each in state.view.commands if each.command_id != data.command_id
            )
            state = replace(state, past=(), view=replace(state.view, commands=others))
        return requested(state, data, time_ms)

    patch.setattr(core, "_requested", again)


def _attempts_do_not_count_on(patch: pytest.MonkeyPatch) -> None:
    init = command_job.CommandJob.__init__

    def first(self: Any, *given: Any) -> None:
        init(self, *given)
        self._attempt = 1

    patch.setattr(command_job.CommandJob, "__init__", first)


def _the_check_reads_no_further(patch: pytest.MonkeyPatch) -> None:
    async def nothing(_self: Any, _until: int) -> None:
        await asyncio.sleep(0)

    patch.setattr(MessageTail, "read", nothing)


def _the_check_waits_for_no_command(patch: pytest.MonkeyPatch) -> None:
    async def at_once(_self: Any, _offset: int) -> None:
        await asyncio.sleep(0)

    patch.setattr(CommandLog, "reached", at_once)


def _a_lost_reply_is_a_failure(patch: pytest.MonkeyPatch) -> None:
    commit = ControlProducer.commit

    async def retried(self: Any, records: Any, approve: Any = None) -> Any:
        try:
            return await commit(self, records, approve)
        except FencedError:
            raise
        except RetryError:
            await self.start()
            return await commit(self, records, approve)

    patch.setattr(ControlProducer, "commit", retried)


def _steps_after_the_outcome(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CommandLog, "_is_over", lambda _self, _data: False)


def _the_restore_begins_at_the_end(patch: pytest.MonkeyPatch) -> None:
    owned = CommandLog._take

    def skipped(self: CommandLog, records: Any, position: int) -> None:
        if self._producer is None:
            self.position = position
        else:
            owned(self, records, position)

    patch.setattr(CommandLog, "_take", skipped)


def _an_announcement_is_left_open(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(service_job.ServiceJob, "_last_lines", lambda *_given: [])


def _conversations_skip_lines(patch: pytest.MonkeyPatch) -> None:
    flush = ConversationPartition._flush

    async def careless(self: Any, keeper: Any, position: int) -> None:
        if position % 7 == 0:
            keeper.take_changes()
        await flush(self, keeper, position)

    patch.setattr(ConversationPartition, "_flush", careless)


BUGS: dict[str, Plant] = {
    each.__name__.strip("_").replace("_", " "): each
    for each in (
        _swap_without_approval,
        _no_fencing,
        _outcome_outside_the_transaction,
        _resume_forgets_cancellations,
        _a_repeated_request_is_a_new_one,
        _attempts_do_not_count_on,
        _the_check_reads_no_further,
        _the_check_waits_for_no_command,
        _a_lost_reply_is_a_failure,
        _steps_after_the_outcome,
        _the_restore_begins_at_the_end,
        _an_announcement_is_left_open,
        _conversations_skip_lines,
    )
}
