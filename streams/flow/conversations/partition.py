"""One partition of `agent.messages`, kept as conversations.

Position and lines are written together, so what is stored is always what the messages before the
position give. What was deleted is read from `context.commands` before any message is.
"""

import structlog

from contextgauge.errors import LostError, PositionError, ReseekError, VersionError
from contextgauge.units import DAY_MS
from schemas.commands import TextDeleted
from streams.codec.commands import read_entry
from streams.flow.common.lag import Lag
from streams.flow.common.ranges import read_range
from streams.flow.conversations.config import ConversationsPorts
from streams.flow.conversations.sessions import SessionKeeper
from streams.ports import GroupReader, LogRecord, PartitionReader, started

_REREAD_PAUSE_S = 0.1
"""Between a mismatch and reading again: two workers that write to one partition must not race."""

_COMMANDS = 500

logger = structlog.get_logger()


class ConversationPartition:
    """Follows one partition until cancelled. RetryErrors that it raises are the log's."""

    def __init__(
        self, ports: ConversationsPorts, reader: GroupReader, partition: int, partitions: int
    ) -> None:
        self._ports, self._reader = ports, reader
        self._partition, self._partitions = partition, partitions
        self._label = str(partition)
        self._deleted: dict[bytes, int] = {}
        self._position = 0
        self._expected: int | None = None
        self.has_written = False
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
            if stored is not None and not first <= stored.position <= end:
                logger.warning(
                    "messages were deleted before they were kept: what is kept is read again",
                    partition=partition,
                )
                stored = None
            elif stored is not None and stored.plan != ports.config.kept.plan:
                logger.info("other sessions are to be kept now: all is read again")
                stored = None
            if stored is None:
                await ports.retry.run(ports.store.drop, partition)
        self._expected = None if stored is None else stored.position
        self._position = first if stored is None else stored.position
        since_ms = await self._since_ms(first) if stored is None else stored.since_ms
        self._reader.seek(partition, self._position)
        self._reader.resume(partition)
        keeper = SessionKeeper(
            ports.config,
            {} if stored is None else stored.entries,
            since_ms,
            self._deleted,
            self._read_lines,
        )
        for session, until_ms in self._deleted.items():
            await keeper.delete_text(session, until_ms)
        await self._sweep(keeper)
        return keeper

    async def _since_ms(self, first: int) -> int | None:
        """Return since when all messages are known, where the log lost some before."""
        if first == 0:
            return None
        reader = self._ports.log.reader(self._ports.config.messages_topic, [self._partition])
        async with started(reader):
            reader.seek(self._partition, first)
            batch = await reader.poll(self._partition, 1, 1.0)
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
                    batch = await self._reader.poll(
                        partition, config.batch_messages, config.poll_timeout_s
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
            self._report(keeper, batch.records[-1].timestamp_ms if batch.records else None)

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
        stored = await self._ports.retry.run(self._ports.store.position, self._partition)
        if stored != self._expected:
            raise ReseekError(f"the store is at {stored}, and not at {self._expected}")

    async def _flush(self, keeper: SessionKeeper, position: int) -> None:
        changes = keeper.take_changes()
        if not changes and position == self._expected:
            return
        ports = self._ports
        result = await ports.retry.run(
            ports.store.apply,
            self._partition,
            expected=self._expected,
            position=position,
            plan=ports.config.kept.plan,
            since_ms=keeper.since_ms,
            keep_ms=ports.config.kept.idle_ms + DAY_MS,  # a worker that runs drops them before
            changes=changes,
        )
        if result == "mismatch":
            raise ReseekError(f"conversations are not at {self._expected}: read again from theirs")
        if result == "damaged":
            raise LostError("stored lines do not match the stored position")
        self._expected = self._position = position
        self.has_written = True
        ports.telemetry.count("conversations_writes", partition=self._label)

    async def _begin_again(self, reason: str) -> None:
        """Drop what cannot be trusted: all of it is read from the log again."""
        self._ports.telemetry.count("conversations_losses", partition=self._label)
        logger.error("reading all again", partition=self._partition, error=reason)
        await self._ports.retry.run(self._ports.store.drop, self._partition)

    def _report(self, keeper: SessionKeeper, newest_ms: int | None) -> None:
        telemetry, label = self._ports.telemetry, self._label
        if keeper.messages:
            telemetry.count("conversations_messages", keeper.messages, partition=label)
            keeper.messages = 0
        telemetry.gauge("conversations_sessions", len(keeper.entries), partition=label)
        ends = self._reader.ends(self._partition)
        self._lag.report(self._position, None if ends is None else ends.high, newest_ms)
