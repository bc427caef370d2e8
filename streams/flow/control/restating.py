"""What a partition's owner does each hour: it writes settings again, and forgets old sessions.

Thresholds of agents and projects hold until they are changed, but their entries expire with the
topic: those that are older than half of its retention are written again. A session's thresholds
expire with it.
"""

import asyncio
from collections.abc import Mapping
from typing import Final

from schemas.commands import CommandEntry, ThresholdsSet
from streams.core.control.log import SessionControl
from streams.core.control.messages import step_id
from streams.core.control.thresholds import is_removal
from streams.flow.control.command_log import CommandLog
from streams.flow.control.command_ports import CommandPorts

_EVERY_S: Final = 3_600.0


async def restate(ports: CommandPorts, log: CommandLog) -> None:
    """Restate and forget, each hour. Raises FencedError or RetryError."""
    if ports.retention_ms < 0:
        return
    while True:
        now_ms = ports.clock.now_ms()
        forget(log, now_ms - ports.retention_ms)
        due = expiring(log.thresholds, now_ms - ports.retention_ms // 2)
        if due:
            await _write_again(ports, log, due, now_ms)
        await ports.clock.sleep(_EVERY_S)


async def _write_again(
    ports: CommandPorts, log: CommandLog, due: Mapping[tuple[str, str], CommandEntry], now_ms: int
) -> None:
    commands = (ports.commands_topic, log.partition)

    async def approve(first: Mapping[tuple[str, int], int]) -> bool:
        # A setting that is made meanwhile must not be taken back.
        try:
            async with asyncio.timeout(ports.plan.check_s):
                await log.reached(first[commands])
        except TimeoutError:
            return False
        return all(log.thresholds.get(key) is entry for key, entry in due.items())

    again = [
        CommandEntry(step_id(entry.id, 0, f"restated {now_ms}"), now_ms, entry.data)
        for entry in due.values()
    ]
    await log.append(again, approve=approve)


def expiring(
    thresholds: Mapping[tuple[str, str], CommandEntry], before_ms: int
) -> dict[tuple[str, str], CommandEntry]:
    """Return the settings that were written before a time, and are in force."""
    return {
        key: entry
        for key, entry in thresholds.items()
        if entry.time_ms < before_ms
        and isinstance(entry.data, ThresholdsSet)
        and not is_removal(entry.data)
    }


def forget(log: CommandLog, before_ms: int) -> None:
    """Drop sessions of which nothing is in the topic any more."""
    old = [name for name, state in log.sessions.items() if _last_ms(state) < before_ms]
    for name in old:
        if not log.sessions[name].open:
            del log.sessions[name]


def _last_ms(state: SessionControl) -> int:
    view = state.view
    times = [each.finished_ms or each.requested_ms for each in view.commands]
    times += [each.time_ms for each in view.decisions]
    return max([*times, state.thresholds_ms, view.text_deleted_ms or 0])
