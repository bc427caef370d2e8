"""Sends queued messages to the broker, in the background and for as long as it takes.

The broker may be away at the start and go away later: the sender tries again, with pauses that
grow, and sends what was not acknowledged once more. The deriver takes no message twice (R4), so
that doubles nothing. It ends only when it is closed.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from contextgauge.backoff import Backoff
from contextgauge.delivery.outgoing import MessageFormat, OutgoingMessage
from contextgauge.delivery.queue import SendQueue, WhenFull
from contextgauge.errors import ConfigError, ContextgaugeError, RecordError
from contextgauge.messages import NO_SESSION, DeadLetter
from contextgauge.partitioner import key_bytes, partition_of
from contextgauge.ports import Clock, Cluster, NewRecord, Producer

_SILENCE_S = 5.0
"""A broker that is merely slow has acknowledged something within this time."""

_HURRIED_PAUSE_S = 0.5
"""Longest pause while someone waits for the end."""

Problem: TypeAlias = Literal["broker", "refused", "dropped", "no_usage", "no_figures", "fault"]
"""Kinds of problems: the broker is away or refuses, a message cannot be sent, messages were dropped
for lack of room, messages came without their usage, the sender itself failed."""

Report: TypeAlias = Callable[[Problem, str], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryConfig:
    """Where to, in what form, and what may wait: messages and bytes. Raises ConfigError."""

    topic: str
    form: MessageFormat
    when_full: WhenFull
    max_messages: int
    max_bytes: int

    def __post_init__(self) -> None:
        if self.when_full not in {"wait", "drop_new", "drop_oldest"}:
            raise ConfigError(
                f"when_full is {self.when_full!r}: give it wait, drop_new or drop_oldest"
            )
        if self.max_messages < 1 or self.max_bytes < 1:
            raise ConfigError("max_messages and max_bytes must be at least 1")


@dataclass(slots=True)
class Sent:
    """What became of the messages so far. `problem` is the latest reason why none are sent."""

    messages: int = 0
    bytes: int = 0
    shortened: int = 0
    refused: int = 0
    connected: asyncio.Event = field(default_factory=asyncio.Event)
    problem: ContextgaugeError | None = None


class QueueSender:
    """The one task that talks to the broker. `held` is what is not acknowledged yet."""

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        queue: SendQueue,
        config: DeliveryConfig,
        report: Report,
    ) -> None:
        self._cluster, self._clock, self._queue = cluster, clock, queue
        self._config, self._report = config, report
        self._alone = 0
        self._hurry = asyncio.Event()
        self.held: list[OutgoingMessage] = []
        self.sent = Sent()

    def hurry(self) -> None:
        """End the pause that a try may be waiting for, and make short ones from now on.

        Who closes has seconds, and the broker may have come back since it was last tried.
        """
        self._hurry.set()

    async def run(self) -> None:
        """Send until the queue is closed and empty; ends earlier only by being cancelled.

        Run again after that, it goes on with what it held.
        """
        backoff = Backoff(self._clock, self._hurry)
        while True:
            done_before = self.sent.messages
            try:
                await self._connect_and_send()
            except RecordError:
                continue  # noted, and left out or sent alone from here on
            except ContextgaugeError as error:
                self._failed(error)
                self._report("broker", f"{error}: trying again in {backoff.next_s:g} s")
            except Exception as error:  # noqa: BLE001 -- whatever it is, the agent works on
                # The type alone: an error's words may hold a message's.
                self._failed(ContextgaugeError(type(error).__name__))
                self._report("fault", f"sending failed ({type(error).__name__}): trying again")
            else:
                return
            if self.sent.messages > done_before:
                backoff.reset()
            await backoff.wait()
            if self._hurry.is_set():
                self._hurry = asyncio.Event()
                backoff = Backoff(self._clock, self._hurry, longest_s=_HURRIED_PAUSE_S)

    def _failed(self, error: ContextgaugeError) -> None:
        self.sent.connected.clear()
        self.sent.problem = error

    async def _connect_and_send(self) -> None:
        topic = self._config.topic
        producer = self._cluster.producer()
        try:
            await self._cluster.start()
            partitions = (await self._cluster.partition_counts([topic]))[topic]
            if partitions is None:
                raise ConfigError(
                    f"the topic {topic} is missing: create it with `contextgauge topics create`"
                )
            await producer.start()
            self.sent.connected.set()
            self.sent.problem = None
            while True:
                self.held = self.held or list(await self._queue.take())
                if not self.held:
                    return
                await self._make_ready()
                await self._watched(producer, partitions)
        finally:
            await producer.stop()

    async def _watched(self, producer: Producer, partitions: int) -> None:
        """Send what is held; report when the broker does not answer, and when it does again."""
        sending = asyncio.create_task(self._send_held(producer, partitions))
        try:
            done, _ = await asyncio.wait([sending], timeout=_SILENCE_S)
            if not done:
                self._report(
                    "broker", f"the broker has not answered for {_SILENCE_S:g} s: retrying"
                )
                self.sent.connected.clear()
            await sending
        finally:
            sending.cancel()
        if not done:
            self._report("broker", "the broker answers again")
            self.sent.connected.set()

    async def _send_held(self, producer: Producer, partitions: int) -> None:
        batch = self.held[:1] if self._alone else self.held
        try:
            for item in batch:
                await producer.send(self._record(item, partitions))
            await producer.flush()
        except RecordError as error:
            if len(batch) == 1:
                letter = DeadLetter("too_large", str(error))
                self._refuse(letter)
                self._settle(batch, letter)
            else:
                self._alone = len(batch)
            raise
        self._settle(batch)
        self.sent.messages += len(batch)
        self.sent.bytes += sum(len(item.value) for item in batch)

    def _settle(self, batch: Sequence[OutgoingMessage], refused: DeadLetter | None = None) -> None:
        """Go on to what comes after: these are acknowledged, or refused."""
        self._alone = max(0, self._alone - len(batch))
        self.held = self.held[len(batch) :]
        for item in batch:
            _note(item, refused)

    async def _make_ready(self) -> None:
        """Prepare the held messages whose session or short form is not known yet."""
        for item in [item for item in self.held if item.session_id is None]:
            try:
                # Shortening takes seconds, in which the agent goes on.
                prepared = await asyncio.to_thread(self._config.form.of, item.value, item.hint)
            except Exception as error:  # noqa: BLE001 -- tried again, it would hold all others up
                prepared = DeadLetter("not_json", f"reading it raised {type(error).__name__}")
            place = self.held.index(item)
            if isinstance(prepared, tuple):
                session_id, value = prepared
                self.held[place] = item._replace(session_id=session_id, value=value)
                self.sent.shortened += len(item.value) > self._config.form.limit_bytes
            else:
                del self.held[place]
                self._refuse(prepared or NO_SESSION)
                _note(item, prepared or NO_SESSION)

    def _record(self, item: OutgoingMessage, partitions: int) -> NewRecord:
        if item.session_id is None:
            raise RuntimeError("a message without a session was not made ready")
        partition = partition_of(item.session_id, partitions)
        key = key_bytes(item.session_id)
        return NewRecord(self._config.topic, partition, key, item.value, item.headers)

    def _refuse(self, letter: DeadLetter) -> None:
        self.sent.refused += 1
        self._report("refused", f"a message cannot be sent: {letter.reason}: {letter.detail}")


def _note(item: OutgoingMessage, refused: DeadLetter | None) -> None:
    if item.acknowledgement is not None:
        item.acknowledgement.settle(refused)
