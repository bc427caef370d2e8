"""Sends lines to `agent.messages`, keyed and partitioned by their sessions.

A line's bytes go as they are; only one over the limit is shortened. The Kafka timestamp is the
producer's own clock: a message's time is never copied into it (R28).
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from contextgauge.containers import Line
from contextgauge.delivery.derivable import DerivableCheck
from contextgauge.delivery.outgoing import headers_of, headers_of_line, keyed
from contextgauge.delivery.privacy import strip_text
from contextgauge.partitioner import partition_of
from schemas.messages import DeadLetter
from schemas.topics import MESSAGE_LIMIT_BYTES
from streams import codec
from streams.flow.replay.unread_lines import UnreadLines
from streams.ports import Clock, NewRecord, Producer

_UNPACED_LINES = 1_000
"""Lines of a block where no pace is asked for."""

_SLICE_S = 0.05
"""A pace is kept in slices of so long: even enough to look at, and few enough to be cheap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishConfig:
    """The topic to publish to, and how messages are prepared."""

    topic: str
    partitions: int
    limit_bytes: int = MESSAGE_LIMIT_BYTES
    is_live: bool = False
    """Mark the messages as seen when they are sent, which gives those without a time one."""
    task_id: str | None = None
    agent_id: str | None = None
    """The publisher's name for the agent that runs the sessions."""
    text_key: bytes | None = None
    """Set: texts are left out. The secret of `contextgauge.delivery.privacy`."""


@dataclass(slots=True)
class PublishCounts:
    """What was done so far. `read_bytes` counts all that was read, line ends too."""

    messages: int = 0
    sent_bytes: int = 0
    read_bytes: int = 0
    shortened: int = 0
    ignored: int = 0
    """Lines that name no session and mean nothing: not sent."""
    refused: int = 0
    """Lines that could not be sent: without a session, too large to be shortened, or not to be
    read where texts are left out."""
    sessions: set[str] = field(default_factory=set)
    check: DerivableCheck = field(default_factory=lambda: DerivableCheck(limit=None))
    """Whether any line can give a figure; not over while none can."""
    unread: UnreadLines = field(default_factory=UnreadLines)


class LinePublisher:
    """Sends lines one by one and counts them in `done`; calls `refuse` for those it cannot send."""

    def __init__(
        self,
        producer: Producer,
        config: PublishConfig,
        refuse: Callable[[Line, DeadLetter], None],
        done: PublishCounts | None = None,
    ) -> None:
        self.producer = producer
        self.done = PublishCounts() if done is None else done
        self._config = config
        self._refuse = refuse
        # Raises ConfigError for a name that is none.
        self._headers = {
            is_live: headers_of(is_live=is_live, task_id=config.task_id, agent_id=config.agent_id)
            for is_live in (False, True)
        }

    async def send(self, line: Line, *, is_live: bool) -> None:
        """Queue a line; waits while the producer's buffer is full. Raises what that raises."""
        done, config = self.done, self._config
        done.read_bytes += line.size + 1
        if not line.value or line.value.isspace():
            return
        if not done.check.is_over:
            done.check.look(line.value)
        done.unread.look((line,))
        if line.size > config.limit_bytes:
            # Shortening takes seconds, in which batches must go on being sent.
            prepared = await asyncio.to_thread(_prepared, line, config)
        else:
            prepared = _prepared(line, config)
        if prepared is None:
            done.ignored += 1
            return
        if isinstance(prepared, DeadLetter):
            done.refused += 1
            self._refuse(line, prepared)
            return
        session_id, value, is_short = prepared
        partition = partition_of(session_id, config.partitions)
        key = codec.key_bytes(session_id)
        headers = self._headers[is_live] + headers_of_line(line)
        record = NewRecord(config.topic, partition, key, value, headers)
        await self.producer.send(record)
        done.messages += 1
        done.sent_bytes += len(value)
        done.shortened += is_short
        done.sessions.add(session_id)


def _prepared(line: Line, config: PublishConfig) -> tuple[str, bytes, bool] | DeadLetter | None:
    """Return the session, the bytes to send, and whether they are short of the line's."""
    if config.text_key is not None:
        stripped = strip_text(line, config.text_key)
        if isinstance(stripped, DeadLetter):
            return stripped
        line = stripped
    message = keyed(line, config.limit_bytes)
    if message is None or isinstance(message, DeadLetter):
        return message
    session_id, value = message
    return session_id, value, value is not line.value


async def publish(
    producer: Producer,
    config: PublishConfig,
    blocks: AsyncIterator[Sequence[Line]],
    refuse: Callable[[Line, DeadLetter], None],
    progress: Callable[[PublishCounts], None],
) -> PublishCounts:
    """Send all lines, in order within a partition, and wait until they are acknowledged.

    `refuse` is called for each line that cannot be sent, `progress` after each block.
    Raises what the producer raises; what was sent until then stays sent.
    """
    sender = LinePublisher(producer, config, refuse)
    async for block in blocks:
        for line in block:
            await sender.send(line, is_live=config.is_live)
        progress(sender.done)
    await producer.flush()
    return sender.done


async def paced(
    lines: Iterator[Line], rate: float, duration_s: float | None, clock: Clock
) -> AsyncIterator[Sequence[Line]]:
    """Yield lines at `rate` a second (0: as fast as they are taken), for so long at most."""
    begin_s = clock.monotonic_s()
    count = 0
    while True:
        passed_s = clock.monotonic_s() - begin_s
        if duration_s is not None and passed_s >= duration_s:
            return
        # Line n is due n/rate seconds after the begin; those of a slice go together.
        due = int((passed_s + _SLICE_S) * rate) + 1 if rate else count + _UNPACED_LINES
        block = list(islice(lines, due - count))
        if block:
            yield block
        if len(block) < due - count:
            return
        count = due
        wait_s = count / rate - (clock.monotonic_s() - begin_s) if rate else 0.0
        await clock.sleep(max(0.0, wait_s))
