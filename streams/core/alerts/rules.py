"""An alert rule: a condition, for which chains, and its targets."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import ClassVar, Literal, TypeAlias

from contextgauge.addresses import session_address
from schemas.records import ExhaustedReason, Outcome

AlertKind: TypeAlias = Literal["pressure", "failed", "stalled", "thrash", "exhausted", "rules_lost"]
Format: TypeAlias = Literal["json", "slack"]
MemoryPlace: TypeAlias = Literal["auto", "redis", "file"]
"""Where it is remembered what was sent; `auto`: in Redis where there is one."""


@dataclass(frozen=True, slots=True)
class Pressure:
    """A chain uses so many percent of its window, or more: once in each of its epochs."""

    kind: ClassVar[AlertKind] = "pressure"
    at_percent: int


@dataclass(frozen=True, slots=True)
class Failed:
    """A compaction attempt ended without a boundary, with one of these outcomes."""

    kind: ClassVar[AlertKind] = "failed"
    outcomes: frozenset[Outcome]


@dataclass(frozen=True, slots=True)
class Stalled:
    """An open attempt gave neither an end nor a heartbeat for so long: once an attempt."""

    kind: ClassVar[AlertKind] = "stalled"
    after_ms: int


@dataclass(frozen=True, slots=True)
class Thrashing:
    """A chain was compacted so many times within so long: once until it is fewer again."""

    kind: ClassVar[AlertKind] = "thrash"
    count: int
    within_ms: int


@dataclass(frozen=True, slots=True)
class Exhaustion:
    """A turn ended for lack of room, for one of these reasons."""

    kind: ClassVar[AlertKind] = "exhausted"
    reasons: frozenset[ExhaustedReason]


@dataclass(frozen=True, slots=True)
class LostRules:
    """Rules of the user are not in the conversation any more after a boundary: so many, or more."""

    kind: ClassVar[AlertKind] = "rules_lost"
    at_least: int


Condition: TypeAlias = Pressure | Failed | Stalled | Thrashing | Exhaustion | LostRules


@dataclass(frozen=True, slots=True)
class Patterns:
    """Names by shell patterns (`*`, `?`, `[...]`); one that begins with `!` excludes.

    Without any, every name fits; with exclusions only, all others do.
    """

    texts: tuple[str, ...] = ()

    def fit(self, name: str | None) -> bool:
        """Return whether a name matches; an unknown name only where no pattern is given."""
        return self.fit_any(() if name is None else (name,))

    def fit_any(self, names: Sequence[str]) -> bool:
        """Return whether one of the names of a thing matches, and none is excluded."""
        if not self.texts:
            return True
        # `fnmatchcase`, since `fnmatch` ignores case on some systems.
        if not names or any(
            fnmatchcase(name, text[1:])
            for text in self.texts
            for name in names
            if text.startswith("!")
        ):
            return False
        patterns = [text for text in self.texts if not text.startswith("!")]
        return not patterns or any(fnmatchcase(name, text) for text in patterns for name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule. `agents` are the publishers' agents (`publisher_agent_id` of a session)."""

    name: str
    condition: Condition
    targets: tuple[str, ...]
    models: Patterns = Patterns()
    sessions: Patterns = Patterns()
    agents: Patterns = Patterns()
    chains: Patterns = Patterns()

    @property
    def kind(self) -> AlertKind:
        """Which kind of alert it gives."""
        return self.condition.kind

    def concerns(self, session_id: str, chain: str, model: str | None) -> bool:
        """Return whether it is for this chain, judged by its records: not by the agent."""
        return self.sessions.fit(session_id) and self.chains.fit(chain) and self.models.fit(model)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where alerts are sent. The address and the secret may come from elsewhere than the file.

    `url` is None where `url_env` or `url_file` names it. Without a secret nothing is signed.
    """

    name: str
    format: Format
    url: str | None
    url_env: str | None
    url_file: str | None
    secret_env: str | None
    secret_file: str | None
    ca_file: str | None
    timeout_ms: int
    give_up_after_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertPlan:
    """A whole file of rules. What is older than `max_age_ms` when it comes raises no alert.

    `page` is the web page's address without a slash at its end, for links; None: there are none.
    """

    max_age_ms: int
    targets: tuple[Target, ...]
    rules: tuple[Rule, ...]
    memory: MemoryPlace = "auto"
    page: str | None = None

    def link(self, session_id: str) -> str | None:
        """Return where the page shows a session."""
        return None if self.page is None else f"{self.page}/#/session/{session_address(session_id)}"

    @property
    def pending_ms(self) -> int:
        """How far back a record may be that was not acknowledged and still is to be sent."""
        return max(self.max_age_ms, *(target.give_up_after_ms for target in self.targets), 0)

    @property
    def memory_ms(self) -> int:
        """How far back records decide on what is alerted now."""
        windows = [
            rule.condition.within_ms for rule in self.rules if isinstance(rule.condition, Thrashing)
        ]
        return self.max_age_ms + max(windows, default=0)
