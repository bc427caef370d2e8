"""The control plane: where its views are kept, how commands are sent, and what steers a runtime."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple, Protocol

from schemas.commands import CommandEntry, ControlView

OWNED_MS: Final = 60_000
"""After its last report an owner is gone: it reports every few seconds. Who has an earlier position
then has another log: the topic was created again."""


class CommandSink(Protocol):
    """Appends requests to `context.commands`."""

    async def start(self) -> None:
        """Connect. Raises RetryError or ConfigError."""

    async def send(self, entries: Sequence[CommandEntry]) -> None:
        """Append entries, each to its session's partition, or to every one where it has none.

        Returns once they are acknowledged. Raises RetryError, RecordError, ConfigError. Sending
        an entry again is harmless: its id is known.
        """

    async def stop(self) -> None: ...


class ControlReader(Protocol):
    """Reads what the control plane knows of sessions."""

    async def control_view(self, session_id: str) -> ControlView | None:
        """Return a session's view; None where there is nothing. Raises RetryError, VersionError."""

    async def control_seen_ms(self, partition: int) -> int | None:
        """Return when the owner of a partition last reported; None: there is none."""


class ControlStore(ControlReader, Protocol):
    """Keeps the views that a partition's owner folds from `context.commands`."""

    async def put(
        self, partition: int, views: Mapping[str, ControlView], position: int, now_ms: int
    ) -> None:
        """Replace the views of sessions; note the owner's report.

        All are absolute values, so it may be repeated. Raises RetryError, also where a later
        position was reported in the last `OWNED_MS`: then there may be a later owner.
        """


class DriverResult(NamedTuple):
    """What a runtime answered. `reason` contains no text of the conversation.

    `done`: it has compacted; `started`: it will, and its own messages tell when; `retry`: it is
    away; `refused`: asking again would not help.
    """

    outcome: Literal["done", "started", "retry", "refused"]
    reason: str


class Driver(Protocol):
    """Makes a runtime that compacts by itself do it now."""

    @property
    def name(self) -> str:
        """What the log calls it, such as `codex`."""

    async def compact(self, session_id: str, instructions: str | None) -> DriverResult:
        """Ask for a compaction, and wait for the runtime's answer. Never raises for what it does.

        May be cancelled: the runtime is then asked to stop, where its protocol can do that.
        """

    async def stop(self) -> None: ...
