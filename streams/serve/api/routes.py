"""The routes under /v1: each reads a snapshot, then what it needs of that generation."""

import asyncio
from collections.abc import Callable
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from contextgauge.units import MINUTE_MS
from schemas.records import Json, event_type
from schemas.views import EntryStream
from streams import codec
from streams.codec.costs import costs_document
from streams.core.costs import PriceLookup, stored_costs
from streams.core.session_status import THRESHOLDS
from streams.ports import ReadingProgress
from streams.serve.api import agents, answers, parameters
from streams.serve.api.answers import THRESHOLDS_JSON, judged
from streams.serve.api.conversations import add_conversations
from streams.serve.api.problems import bad_parameter
from streams.serve.api.reading import RECORDS_FORM, SESSIONS_FORM, Cursor, Reading, read_cursor
from streams.serve.api.routing import Described, Router, problems_of
from streams.serve.api.serving import Serving
from streams.serve.api.totals import Totals
from streams.serve.api.what_if import add_what_if
from streams.serve.views.session_summary import ListOrder, SessionFilter
from streams.serve.views.sessions import SessionKey, Sessions


def add_routes(
    router: Router,
    reading: Reading,
    serving: Serving,
) -> None:
    """Add the routes."""
    _add_sessions(router, reading)
    add_conversations(router, reading, serving)
    _add_session(router, reading)
    _add_costs(router, reading, serving.prices)
    add_what_if(router, reading, serving)
    _add_records(router, reading)
    _add_stats(router, reading)
    _add_projection(router, reading, serving.reading)
    _add_agents(router, reading)


def _add_sessions(router: Router, reading: Reading) -> None:
    @router.add(
        "GET",
        "/v1/sessions",
        Described(
            "listSessions",
            "sessions",
            "List sessions",
            responses=answers.CONDITIONAL | problems_of(400, 410, 422),
        ),
    )
    async def sessions(  # noqa: PLR0913 -- the parameters of the route
        request: Request,
        *,
        sort: parameters.Sort = "recent",
        live_first: parameters.LiveFirst = False,
        state: parameters.State = None,
        model: parameters.Model = None,
        runtime: parameters.Runtime = None,
        agent: parameters.Agent = None,
        min_percent: parameters.MinPercent = None,
        q: parameters.Text = None,
        limit: parameters.SessionLimit = 50,
        cursor: parameters.After = None,
        id: parameters.SessionIds = None,  # noqa: A002 -- the parameter's name
    ) -> Response:
        """List sessions in an order, a part at a time.

        A cursor belongs to its generation; once that is gone, the answer is 410. Sessions with
        records between two requests may be in both answers or in neither.
        """
        if id is not None and set(request.query_params) != {"id"}:
            raise bad_parameter(("id", "works without all other parameters only"))
        after = read_cursor(cursor, sort, SESSIONS_FORM)
        snapshot = await reading.snapshot(after)
        now_ms = reading.clock.now_ms()
        order = ListOrder(sort, live_since(now_ms) if live_first else None)
        parts = (request.url.path, request.url.query, snapshot.position, order)
        tag = answers.tag(*parts, await reading.known_points(snapshot))
        same = answers.unchanged(request, tag, snapshot, now_ms)
        if same is not None:
            return same
        if id is not None:
            stored = reading.at(snapshot)
            stored_views = list((await stored.views(dict.fromkeys(map(stored.key, id)))).values())
            following, total, live = None, len(stored_views), None
        else:
            words = tuple((q or "").lower().split())
            session_filter = SessionFilter(state, model, runtime, agent, min_percent, words)
            stored_views, following, part = await reading.sessions(
                snapshot, order, session_filter, after, limit
            )
            total, live = part.total, part.live if live_first else None
        context = await reading.context(snapshot, stored_views)
        views, change_ms = judged(stored_views, context, now_ms)
        tag = answers.tag(*parts, context.points)
        members = {
            "thresholds": THRESHOLDS_JSON,
            "sessions": views,
            "next": following,
            "total": total,
            "live": live,
        }
        return answers.answer(snapshot, answers.until(tag, change_ms), members)


def live_since(now_ms: int) -> int:
    """Return since when a live session has been active, in whole minutes: lists are cached."""
    return (now_ms - THRESHOLDS.stale_after_ms) // MINUTE_MS * MINUTE_MS


def _add_session(router: Router, reading: Reading) -> None:
    described = partial(
        Described, tag="sessions", responses=answers.CONDITIONAL | problems_of(404, 422)
    )

    async def compacted(
        request: Request, session_id: str, name: str, made: Callable[[list[bytes]], object]
    ) -> Response:
        """Answer with what is made of a session's compactions."""
        snapshot, view = await reading.session(session_id)
        tag = answers.tag(request.url.path, view, snapshot.version)
        same = answers.unchanged(request, tag, snapshot)
        if same is not None:
            return same
        documents = await reading.at(snapshot).compactions(session_id)
        return answers.answer(snapshot, tag, {name: made(documents)})

    @router.add(
        "GET",
        "/v1/sessions/{session_id:id}/compactions",
        described("listCompactions", summary="List a session's compactions"),
    )
    async def compactions(request: Request, session_id: parameters.SessionId) -> Response:
        """List the compactions that succeeded, whole with their summaries, the newest first."""
        return await compacted(request, session_id, "compactions", answers.documents)

    @router.add(
        "GET",
        "/v1/sessions/{session_id:id}/rules",
        described("readRules", summary="Read which rules of the user are still there"),
    )
    async def rules(request: Request, session_id: parameters.SessionId) -> Response:
        """Read what the check after the main conversation's latest compaction found."""
        return await compacted(request, session_id, "rules", answers.rules)


def _add_costs(router: Router, reading: Reading, price_of: PriceLookup) -> None:
    made = answers.PricedAnswers("costs")

    @router.add(
        "GET",
        "/v1/sessions/{session_id:id}/costs",
        Described(
            "readCosts",
            "sessions",
            "Read what a session cost",
            responses=answers.CONDITIONAL | problems_of(404, 422),
        ),
    )
    async def costs(request: Request, session_id: parameters.SessionId) -> Response:
        """Read what a session cost, by model, and what each compaction cost and saved.

        From its newest 2 000 readings, at list prices.
        """
        snapshot, view = await reading.session(session_id)

        async def make() -> Json:
            records = await reading.at(snapshot).records(session_id, readings=True)
            return costs_document(stored_costs(records, price_of))

        return await made.answer(request, snapshot, view, make)


async def _records(  # noqa: PLR0917 -- the parameters of the route
    reading: Reading,
    request: Request,
    session_id: str,
    stream: EntryStream,
    kinds: frozenset[str],
    after: str | None,
    limit: int,
) -> Response:
    """Answer with a part of a session's records."""
    of = f"{stream} {session_id}"
    cursor = read_cursor(after, of, RECORDS_FORM)
    snapshot, view = await reading.session(session_id, cursor)
    tag = answers.tag(request.url.path, request.url.query, view, snapshot.version)
    same = answers.unchanged(request, tag, snapshot)
    if same is not None:
        return same
    sessions = reading.at(snapshot)
    start = -1 if cursor is None else cursor.end[0]
    entries = await sessions.entries(sessions.key(session_id), stream, start)
    if kinds:
        types = {event_type(kind) for kind in kinds}
        entries = [entry for entry in entries if codec.loads(entry.document)["type"] in types]
    following = None
    if len(entries) > limit:
        following = Cursor(snapshot.generation, of, (entries[limit - 1].offset,)).encoded()
    records = answers.as_stored(entry.document for entry in entries[:limit])
    return answers.answer(snapshot, tag, {"records": records, "next": following})


def _add_records(router: Router, reading: Reading) -> None:
    described = partial(
        Described,
        responses=answers.CONDITIONAL | problems_of(400, 404, 410, 422),
        tag="sessions",
    )

    @router.add(
        "GET",
        "/v1/sessions/{session_id:id}/events",
        described("listEvents", summary="List a session's records except readings"),
    )
    async def events(
        request: Request,
        session_id: parameters.SessionId,
        type: parameters.Kinds = None,  # noqa: A002 -- the parameter's name
        after: parameters.After = None,
        limit: parameters.RecordLimit = 500,
    ) -> Response:
        """List warnings, limits, compactions, edits, resets: the newest 2 000."""
        kinds: frozenset[str] = frozenset(type or ())
        return await _records(reading, request, session_id, "events", kinds, after, limit)

    @router.add(
        "GET",
        "/v1/sessions/{session_id:id}/readings",
        described("listReadings", summary="List a session's readings"),
    )
    async def readings(
        request: Request,
        session_id: parameters.SessionId,
        after: parameters.After = None,
        limit: parameters.RecordLimit = 500,
    ) -> Response:
        """List the sizes after each response: the newest 2 000."""
        return await _records(reading, request, session_id, "readings", frozenset(), after, limit)

    @router.add(
        "GET",
        "/v1/sessions/{session_id:id}",
        Described(
            "readSession",
            "sessions",
            "Read a session",
            responses=answers.CONDITIONAL | problems_of(404, 422),
        ),
    )
    async def session(request: Request, session_id: parameters.SessionId) -> Response:
        """Read a session: identity, chains, open attempt, compactions, status."""
        snapshot, view = await reading.session(session_id)
        now_ms = reading.clock.now_ms()
        context = await reading.context(snapshot, [view])
        tag = answers.tag(request.url.path, view, context, snapshot.version)
        same = answers.unchanged(request, tag, snapshot, now_ms)
        if same is not None:
            return same
        (session,), change_ms = judged([view], context, now_ms)
        members = {"session": session, "thresholds": THRESHOLDS_JSON}
        return answers.answer(snapshot, answers.until(tag, change_ms), members)


def _add_stats(router: Router, reading: Reading) -> None:
    totals = Totals(lambda snapshot: reading.at(snapshot).aggregates(), reading.clock)

    @router.add(
        "GET",
        "/v1/stats",
        Described(
            "readStats",
            "aggregates",
            "Read the aggregates",
            responses=answers.CONDITIONAL | problems_of(422),
        ),
    )
    async def stats(
        request: Request, by: parameters.By = "hour", since: parameters.Since = None
    ) -> Response:
        """Read compactions counted: of all sessions, and by hour (UTC) or by model."""
        if since is not None and by != "hour":
            raise bad_parameter(("since", "works with by=hour only"))
        snapshot = totals.current(await reading.snapshot())
        tag = answers.tag(request.url.path, request.url.query, snapshot.position)
        same = answers.unchanged(request, tag, snapshot)
        if same is not None:
            return same
        return answers.answer(snapshot, tag, await totals.of(snapshot, by, since))


def _add_projection(
    router: Router, reading: Reading, local: Callable[[], ReadingProgress | None] | None
) -> None:
    @router.add(
        "GET",
        "/v1/projection",
        Described(
            "readProjection",
            "service",
            "Read how far the projection is",
            responses=problems_of(422),
        ),
    )
    async def projection() -> Response:
        """Read position, lag and silence of each partition: whether figures are fresh."""
        snapshot = await reading.snapshot()
        progress = None if local is None else local()
        points = await reading.known_points(snapshot)
        members = {
            "partitions": snapshot.of_partitions(),
            "estimates": answers.tag(points)[3:-1],
            "reading": None if progress is None else progress._asdict(),
        }
        return answers.answer(snapshot, answers.tag(snapshot), members)


def _add_agents(router: Router, reading: Reading) -> None:
    cache: answers.SharedCache[bytes] = answers.SharedCache()
    chats: answers.SharedCache[list[agents.EncodedEvent]] = answers.SharedCache()

    @router.add(
        "GET",
        "/api/agents/{agent_id:id}/events",
        Described(
            "listAgentEvents",
            "agents",
            "List an agent's events for its chat",
            responses=answers.CONDITIONAL | problems_of(422),
        ),
    )
    async def events(request: Request, agent_id: parameters.AgentId) -> Response:
        """List warnings, starts and completions of compactions, as a chat's front end polls them.

        They are those of an agent's sessions, or of one session; an empty list if there are none.
        """
        snapshot = await reading.snapshot()
        views = await reading.at(snapshot).of_agent(agent_id, agents.MOST_SESSIONS)
        tag = answers.tag(request.url.path, snapshot.version, list(views.values()))
        same = answers.unchanged(request, tag, snapshot)
        if same is not None:
            return same

        async def make() -> tuple[bytes, int]:
            of_sessions = []
            for key, view in views.items():
                chat_tag = answers.tag(snapshot.generation, key.session, view)
                chat = partial(_chat, reading.at(snapshot), key)
                of_sessions.append(await chats.get_or_make(chat_tag, chat))
            body = agents.merged(of_sessions)
            return body, len(body)

        return answers.bare(await cache.get_or_make(tag, make), tag, snapshot)


async def _chat(sessions: Sessions, key: SessionKey) -> tuple[list[agents.EncodedEvent], int]:
    entries = await sessions.entries(key, "events")
    events = agents.of_session(entry.document for entry in entries)
    await asyncio.sleep(0)  # an agent has many sessions: other requests run in between
    return events, sum(len(document) for _, document in events)
