"""Whose text is kept: the section `[conversations]` of the operator's file. Without it, nothing is.

The content is what a TOML parser gives.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from contextgauge.units import DAY_MS, MIB
from streams.core.alerts.rules import Patterns

SECTION: Final = "conversations"
_ANY: Final = Patterns()
_PATTERNS: Final = ("agents", "projects", "sessions")
_LIMITS: Final[Mapping[str, tuple[int, int]]] = {
    "idle_days": (1, 365),
    "max_mib": (1, 256),
    "max_messages": (100, 1_000_000),
}


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


def check_kept(content: Mapping[str, object]) -> tuple[KeptConversations | None, list[str]]:
    """Return whose text is kept by a file's content, and what is wrong with it.

    Neither, where the file has no such section.
    """
    section = content.get(SECTION)
    if section is None:
        return None, []
    if not isinstance(section, Mapping):
        return None, [f"{SECTION} is not a table: write [{SECTION}]"]
    faults = [
        f"{key} is unknown: there are {', '.join((*_PATTERNS, *_LIMITS))}"
        for key in section
        if key not in _PATTERNS and key not in _LIMITS
    ]
    patterns = {key: _patterns(section, key, faults) for key in _PATTERNS}
    if not faults and not any(each.texts for each in patterns.values()):
        faults.append(
            f'[{SECTION}] names no session: give {", ".join(_PATTERNS)}, or sessions = ["*"] '
            "for all"
        )
    limits = {key: _limit(section, key, faults) for key in _LIMITS}
    if faults:
        return None, faults
    default = KeptConversations()
    return KeptConversations(
        agents=patterns["agents"],
        projects=patterns["projects"],
        sessions=patterns["sessions"],
        idle_ms=_or(limits["idle_days"], DAY_MS, default.idle_ms),
        max_bytes=_or(limits["max_mib"], MIB, default.max_bytes),
        max_messages=_or(limits["max_messages"], 1, default.max_messages),
    ), []


def _or(value: int | None, unit: int, default: int) -> int:
    return default if value is None else value * unit


def _patterns(section: Mapping[str, object], key: str, faults: list[str]) -> Patterns:
    value = section.get(key, [])
    listed = value if isinstance(value, list) else [value]
    texts = tuple(each for each in listed if isinstance(each, str) and each.strip())
    if len(texts) < len(listed):
        faults.append(f'{key} is not a list of strings: write it as ["one", "another"]')
    return Patterns(texts)


def _limit(section: Mapping[str, object], key: str, faults: list[str]) -> int | None:
    value, (least, most) = section.get(key), _LIMITS[key]
    if value is None:
        return None
    if type(value) is not int or not least <= value <= most:
        faults.append(f"{key} must be a whole number of {least} to {most}")
        return None
    return value
