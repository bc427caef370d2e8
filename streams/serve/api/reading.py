"""The questions that the API answers, each from one generation.

What has no cursor is answered from the generation that is active now; a cursor's generation is
read on while it is there, which is for a minute after a swap.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

from schemas.views import EntryStream
from streams import codec
from streams.ports import Clock, Entry, Ranking, ViewReader
from streams.serve.api import agents, answers, cursors
from streams.serve.api.problems import bad_cursor, generation_gone, no_session
from streams.serve.api.snapshot import Moment, Moments
from streams.serve.api.summaries import Filter, PartitionOf, Summaries
from streams.serve.api.together import all_of

_TYPE_HEAD: Final = "contextgauge."
_TYPE_TAIL: Final = ".v1"


class SessionsPage(NamedTuple):
    """A part of the list of sessions: views as they are stored."""

    views: list[bytes]
    next: str | None
    total: int


class RecordsPage(NamedTuple):
    """A part of a session's records as they are stored."""

    records: list[bytes]
    next: str | None


class AgentSession(NamedTuple):
    """A session of an agent: where it is, and its view as it is stored."""

    partition: int
    session: bytes
    view: bytes


class Reading:
    """Answers questions. Its methods raise RetryError, VersionError, ViewsGoneError, Problem."""

    def __init__(self, reader: ViewReader, partition_of: PartitionOf, clock: Clock) -> None:
        self._reader, self.clock = reader, clock
        self._partition_of = partition_of
        self._summaries = Summaries(reader)
        self._chats: agents.Kept[list[agents.Told]] = agents.Kept()
        self.moments = Moments(reader, clock)

    async def moment(
        self, cursor: str | None = None, asked: str = "", form: cursors.Form = ()
    ) -> Moment | None:
        """Return the moment to answer from: the cursor's generation, else the active one."""
        if cursor is None:
            return await self.moments.now()
        return await self._moment_of(cursors.read(cursor, asked, form).generation)

    async def _moment_of(self, generation: int) -> Moment:
        now = await self.moments.now()
        if now is not None and now.generation == generation:
            return now
        # Only a former one: what is being built is nobody's yet.
        if now is None or generation > now.generation:
            raise generation_gone()
        found = await self.moments.of(generation)
        if found is None:
            raise generation_gone()
        return found

    async def sessions(
        self, moment: Moment, by: Ranking, wanted: Filter, cursor: str | None, limit: int
    ) -> SessionsPage:
        """Return a part of the list of sessions."""
        after = None
        if cursor is not None:
            _, _, (percent, recent, name) = cursors.read(cursor, by, SESSIONS_FORM)
            try:
                after = (float(percent), int(recent), bytes.fromhex(str(name)))
            except (ValueError, OverflowError):
                raise bad_cursor() from None
        page = await self._summaries.page(moment, by, wanted, after, limit)
        views = await self._views(
            moment, [(each.partition, each.session) for each in page.sessions]
        )
        following = None
        if page.goes_on:
            percent, recent, session = page.sessions[-1].rank(by)
            place = (percent, recent, session.hex())
            following = cursors.Cursor(moment.generation, by, place).written()
        return SessionsPage(views, following, page.total)

    async def sessions_by_id(self, moment: Moment, session_ids: Sequence[str]) -> SessionsPage:
        """Return the sessions of these ids, as far as they are there."""
        views = await self._views(moment, [self._place(moment, name) for name in session_ids])
        return SessionsPage(views, None, len(views))

    async def _views(self, moment: Moment, places: Sequence[tuple[int, bytes]]) -> list[bytes]:
        """Return the views of sessions, given their partitions, in this order.

        One that left meanwhile is not among them.
        """
        names: dict[int, list[bytes]] = {}
        for partition, session in dict.fromkeys(places):
            names.setdefault(partition, []).append(session)
        views = await all_of(
            self._reader.views(moment.generation, partition, some)
            for partition, some in names.items()
        )
        read = {
            name: view
            for some, documents in zip(names.values(), views, strict=True)
            for name, view in zip(some, documents, strict=True)
        }
        ordered = [read[session] for _, session in dict.fromkeys(places)]
        return [view for view in ordered if view is not None]

    async def session(self, moment: Moment | None, session_id: str) -> bytes:
        """Return a session's view as it is stored."""
        if moment is None:
            raise no_session(session_id)
        partition, session = self._place(moment, session_id)
        (view,) = await self._reader.views(moment.generation, partition, [session])
        if view is None:
            raise no_session(session_id)
        return view

    async def records(
        self,
        moment: Moment,
        session_id: str,
        stream: EntryStream,
        kinds: frozenset[str],
        cursor: str | None,
        limit: int,
    ) -> RecordsPage:
        """Return a part of a session's records, oldest first; of these kinds, if any is named."""
        asked, after = asked_of(stream, session_id), -1
        if cursor is not None:
            after = int(cursors.read(cursor, asked, RECORDS_FORM).after[0])
        partition, session = self._place(moment, session_id)
        entries = await self._reader.entries(
            moment.generation, partition, stream, session, max(after, -1)
        )
        found = entries if not kinds else [entry for entry in entries if _kind(entry) in kinds]
        following = None
        if len(found) > limit:
            place = (found[limit - 1].offset,)
            following = cursors.Cursor(moment.generation, asked, place).written()
        return RecordsPage([entry.document for entry in found[:limit]], following)

    async def compactions(self, moment: Moment, session_id: str) -> list[bytes]:
        """Return a session's compactions as they are stored, the newest first."""
        partition, session = self._place(moment, session_id)
        found = await self._reader.compactions(moment.generation, partition, session)
        return sorted(found.values(), key=_age, reverse=True)

    async def of_agent(self, moment: Moment, agent_id: str) -> list[AgentSession]:
        """Return the last active sessions of an agent, else the session of this id, if any."""
        name = codec.key_bytes(agent_id)
        found = await all_of(
            self._reader.agent_sessions(moment.generation, partition, name, agents.MOST_SESSIONS)
            for partition in range(moment.partitions)
        )
        ranked = sorted(
            (-score, session, partition)
            for partition, part in enumerate(found)
            for session, score in part
        )[: agents.MOST_SESSIONS]
        places = [(partition, session) for _, session, partition in ranked]
        if not places:
            places = [self._place(moment, agent_id)]
        views = await all_of(
            self._reader.views(moment.generation, partition, [session])
            for partition, session in places
        )
        return [
            AgentSession(partition, session, view)
            for (partition, session), (view,) in zip(places, views, strict=True)
            if view is not None
        ]

    async def chat(self, moment: Moment, sessions: Sequence[AgentSession]) -> bytes:
        """Return the events of an agent's sessions, as its chat takes them."""
        told = []
        for found in sessions:
            tag = answers.tag(moment.generation, found.session, found.view)
            told.append(await self._chats.made(tag, partial(self._chat, moment.generation, found)))
        return agents.merged(told)

    async def _chat(self, generation: int, found: AgentSession) -> tuple[list[agents.Told], int]:
        entries = await self._reader.entries(
            generation, found.partition, "events", found.session, -1
        )
        events = agents.written(agents.of_session(entry.document for entry in entries))
        await asyncio.sleep(0)  # an agent has many sessions: others are answered between them
        return events, sum(len(event.document) for event in events)

    async def stats(self, moment: Moment) -> Sequence[dict[bytes, bytes]]:
        """Return the fields of all partitions' aggregates."""
        return await all_of(
            self._reader.stats(moment.generation, partition)
            for partition in range(moment.partitions)
        )

    def _place(self, moment: Moment, session_id: str) -> tuple[int, bytes]:
        return self._partition_of(session_id, moment.partitions), codec.key_bytes(session_id)


SESSIONS_FORM: Final[cursors.Form] = ((int, float), int, str)
"""What a cursor of sessions holds: a rank, its session in hexadecimal digits."""

RECORDS_FORM: Final[cursors.Form] = (int,)
"""What a cursor of records holds: the offset of the last one that was told."""


def asked_of(stream: EntryStream, session_id: str) -> str:
    """Return what a cursor of a session's records is for."""
    return f"{stream} {session_id}"


def _kind(entry: Entry) -> str:
    name: str = codec.loads(entry.document)["type"]
    return name.removeprefix(_TYPE_HEAD).removesuffix(_TYPE_TAIL)


def _age(document: bytes) -> tuple[int, int]:
    """Return what orders compactions: their time, and their number where they have none."""
    found = codec.loads(document)
    return (found["time_ms"] or 0, found["number"])
