"""What a partition's owner does each hour: it writes settings again, and forgets old sessions.

Thresholds hold until they are changed, but their entries expire with the topic: those that are
older than half of its retention are written again. Of sessions, which come and go, only the
settings that were made last: the others expire with the log.
"""

import asyncio
from collections.abc import Mapping
from itertools import islice
from typing import Final, TypeAlias

from schemas.commands import CommandEntry, ThresholdsSet
from streams.core.control.ids import id_of
from streams.core.control.log import SessionControl
from streams.core.control.thresholds import is_removal
from streams.flow.control.commands.command_log import CommandLog
from streams.flow.control.commands.command_ports import CommandPorts

MOST_SESSIONS: Final = 10_000
"""Settings of single sessions that are written again, of each partition: some megabytes."""

_EVERY_S: Final = 3_600.0
_AT_ONCE: Final = 200
"""Commands that are written again in one transaction."""

_Key: TypeAlias = tuple[str, str]


async def restate(ports: CommandPorts, log: CommandLog) -> None:
    """Restate and forget, each hour. Raises FencedError or RetryError."""
    if ports.retention_ms < 0:
        return
    while True:
        now_ms = ports.clock.now_ms()
        forget(log, now_ms - ports.retention_ms)
        due = iter(expiring(log, now_ms - ports.retention_ms // 2).items())
        while some := dict(islice(due, _AT_ONCE)):
            await write_again(ports, log, some, now_ms)
        await ports.clock.sleep(_EVERY_S)


async def write_again(
    ports: CommandPorts, log: CommandLog, due: Mapping[_Key, ThresholdsSet], now_ms: int
) -> None:
    """Write settings again, unless any of them has changed. Raises FencedError or RetryError."""
    commands = (ports.commands_topic, log.partition)

    async def approve(first: Mapping[tuple[str, int], int]) -> bool:
        # A setting that is made meanwhile must not be taken back.
        try:
            async with asyncio.timeout(ports.plan.check_s):
                await log.reached(first[commands])
        except TimeoutError:
            return False
        return all(_in_force(log, *key) == data for key, data in due.items())

    again = [
        CommandEntry(id_of("restated", *key, log.partition, now_ms), now_ms, data)
        for key, data in due.items()
    ]
    await log.append(again, approve=approve)


def _in_force(log: CommandLog, scope: str, name: str) -> object:
    if scope == "session":
        return log.state(name).view.thresholds
    entry = log.thresholds.get((scope, name))
    return None if entry is None else entry.data


def expiring(log: CommandLog, before_ms: int) -> dict[_Key, ThresholdsSet]:
    """Return the settings that were written before a time, and are in force."""
    due = {
        key: entry.data
        for key, entry in log.thresholds.items()
        if entry.time_ms < before_ms
        and isinstance(entry.data, ThresholdsSet)
        and not is_removal(entry.data)
    }
    sessions = [
        (state.thresholds_ms, name, state.view.thresholds)
        for name, state in log.sessions.items()
        if state.view.thresholds is not None
    ]
    for time_ms, name, data in sorted(sessions, key=lambda each: each[:2])[-MOST_SESSIONS:]:
        if time_ms < before_ms:
            due["session", name] = data
    return due


def forget(log: CommandLog, before_ms: int) -> None:
    """Drop what nothing is in the topic of any more: sessions, and settings that were removed."""
    old = [name for name, state in log.sessions.items() if _last_ms(state) < before_ms]
    for name in old:
        if not log.sessions[name].open:
            del log.sessions[name]
    removed = [
        key
        for key, entry in log.thresholds.items()
        if entry.time_ms < before_ms
        and isinstance(entry.data, ThresholdsSet)
        and is_removal(entry.data)
    ]
    for key in removed:
        del log.thresholds[key]


def _last_ms(state: SessionControl) -> int:
    view = state.view
    times = [each.finished_ms or each.requested_ms for each in view.commands]
    times += [each.time_ms for each in view.decisions]
    return max([*times, state.thresholds_ms, view.text_deleted_ms or 0])
