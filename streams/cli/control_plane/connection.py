"""What commands of the control plane work with: views, what it knows, and where requests go."""

import asyncio
import getpass
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, TypeVar

from contextgauge.clock import SystemClock
from contextgauge.documents import document
from contextgauge.errors import ConfigError, StopError
from contextgauge.partitioner import partition_of
from contextgauge.settings.forms import PREFIX
from schemas.commands import CommandData, CommandEntry, ControlView
from schemas.views import SessionView
from streams import wiring
from streams.cli.screen.figures import duration, safe
from streams.cli.screen.output import say
from streams.cli.stored import opened_views
from streams.edge.commands import new_id
from streams.ports import CommandSink, ControlReader
from streams.serve.api.control import SILENT_MS
from streams.serve.views.sessions import SessionLookupError, Sessions, active_sessions
from streams.serve.views.snapshot import ViewsGoneError
from streams.settings import Settings

_Result = TypeVar("_Result")

CLOCK: Final = SystemClock()


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """The services, connected; `sink` gives where requests go, once one is to be sent."""

    settings: Settings
    sessions: Sessions
    control: ControlReader
    sink: Callable[[], CommandSink]

    async def find(self, name: str) -> SessionView:
        """Return the session of an id, or of the beginning of one. Raises SessionLookupError."""
        return await self.sessions.find(name)

    async def view(self, session_id: str) -> ControlView:
        """Return what is known of a session, empty where it is nothing."""
        view = await self.control.control_view(session_id)
        return ControlView(session_id=session_id) if view is None else view

    async def send(self, data: CommandData) -> None:
        """Send an entry. Raises RetryError, ConfigError."""
        await self.sink().send([CommandEntry(new_id(), CLOCK.now_ms(), data)])

    async def silence(self, session_id: str) -> str | None:
        """Return what to do where no control worker reads the session's requests; None: one does.

        A worker that only sends alerts does not report. While none does, the views lack what was
        requested since.
        """
        snapshot = self.sessions.snapshot
        partitions = 0 if snapshot is None else snapshot.partitions
        seen_ms = None
        if partitions:
            seen_ms = await self.control.control_seen_ms(partition_of(session_id, partitions))
        silent_ms = None if seen_ms is None else CLOCK.now_ms() - seen_ms
        if silent_ms is not None and silent_ms <= SILENT_MS:
            return None
        since = "yet" if silent_ms is None else f"for {duration(silent_ms)}"
        return (
            f"no control worker of the compaction service has reported {since}: start "
            f"`contextgauge control` with {PREFIX}COMPACTION_FILE set ({document('CONTROL.md')})"
        )

    async def warn_of_silence(self, session_id: str, meanwhile: str) -> None:
        """Say where no control worker reads the session's requests, and what that means."""
        silence = await self.silence(session_id)
        if silence is not None:
            say(f"{silence[0].upper()}{silence[1:]}; {meanwhile}", "yellow")


def requested_by() -> str:
    """Return who asks, for the log of commands."""
    try:
        return f"cli:{getpass.getuser()}"
    except (KeyError, OSError):  # a user without a name
        return "cli"


def with_control(work: Callable[[ControlPlane], Awaitable[_Result]]) -> _Result:
    """Run `work` on the services of the settings.

    Raises StopError where there is no such session, or where the views are gone.
    """
    settings = wiring.settings()

    async def run() -> _Result:
        async with _connected(settings) as plane:
            return await work(plane)

    try:
        return asyncio.run(run())
    except (SessionLookupError, ViewsGoneError) as error:
        raise StopError(safe(str(error))) from None


@asynccontextmanager
async def _connected(settings: Settings) -> AsyncIterator[ControlPlane]:
    opened: list[CommandSink] = []

    def sink() -> CommandSink:
        # What only reads needs no Kafka, and no settings of it.
        if not opened:
            opened.append(wiring.command_sink(settings))
        return opened[0]

    async with (
        opened_views(settings) as views,
        wiring.started(wiring.control_store(settings)) as control,
    ):
        try:
            sessions = await active_sessions(views, CLOCK)
            yield ControlPlane(settings, sessions, control, sink)
        finally:
            for each in opened:
                await each.stop()


def one_scope(names: Sequence[tuple[str, str | None]]) -> tuple[str, str]:
    """Return the one argument or option that is given, and its value. Raises ConfigError."""
    given = [(option, value) for option, value in names if value is not None]
    if len(given) != 1:
        listed = ", ".join(option for option, _ in names)
        raise ConfigError(f"give one of {listed}: whose thresholds?")
    return given[0]
