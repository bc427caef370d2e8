"""What the compaction service is configured to do: for which sessions, with what, for how long."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from contextgauge.compaction.ports import Summariser
from contextgauge.compaction.profiles import Override, Profile
from schemas.commands import ThresholdsSet
from streams.core.control.service import (
    DEFAULT_CALLS,
    DEFAULT_DEADLINE_MS,
    DEFAULT_MAX_AGE_MS,
    SERVICE,
)

CALL_S: Final = 300.0
"""What a summary of a long conversation in several parts may take, seconds."""


class CompactedSession(NamedTuple):
    """A session, as far as it is known, and the thresholds that were set for it by commands.

    `window` is the one that its compaction was decided by.
    """

    session_id: str
    agent_id: str | None = None
    project: str | None = None
    model: str | None = None
    window: int | None = None
    thresholds: Sequence[ThresholdsSet] = ()


class SessionPolicy(NamedTuple):
    """How one session is compacted. `driver` is `service`, or the name of a runtime's driver.

    One that has not opted in is not compacted on any request.
    """

    opted_in: bool
    driver: str = SERVICE
    profile: Profile | str = "default"
    overrides: Sequence[Override] = ()
    automatic: bool = True
    """Whether it may be compacted without a user's request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlan:
    """The configuration of the compaction service. Durations are seconds."""

    session: Callable[[CompactedSession], SessionPolicy]
    summariser: Summariser | None = None
    """None: summaries are extracted, without a model."""
    max_age_ms: int = DEFAULT_MAX_AGE_MS
    """Automatic requests that are older expire."""
    pool_size: int = DEFAULT_CALLS
    """Compactions that one process works out at a time; others wait."""
    command_s: float = DEFAULT_DEADLINE_MS / 1_000
    """From acceptance until a command has failed."""
    call_s: float = CALL_S
    """For one summary, all calls of a model included."""
    conversation_s: float = 60.0
    """Patience with `contextgauge conversations`, to reach the offset that a command names."""
    check_s: float = 5.0
    """For the check of a swap. Readers of the partition wait meanwhile, and the transaction times
    out."""
    quiet_s: float = 10.0
    """How long a swap waits for the answer of a model that was called before it."""
    heartbeat_s: float = 30.0
    most_plans: int = 5
    """Plans whose conversation changed under them, until the command has failed."""
    most_failures: int = 3
    """Summaries that could not be had, until the command has failed."""
    pause_s: float = 5.0
    """After a failed summary; it doubles with each."""
    driver_s: float = 900.0
    """For a runtime's own compaction, from its request to its boundary."""
