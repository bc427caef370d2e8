"""What the tools ask: sessions of this machine, or of a service."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from contextgauge.errors import StopError
from streams.cli.screen.figures import safe

Document: TypeAlias = dict[str, Any]
"""A session or a compaction as the API has it."""


class WhichSession(NamedTuple):
    """A session by its id or the beginning of one, else the last active one of a folder."""

    session: str | None
    folder: str | None


class FoundSession(NamedTuple):
    """A session's document, with what fills its window, and how it was found.

    `others` are sessions of the same folder that were active lately too.
    """

    document: Document
    found_by: str
    others: Sequence[str] = ()


def refuse_several(session: str, others: Sequence[str]) -> None:
    """Raise StopError where sessions of the folder were active lately that may be the one meant."""
    if others:
        ids = ", ".join(safe(each) for each in (session, *others))
        raise StopError(f"several sessions work in this folder: give `session`, one of {ids}")


class AgentSessions(Protocol):
    """Raises StopError where there is no such session, RetryError where a service is away."""

    def one(self, which: WhichSession) -> FoundSession:
        """Return a session."""

    def recent(self, limit: int) -> Sequence[Document]:
        """Return the sessions that were active last."""

    def compactions(self, which: WhichSession) -> tuple[str, Sequence[Document]]:
        """Return a session's id, and its own compactions, the newest first."""

    def recall(self, which: WhichSession, arguments: Mapping[str, object]) -> str:
        """Return what archived messages say, fenced as data."""


class Compacting(Protocol):
    """Where compactions can be requested."""

    def compact(self, which: WhichSession, instructions: str | None, *, urgent: bool) -> Document:
        """Request a compaction; return where it can be followed."""
