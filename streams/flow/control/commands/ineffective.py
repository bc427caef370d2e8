"""Compactions of the service that had no effect: they are noted in the log of commands.

The conversation itself undoes them, wherever it is read
(`contextgauge.compaction.reading.compaction_effect`). The owner of a partition looks after each
compaction until its effect is known, and writes a decision where there is none: so people see it,
and its command is not taken for one that helped.
"""

from dataclasses import dataclass
from typing import Final

import structlog

from contextgauge.compaction.reading.compaction_effect import CompactionEffect
from contextgauge.errors import RetryError
from contextgauge.units import HOUR_MS
from schemas.commands import CommandEntry, CommandView, CompactionDecided
from streams.core.bounded_memory import BoundedMemory
from streams.core.control.ids import id_of
from streams.core.control.log import SessionControl
from streams.core.control.reasons import NO_EFFECT
from streams.core.control.service import SERVICE
from streams.flow.control.commands.command_log import CommandLog
from streams.flow.control.commands.command_ports import CommandPorts

_WATCHED_MS: Final = HOUR_MS
"""An agent that is silent for longer is not waited for: what comes then is undone all the same."""
_MOST: Final = 1_000
"""Sessions of a partition: some hundred kilobytes, and a look at each now and then."""
_LOOK_S: Final = 1.0
_LONGEST_S: Final = 60.0
"""Between two looks: each reads the whole conversation."""

logger = structlog.get_logger()


@dataclass(slots=True)
class _Watched:
    command: CommandView
    until_ms: int
    pause_s: float = _LOOK_S
    next_s: float = 0.0


class EffectWatch:
    """Looks after what was compacted lately, in one partition."""

    def __init__(self, ports: CommandPorts, log: CommandLog) -> None:
        self._ports, self._log = ports, log
        self._watched = BoundedMemory[str, _Watched](_MOST)
        """By session: its last compaction."""
        self._known = BoundedMemory[str, str](_MOST)
        """By session: the last command that was taken, so that none is watched again."""

    def note(self, state: SessionControl) -> None:
        """Take what the log says of a session, whenever that has changed."""
        done = (each for each in reversed(state.view.commands) if each.outcome == "completed")
        command = next((each for each in done if each.driver == SERVICE), None)
        if command is None or command.boundary_uuid is None or command.finished_ms is None:
            return
        session_id, until_ms = state.view.session_id, command.finished_ms + _WATCHED_MS
        if self._known.get(session_id) == command.command_id:
            return
        self._known[session_id] = command.command_id
        if until_ms <= self._ports.clock.now_ms() or _is_noted(state, command.command_id):
            return
        self._watched[session_id] = _Watched(command, until_ms)

    async def run(self) -> None:
        """Look again and again, until cancelled. Raises what makes the log unusable."""
        clock = self._ports.clock
        while True:
            await clock.sleep(_LOOK_S)
            for session_id, watched in list(self._watched.items()):
                if clock.monotonic_s() < watched.next_s:
                    continue
                try:
                    is_over = await self._look(session_id, watched)
                except RetryError:
                    self._log.raise_loss()
                    is_over = False  # it is looked at again
                if is_over or clock.now_ms() > watched.until_ms:
                    if self._watched.get(session_id) is watched:
                        del self._watched[session_id]
                    continue
                watched.next_s = clock.monotonic_s() + watched.pause_s
                watched.pause_s = min(watched.pause_s * 2, _LONGEST_S)

    async def _look(self, session_id: str, watched: _Watched) -> bool:
        """Return whether the effect is known, or will not be. Raises RetryError."""
        conversation = await self._ports.conversations.conversation(session_id)
        if conversation is None or conversation.reading is None:
            return False
        effect = conversation.reading.effects.get(watched.command.boundary_uuid or "")
        if effect is None or effect.state == "awaited":
            return False  # the boundary is not read yet, or nothing after it
        if effect.state == "none":
            await self._write(session_id, watched.command, effect)
        return True

    async def _write(self, session_id: str, command: CommandView, effect: CompactionEffect) -> None:
        decided = CompactionDecided(
            session_id=session_id,
            fired=False,
            reason=NO_EFFECT,
            command_id=command.command_id,
            cause_id=None,
            model=effect.model,
            used_tokens=effect.used,
        )
        entry_id = id_of(NO_EFFECT, command.command_id)
        await self._log.append([CommandEntry(entry_id, self._ports.clock.now_ms(), decided)])
        self._ports.telemetry.count("control_decisions", reason=NO_EFFECT)
        logger.warning(
            "a compaction had no effect, and is undone in the conversation",
            command=command.command_id,
            tokens_before=effect.before,
            tokens_expected=effect.after,
            tokens_reported=effect.used,
        )


def _is_noted(state: SessionControl, command_id: str) -> bool:
    return any(
        each.reason == NO_EFFECT and each.command_id == command_id for each in state.view.decisions
    )
