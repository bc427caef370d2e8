"""The routes under /v1: each reads a moment, then what it needs of that generation."""

from typing import Any, Final

from fastapi import APIRouter, Request, Response

from schemas.records import Json
from schemas.views import EntryStream
from streams.serve.api import answers, parameters, shapes
from streams.serve.api.agents import Kept
from streams.serve.api.answers import Raw
from streams.serve.api.openapi import problems_of
from streams.serve.api.problems import bad_parameter
from streams.serve.api.reading import RECORDS_FORM, SESSIONS_FORM, Reading, asked_of
from streams.serve.api.statuses import THRESHOLDS_JSON, judged
from streams.serve.api.summaries import Filter
from streams.serve.api.totals import Totals

_CONDITIONAL: Final[dict[int | str, dict[str, Any]]] = {
    304: {"description": "Nothing changed since the entity tag in If-None-Match was given."}
}


def add_routes(router: APIRouter, reading: Reading) -> None:
    """Add the routes."""
    _add_sessions(router, reading)
    _add_session(router, reading)
    _add_records(router, reading)
    _add_stats(router, reading)
    _add_agents(router, reading)


def _add_sessions(router: APIRouter, reading: Reading) -> None:
    @router.get(
        "/v1/sessions",
        response_model=shapes.SessionsAnswer,
        responses=_CONDITIONAL | problems_of(400, 410, 422),
        summary="List sessions",
        operation_id="listSessions",
        tags=["sessions"],
    )
    async def sessions(  # noqa: PLR0913, PLR0917 -- the parameters of the route
        request: Request,
        sort: parameters.Sort = "recent",
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
        """List sessions by last activity or by how full they are, a part at a time.

        A cursor stays with its generation; where that is gone it is answered with 410. Sessions
        that move up while the list is paged through may be listed twice or not at all.
        """
        if id is not None and set(request.query_params) != {"id"}:
            raise bad_parameter(("id", "it stands alone: leave out all other parameters"))
        moment, now_ms = await reading.moment(cursor, sort, SESSIONS_FORM), reading.clock.now_ms()
        found = answers.tag(request.url.path, request.url.query, moment and moment.told)
        same = answers.unchanged(request, found, moment, now_ms)
        if same is not None:
            return same
        members: dict[str, Json | Raw] = {"thresholds": THRESHOLDS_JSON}
        if moment is None:
            members |= {"sessions": [], "next": None, "total": 0}
            return answers.answer(None, answers.until(found, None), members)
        if id is not None:
            page = await reading.sessions_by_id(moment, id)
        else:
            asked = Filter(state, model, runtime, agent, min_percent, q.lower() if q else None)
            page = await reading.sessions(moment, sort, asked, cursor, limit)
        views, change_ms = judged(page.views, now_ms)
        members |= {"sessions": Raw.of(views), "next": page.next, "total": page.total}
        return answers.answer(moment, answers.until(found, change_ms), members)


def _add_session(router: APIRouter, reading: Reading) -> None:
    @router.get(
        "/v1/sessions/{session_id:id}/compactions",
        response_model=shapes.CompactionsAnswer,
        responses=_CONDITIONAL | problems_of(404, 422),
        summary="List a session's compactions",
        operation_id="listCompactions",
        tags=["sessions"],
    )
    async def compactions(request: Request, session_id: parameters.SessionId) -> Response:
        """List the compactions that succeeded, whole with their summaries, the newest first."""
        moment = await reading.moment()
        view = await reading.session(moment, session_id)
        found = answers.tag(request.url.path, view, moment and moment.kind)
        same = answers.unchanged(request, found, moment)
        if same is not None or moment is None:
            return same or Response()
        documents = await reading.compactions(moment, session_id)
        return answers.answer(moment, found, {"compactions": answers.documents(documents)})


async def _records(  # noqa: PLR0917 -- what is asked
    reading: Reading,
    request: Request,
    session_id: str,
    stream: EntryStream,
    kinds: frozenset[str],
    after: str | None,
    limit: int,
) -> Response:
    """Answer with a part of a session's records."""
    moment = await reading.moment(after, asked_of(stream, session_id), RECORDS_FORM)
    view = await reading.session(moment, session_id)
    found = answers.tag(request.url.path, request.url.query, view, moment and moment.kind)
    same = answers.unchanged(request, found, moment)
    if same is not None or moment is None:
        return same or Response()
    page = await reading.records(moment, session_id, stream, kinds, after, limit)
    members: dict[str, Json | Raw] = {
        "records": answers.records(page.records),
        "next": page.next,
    }
    return answers.answer(moment, found, members)


def _add_records(router: APIRouter, reading: Reading) -> None:
    described: dict[str, Any] = {
        "response_model": shapes.RecordsAnswer,
        "responses": _CONDITIONAL | problems_of(400, 404, 410, 422),
        "tags": ["sessions"],
    }

    @router.get(
        "/v1/sessions/{session_id:id}/events",
        summary="List a session's records but readings",
        operation_id="listEvents",
        **described,
    )
    async def events(
        request: Request,
        session_id: parameters.SessionId,
        type: parameters.Kinds = None,  # noqa: A002 -- the parameter's name
        after: parameters.After = None,
        limit: parameters.RecordLimit = 500,
    ) -> Response:
        """List warnings, limits, compactions, edits, resets: the newest 2 000 are kept."""
        kinds: frozenset[str] = frozenset(type or ())
        return await _records(reading, request, session_id, "events", kinds, after, limit)

    @router.get(
        "/v1/sessions/{session_id:id}/readings",
        summary="List a session's readings",
        operation_id="listReadings",
        **described,
    )
    async def readings(
        request: Request,
        session_id: parameters.SessionId,
        after: parameters.After = None,
        limit: parameters.RecordLimit = 500,
    ) -> Response:
        """List the sizes that responses told: the newest 2 000 are kept."""
        return await _records(reading, request, session_id, "readings", frozenset(), after, limit)

    @router.get(
        "/v1/sessions/{session_id:id}",
        response_model=shapes.SessionAnswer,
        responses=_CONDITIONAL | problems_of(404, 422),
        summary="Read a session",
        operation_id="readSession",
        tags=["sessions"],
    )
    async def session(request: Request, session_id: parameters.SessionId) -> Response:
        """Read all that is known of a session: identity, chains, attempt, compactions, status."""
        moment, now_ms = await reading.moment(), reading.clock.now_ms()
        view = await reading.session(moment, session_id)
        found = answers.tag(request.url.path, view, moment and moment.kind)
        same = answers.unchanged(request, found, moment, now_ms)
        if same is not None:
            return same
        (whole,), change_ms = judged([view], now_ms)
        members: dict[str, Json | Raw] = {"session": Raw(whole), "thresholds": THRESHOLDS_JSON}
        return answers.answer(moment, answers.until(found, change_ms), members)


def _add_stats(router: APIRouter, reading: Reading) -> None:
    totals = Totals(reading.stats, reading.clock)

    @router.get(
        "/v1/stats",
        response_model=shapes.StatsAnswer,
        responses=_CONDITIONAL | problems_of(422),
        summary="Read the aggregates",
        operation_id="readStats",
        tags=["aggregates"],
    )
    async def stats(
        request: Request, by: parameters.By = "hour", since: parameters.Since = None
    ) -> Response:
        """Read compactions counted: of all sessions, and by hour (UTC) or by model."""
        if since is not None and by != "hour":
            raise bad_parameter(("since", "only hours have a first one: leave it out, or by=hour"))
        moment = totals.moment(await reading.moment())
        found = answers.tag(request.url.path, request.url.query, moment and moment.told)
        same = answers.unchanged(request, found, moment)
        if same is not None:
            return same
        return answers.answer(moment, found, await totals.of(moment, by, since))

    @router.get(
        "/v1/projection",
        response_model=shapes.ProjectionAnswer,
        responses=problems_of(422),
        summary="Read how far the projection is",
        operation_id="readProjection",
        tags=["service"],
    )
    async def projection() -> Response:
        """Read position, lag and silence of each partition: whether figures are fresh."""
        moment = await reading.moment()
        partitions = [] if moment is None else moment.of_partitions()
        return answers.answer(moment, answers.tag(moment), {"partitions": partitions})


def _add_agents(router: APIRouter, reading: Reading) -> None:
    kept: Kept[bytes] = Kept()

    @router.get(
        "/api/agents/{agent_id:id}/events",
        response_model=list[shapes.ChatEvent],
        responses=_CONDITIONAL | problems_of(422),
        summary="List an agent's events for its chat",
        operation_id="listAgentEvents",
        tags=["agents"],
    )
    async def events(request: Request, agent_id: parameters.AgentId) -> Response:
        """List warnings, starts and completions of compactions, as a chat's front end polls them.

        Of the sessions of an agent, or of one session; none yet is an empty list.
        """
        moment = await reading.moment()
        sessions = [] if moment is None else await reading.of_agent(moment, agent_id)
        views = [found.view for found in sessions]
        found = answers.tag(request.url.path, moment and moment.kind, views)
        same = answers.unchanged(request, found, moment)
        if same is not None:
            return same

        async def make() -> tuple[bytes, int]:
            body = b"[]" if moment is None else await reading.chat(moment, sessions)
            return body, len(body)

        return answers.bare(await kept.made(found, make), found, moment)
