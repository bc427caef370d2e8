"""What `publish` and `simulate --publish` share: the producer, the progress bar, the last line."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Sequence
from typing import Self

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from schemas.messages import DeadLetter
from schemas.topics import AGENT_MESSAGES
from streams import wiring
from streams.cli import logs
from streams.cli.screen import err, safe
from streams.core.containers import Line
from streams.core.errors import ConfigError, RetryError
from streams.edge.clock import SystemClock
from streams.edge.kafka_log import KafkaLog
from streams.edge.kafka_producers import KafkaProducer
from streams.edge.partitioner import partition_of
from streams.flow.backoff import Backoff
from streams.flow.publish import PublishConfig, Published, publish
from streams.settings import Settings

_MB = 1_000_000
"""Rates are told in the megabytes of 10^6 bytes that disks and networks are sold in."""


_WATCH_S = 1.0
"""How often the broker's silence is looked at."""

_SILENCE_S = 5.0
"""A broker that is merely slow has acknowledged something within this time."""


async def publish_blocks(
    chosen: Settings,
    blocks: AsyncIterator[Sequence[Line]],
    total_bytes: int | None,
    *,
    is_live: bool = False,
    task_id: str | None = None,
    agent_id: str | None = None,
) -> Published:
    """Publish lines with a progress bar on a terminal, and tell at the end what was done.

    A broker that is away, at the start or later, is waited for, and said to be. Raises
    ConfigError where the topic is missing.
    """
    logs.configure(chosen)
    topic = chosen.topic(AGENT_MESSAGES).name
    log = wiring.kafka_log(chosen, "contextgauge-publish")
    try:
        producer, partitions = await _connect(log, topic)
        config = PublishConfig(
            topic=topic,
            partitions=_existing(partitions, topic, chosen),
            partition_of=partition_of,
            limit_bytes=chosen.message_limit_bytes,
            is_live=is_live,
            task_id=task_id,
            agent_id=agent_id,
        )
        watching = asyncio.create_task(_watch(producer))
        try:
            with _Bar(total_bytes) as bar:
                done = await publish(producer, config, blocks, report, bar.show)
        finally:
            watching.cancel()
            await producer.stop()
    finally:
        await log.stop()
    err.print(_summary(done, bar.seconds()), soft_wrap=True)
    return done


async def _connect(log: KafkaLog, topic: str) -> tuple[KafkaProducer, int | None]:
    """Start a producer, as soon as a broker is there; return the topic's partitions too."""
    backoff = Backoff(SystemClock(), asyncio.Event())
    while True:
        producer = log.producer()
        try:
            await log.start()
            partitions = (await log.partition_counts([topic]))[topic]
            await producer.start()
        except RetryError as error:
            _say(f"{error}: trying again in {backoff.next_s:g} s (Ctrl-C ends it)")
            await backoff.wait()
        else:
            return producer, partitions


def _existing(partitions: int | None, topic: str, chosen: Settings) -> int:
    if partitions is None:
        raise ConfigError(
            f"the topic {topic} is missing on {chosen.bootstrap_servers}: "
            "create it with `contextgauge topics create`"
        )
    return partitions


async def _watch(producer: KafkaProducer) -> None:
    """Say when the broker has gone away, and when it is back."""
    is_away = False
    while True:
        await asyncio.sleep(_WATCH_S)
        waiting_s = producer.waiting_s
        if not is_away and waiting_s >= _SILENCE_S:
            is_away = True
            _say(f"the broker has not answered for {waiting_s:.0f} s: trying on (Ctrl-C ends it)")
        elif is_away and waiting_s < _SILENCE_S:
            is_away = False
            _say("the broker answers again")


def _say(text: str) -> None:
    err.print(safe(text), markup=False, soft_wrap=True)


def report(line: Line, letter: DeadLetter) -> None:
    """Tell of a malformed line on standard error: where it is, and what is wrong with it."""
    remedy = ", or give one with --session" if letter.reason == "no_session" else ""
    text = safe(f"{line.file}:{line.number}: {letter.reason}: {letter.detail}{remedy}")
    sys.stderr.write(f"{text}\n")


class _Bar:
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
    megabytes = done.sent_bytes / _MB
    return f"{done.messages / seconds:,.0f} messages/s · {megabytes / seconds:,.1f} MB/s"


def _summary(done: Published, seconds: float) -> str:
    size = f"{done.messages:,} messages ({done.sent_bytes / _MB:,.1f} MB)"
    of = f"{len(done.sessions):,} sessions in {seconds:.1f} s"
    told = [f"published {size} of {of} · {_rates(done, seconds)}"]
    if done.shortened:
        told.append(f"{done.shortened:,} shortened to the limit")
    if done.ignored:
        told.append(f"{done.ignored:,} not sent: no session, and no meaning either")
    if done.refused:
        told.append(f"{done.refused:,} could not be sent: see above")
    return "\n".join(told)
