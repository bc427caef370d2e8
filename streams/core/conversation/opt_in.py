"""Whose text is kept: the section `[conversations]` of the operator's file. Without it, nothing is.

The content is what a TOML parser gives.
"""

from dataclasses import dataclass
from typing import Final

from contextgauge.units import DAY_MS, MIB
from streams.core.alerts.rules import Patterns
from streams.core.sections import Fault, Section, Table

SECTION: Final = "conversations"
_ANY: Final = Patterns()
_PATTERNS: Final = ("agents", "projects", "sessions")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptConversations:
    """Sessions whose text is kept: those that fit all patterns. How much of each, and how long.

    `agents` are the publishers' agents (`publisher_agent_id`), `projects` the sessions' folders.
    """

    agents: Patterns = _ANY
    projects: Patterns = _ANY
    sessions: Patterns = _ANY
    idle_ms: int = 7 * DAY_MS
    max_bytes: int = 8 * MIB
    max_messages: int = 20_000

    @property
    def plan(self) -> str:
        """The patterns as a text: what is kept by others is no part of what these would keep."""
        return repr((self.agents.texts, self.projects.texts, self.sessions.texts))

    def fit(self, session: str, agent: str | None, project: str | None) -> bool:
        """Return whether a session's text is kept; where a name is unknown, not by its pattern."""
        return self.sessions.fit(session) and self.agents.fit(agent) and self.projects.fit(project)

    def may_fit(self, session: str) -> bool:
        """Return whether a session of which only the id is known may be one to keep."""
        return self.sessions.fit(session)


def check_kept(content: Table) -> tuple[KeptConversations | None, list[Fault]]:
    """Return whose text is kept by a file's content, or what is wrong with it."""
    faults: list[Fault] = []
    top = Section(content, (), faults)
    section = top.table(SECTION)
    agents, projects, sessions = (
        Patterns(() if section.value(key) == [] else section.texts(key)) for key in _PATTERNS
    )
    kept = KeptConversations(
        agents=agents,
        projects=projects,
        sessions=sessions,
        idle_ms=section.number("idle_days", 1, 365, default=7) * DAY_MS,
        max_bytes=section.number("max_mib", 1, 256, default=8) * MIB,
        max_messages=section.number("max_messages", 100, 1_000_000, default=20_000),
    )
    section.no_others()
    if not faults and not any((agents.texts, projects.texts, sessions.texts)):
        top.fault(
            SECTION, f'names no session: give {", ".join(_PATTERNS)}, or sessions = ["*"] for all'
        )
    return (None if faults else kept), faults
