"""The fields next to a message that have two spellings: the transcript's and the stream's (R3).

One line may carry both, with different values: since Claude Code 2.1.207 a transcript's lines have
`session_id` next to `sessionId`, and after `/clear` the first still names the process's first
session. The first that is there counts.
"""

from typing import Final, NamedTuple

from contextgauge.normalise.signals import Body

OWN_FIELD: Final = "contextgauge"
"""Marks a message that is made of telemetry; in a boundary's metadata, it has the plan and edit of
a compaction that the service made."""


class Spelling(NamedTuple):
    """The names of the fields that say whose a line is (R1, R2)."""

    session: tuple[str, ...]
    agent: tuple[str, ...]
    parent: tuple[str, ...]
    sidechain: tuple[str, ...]
    subagent_type: tuple[str, ...]


COMMON: Final = Spelling(
    session=("sessionId", "session_id"),
    agent=("agentId", "agent_id"),
    parent=("parent_tool_use_id", "parentToolUseId"),
    sidechain=("isSidechain", "is_sidechain"),
    subagent_type=("subagentType", "subagent_type"),
)
"""Claude Code's, which hooks, streams and other runtimes have too."""

_REQUEST: Final = ("requestId", "request_id")

TRANSCRIPT_FIELDS: Final = ("sessionId", "isSidechain", "parentUuid")


def is_transcript(body: Body) -> bool:
    """Return whether a line is a transcript's (R1)."""
    return "sessionId" in body or "isSidechain" in body or "parentUuid" in body


def is_telemetry(body: Body) -> bool:
    """Return whether a message was made of an item of telemetry, which is marked so."""
    own = body.get(OWN_FIELD)
    return isinstance(own, dict) and own.get("telemetry") is True


def differing(body: Body) -> list[tuple[str, str]]:
    """Return the pairs of names on a line that differ in what they say: what counts, what not."""
    pairs = []
    for first, other in (*COMMON, _REQUEST):
        if first in body and other in body and body[first] != body[other]:
            pairs.append((first, other))
    return pairs
