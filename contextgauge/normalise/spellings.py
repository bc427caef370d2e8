"""The fields next to a message that have two spellings: the transcript's and the stream's (R3).

One line may carry both, with different values: since Claude Code 2.1.207 a transcript's lines have
`session_id` next to `sessionId`, and after `/clear` the first still names the process's first
session. `SPELLINGS` is the one place that says which counts: the first that is there.
"""

from collections.abc import Mapping
from typing import Final

from contextgauge.normalise.signals import Body

SESSION: Final = ("sessionId", "session_id")
AGENT: Final = ("agentId", "agent_id")
PARENT: Final = ("parent_tool_use_id", "parentToolUseId")
SIDECHAIN: Final = ("isSidechain", "is_sidechain")
SUBAGENT_TYPE: Final = ("subagentType", "subagent_type")

SPELLINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "session": SESSION,
    "agent": AGENT,
    "parent tool use": PARENT,
    "side chain": SIDECHAIN,
    "subagent type": SUBAGENT_TYPE,
    "request": ("requestId", "request_id"),
}
"""The names of each field, the one that counts first."""


def differing(body: Body) -> list[tuple[str, str]]:
    """Return the pairs of names on a line that differ in what they say: what counts, what not."""
    pairs = []
    for first, other in SPELLINGS.values():
        if first in body and other in body and body[first] != body[other]:
            pairs.append((first, other))
    return pairs
