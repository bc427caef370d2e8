"""What `publish` and `simulate --publish` share: the producer, the progress bar, the last line."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Self

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from contextgauge.backoff import Backoff
from contextgauge.clock import SystemClock
from contextgauge.containers import Line
from contextgauge.errors import ConfigError, RetryError
from contextgauge.kafka.producer import KafkaProducer
from contextgauge.partitioner import partition_of
from schemas.topics import AGENT_MESSAGES
from streams import wiring
from streams.cli import logs
from streams.cli.publish.refusals import Refusals
from streams.cli.screen.output import count, err, safe, size
from streams.edge.kafka.log import KafkaLog
from streams.flow.publish.publish import PublishConfig, Published, publish
from streams.settings import Settings

"""Rates are told in the megabytes of 10^6 bytes that disks and networks are sold in."""


_WATCH_S = 1.0
"""How often the broker's silence is looked at."""

_SILENCE_S = 5.0
"""A broker that is merely slow has acknowledged something within this time."""


@dataclass(slots=True)
class Connection:
    """A cluster that answers, by its own id, the topic there, and a producer of it."""

    log: KafkaLog
    topic: str
    say: Callable[[str], None]
    producer: KafkaProducer
    partitions: int | None = None
    cluster: str = ""

    async def open(self, stop: asyncio.Event) -> None:
        """Start the producer, as soon as a broker is there; CancelledError if stopped before."""
        backoff = Backoff(SystemClock(), stop)
        while True:
            try:
                await self.log.start()
                self.partitions = (await self.log.partition_counts([self.topic]))[self.topic]
                self.cluster = await self.log.cluster_id()
                await self.producer.start()
            except RetryError as error:
                self.say(f"{error}: trying again in {backoff.next_s:g} s (Ctrl-C ends it)")
                self.producer = self.log.producer()
                await backoff.wait()
                if stop.is_set():
                    raise asyncio.CancelledError from error
            else:
                return

    async def renew(self, error: RetryError, stop: asyncio.Event) -> None:
        """Replace the producer, which failed, by another one as soon as that is possible."""
        self.say(f"{error}: beginning again at what the broker acknowledged")
        await self.producer.stop()
        self.producer = self.log.producer()
        await self.open(stop)

    async def watch(self) -> None:
        """Say when the broker has gone away, and when it is back."""
        is_away = False
        while True:
            await asyncio.sleep(_WATCH_S)
            waiting_s = self.producer.waiting_s
            if not is_away and waiting_s >= _SILENCE_S:
                is_away = True
                self.say(
                    f"the broker has not answered for {waiting_s:.0f} s: trying on (Ctrl-C ends it)"
                )
            elif is_away and waiting_s < _SILENCE_S:
                is_away = False
                self.say("the broker answers again")


def say(text: str) -> None:
    """Say something on standard error that may hold others' words."""
    err.print(safe(text), markup=False, soft_wrap=True)


@asynccontextmanager
async def connected(
    chosen: Settings, stop: asyncio.Event, speak: Callable[[str], None] = say
) -> AsyncIterator[Connection]:
    """Connect for publishing, and say so while there is no broker, at the start or later.

    Raises ConfigError where the topic is missing, CancelledError where `stop` is set before a
    broker is there.
    """
    topic = chosen.topic(AGENT_MESSAGES).name
    log = wiring.kafka_log(chosen, "contextgauge-publish")
    try:
        connection = Connection(log, topic, speak, log.producer())
        await connection.open(stop)
        watching = asyncio.create_task(connection.watch())
        try:
            if connection.partitions is None:
                raise ConfigError(
                    f"the topic {topic} is missing on {chosen.bootstrap_servers}: "
                    "create it with `contextgauge topics create`"
                )
            yield connection
        finally:
            watching.cancel()
            await connection.producer.stop()
    finally:
        await log.stop()


def config_of(chosen: Settings, connection: Connection) -> PublishConfig:
    """Return where lines go and what may be sent."""
    return PublishConfig(
        topic=connection.topic,
        partitions=connection.partitions or 0,
        partition_of=partition_of,
        limit_bytes=chosen.message_limit_bytes,
    )


async def publish_blocks(
    chosen: Settings,
    blocks: AsyncIterator[Sequence[Line]],
    total_bytes: int | None,
    *,
    is_live: bool = False,
) -> Published:
    """Publish lines with a progress bar on a terminal, and tell at the end what was done.

    A broker that is away, at the start or later, is waited for, and said to be. With `is_live`
    messages are marked as seen when they are sent. Raises ConfigError where the topic is missing.
    """
    logs.configure(chosen)
    refusals = Refusals()
    async with connected(chosen, asyncio.Event()) as connection:
        config = replace(config_of(chosen, connection), is_live=is_live)
        with Bar(total_bytes) as bar:
            done = await publish(connection.producer, config, blocks, refusals, bar.show)
    tell(summary(done, bar.seconds(), refusals.summary()))
    return done


def tell(lines: Iterable[str]) -> None:
    """Print the last lines."""
    err.print("\n".join(lines), soft_wrap=True)


class Bar:
    """A progress bar that is only there on a terminal."""

    def __init__(self, total_bytes: int | None) -> None:
        self._begin = time.monotonic()
        self._total_bytes = total_bytes
        self._progress = Progress(
            TextColumn("publishing"),
            BarColumn(),
            TextColumn("{task.fields[told]}"),
            TimeRemainingColumn(),
            console=err,
            transient=True,
            disable=not err.is_terminal,
        )
        self._task = TaskID(0)

    def __enter__(self) -> Self:
        self._task = self._progress.add_task("", total=self._total_bytes, told="")
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def seconds(self) -> float:
        """Return how long it has taken, never quite nothing."""
        return max(time.monotonic() - self._begin, 0.001)

    def show(self, done: Published) -> None:
        """Bring the bar up to date."""
        told = f"{done.messages:,} messages · {_rates(done, self.seconds())}"
        self._progress.update(self._task, completed=done.read_bytes, told=told)


def _rates(done: Published, seconds: float) -> str:
    return f"{done.messages / seconds:,.0f} messages/s · {size(int(done.sent_bytes / seconds))}/s"


def summary(
    done: Published, seconds: float, refused: Sequence[str], *, already: int = 0
) -> list[str]:
    """Return the last lines: what was done; `already` lines had been sent before."""
    what = f"{count(done.messages, 'message')} ({size(done.sent_bytes)})"
    of = f"{count(len(done.sessions), 'session')} in {seconds:.1f} s"
    told = [f"published {what} of {of} · {_rates(done, seconds)}"]
    if already:
        told.append(
            f"{count(already, 'line')} already sent or refused before: --again sends them again"
        )
    if done.shortened:
        told.append(f"{done.shortened:,} shortened to the limit")
    if done.ignored:
        told.append(f"{done.ignored:,} not sent: no session, and no meaning either")
    return [*told, *refused]
