"""One partition of `agent.messages`, kept as conversations.

Position and lines are written together, so what is stored is always what the messages before the
position give. What was deleted is read from `context.commands` before any message is.

The topic's id in Kafka is stored with the position: in a topic that was deleted and created again,
the same offset is another message. Then all is read again, and no session that goes on in the new
topic counts as whole: what the former one held of it is gone.
"""

import secrets
from collections.abc import Mapping

import structlog

from contextgauge.errors import LostError, PositionError, ReseekError, VersionError
from contextgauge.units import DAY_MS
from schemas.commands import TextDeleted
from streams.codec.commands import read_entry
from streams.flow.common.lag import Lag
from streams.flow.common.ranges import read_range
from streams.flow.common.unreadable import counted_passed, poll_past
from streams.flow.conversations.config import ConversationsPorts
from streams.flow.conversations.sessions import SessionKeeper
from streams.ports import GroupReader, LogPlace, LogRecord, PartitionReader, started
from streams.ports.conversations import Mark, StoredConversations

_REREAD_PAUSE_S = 0.1
"""Between a mismatch and reading again: two workers that write to one partition must not race."""

_COMMANDS = 500
"""Commands in one poll."""

_REPORT_S = 5.0
"""How often readers learn where the log ends: one write, also where nothing else is written."""

logger = structlog.get_logger()


class ConversationPartition:
    """Follows one partition until cancelled. RetryErrors that it raises are the log's."""

    def __init__(
        self,
        ports: ConversationsPorts,
        reader: GroupReader,
        partition: int,
        partitions: int,
        topic_id: str,
    ) -> None:
        self._ports, self._reader = ports, reader
        self._partition, self._partitions = partition, partitions
        self._topic_id = topic_id
        self._label = str(partition)
        self._deleted: dict[bytes, int] = {}
        self._position = 0
        self._writer, self._writes = secrets.token_hex(8), 0
        self._expected: str | None = None
        """The stamp of the last write, by whomever; None: nothing is stored."""
        self._is_bound = True
        """Whether the topic's id is stored: a broker may not know it for a while."""
        self._since_ms: int | None = None
        """Since when all messages are known; it outlives what is dropped to be read again."""
        self._reported_s: float | None = None
        self.has_written = False
        self._passed = counted_passed(ports.telemetry)
        self._lag = Lag(ports, partition, "conversations_lag_messages", "conversations_lag_seconds")

    async def run(self) -> None:
        """Keep the partition's conversations until cancelled. Raises RetryError or StopError."""
        ports = self._ports
        commands = ports.log.reader(ports.config.commands_topic, [self._partition])
        try:
            async with started(commands):
                await self._read_deletions(commands)
                while True:
                    try:
                        await self._follow(commands, await self._open())
                    except ReseekError as error:
                        ports.telemetry.count("conversations_rereads", partition=self._label)
                        logger.warning("reading again", partition=self._partition, error=str(error))
                        await ports.clock.sleep(_REREAD_PAUSE_S)
                    except (LostError, VersionError) as error:
                        await self._begin_again(str(error))
        finally:
            self._lag.forget()

    async def _read_deletions(self, commands: PartitionReader) -> None:
        first, end = await commands.bounds(self._partition)
        batches = read_range(commands, self._ports.clock, self._partition, first, end)
        async for batch in batches:
            for record in batch.records:
                self._note(record)
        commands.seek(self._partition, end)

    def _note(self, record: LogRecord) -> bytes | None:
        """Note a deletion, and return its session. What this build cannot read deletes nothing."""
        if record.key is None or record.value is None:
            return None
        try:
            entry = read_entry(record.headers, record.value)
        except VersionError as error:
            logger.warning("an entry is skipped", offset=record.offset, error=str(error))
            return None
        if not isinstance(entry.data, TextDeleted):
            return None
        until_ms = max(record.timestamp_ms, self._deleted.get(record.key, -1))
        self._deleted[record.key] = until_ms
        return record.key

    async def _open(self) -> SessionKeeper:
        """Return what is stored, if messages follow it without a gap; else begin again."""
        ports, partition = self._ports, self._partition
        with ports.health.step("restore", partition, 60.0):
            stored = await ports.retry.run(ports.store.open, partition, self._partitions)
            first, end = await self._reader.bounds(partition)
            if stored is not None:
                self._note_since(stored.since_ms)
            entries: Mapping[bytes, bytes] = {}
            if stored is not None and await self._is_continued(stored, first, end):
                entries, mark = stored.entries, stored.mark
            else:
                mark = None
                if first:
                    self._note_since(await self._time_of(first, end))
                await self._drop()
        self._expected = None if mark is None else mark.stamp
        self._is_bound = mark is None or bool(mark.topic_id) or not self._topic_id
        self._position = first if mark is None else mark.position
        self._reader.seek(partition, self._position)
        self._reader.resume(partition)
        keeper = SessionKeeper(
            ports.config,
            entries,
            self._since_ms,
            self._deleted,
            self._read_lines,
        )
        for session, until_ms in self._deleted.items():
            await keeper.delete_text(session, until_ms)
        await self._sweep(keeper)
        return keeper

    async def _is_continued(self, stored: StoredConversations, first: int, end: int) -> bool:
        """Return whether messages follow what is stored, without a gap and in the same log."""
        if not LogPlace(stored.topic_id).is_of(self._topic_id):
            logger.warning(
                "the topic was deleted and created again: what is kept is read again",
                partition=self._partition,
                topic=self._ports.config.messages_topic,
            )
            self._note_since(await self._time_of(first, end))
            return False
        if stored.mark is None:
            return False
        if not first <= stored.mark.position <= end:
            logger.warning(
                "messages were deleted before they were kept: what is kept is read again",
                partition=self._partition,
            )
            return False
        if stored.plan != self._ports.config.kept.plan:
            logger.info("other sessions are to be kept now: all is read again")
            return False
        return True

    def _note_since(self, since_ms: int | None) -> None:
        if since_ms is not None:
            self._since_ms = max(since_ms, self._since_ms or 0)

    async def _time_of(self, first: int, end: int) -> int:
        """Return since when all messages are known of a log that has these offsets."""
        if first == end:
            return self._ports.clock.now_ms()
        reader = self._ports.log.reader(self._ports.config.messages_topic, [self._partition])
        async with started(reader):
            reader.seek(self._partition, first)
            batch = await poll_past(reader, self._partition, 1, 1.0)
        return batch.records[0].timestamp_ms if batch.records else self._ports.clock.now_ms()

    async def _read_lines(self, session: bytes) -> list[bytes]:
        read = self._ports.store.lines
        return list(await self._ports.retry.run(read, self._partition, session))

    async def _follow(self, commands: PartitionReader, keeper: SessionKeeper) -> None:
        ports, partition, config = self._ports, self._partition, self._ports.config
        ports.health.partition(partition, "running")
        logger.info("following", partition=partition, position=self._position)
        swept_s = ports.clock.monotonic_s()
        await self._flush(keeper, self._position)
        while True:
            await self._follow_deletions(commands, keeper)
            try:
                with ports.health.step("poll", partition, config.poll_timeout_s):
                    batch = await poll_past(
                        self._reader,
                        partition,
                        config.batch_messages,
                        config.poll_timeout_s,
                        self._passed,
                    )
            except PositionError as error:
                raise LostError("messages were deleted before they were kept") from error
            with ports.health.step("write", partition) as step:
                for record in batch.records:
                    await keeper.add(record)
                    if keeper.pending_bytes >= config.write_bytes:
                        await self._flush(keeper, record.offset + 1)
                        step.restart()
                if ports.clock.monotonic_s() - swept_s >= config.expire_s:
                    swept_s = ports.clock.monotonic_s()
                    await self._sweep(keeper)
                    await self._verify()
                await self._flush(keeper, batch.position)
            await self._report(keeper, batch.records[-1].timestamp_ms if batch.records else None)

    async def _follow_deletions(self, commands: PartitionReader, keeper: SessionKeeper) -> None:
        try:
            batch = await commands.poll(self._partition, _COMMANDS, 0)
        except PositionError:  # entries expired that were not read: those that are left are
            await self._read_deletions(commands)
            raise ReseekError("deletions were read again") from None
        for record in batch.records:
            session = self._note(record)
            if session is not None:
                await keeper.delete_text(session, self._deleted[session])
                self._ports.telemetry.count("conversations_deletions", partition=self._label)

    async def _sweep(self, keeper: SessionKeeper) -> None:
        dropped = await keeper.sweep(self._ports.clock.now_ms())
        if dropped:
            self._ports.telemetry.count("conversations_expired", dropped, partition=self._label)

    async def _verify(self) -> None:
        """Notice a store that was emptied or went back in time, although nothing is written."""
        stored = await self._ports.retry.run(self._ports.store.mark, self._partition)
        if stored is None or stored.stamp != self._expected:
            raise ReseekError(f"the store was changed by another: it is at {stored}")

    async def _flush(self, keeper: SessionKeeper, position: int) -> None:
        changes = keeper.take_changes()
        is_new = position != self._position or self._expected is None or not self._is_bound
        if not changes and not is_new:
            return
        ports = self._ports
        self._writes += 1
        mark = Mark(position, f"{self._writer}.{self._writes}", self._topic_id)
        result = await ports.retry.run(
            ports.store.apply,
            self._partition,
            expected=self._expected,
            mark=mark,
            plan=ports.config.kept.plan,
            since_ms=keeper.since_ms,
            keep_ms=ports.config.kept.idle_ms + DAY_MS,  # a worker that runs drops them before
            changes=changes,
        )
        if result == "mismatch":
            raise ReseekError("another worker has written: read again from where it is")
        if result == "damaged":
            raise LostError("stored lines do not match the stored position")
        self._expected, self._position, self._is_bound = mark.stamp, position, True
        self.has_written = True
        ports.telemetry.count("conversations_writes", partition=self._label)

    async def _begin_again(self, reason: str) -> None:
        """Drop what cannot be trusted: all of it is read from the log again."""
        self._ports.telemetry.count("conversations_losses", partition=self._label)
        logger.error("reading all again", partition=self._partition, error=reason)
        await self._drop()

    async def _drop(self) -> None:
        drop = self._ports.store.drop
        await self._ports.retry.run(drop, self._partition, self._since_ms, self._topic_id)

    async def _report(self, keeper: SessionKeeper, newest_ms: int | None) -> None:
        ports, telemetry, label = self._ports, self._ports.telemetry, self._label
        if keeper.messages:
            telemetry.count("conversations_messages", keeper.messages, partition=label)
            keeper.messages = 0
        telemetry.gauge("conversations_sessions", len(keeper.entries), partition=label)
        ends = self._reader.ends(self._partition)
        self._lag.report(self._position, ends, newest_ms)
        now_s = ports.clock.monotonic_s()
        if ends is not None and (self._reported_s is None or now_s - self._reported_s >= _REPORT_S):
            self._reported_s = now_s
            report = ports.store.report
            await ports.retry.run(report, self._partition, ends.high, ports.clock.now_ms())
