"""A program's messages on their way to the broker: taken at once, sent in the background.

A message never raises, whatever it holds: it is counted and reported. Only a wrong call does: an
object that is not a message, or a message for a publisher that is not open.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from contextgauge.claude_sdk import lacks_usage
from contextgauge.delivery.derivable import DerivableCheck
from contextgauge.delivery.outgoing import Conversation, OutgoingMessage, body_of, outgoing
from contextgauge.delivery.queue import SendQueue
from contextgauge.delivery.sender import DeliveryConfig, Problem, QueueSender
from contextgauge.errors import ClosedError, RetryError
from contextgauge.messages import DeadLetter
from contextgauge.ports import Clock, Cluster

Fate: TypeAlias = Literal["queued", "dropped", "refused", "ignored"]
"""What became of a message: it will be sent; there was no room for it; it cannot be sent; it is of
no session and means nothing."""

_REPORT_EVERY_S = 30.0
"""Each kind of problem is reported at once and then at most so often: a log stays readable."""

_YIELD_EVERY = 64
"""After so many messages the sender gets its turn, where the caller never waits for anything."""

_NO_USAGE = (
    "this version of the Claude Agent SDK drops the usage of responses: no size will be known; "
    "use Publisher.tap(client) instead"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublisherStats:
    """What became of the messages so far.

    Each that was accepted is by now one of sent (acknowledged by the broker), dropped, refused,
    waiting or unacknowledged (with the broker). `refused` and `dropped` count those that were not
    accepted, too.
    """

    accepted: int
    sent: int
    sent_bytes: int
    shortened: int
    dropped: int
    refused: int
    ignored: int
    waiting: int
    waiting_bytes: int
    unacknowledged: int
    connected: bool
    problem: str | None
    """Why nothing is sent at the moment; null where nothing is wrong."""


class Delivery:
    """Delivers one publisher's messages; `report` gets a line of text where something is wrong."""

    def __init__(
        self, cluster: Cluster, clock: Clock, config: DeliveryConfig, report: Callable[[str], None]
    ) -> None:
        self._cluster, self._clock, self._config = cluster, clock, config
        self._report_to_user = report
        self._reported_s: dict[Problem, float] = {}
        self._send_queue = SendQueue(config.when_full, config.max_messages, config.max_bytes)
        self._sender = QueueSender(cluster, clock, self._send_queue, config, self.report)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_open = False
        self._accepted = self._refused = self._ignored = 0
        self._check = DerivableCheck()
        self._reported_dropped = 0

    def start(self) -> None:
        """Begin to connect and to send, in the background."""
        self._loop = asyncio.get_running_loop()
        self._task = self._sending()
        self._is_open = True

    def _sending(self) -> asyncio.Task[None]:
        return asyncio.create_task(self._sender.run(), name="contextgauge-publisher")

    async def connected(self, timeout_s: float) -> None:
        """Wait until the broker is connected. Raises why it is not."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._sender.sent.connected.wait()
        except TimeoutError:
            problem = self._sender.sent.problem
            raise problem or RetryError(f"no broker in {timeout_s:g} s") from None

    async def submit(self, message: object, conversation: Conversation) -> Fate:
        """Take a message of a conversation, and note its session there.

        Raises TypeError for what is not a message, ClosedError where the publisher is not open.
        """
        if not self._is_open:
            raise ClosedError("the publisher is not open: publish inside its `async with`")
        if asyncio.get_running_loop() is not self._loop:
            raise ClosedError("the publisher belongs to another event loop than this one")
        body = body_of(message)
        if not isinstance(body, bytes) and lacks_usage(message):
            self.report("no_usage", _NO_USAGE)
        form = self._config.form
        message_out = body if isinstance(body, DeadLetter) else outgoing(body, conversation, form)
        if not self._check.is_over and not isinstance(body, DeadLetter):
            self._note(body)
        if message_out is None:
            self._ignored += 1
            return "ignored"
        if isinstance(message_out, DeadLetter):
            self._refused += 1
            remedy = "; or give a session_id" if message_out.reason == "no_session" else ""
            self.report("refused", f"a message cannot be sent: {message_out.detail}{remedy}")
            return "refused"
        conversation.session_id = message_out.session_id or message_out.hint
        return await self._queue(message_out)

    def _note(self, body: Mapping[str, object] | bytes) -> None:
        """Look at one of the first messages, and report once that such ones give no figures."""
        try:
            report = self._check.look(body)
        except Exception:  # noqa: BLE001 -- a mapping's own code; the agent works on
            return
        if report is not None:
            self.report("no_figures", report)

    async def _queue(self, item: OutgoingMessage) -> Fate:
        dropped = self._send_queue.dropped
        if self._config.when_full != "wait" and len(self._send_queue) >= self._config.max_messages:
            await asyncio.sleep(0)  # the sender may be about to make room
        fate: Fate = "queued" if await self._send_queue.put(item) else "dropped"
        self._accepted += fate == "queued"
        if self._send_queue.dropped > dropped:
            so_far = f"{self._send_queue.dropped:,} so far"
            if self.report("dropped", f"the queue is full, messages are dropped: {so_far}"):
                self._reported_dropped = self._send_queue.dropped
        if self._accepted % _YIELD_EVERY == 0:
            await asyncio.sleep(0)
        return fate

    async def close(self, timeout_s: float) -> int:
        """Send what waits, for so long at most; return how many were not acknowledged by then."""
        if self._task is None:
            return 0
        self._is_open = False
        if report := self._check.end():
            self.report("no_figures", report)
        self._send_queue.close()
        self._sender.hurry()
        until_s = self._clock.monotonic_s() + timeout_s
        try:
            await asyncio.wait([self._task], timeout=timeout_s)
            if self._task.cancelled():
                # A program that ends cancels all tasks, this one with the agent's.
                self._task = self._sending()
                self._sender.hurry()
                left_s = max(0.0, until_s - self._clock.monotonic_s())
                await asyncio.wait([self._task], timeout=left_s)
        finally:
            self._task.cancel()
            await asyncio.wait([self._task])
            await self._cluster.stop()
            if self._send_queue.dropped > self._reported_dropped:
                self._reported_dropped = self._send_queue.dropped
                self._report_to_user(
                    f"the queue was full, messages were dropped: {self._reported_dropped:,} in all"
                )
        return len(self._send_queue) + len(self._sender.held)

    def report(self, kind: Problem, text: str) -> bool:
        """Report a problem to the user, now and then; return whether it was reported now."""
        now_s = self._clock.monotonic_s()
        last_s = self._reported_s.get(kind)
        if last_s is None or now_s - last_s >= _REPORT_EVERY_S:
            self._reported_s[kind] = now_s
            self._report_to_user(text)
            return True
        return False

    @property
    def stats(self) -> PublisherStats:
        """What became of the messages so far."""
        sent = self._sender.sent
        return PublisherStats(
            accepted=self._accepted,
            sent=sent.messages,
            sent_bytes=sent.bytes,
            shortened=sent.shortened,
            dropped=self._send_queue.dropped,
            refused=self._refused + sent.refused,
            ignored=self._ignored,
            waiting=len(self._send_queue),
            waiting_bytes=self._send_queue.bytes,
            unacknowledged=len(self._sender.held),
            connected=self._task is not None and not self._task.done() and sent.connected.is_set(),
            problem=None if sent.problem is None else str(sent.problem),
        )
