"""The routes of the control plane: what it knows of a session, and requests to it."""

from functools import partial
from http import HTTPStatus
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from contextgauge.addresses import session_address
from contextgauge.errors import ConfigError
from contextgauge.partitioner import partition_of
from schemas.commands import (
    CancelRequested,
    CommandData,
    CommandEntry,
    CompactRequested,
    ControlView,
    TextDeleted,
    ThresholdScope,
    ThresholdsSet,
)
from streams import codec
from streams.core.control.ids import id_of
from streams.edge.commands import new_id
from streams.ports import ControlReader
from streams.serve.api import answers, parameters
from streams.serve.api.bodies import CompactBody, ThresholdsBody
from streams.serve.api.problems import Problem, bad_parameter
from streams.serve.api.reading import Reading
from streams.serve.api.routing import Described, Router, problems_of
from streams.serve.api.serving import Serving
from streams.serve.api.writing import Writing

SILENT_MS: Final = 30_000
"""A control worker reports on its partitions every few seconds."""

_WRITES: Final = problems_of(400, 403, 404, 415, 422)
_writing = partial(
    Described,
    tag="control",
    responses=_WRITES,
    status=HTTPStatus.ACCEPTED,
)


class ControlRoutes:
    """What the routes share."""

    def __init__(self, reading: Reading, serving: Serving) -> None:
        self.reading, self._serving = reading, serving
        self.writing = Writing(serving)

    async def check_session(self, session_id: str) -> None:
        """Raise Problem for a session that is unknown."""
        await self.reading.session(session_id)

    async def check_text(self, session_id: str) -> None:
        """Raise Problem for a session that is unknown, and whose text is not kept either."""
        conversations = self._serving.conversations
        if conversations is None or await conversations.conversation(session_id) is None:
            await self.check_session(session_id)

    async def view(self, session_id: str) -> ControlView | None:
        """Return what the control plane knows of a session."""
        return await self._control().control_view(session_id)

    async def reported(self, session_id: str, partitions: int) -> dict[str, Any]:
        """Return when the session's control worker reported last."""
        at_ms = None
        if partitions:
            partition = partition_of(session_id, partitions)
            at_ms = await self._control().control_seen_ms(partition)
        now_ms = self._serving.clock.now_ms()
        silent_ms = None if at_ms is None else max(now_ms - at_ms, 0)
        return {
            "silent_ms": silent_ms,
            "is_working": silent_ms is not None and silent_ms <= SILENT_MS,
        }

    async def send(self, data: CommandData, *parts: str) -> None:
        """Send an entry; its id follows from the parts, or is new without any. Raises Problem."""
        entry_id = id_of("requested", *parts) if parts else new_id()
        await self.writing.send([CommandEntry(entry_id, self._serving.clock.now_ms(), data)])

    def accepted(self, session_id: str | None, **members: str | None) -> Response:
        """Return the answer to a request that was sent on."""
        follow = None if session_id is None else follow_path(session_id)
        body = {"session_id": session_id, "follow": follow, **members}
        headers = {"Cache-Control": "no-store"} | ({} if follow is None else {"Location": follow})
        return Response(
            codec.dumps(body), HTTPStatus.ACCEPTED, headers, media_type=answers.MEDIA_TYPE
        )

    def _control(self) -> ControlReader:
        if self._serving.control is None:
            raise Problem(
                HTTPStatus.NOT_FOUND,
                "This server knows of no control plane: `contextgauge serve` does.",
                "no-control",
            )
        return self._serving.control


def follow_path(session_id: str) -> str:
    """Return where a session's commands are followed."""
    return f"/v1/sessions/{session_address(session_id)}/control"


def add_control(router: Router, reading: Reading, serving: Serving) -> None:
    """Add the routes."""
    of = ControlRoutes(reading, serving)
    _add_reading(router, of)
    _add_commands(router, of)
    _add_text(router, of)
    _add_session_thresholds(router, of)
    _add_scoped_thresholds(router, of, "agent", "/v1/agents/{name:id}/thresholds")
    _add_scoped_thresholds(router, of, "project", "/v1/projects/{name:id}/thresholds")


def _add_reading(router: Router, of: ControlRoutes) -> None:
    @router.add(
        "GET",
        "/v1/sessions/{session_id:id}/control",
        Described(
            "readControl",
            "control",
            "Read a session's commands and decisions",
            responses=answers.CONDITIONAL | problems_of(404, 422),
        ),
    )
    async def control(request: Request, session_id: parameters.SessionId) -> Response:
        """Read what the control plane knows of a session: commands and decisions, the newest last.

        A command that was requested a moment ago is there once a control worker has read it.
        """
        snapshot = await of.reading.snapshot()
        view = await of.view(session_id)
        if view is None:
            snapshot, _ = await of.reading.session(session_id)
            view = ControlView(session_id=session_id)
        worker = await of.reported(session_id, snapshot.partitions)
        tag = answers.tag(request.url.path, view, worker["is_working"], snapshot.version)
        same = answers.unchanged(request, tag, snapshot)
        if same is not None:
            return same
        return answers.answer(snapshot, tag, {"control": view, "worker": worker})


def _add_commands(router: Router, of: ControlRoutes) -> None:
    @router.add(
        "POST",
        "/v1/sessions/{session_id:id}/compact",
        _writing("compactSession", summary="Compact a session"),
        of.writing.check,
    )
    async def compact(
        request: Request,
        session_id: parameters.SessionId,
        body: CompactBody | None = None,
    ) -> Response:
        """Request a compaction now.

        The answer says where to follow it. A repeated request with the same `command_id` is the
        same one.
        """
        await of.check_session(session_id)
        wanted = body or CompactBody()
        command_id = wanted.command_id or new_id()
        data = CompactRequested(
            session_id=session_id,
            command_id=command_id,
            trigger="manual",
            requested_by=of.writing.requested_by(request),
            instructions=wanted.instructions,
            urgent=wanted.urgent,
        )
        await of.send(data, session_id, command_id)
        return of.accepted(session_id, command_id=command_id)

    @router.add(
        "DELETE",
        "/v1/sessions/{session_id:id}/compact/{command_id:id}",
        _writing(
            "cancelCommand",
            summary="Cancel a command",
            responses=_WRITES | problems_of(409),
        ),
        of.writing.check,
    )
    async def cancel(
        request: Request, session_id: parameters.SessionId, command_id: parameters.CommandId
    ) -> Response:
        """Cancel a compaction that was requested; one that is finished stays as it is."""
        await of.check_session(session_id)
        view = await of.view(session_id)
        for command in () if view is None else view.commands:
            if command.command_id == command_id and command.outcome is not None:
                raise Problem(
                    HTTPStatus.CONFLICT,
                    f"The command is finished: {command.outcome}.",
                    "command-finished",
                )
        data = CancelRequested(
            session_id=session_id,
            command_id=command_id,
            requested_by=of.writing.requested_by(request),
        )
        await of.send(data, "cancel", session_id, command_id)
        return of.accepted(session_id, command_id=command_id)


def _add_text(router: Router, of: ControlRoutes) -> None:
    @router.add(
        "DELETE",
        "/v1/sessions/{session_id:id}/text",
        _writing("deleteText", summary="Delete a session's text"),
        of.writing.check,
    )
    async def text(request: Request, session_id: parameters.SessionId) -> Response:
        """Delete the text that the control plane keeps of a session, up to now.

        Records have no text but summaries and lost turns; `agent.messages` keeps its own for its
        retention.
        """
        await of.check_text(session_id)
        by = of.writing.requested_by(request)
        await of.send(TextDeleted(session_id=session_id, requested_by=by))
        return of.accepted(session_id)


def _add_session_thresholds(router: Router, of: ControlRoutes) -> None:
    path = "/v1/sessions/{session_id:id}/thresholds"

    @router.add(
        "PUT",
        path,
        _writing("setThresholds", summary="Set a session's thresholds"),
        of.writing.check,
    )
    async def put(
        request: Request, session_id: parameters.SessionId, body: ThresholdsBody
    ) -> Response:
        """Set when a session is compacted; what is left out is as the service's file says."""
        await of.check_session(session_id)
        await of.send(_thresholds(of, request, "session", session_id, body))
        return of.accepted(session_id)

    @router.add(
        "DELETE",
        path,
        _writing("removeThresholds", summary="Remove a session's thresholds"),
        of.writing.check,
    )
    async def remove(request: Request, session_id: parameters.SessionId) -> Response:
        """Remove what was set for a session: the service's file holds again."""
        await of.check_session(session_id)
        await of.send(_thresholds(of, request, "session", session_id, None))
        return of.accepted(session_id)


def _add_scoped_thresholds(
    router: Router, of: ControlRoutes, scope: ThresholdScope, path: str
) -> None:
    name_of = scope.capitalize()

    @router.add(
        "PUT",
        path,
        _writing(f"set{name_of}Thresholds", summary=f"Set the thresholds of {_ARTICLES[scope]}"),
        of.writing.check,
    )
    async def put(request: Request, name: parameters.ScopeName, body: ThresholdsBody) -> Response:
        """Set when its sessions are compacted; what is left out is as the service's file says."""
        await of.send(_thresholds(of, request, scope, name, body))
        return of.accepted(None)

    @router.add(
        "DELETE",
        path,
        _writing(
            f"remove{name_of}Thresholds", summary=f"Remove the thresholds of {_ARTICLES[scope]}"
        ),
        of.writing.check,
    )
    async def remove(request: Request, name: parameters.ScopeName) -> Response:
        """Remove what was set for it: the service's file holds again."""
        await of.send(_thresholds(of, request, scope, name, None))
        return of.accepted(None)


_ARTICLES: Final[dict[ThresholdScope, str]] = {
    "session": "a session",
    "agent": "an agent",
    "project": "a project",
}


def _thresholds(
    of: ControlRoutes,
    request: Request,
    scope: ThresholdScope,
    name: str,
    body: ThresholdsBody | None,
) -> ThresholdsSet:
    """Return the entry of a request; without a body it removes. Raises Problem."""
    # What only few requests need takes 10 ms to import.
    from streams.core.control.thresholds import check_entry, is_removal  # noqa: PLC0415

    values = {} if body is None else body.model_dump()
    data = ThresholdsSet(
        scope=scope, name=name, requested_by=of.writing.requested_by(request), **values
    )
    try:
        check_entry(data)
    except ConfigError as error:
        raise bad_parameter(("body", str(error))) from None
    if body is not None and is_removal(data):
        raise bad_parameter(("body", "sets nothing: use DELETE to remove what was set"))
    return data
