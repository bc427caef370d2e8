"""Sessions of a service, for the tools of `contextgauge mcp`, over its API."""

from collections.abc import Mapping
from typing import Any, Final

from contextgauge.addresses import session_address
from contextgauge.errors import StopError
from streams.cli.api_client import ApiClient, NotFoundError
from streams.cli.mcp.agent_sessions import (
    Document,
    FoundSession,
    WhichSession,
    refuse_several,
)
from streams.cli.screen.figures import safe
from streams.core.session_ids import several_begin_with

_MOST: Final = 200
"""Sessions that match, of which those of a folder or with a prefix are taken."""

_LATELY_MS: Final = 600_000
"""Sessions of a folder that were active as lately as the latest one may be meant as well."""

_NEEDS_FILE: Final = "it needs the text of the session's file, on the machine of the agent"


class ServiceAgentSessions:
    """The sessions that one server has."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    def one(self, which: WhichSession) -> FoundSession:
        """Return a session; see `AgentSessions`."""
        session = self._find(which)
        chain = session.document["status"]["leading_chain"]
        chains = session.document["chains"]
        is_reported = chain in chains and chains[chain].get("categories") is not None
        filling = {"filling": None, "filling_unknown": None if is_reported else _NEEDS_FILE}
        return session._replace(document=session.document | filling)

    def recent(self, limit: int) -> list[Document]:
        """Return the sessions that were active last."""
        return self._listed({"sort": "recent", "limit": limit})

    def compactions(self, which: WhichSession) -> tuple[str, list[Document]]:
        """Return a session's id, and its own compactions, the newest first."""
        session_id = self._certain(which)
        every: list[Document] = self._client.get(_path(session_id, "compactions"))["compactions"]
        return session_id, [each for each in every if not each["inherited"]]

    def recall(self, which: WhichSession, arguments: Mapping[str, object]) -> str:
        """Return what archived messages say, fenced as data."""
        session_id = self._certain(which)
        query = {"query": arguments.get("text"), **arguments}
        query.pop("text", None)
        return str(self._client.get(_path(session_id, "recall"), query)["answer"])

    def compact(self, which: WhichSession, instructions: str | None, *, urgent: bool) -> Document:
        """Request a compaction; return where it can be followed."""
        session_id = self._certain(which)
        body = {"instructions": instructions, "urgent": urgent}
        return self._client.send(_path(session_id, "compact"), body)

    def _certain(self, which: WhichSession) -> str:
        """Return the id of a session that is compacted, or whose text is given away."""
        session = self._find(which)
        session_id = str(session.document["session_id"])
        refuse_several(session_id, session.others)
        return session_id

    def _find(self, which: WhichSession) -> FoundSession:
        if which.session is not None:
            return FoundSession(self._named(which.session), "session")
        if which.folder is None:
            raise StopError("give `session` or `folder`: `sessions` lists them")
        listed = self._listed({"sort": "recent", "limit": _MOST, "q": which.folder})
        of_folder = [each for each in listed if each["identity"]["cwd"] == which.folder]
        if not of_folder:
            raise StopError(
                f"no session in {safe(which.folder)} at {self._client.url}: give another `folder`, "
                "or a `session` that `sessions` lists"
            )
        first, *rest = of_folder
        since_ms = (first["last_ms"] or 0) - _LATELY_MS
        others = [each["session_id"] for each in rest if (each["last_ms"] or 0) >= since_ms]
        return FoundSession(first, "folder", others)

    def _named(self, name: str) -> Document:
        try:
            document: Document = self._client.get(_path(name))["session"]
        except NotFoundError:
            listed = self._listed({"limit": _MOST, "q": name})
            beginning = {
                each["session_id"]: each for each in listed if each["session_id"].startswith(name)
            }
            if len(beginning) == 1:
                return next(iter(beginning.values()))
            if beginning:
                raise StopError(safe(several_begin_with(name, sorted(beginning)))) from None
            raise
        return document

    def _listed(self, query: Mapping[str, Any]) -> list[Document]:
        sessions: list[Document] = self._client.get("/v1/sessions", query)["sessions"]
        return sessions


def _path(session_id: str, part: str = "") -> str:
    return f"/v1/sessions/{session_address(session_id)}{f'/{part}' if part else ''}"
