"""Background work on one partition's generations: building the next, deleting those out of use."""

import structlog

from contextgauge.errors import LostError, PositionError, ReseekError
from streams.flow.project.partition import PartitionProjector
from streams.flow.project.polling import PartitionPoller, ProjectPorts
from streams.ports import Generations, PartitionReader

_BACKGROUND_RECORDS = 50
"""Batch size while an active generation is served: some milliseconds, for which records that
readers wait for may have to wait, several times on their way."""

_NEAR_RECORDS = 3_000
"""So far behind the log's end a generation may be when readers switch to it from another one."""

logger = structlog.get_logger()


class GenerationBuild:
    """Builds whatever generation is next on one partition; begins one where none is active."""

    def __init__(self, ports: ProjectPorts, poller: PartitionPoller) -> None:
        self._ports, self._poller = ports, poller
        self._last_loss = ("", "")
        """The last build in which documents were missing, and which."""
        self._lenient_build: str | None = None
        """A build of a log that lacks the beginnings of sessions: their views begin in between."""

    async def run(self) -> None:
        """Build until cancelled."""
        generations = self._ports.generations
        while True:
            if generations.current.next is not None:
                await self._build(generations.current.next, generations.current.build)
            elif generations.current.active is None:
                await self._ports.retry.run(generations.begin_next)
            else:
                await generations.wait_for_change()

    async def _build(self, generation: int, build: str) -> None:
        ports, partition = self._ports, self._poller.partition
        self._poller.building = generation
        self._poller.build_ended.clear()
        reader = ports.log.reader(ports.config.events_topic, [partition])
        try:
            with ports.health.step("open", partition, ports.config.open_timeout_s):
                await reader.start()
                begin, end = await reader.bounds(partition)
            projector = await self._open(generation, build, begin)
            reader.seek(partition, projector.position)
            logger.info(
                "building",
                partition=partition,
                generation=generation,
                position=projector.position,
                end=end,
            )
            await self._fold_log(reader, projector, generation, build, end)
        except LostError as error:
            self._note_loss(build, error)
            await self._poller.drop(generation, build)
            await self._poller.pause_before_rereading(error)
        except PositionError as error:
            await self._poller.drop(generation, build)
            await self._poller.pause_before_rereading(error)
        except ReseekError as error:
            await self._poller.pause_before_rereading(error)
        finally:
            await reader.stop()
            self._poller.building = None
            self._poller.build_ended.set()

    async def _open(self, generation: int, build: str, begin: int) -> PartitionProjector:
        """Go on with this build where it was left, or begin it at the log's first offset."""
        projector = self._poller.projector(generation, strict=self._lenient_build != build)
        is_open = await projector.open(build)
        foreign = await self._poller.foreign_log(projector.stored.log) if is_open else ""
        if foreign:
            logger.warning(
                "building from the beginning", partition=self._poller.partition, error=foreign
            )
        if foreign or not is_open:
            # Documents under this generation's keys are another build's (the numbers of an
            # emptied store start over), or of another log.
            if not await self._poller.drop(generation, build):
                # This worker has not seen yet that the build has ended: it may be what readers use.
                await self._ports.retry.run(self._ports.generations.refresh)
                raise ReseekError("the build has ended")
            await projector.begin(begin, build)
            if not await projector.open(build):
                raise ReseekError("another worker begins the partition")
        return projector

    async def _fold_log(
        self,
        reader: PartitionReader,
        projector: PartitionProjector,
        generation: int,
        build: str,
        end: int,
    ) -> None:
        """Fold the log; near its end mark the partition as caught up, and go on until activated.

        `end` is where the log ended when the build was opened: it may have grown a lot since.
        """
        ports, generations, poller = self._ports, self._ports.generations, self._poller
        until_done = ports.retry.run
        has_caught_up = has_tried_to_activate = False
        tried_s = 0.0
        while (generations.current.next, generations.current.build) == (generation, build):
            if not has_caught_up and projector.position >= end:
                end = await self._end_to_reach(reader, projector.position)
                if projector.position < end:
                    continue
                await until_done(ports.store.caught_up, generation, poller.partition, build)
                has_caught_up = True
                continue
            if has_caught_up and not has_tried_to_activate:
                await until_done(
                    generations.activate,
                    generation,
                    build,
                    poller.partitions,
                    topic_id=poller.topic_id,
                )
                has_tried_to_activate, tried_s = True, ports.clock.monotonic_s()
                continue
            if has_tried_to_activate and ports.clock.monotonic_s() - tried_s > ports.config.watch_s:
                # Others are not there yet, or the store went back and does not know it of this one.
                has_caught_up = has_tried_to_activate = False
                continue
            if not poller.is_followed:
                ports.health.partition(
                    poller.partition,
                    "building",
                    "readers wait for the next generation",
                    done=projector.position,
                    total=end,
                )
            most = ports.config.batch_records
            if generations.current.active is not None:
                most = min(most, _BACKGROUND_RECORDS)
            batch = await poller.poll(reader, projector.position, most)
            if (generations.current.next, generations.current.build) != (generation, build):
                return
            await poller.write(projector, batch)

    async def _end_to_reach(self, reader: PartitionReader, position: int) -> int:
        """Return where the log ends now if that is far; else the position, which is near enough.

        A build takes a while, and readers of what is active would fall back by all that came
        meanwhile. Where live projection serves none, they wait for this build: no longer than
        needed.
        """
        ports, poller = self._ports, self._poller
        if ports.generations.current.active is None or not poller.is_followed:
            return position
        with ports.health.step("open", poller.partition, ports.config.open_timeout_s):
            _, end = await reader.bounds(poller.partition)
        return end if end - position > _NEAR_RECORDS else position

    def _note_loss(self, build: str, error: LostError) -> None:
        """Distinguish a loss of the store, which a second try mends, from one of the log."""
        self._ports.telemetry.count("project_losses", partition=self._poller.label)
        previous, self._last_loss = self._last_loss, (build, str(error))
        if previous == self._last_loss:
            logger.error(
                "the log lacks records: sessions begin in between",
                partition=self._poller.partition,
                error=str(error),
            )
            self._lenient_build = build


async def clean_up(ports: ProjectPorts, poller: PartitionPoller) -> None:
    """Delete one partition of generations that are out of use, once no reader can be in them."""
    generations = ports.generations
    while True:
        seen = generations.current
        unused = await _unused(ports, seen, poller.partition)
        if unused:
            await ports.clock.sleep(ports.config.drop_after_s)
            # Refresh first: meanwhile an emptied store may have started its numbers over.
            await ports.retry.run(generations.refresh)
            for generation in unused:
                now = generations.current
                if now.active == seen.active and now.next != generation:
                    await poller.drop(generation)
        if generations.current == seen:
            await generations.wait_for_change()


async def _unused(ports: ProjectPorts, seen: Generations, partition: int) -> list[int]:
    """Return the former generation, and one after the active that is not built any more."""
    if seen.active is None:
        return []
    return [
        generation
        for generation in (seen.active - 1, seen.active + 1)
        if generation not in (0, seen.next)
        and await ports.retry.run(ports.store.is_there, generation, partition)
    ]
