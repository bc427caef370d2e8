"""`Publisher`: an agent's own messages, sent to Kafka while it works."""

import logging
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self, TypeVar

from contextgauge.claude_sdk import tap
from contextgauge.clock import SystemClock
from contextgauge.delivery.background import Delivery, Fate, PublisherStats
from contextgauge.delivery.outgoing import (
    Conversation,
    MessageFormat,
    belongs_to_conversation,
    headers_of,
)
from contextgauge.delivery.queue import WhenFull
from contextgauge.delivery.sender import DeliveryConfig
from contextgauge.errors import ClosedError, ConfigError, UndeliveredError
from contextgauge.kafka.connection import bootstrap_servers, kafka_security
from contextgauge.loop_thread import LoopThread
from contextgauge.messages import AGENT_MESSAGES_TOPIC
from contextgauge.ports import Cluster
from contextgauge.settings.publishing import PublisherSettings, publisher_settings
from contextgauge.state_folder import state_folder, text_key
from contextgauge.units import MIB

_logger = logging.getLogger("contextgauge")

_CONNECT_TIMEOUT_S = 30.0
"""Patience of a strict publisher at its start."""

_MISSED = (
    "this version of the Claude Agent SDK connects in a way that is not known here: nothing of "
    "this client is published; publish its messages one by one"
)

Target = TypeVar("Target")


class Publisher:
    """Publishes an agent's messages to Kafka, in the background and in order.

    ```python
    async with Publisher(when_full="drop_oldest", agent_id="billing") as publisher:
        await publisher.publish(message)
    ```

    `when_full` says what happens to a message that finds the queue full, of `max_messages` and
    `max_bytes`: "wait" holds the agent up until there is room, "drop_new" drops the message,
    "drop_oldest" drops those that have waited longest. The broker may be away at the start and
    later. Leaving the `async with` sends what waits, for `close_timeout_s` seconds at most.

    `agent_id`, `task_id` and `session_id` (for messages that name none) may be given here and with
    each message. `live` marks messages as seen when they are sent, which gives those without a time
    of their own one. With `no_text` no text leaves the process: each is replaced by its length, as
    by `contextgauge publish --no-text` and with the same secret. `on_problem` gets a line of text,
    without a message's words, now and then when something is wrong; without it the line goes to the
    logger `contextgauge`. A `strict` publisher raises where others report: ContextgaugeError at its
    start where the broker is not there, UndeliveredError at its end where messages could not be
    sent.

    `bootstrap_servers` and `topic_prefix` come before the settings of the environment, which
    everything else is taken from. One publisher serves any number of sessions of one event loop;
    `with` instead of `async with` gives a `BlockingPublisher`, for programs that have none.
    """

    def __init__(  # noqa: PLR0913 -- each has a name, and most a default
        self,
        *,
        when_full: WhenFull,
        agent_id: str | None = None,
        task_id: str | None = None,
        session_id: str | None = None,
        live: bool = True,
        no_text: bool = False,
        bootstrap_servers: str | None = None,
        topic_prefix: str | None = None,
        max_messages: int = 10_000,
        max_bytes: int = 32 * MIB,
        close_timeout_s: float = 10.0,
        strict: bool = False,
        on_problem: Callable[[str], None] | None = None,
    ) -> None:
        self._when_full: WhenFull = when_full
        self._agent_id, self._task_id, self._session_id = agent_id, task_id, session_id
        self._is_live = live
        self._no_text = no_text
        self._headers = headers_of(is_live=live, task_id=task_id, agent_id=agent_id)
        overrides = {"bootstrap_servers": bootstrap_servers, "topic_prefix": topic_prefix}
        self._overrides = {name: value for name, value in overrides.items() if value is not None}
        self._max_messages, self._max_bytes = max_messages, max_bytes
        self._close_timeout_s = close_timeout_s
        self._is_strict = strict
        self._on_problem = on_problem
        self._delivery: Delivery | None = None
        self._blocking: BlockingPublisher | None = None

    async def __aenter__(self) -> Self:
        """Begin to connect, in the background. Raises ConfigError where no Kafka is named."""
        if self._delivery is not None:
            raise ClosedError("a publisher is opened once: make another one")
        settings = publisher_settings(self._overrides)
        delivery = self._delivery = Delivery(
            self._cluster(settings), SystemClock(), self._config(settings), self._problem
        )
        delivery.start()
        if self._is_strict:
            try:
                await delivery.connected(_CONNECT_TIMEOUT_S)
            except BaseException:
                await delivery.close(0)
                raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Send what waits, and say what could not be sent. Raises UndeliveredError if strict."""
        delivery = self._opened()
        undelivered = await delivery.close(self._close_timeout_s)
        if undelivered == 0:
            return
        why = delivery.stats.problem or "there was too little time"
        message = f"the publisher closed with messages not acknowledged: {undelivered:,} ({why})"
        self._problem(message)
        if self._is_strict and kind is None:
            raise UndeliveredError(message)

    def __enter__(self) -> "BlockingPublisher":
        """Do the same for a program without an event loop, in a thread of its own."""
        if self._blocking is not None:
            raise ClosedError("a publisher is opened once: make another one")
        self._blocking = BlockingPublisher(self)
        self._blocking.open()
        return self._blocking

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Send what waits, and say what could not be sent. Raises UndeliveredError if strict."""
        if self._blocking is not None:
            self._blocking.close(kind, error, traceback)

    async def publish(
        self,
        message: object,
        *,
        session_id: str | None = None,
        agent_id: str | None = None,
        task_id: str | None = None,
    ) -> Fate:
        """Publish one message; returns what became of it, at once unless `when_full` is "wait".

        A message is a mapping, one line of JSON (bytes or str), a message of the Claude Agent SDK
        or an answer of a model SDK (an object with `model_dump`). `session_id` is for a message
        that names none. Raises TypeError for anything else, ClosedError outside `async with`,
        ConfigError for a name of more than 1 024 characters; nothing for what a message holds.
        """
        conversation = self._conversation(session_id, agent_id, task_id)
        return await self._opened().submit(message, conversation)

    def stream(
        self,
        *,
        session_id: str | None = None,
        agent_id: str | None = None,
        task_id: str | None = None,
    ) -> "Stream":
        """Return the place for the messages of one conversation, some of which name no session."""
        return Stream(self._opened(), self._conversation(session_id, agent_id, task_id))

    def _conversation(
        self, session_id: str | None, agent_id: str | None, task_id: str | None
    ) -> Conversation:
        headers = self._headers
        if agent_id is not None or task_id is not None:
            headers = headers_of(
                is_live=self._is_live,
                task_id=self._task_id if task_id is None else task_id,
                agent_id=self._agent_id if agent_id is None else agent_id,
            )
        return Conversation(session_id or self._session_id, headers)

    def tap(
        self,
        target: Target,
        *,
        session_id: str | None = None,
        agent_id: str | None = None,
        task_id: str | None = None,
    ) -> Target:
        """Publish all that a client of the Claude Agent SDK reads, as it came; return the client.

        Takes a `ClaudeSDKClient` that is not connected yet, or a `Transport`. What the SDK's
        typed objects drop is published too; what its frames say of permissions, tools and
        accounts is not. The client works as before, whatever becomes of the messages.
        """
        stream = self.stream(session_id=session_id, agent_id=agent_id, task_id=task_id)
        delivery = self._opened()

        async def hand(frame: Mapping[str, object]) -> None:
            try:
                if belongs_to_conversation(frame):
                    await stream.publish(frame)
            except Exception as error:  # noqa: BLE001 -- the client works on, whatever it is
                delivery.report("fault", f"a frame could not be published: {type(error).__name__}")

        return tap(target, hand, lambda: self._problem(_MISSED))

    @property
    def stats(self) -> PublisherStats:
        """What became of the messages so far; still there after the end."""
        return self._opened().stats

    def _opened(self) -> Delivery:
        if self._delivery is None:
            raise ClosedError("the publisher is not open: use it inside its `async with`")
        return self._delivery

    def _cluster(self, settings: PublisherSettings) -> Cluster:
        # aiokafka is imported when a publisher starts: who reads records needs no client.
        try:
            from contextgauge.kafka.cluster import KafkaCluster  # noqa: PLC0415
            from contextgauge.kafka.options import KafkaOptions  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise ConfigError(
                "a publisher needs the extra `kafka`: install 'contextgauge[kafka]' in place of "
                "'contextgauge', the same way"
            ) from error

        quiet = logging.getLogger("aiokafka")
        if quiet.level == logging.NOTSET:
            # It would write a line for each attempt to reach a broker that is away.
            quiet.setLevel(logging.CRITICAL)
        return KafkaCluster(
            KafkaOptions(
                bootstrap_servers=bootstrap_servers(settings),
                client_id="contextgauge-publisher",
                security=kafka_security(settings),
            )
        )

    def _config(self, settings: PublisherSettings) -> DeliveryConfig:
        key = text_key(state_folder(settings.state_folder)) if self._no_text else None
        return DeliveryConfig(
            topic=settings.topic_prefix + AGENT_MESSAGES_TOPIC,
            form=MessageFormat(settings.message_limit_bytes, key),
            when_full=self._when_full,
            max_messages=self._max_messages,
            max_bytes=self._max_bytes,
        )

    def _problem(self, text: str) -> None:
        if self._on_problem is None:
            _logger.warning(text)
            return
        try:
            self._on_problem(text)
        except Exception:
            _logger.exception("on_problem failed")


class BlockingPublisher:
    """What `with Publisher(...) as publisher` gives; its event loop has a thread of its own.

    Any thread may publish. A process that was forked needs a publisher of its own.
    """

    def __init__(self, publisher: Publisher) -> None:
        self._publisher, self._thread = publisher, LoopThread()

    def open(self) -> None:
        """Begin to connect, in the background. Raises what `Publisher.__aenter__` raises."""
        self._thread.start()
        try:
            self._thread.run(self._publisher.__aenter__())
        except BaseException:
            self._thread.end()
            raise

    def publish(
        self,
        message: object,
        *,
        session_id: str | None = None,
        agent_id: str | None = None,
        task_id: str | None = None,
    ) -> Fate:
        """Publish one message; see `Publisher.publish`."""
        return self._thread.run(
            self._publisher.publish(
                message, session_id=session_id, agent_id=agent_id, task_id=task_id
            )
        )

    @property
    def stats(self) -> PublisherStats:
        """What became of the messages so far; still there after the end."""
        return self._publisher.stats

    def close(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Send what waits and end the thread. Raises what `Publisher.__aexit__` raises.

        Does nothing in a process that was forked: what waits is its parent's to send.
        """
        if self._thread.is_forked:
            return
        try:
            self._thread.run(self._publisher.__aexit__(kind, error, traceback))
        finally:
            self._thread.end()


class Stream:
    """One conversation's messages, in order: one that names no session is of the last named one.

    Made by `Publisher.stream`. It has no end of its own, the publisher's is its end.
    """

    def __init__(self, delivery: Delivery, conversation: Conversation) -> None:
        self._delivery, self._conversation = delivery, conversation

    async def publish(self, message: object) -> Fate:
        """Publish one message; see `Publisher.publish`."""
        return await self._delivery.submit(message, self._conversation)


__all__ = ["BlockingPublisher", "Fate", "Publisher", "PublisherStats", "Stream", "WhenFull"]
