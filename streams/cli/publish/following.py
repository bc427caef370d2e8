"""One run of `publish`: files from where they were sent to, then pipes, until all is acknowledged.

SIGINT (Ctrl-C) and SIGTERM end it in good order: what was read is sent, its acknowledgement is
waited for, the checkpoint is written. A second signal ends it at once.
"""

import asyncio
import os
import signal
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path

from contextgauge.clock import SystemClock
from contextgauge.errors import RetryError
from contextgauge.state_folder import checkpoint_file, state_folder, text_key
from streams.cli.publish.publishing import Connection, config_of, connected, say, summary, tell
from streams.cli.publish.refusals import Refusals
from streams.cli.publish.status import Status
from streams.edge.files import reading as files
from streams.edge.files.checkpoint import Checkpoint, Stored, Target
from streams.edge.files.checkpoint_keeper import Keeper
from streams.edge.files.follower import Follower
from streams.edge.files.pieces import Event, Piece, nothing
from streams.edge.files.watch import Found, Watch
from streams.flow.common.in_thread import in_thread
from streams.flow.publish.follow import publish_pieces, until
from streams.flow.publish.publish import PublishConfig, Published, Sender
from streams.settings import Settings

_STOP_S = 10.0
"""How long the last acknowledgements are waited for: supervisors kill after 10 to 90 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to publish, and how; see the command's options."""

    files: Sequence[str]
    pipes: Sequence[str]
    follow: bool
    session: str | None
    live: bool | None
    no_text: bool
    again: bool
    checkpoint: Path | None
    task_id: str | None
    agent_id: str | None


@dataclass(slots=True)
class Outcome:
    """What was done, the signal that ended it, and whether acknowledgements are missing."""

    done: Published = field(default_factory=Published)
    ended_by: signal.Signals | None = None
    timed_out: bool = False


async def run(chosen: Settings, request: Request) -> Outcome:
    """Publish, and say at the end what was done. Raises ConfigError."""
    clock = SystemClock()
    begin_s = clock.monotonic_s()
    stop = asyncio.Event()
    outcome = Outcome()
    refusals = Refusals()
    _hear(stop, outcome)
    look = _look(request)
    status = Status(follow=request.follow)
    already = 0
    try:
        async with connected(chosen, stop, status.say) as connection:
            config = replace(
                config_of(chosen, connection),
                task_id=request.task_id,
                agent_id=request.agent_id,
                text_key=text_key(state_folder(chosen.state_folder)) if request.no_text else None,
            )
            publishing = _Publishing(request, connection, config, refusals, status, stop, outcome)
            if request.files:
                already = await publishing.files(_checkpoint(chosen, request, connection), look)
            if request.pipes and not stop.is_set():
                await publishing.pipes()
    except asyncio.CancelledError:
        if not stop.is_set():
            raise
    seconds = max(clock.monotonic_s() - begin_s, 0.001)
    tell(summary(outcome.done, seconds, refusals.summary(), already=already))
    return outcome


def _hear(stop: asyncio.Event, outcome: Outcome) -> None:
    """End in good order at the first signal, and at once at the second."""
    loop = asyncio.get_running_loop()
    heard = (signal.SIGINT, signal.SIGTERM)

    def end(received: signal.Signals) -> None:
        outcome.ended_by = received
        stop.set()
        for each in heard:
            loop.remove_signal_handler(each)
            signal.signal(each, signal.SIG_DFL)

    for each in heard:
        loop.add_signal_handler(each, end, each)


def _look(request: Request) -> Callable[[float], Sequence[Found]]:
    """Return what finds the files. Raises ConfigError for paths that are none."""
    if request.follow:
        watch = Watch(request.files)
        for path in watch.missing:
            say(f"{path}: not there yet: waiting for it")
        return watch.look
    paths = [str(source.path) for source in files.expand(request.files)]
    found = [Found(path, os.stat(path)) for path in paths]  # noqa: PTH116 -- as the watch does
    return lambda _now_s: found


def _checkpoint(chosen: Settings, request: Request, connection: Connection) -> Checkpoint:
    target = Target(connection.cluster, connection.topic)
    path = request.checkpoint
    if path is None:
        path = checkpoint_file(state_folder(chosen.state_folder), *target)
    return Checkpoint(path, target)


@dataclass(slots=True)
class _Publishing:
    """The parts of one run that files and pipes share."""

    request: Request
    connection: Connection
    config: PublishConfig
    refusals: Refusals
    status: Status
    stop: asyncio.Event
    outcome: Outcome

    async def files(self, checkpoint: Checkpoint, look: Callable[[float], Sequence[Found]]) -> int:
        """Publish files; return how many of their lines had been sent before."""
        clock = SystemClock()
        with checkpoint:
            stored = await self._compared(checkpoint.load(clock.now_ms() // 1_000))
            follower = Follower(
                look,
                stored.positions,
                clock,
                fallback=self.request.session,
                follow=self.request.follow,
                again=self.request.again,
                tell=self._tell,
            )
            offsets = dict(stored.offsets)

            def known() -> dict[int, int]:
                # A copy: this runs in a thread, while others are acknowledged.
                acknowledged = dict(self.connection.producer.acknowledged)
                offsets.update({partition: at for (_, partition), at in acknowledged.items()})
                return offsets

            keeper = Keeper(follower, checkpoint, clock, known)
            total = None if self.request.follow else sum(f.stat.st_size for f in look(0.0))
            with self.status.of(follower, total):
                try:
                    await self._send_kept(keeper)
                finally:
                    follower.stop()
                    await asyncio.to_thread(keeper.save)
        return follower.already_sent

    async def _send_kept(self, keeper: Keeper) -> None:
        """Send what the keeper gives; after a failure of the producer, on with another one."""
        while True:
            try:
                await self._send(keeper.pieces())
            except RetryError as error:
                await self.connection.renew(error, self.stop)
                await asyncio.to_thread(keeper.rewind)
            else:
                return

    async def pipes(self) -> None:
        """Publish pipes, which have no checkpoint: they cannot be read again."""
        with self.status.of(None, None):
            await self._send(_from_pipes(self.request))

    async def _compared(self, stored: Stored) -> Stored:
        """Return what is still true of the topic, as soon as the broker can tell."""
        while True:
            try:
                return await self._still_true(stored)
            except RetryError as error:
                await self.connection.renew(error, self.stop)

    async def _still_true(self, stored: Stored) -> Stored:
        """Return what is known of the topic; nothing where it is shorter than it was."""
        log, topic = self.connection.log, self.connection.topic
        partitions = [p for p in stored.offsets if p < self.config.partitions]
        reader = log.reader(topic, partitions or [0])
        await reader.start()
        try:
            ends = {partition: (await reader.bounds(partition))[1] for partition in partitions}
        finally:
            await reader.stop()
        if all(end > stored.offsets[partition] for partition, end in ends.items()):
            return stored
        self.status.say(
            f"the topic {topic} holds less than was sent to it: it was made anew, or lost "
            "messages. All files are sent again from their beginnings"
        )
        return Stored([], {})

    def _tell(self, event: Event) -> None:
        self.status.say(f"{event.path}: {event.what}")

    async def _send(self, pieces: Iterator[Piece]) -> None:
        """Send pieces until there are no more, or until told to stop. Raises RetryError."""
        sender = Sender(self.connection.producer, self.config, self.refusals, self.outcome.done)
        async with aclosing(in_thread(pieces)) as read:
            sending = asyncio.create_task(
                publish_pieces(
                    sender,
                    until(self.stop, read),
                    SystemClock(),
                    self.status.show,
                    is_live=self.request.live,
                )
            )
            stopping = asyncio.create_task(self.stop.wait())
            try:
                await asyncio.wait({sending, stopping}, return_when=asyncio.FIRST_COMPLETED)
                await asyncio.wait({sending}, timeout=_STOP_S)
            finally:
                stopping.cancel()
                if not sending.done():
                    sending.cancel()
                    await asyncio.wait({sending})
            if sending.cancelled():
                self.outcome.timed_out = True
                self.status.say(
                    f"not all was acknowledged within {_STOP_S:.0f} s: the rest is sent next time"
                )
            else:
                sending.result()


def _from_pipes(request: Request) -> Iterator[Piece]:
    for path in request.pipes:
        is_live = _is_live_input(path)
        for block in files.read(files.expand([path]), request.session):
            yield Piece(block, is_live, nothing)


def _is_live_input(path: str) -> bool:
    """Return whether what comes from there is seen when it is written; of a file it is not."""
    if path != files.STANDARD_INPUT:
        return True
    return not stat.S_ISREG(os.fstat(sys.stdin.fileno()).st_mode)
