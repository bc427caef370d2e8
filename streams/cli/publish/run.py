"""One run of `publish`: files from their stored positions, then pipes, until all is acknowledged.

SIGINT (Ctrl-C) and SIGTERM stop it gracefully: what was read is sent, its acknowledgement awaited,
the checkpoint written. A second signal stops it at once.
"""

import asyncio
import os
import signal
import stat
import sys
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from contextgauge.clock import SystemClock
from contextgauge.containers import Line
from contextgauge.errors import ConfigError, RetryError
from contextgauge.state_folder import checkpoint_file, state_folder, text_key
from streams import wiring
from streams.cli import logs
from streams.cli.publish.connection import Connection, connected, publish_config
from streams.cli.publish.progress import PublishStatus, print_summary, publish_bar
from streams.cli.publish.rejected import RejectedLines
from streams.cli.screen.figures import count, first_of
from streams.cli.screen.output import say
from streams.cli.unread import shown
from streams.edge.files import reading as files
from streams.edge.files.checkpoint import (
    Checkpoint,
    CheckpointContent,
    CheckpointedFollower,
    CheckpointTarget,
)
from streams.edge.files.follower import Follower
from streams.edge.files.housekeeping import COMPRESSED
from streams.edge.files.live_settings import LiveSettings
from streams.edge.files.runtime_settings import SettingsReader
from streams.edge.files.watch import Look, TranscriptFile, TranscriptFinder, source_of
from streams.flow.publish.follow import in_thread, publish_pieces
from streams.flow.publish.publish import LinePublisher, PublishConfig, PublishCounts, publish
from streams.flow.replay.unread_lines import UnreadLines
from streams.ports import LineBatch
from streams.settings import Settings

_STOP_S = 10.0
"""Time limit for the last acknowledgements: supervisors kill after 10 to 90 s."""


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
    """What was done, the signal that stopped it, and whether acknowledgements are missing.

    `unreadable` counts the files that could not be read.
    """

    done: PublishCounts = field(default_factory=PublishCounts)
    unreadable: int = 0
    stopped_by: signal.Signals | None = None
    timed_out: bool = False


async def run(settings: Settings, request: Request) -> Outcome:
    """Publish, and print a summary.

    Raises ConfigError, and StopError where no line could be sent: this is something other than
    transcripts.
    """
    begin_s = time.monotonic()
    stop, outcome = asyncio.Event(), Outcome()
    done = outcome.done
    rejected = RejectedLines(is_any_right=lambda: bool(done.messages))
    _stop_at_signals(stop, outcome)
    look = _look(request)
    status = PublishStatus(follow=request.follow)
    already = 0
    try:
        async with connected(settings, stop, status.say) as connection:
            state = state_folder(settings.state_folder)
            config = replace(
                publish_config(settings, connection.partitions or 0),
                task_id=request.task_id,
                agent_id=request.agent_id,
                text_key=text_key(state) if request.no_text else None,
            )
            publishing = _Run(request, connection, config, rejected, status, stop, outcome)
            if request.files:
                target = CheckpointTarget(connection.cluster, connection.topic)
                path = request.checkpoint or checkpoint_file(state, *target)
                already = await publishing.files(Checkpoint(path, target), look)
            if request.pipes and not stop.is_set():
                await publishing.pipes()
    except asyncio.CancelledError:
        if not stop.is_set():
            raise
    seconds = time.monotonic() - begin_s
    print_summary(done, seconds, rejected, already=already)
    _report_unread(done.unread)
    if outcome.unreadable:
        say(f"{count(outcome.unreadable, 'file')} could not be read: see above")
    is_whole = not (request.follow or outcome.stopped_by or outcome.timed_out)
    if is_whole and done.refused and not (done.messages or done.ignored or already):
        raise rejected.none_right(first_of([*request.files, *request.pipes]))
    return outcome


async def publish_blocks(
    settings: Settings, blocks: AsyncIterator[Sequence[Line]], *, is_live: bool
) -> None:
    """Publish lines with a progress bar on a terminal, and print a summary.

    With `is_live` the messages are marked as new. Raises ConfigError where the topic is missing.
    """
    logs.configure(settings)
    rejected = RejectedLines()
    async with connected(settings, asyncio.Event(), say) as connection:
        config = replace(publish_config(settings, connection.partitions or 0), is_live=is_live)
        begin_s = time.monotonic()
        with publish_bar(None) as show:
            done = await publish(connection.producer, config, blocks, rejected, show)
    print_summary(done, time.monotonic() - begin_s, rejected)


def _stop_at_signals(stop: asyncio.Event, outcome: Outcome) -> None:
    """Stop gracefully at the first signal, and at once at the second."""
    loop = asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM)

    def end(received: signal.Signals) -> None:
        outcome.stopped_by = received
        stop.set()
        for each in signals:
            loop.remove_signal_handler(each)
            signal.signal(each, signal.SIG_DFL)

    for each in signals:
        loop.add_signal_handler(each, end, each)


def _look(request: Request) -> Look:
    """Return what lists the files. Raises ConfigError for paths without transcripts."""
    files.refuse_unknown(request.files)
    if request.follow:
        watch = TranscriptFinder(request.files)
        for path in watch.missing:
            say(f"{path}: does not exist yet: waiting for it")
        return watch.look
    transcripts = files.find(request.files)
    return lambda _now_s, _failed: transcripts


@dataclass(slots=True)
class _Run:
    """What files and pipes share."""

    request: Request
    connection: Connection
    config: PublishConfig
    rejected: RejectedLines
    status: PublishStatus
    stop: asyncio.Event
    outcome: Outcome

    async def files(self, checkpoint: Checkpoint, look: Look) -> int:
        """Publish files; return how many of their lines had been sent before."""
        clock = SystemClock()
        with checkpoint:
            stored = await self.compared(checkpoint.load(clock.now_ms() // 1_000))
            follower = Follower(
                look,
                stored.positions,
                clock,
                fallback=self.request.session,
                follow=self.request.follow,
                again=self.request.again,
                report=self.status.say,
            )
            stored_offsets = dict(stored.offsets)

            def offsets() -> dict[int, int]:
                # A copy: this runs in a thread, while others are acknowledged.
                acknowledged = dict(self.connection.producer.acknowledged)
                stored_offsets.update({p: offset for (_, p), offset in acknowledged.items()})
                return stored_offsets

            keeper = CheckpointedFollower(follower, checkpoint, clock, offsets)
            total = None if self.request.follow else _total_bytes(look(0.0, files.refuse))
            with self.status.of(follower, total):
                try:
                    await self._send_with_checkpoint(keeper)
                finally:
                    follower.stop()
                    await asyncio.to_thread(keeper.save)
        # What is followed is read as soon as it can be.
        self.outcome.unreadable = 0 if self.request.follow else follower.unreadable
        return follower.already_sent

    async def _send_with_checkpoint(self, keeper: CheckpointedFollower) -> None:
        """Send the keeper's pieces; if the producer fails, resume with a new one."""
        while True:
            try:
                # From the start after each failure: some settings were not acknowledged.
                settings = LiveSettings(SettingsReader(os.environ), SystemClock())
                await self._send(settings.added(keeper.pieces()))
            except RetryError as error:
                await self.connection.renew(error, self.stop)
                await asyncio.to_thread(keeper.rewind)
            else:
                return

    async def pipes(self) -> None:
        """Publish pipes. They have no checkpoint, because they cannot be read again."""
        with self.status.of(None, None):
            await self._send(_from_pipes(self.request, self.outcome.done.unread))

    async def compared(self, stored: CheckpointContent) -> CheckpointContent:
        """Return the checkpoint if it is valid for the topic; wait while no broker responds."""
        while True:
            try:
                return await self.valid(stored)
            except RetryError as error:
                await self.connection.renew(error, self.stop)

    async def valid(self, stored: CheckpointContent) -> CheckpointContent:
        """Return the checkpoint, an empty one if the topic is shorter than that says."""
        log, topic = self.connection.log, self.connection.topic
        partitions = [p for p in stored.offsets if p < self.config.partitions]
        async with wiring.started(log.reader(topic, partitions or [0])) as reader:
            ends = {partition: (await reader.bounds(partition))[1] for partition in partitions}
        if all(end > stored.offsets[partition] for partition, end in ends.items()):
            return stored
        self.status.say(
            f"the topic {topic} holds less than was sent to it: it was recreated, or lost "
            "messages. Sending all files again from the beginning"
        )
        return CheckpointContent([], {})

    async def _send(self, pieces: Iterator[LineBatch]) -> None:
        """Send pieces until there are no more, or until stopped. Raises RetryError."""
        sender = LinePublisher(
            self.connection.producer, self.config, self.rejected, self.outcome.done
        )
        async with aclosing(in_thread(pieces, self.stop)) as read:
            sending = asyncio.create_task(
                publish_pieces(
                    sender,
                    read,
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
                    f"Not all messages were acknowledged within {_STOP_S:.0f} s: the next run "
                    "sends the rest"
                )
            else:
                sending.result()


def _total_bytes(transcripts: Iterable[TranscriptFile]) -> int | None:
    """Return how much there is to read; None where a compressed file does not show that."""
    sizes = [(each.place.endswith(COMPRESSED), each.stat.st_size) for each in transcripts]
    return None if any(packed for packed, _ in sizes) else sum(size for _, size in sizes)


def _from_pipes(request: Request, unread: UnreadLines) -> Iterator[LineBatch]:
    for path in request.pipes:
        is_live = _is_live_input(path)
        for number, block in enumerate(files.read(files.expand([path]), request.session)):
            if number == 0:
                unread.note(block)
            yield LineBatch(block, is_live)


def _report_unread(unread: UnreadLines) -> None:
    """Report lines whose figures are not read; a file's first lines show which runtime wrote it."""
    for name in unread.files():
        if Path(name).is_file():
            with suppress(ConfigError):
                unread.note(next(files.read([source_of(name)]), ()))
    for text in shown(unread.counts()):
        say(text)


def _is_live_input(path: str) -> bool:
    """Return whether lines are read as they are written: from a pipe, not from a file."""
    if path != files.STANDARD_INPUT:
        return True
    return not stat.S_ISREG(os.fstat(sys.stdin.fileno()).st_mode)
