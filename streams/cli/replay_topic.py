"""`contextgauge replay --topic`: what is in Kafka, as records. No consumer group takes part."""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from contextgauge.clock import SystemClock
from contextgauge.containers import Line
from contextgauge.errors import ConfigError, StopError
from contextgauge.partitioner import partition_of
from schemas.messages import DeadLetter
from schemas.topics import AGENT_MESSAGES, CONTEXT_EVENTS
from schemas.views import SessionView
from streams import codec, wiring
from streams.cli.publish.rejected import RejectedLines
from streams.cli.screen.failures import say_passed
from streams.cli.screen.figures import safe
from streams.cli.screen.output import say
from streams.cli.screen.reading_bar import reading_bar
from streams.cli.times import parse_time
from streams.core.projection.project import project
from streams.core.session_ids import WHOLE_ID, several_begin_with
from streams.flow.dead_letters.letters import Letter
from streams.flow.replay.topic import Place, Replayed, TopicReplay
from streams.ports import Headers
from streams.wiring.workers import derive_config

if TYPE_CHECKING:
    from streams.edge.kafka.log import KafkaLog

_LATE_MESSAGES = (
    "the range does not begin with the topic's first message: sessions that began before it have "
    "other sequence numbers, and their first figures may differ"
)
_LATE_RECORDS = (
    "the range does not begin with the topic's first record: views of sessions that began before "
    "it lack what came before"
)

_OFFSET = re.compile(r"(?:(\d{1,9}):)?(\d{1,18})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRequest:
    """Options of a replay: of the topic of messages, or of records as they are.

    `begin` and `end` are as the user wrote them.
    """

    derives: bool
    begin: str | None
    end: str | None
    session_id: str | None
    has_bar: bool


class ReplayedTopic:
    """The records of a topic. `rejected` counts the messages that could not be derived.

    Raises ConfigError for a wrong range or a missing topic, StopError for a session of which there
    is nothing, RetryError if the broker is down.
    """

    def __init__(self, request: TopicRequest, on_dead: Callable[[Line, DeadLetter], None]) -> None:
        now_ms = SystemClock().now_ms()
        begin, end = request.begin, request.end
        self._request, self._on_dead = request, on_dead
        self._begin = None if begin is None else parse_place("--from", begin, now_ms)
        self._end = None if end is None else parse_place("--to", end, now_ms)
        check_order(request, self._begin, self._end)
        self.rejected = RejectedLines("derived", remedy="")  # --session selects here

    def lines(self) -> Generator[Sequence[bytes], None, None]:
        """Yield the records as structured CloudEvents, part by part."""
        for events in self._events(makes_views=False):
            yield [codec.binary_to_structured(*event) for event in events]

    def views(self) -> dict[str, SessionView]:
        """Return each session's view."""
        views: dict[str, SessionView] = {}
        for position, event in enumerate(chain.from_iterable(self._events(makes_views=True))):
            record = codec.from_binary(*event)
            session_id = record.data.session_id
            views[session_id] = project(views.get(session_id), record, position)
        return views

    def _events(self, *, makes_views: bool) -> Iterator[Sequence[tuple[Headers, bytes]]]:
        with asyncio.Runner() as runner:
            parts = _replayed(self._request, self._begin, self._end, makes_views=makes_views)
            try:
                while (part := runner.run(_next(parts))) is not None:
                    for letter in part.dead:
                        line, dead_letter = _as_line(letter)
                        self.rejected(line, dead_letter)
                        self._on_dead(line, dead_letter)
                    yield part.records
            finally:
                runner.run(parts.aclose())
        self.rejected.report_all()


async def _next(parts: AsyncIterator[Replayed]) -> Replayed | None:
    return await anext(parts, None)


async def _replayed(
    request: TopicRequest, begin: Place | None, end: Place | None, *, makes_views: bool
) -> AsyncGenerator[Replayed, None]:
    settings = wiring.settings()
    topic = settings.topic(AGENT_MESSAGES if request.derives else CONTEXT_EVENTS).name
    is_empty = True
    async with wiring.started(wiring.kafka_log(settings, "contextgauge-replay")) as log:
        count = (await log.partition_counts([topic]))[topic]
        if count is None:
            raise ConfigError(
                f"missing on {settings.bootstrap_servers}: {topic}: create the topics with "
                "`contextgauge topics create`"
            )
        session_id = await _whole_id(log, topic, count, request, (begin, end))
        partitions = partitions_of(session_id, begin, end, count, topic)
        with reading_bar(f"reading {topic}", shown=request.has_bar) as progress:
            async with wiring.started(log.reader(topic, partitions)) as reader:
                replay = TopicReplay(reader, SystemClock(), session_id, progress, say_passed)
                await replay.begin(partitions, begin, end)
                was_whole = replay.is_whole
                if not was_whole and (request.derives or makes_views):
                    say(_LATE_MESSAGES if request.derives else _LATE_RECORDS, "dim")
                config = derive_config(settings)
                parts = (
                    replay.derived(wiring.rules(settings), config, count)
                    if request.derives
                    else replay.records()
                )
                async with aclosing(parts):
                    async for part in parts:
                        is_empty = is_empty and not part.records and not part.dead
                        yield part
    if was_whole and not replay.is_whole:
        say(f"messages of {topic} were deleted while it was read: retention", "yellow")
    if is_empty and session_id is not None:
        raise _nothing_of(session_id, topic)
    if is_empty:
        what = " that gives a record" if replay.offsets else ""
        say(f"{topic} has nothing in this range{what}")


async def _whole_id(
    log: "KafkaLog",
    topic: str,
    count: int,
    request: TopicRequest,
    between: tuple[Place | None, Place | None],
) -> str | None:
    """Return the requested session, or the only one in the range whose id begins so.

    Raises StopError where there is none, or there are several.
    """
    beginning = request.session_id
    if beginning is None or len(beginning) >= WHOLE_ID:
        return beginning
    own = partition_of(beginning, count)  # first: it may be a whole id
    in_range = partitions_of(None, *between, count, topic)
    partitions = sorted(in_range, key=lambda partition: partition != own)
    with reading_bar("looking for the session", shown=request.has_bar) as progress:
        async with wiring.started(log.reader(topic, partitions)) as reader:
            # What is passed over here, it is once more, and shown then.
            replay = TopicReplay(reader, SystemClock(), progress=progress)
            await replay.begin(partitions, *between)
            session_ids = await replay.sessions_beginning(beginning)
    if len(session_ids) > 1:
        raise StopError(safe(several_begin_with(beginning, session_ids)))
    for session_id in session_ids:
        return session_id
    raise _nothing_of(beginning, topic)


def _nothing_of(session_id: str, topic: str) -> StopError:
    return StopError(f"nothing of session {safe(session_id)} in this range of {topic}")


def parse_place(option: str, text: str, now_ms: int) -> Place:
    """Parse an offset, PARTITION:OFFSET, a time or an age. Raises ConfigError."""
    offset = _OFFSET.fullmatch(text.strip())
    if offset is not None:
        partition = None if offset[1] is None else int(offset[1])
        return Place(offset=int(offset[2]), partition=partition)
    try:
        return Place(time_ms=parse_time(option, text, now_ms))
    except ConfigError as error:
        raise ConfigError(
            f"{error}; or an offset: 1200 in every partition, 2:1200 in partition 2 alone"
        ) from None


def check_order(request: TopicRequest, begin: Place | None, end: Place | None) -> None:
    """Raise ConfigError for a range that ends before it begins, or begins in another partition."""
    if begin is None or end is None:
        return
    if None not in (begin.partition, end.partition) and begin.partition != end.partition:
        raise ConfigError(f"--from {request.begin} and --to {request.end} name two partitions")
    for first, last in ((begin.time_ms, end.time_ms), (begin.offset, end.offset)):
        if first is not None and last is not None and first >= last:
            raise ConfigError(f"--from {request.begin} is not before --to {request.end}")


def partitions_of(
    session_id: str | None, begin: Place | None, end: Place | None, count: int, topic: str
) -> Sequence[int]:
    """Return the partitions to read: all, or the one of the session or of an offset.

    Raises ConfigError for one that does not exist, or is not the session's.
    """
    named = next(
        (place.partition for place in (begin, end) if place and place.partition is not None), None
    )
    if named is not None and named >= count:
        raise ConfigError(f"partition {named} does not exist: {topic} has {count}, from 0")
    if session_id is None:
        return range(count) if named is None else [named]
    own = partition_of(session_id, count)
    if named not in (None, own):
        raise ConfigError(f"session {session_id} is on partition {own}, not on {named}")
    return [own]


def _as_line(letter: Letter) -> tuple[Line, DeadLetter]:
    """Return a rejected message as a line: of TOPIC-PARTITION, its offset for the number."""
    origin = letter.origin
    if origin is None:
        raise RuntimeError("a letter that was just derived has its origin")
    hint = None if letter.key is None else letter.key.decode("utf-8", "replace")
    name = f"{origin.topic}-{origin.partition}"
    line = Line(name, origin.offset, letter.value, len(letter.value), hint)
    return line, DeadLetter(letter.reason, letter.detail)  # type: ignore[arg-type]  # just derived
