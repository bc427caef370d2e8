"""Thresholds of a session: by the rules of the service's file, and by what was set later.

    default < model < agent < project < session

Of two that name the same, the one that names more wins, then the later one; what was set by a
`ThresholdsSet` comes after the file's rules for the same scope.
"""

import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from contextgauge.compaction.profiles import DEFAULT, Profile, profile_named, share_of
from contextgauge.errors import ConfigError
from schemas.commands import ThresholdScope, ThresholdsSet
from streams.core.alerts.rules import Patterns
from streams.core.control.service import SERVICE
from streams.core.until_compaction import Threshold, parse_threshold

MOST_SET: Final = 100_000
"""Thresholds that were set and are remembered, of each scope: far more than people set."""

_WHOLE: Final = 100

HARD_AT: Final = Threshold(percent=95.0)
"""Above it, one long answer may end the session before a model has summarised it."""

_SEPARATOR: Final = re.compile(r"[/\\]")
_NO_PATTERNS: Final = Patterns()


class Subject(NamedTuple):
    """What rules and settings name a session by. `project` is the path of its folder."""

    session_id: str
    agent_id: str | None = None
    project: str | None = None
    model: str | None = None

    def projects(self) -> tuple[str, ...]:
        """Return the names of its project: the whole path, and the folder's own name."""
        if self.project is None:
            return ()
        parts = [part for part in _SEPARATOR.split(self.project) if part.strip()]
        return (self.project, *parts[-1:])


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionThresholds:
    """When a session is compacted, and by what.

    Sizes are tokens or a percentage of the window; None: the profile's own. From `hard_at` on, a
    summary without a model is taken at once. `driver` is `service`, or a name of the file's
    `[drivers]`; `profile` is one of the engine's.
    """

    automatic: bool = False
    compact_at: Threshold | None = None
    compact_to: Threshold | None = None
    hard_at: Threshold = HARD_AT
    driver: str = SERVICE
    profile: str = DEFAULT.name

    def sizes(self, window: int | None) -> "Sizes | None":
        """Return the thresholds of a window in tokens; None where they need one that is unknown.

        `hard_at` bounds `compact_at`, so that a figure above a small window does no harm.
        """
        profile, hard_at = profile_named(self.profile), tokens_of(self.hard_at, window)
        compact_at = _size(self.compact_at, profile, profile.compact_at, window)
        if compact_at is None:
            return None
        if hard_at is not None:
            compact_at = min(compact_at, hard_at)
        compact_to = _size(self.compact_to, profile, profile.compact_to, window)
        return Sizes(
            compact_at, min(compact_at if compact_to is None else compact_to, compact_at), hard_at
        )


class Sizes(NamedTuple):
    """Thresholds in tokens. `hard_at` is None where the window is unknown."""

    compact_at: int
    compact_to: int
    hard_at: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRule:
    """A rule of the file: for which sessions, and what it changes. None: as it is without it."""

    sessions: Patterns = _NO_PATTERNS
    projects: Patterns = _NO_PATTERNS
    agents: Patterns = _NO_PATTERNS
    models: Patterns = _NO_PATTERNS
    automatic: bool | None = None
    compact_at: Threshold | None = None
    compact_to: Threshold | None = None
    hard_at: Threshold | None = None
    driver: str | None = None
    profile: str | None = None

    def fits(self, subject: Subject) -> bool:
        """Return whether it is for a session."""
        return (
            self.sessions.fit(subject.session_id)
            and self.agents.fit(subject.agent_id)
            and self.models.fit(subject.model)
            and self.projects.fit_any(subject.projects())
        )

    @property
    def rank(self) -> tuple[int, int]:
        """What orders rules: the narrowest that it names, then how much."""
        named = [
            bool(each.texts) for each in (self.models, self.agents, self.projects, self.sessions)
        ]
        narrowest = max((index + 1 for index, is_named in enumerate(named) if is_named), default=0)
        return narrowest, sum(named)

    @property
    def needs_identity(self) -> bool:
        """Whether it depends on what readings do not tell: the agent, or the project."""
        return bool(self.agents.texts or self.projects.texts)


_SCOPE_RANKS: Final[dict[ThresholdScope, int]] = {"agent": 2, "project": 3, "session": 4}


def tokens_of(threshold: Threshold, window: int | None) -> int | None:
    """Return a threshold in tokens; None for a percentage of an unknown window."""
    if threshold.tokens is not None:
        return threshold.tokens
    if window is None or threshold.percent is None:
        return None
    return share_of(window, threshold.percent) // _WHOLE


def _size(
    threshold: Threshold | None, profile: Profile, share: float, window: int | None
) -> int | None:
    """Return a threshold in tokens, the profile's own where none is set; None if unknown."""
    if threshold is not None:
        return tokens_of(threshold, window)
    return None if window is None else own_size(profile, share, window)


def reserve_of(profile: Profile) -> int:
    """Return the tokens of a window that a profile leaves free whatever a request asks for."""
    answer = 0 if profile.count_reserved_output else profile.output_reserve_tokens
    return profile.system_reserve_tokens + profile.safety_tokens + answer


def own_size(profile: Profile, share: float, window: int) -> int:
    """Return a profile's share of a window in tokens; a smaller one than its reserve counts whole.

    Of what a request reserves for its answer, readings tell nothing.
    """
    usable = window - reserve_of(profile)
    return share_of(usable if usable > 0 else window, share)


def parse_size(text: object, name: str) -> Threshold:
    """Read a size as people write it: `85%`, 120000 or `120000`. Raises ConfigError."""
    value = text.strip() if isinstance(text, str) else text
    if isinstance(value, str) and value.isascii() and value.isdecimal():
        value = int(value[:20])
    threshold = parse_threshold(value)
    if threshold is None:
        raise ConfigError(
            f"{name} {text!r} is not a size: write a share of the window above 0% and up to 100%, "
            'such as "85%", or tokens, such as 120000'
        )
    return threshold


def order_faults(
    compact_at: Threshold | None, compact_to: Threshold | None, hard_at: Threshold | None
) -> Iterator[tuple[str, str]]:
    """Check sizes against one another where they compare: what is wrong, and with which."""
    for low_name, low, high_name, high in (
        ("compact_to", compact_to, "compact_at", compact_at),
        ("compact_at", compact_at, "hard_at", hard_at),
    ):
        if low is None or high is None:
            continue
        above = (
            low.tokens is not None and high.tokens is not None and low.tokens > high.tokens
        ) or (low.percent is not None and high.percent is not None and low.percent > high.percent)
        if above:
            sizes = f"{written(low)} is above {high_name} {written(high)}"
            yield low_name, f"{sizes}: it must be below it, or the same"


def written(threshold: Threshold) -> str:
    """Return a size as people write it."""
    if threshold.tokens is not None:
        return str(threshold.tokens)
    return f"{threshold.percent or 0:g}%"


def check_entry(entry: ThresholdsSet) -> None:
    """Check thresholds that are to be set. Raises ConfigError."""
    if not entry.name:
        raise ConfigError(f"thresholds of which {entry.scope}? Its name is empty")
    compact_at = None if entry.compact_at is None else parse_size(entry.compact_at, "compact_at")
    compact_to = None if entry.compact_to is None else parse_size(entry.compact_to, "compact_to")
    for name, fault in order_faults(compact_at, compact_to, None):
        raise ConfigError(f"{name} {fault}")


def is_removal(entry: ThresholdsSet) -> bool:
    """Return whether an entry removes what was set."""
    return entry.automatic is None and entry.compact_at is None and entry.compact_to is None


class ThresholdBook:
    """All thresholds of a partition: the file's rules, and what was set since."""

    def __init__(self, rules: Sequence[SessionRule]) -> None:
        self._rules = tuple(rules)
        self._set: dict[ThresholdScope, OrderedDict[str, SessionRule]] = {
            scope: OrderedDict() for scope in _SCOPE_RANKS
        }
        self.may_be_automatic = any(rule.automatic for rule in self._rules)
        """Whether any session may be compacted automatically."""
        self._file_needs_identity = any(rule.needs_identity for rule in self._rules)

    @property
    def needs_identity(self) -> bool:
        """Whether any of it depends on a session's agent or project."""
        return self._file_needs_identity or bool(self._set["agent"] or self._set["project"])

    def apply(self, entry: ThresholdsSet) -> None:
        """Take an entry of the log; one that is not valid changes nothing."""
        named = self._set[entry.scope]
        named.pop(entry.name, None)
        try:
            check_entry(entry)
        except ConfigError:
            return  # written by something that does not check
        if is_removal(entry):
            return
        named[entry.name] = SessionRule(
            automatic=entry.automatic,
            compact_at=_parsed(entry.compact_at),
            compact_to=_parsed(entry.compact_to),
        )
        self.may_be_automatic = self.may_be_automatic or bool(entry.automatic)
        while len(named) > MOST_SET:
            named.popitem(last=False)

    def of(self, subject: Subject) -> SessionThresholds:
        """Return the thresholds of a session."""
        rules: list[tuple[tuple[int, int, int], SessionRule]] = [
            ((*rule.rank, 0), rule) for rule in self._rules if rule.fits(subject)
        ]
        rules += [((_SCOPE_RANKS[scope], _WHOLE, 1), rule) for scope, rule in self._named(subject)]
        thresholds = SessionThresholds()
        for _, rule in sorted(rules, key=lambda ranked: ranked[0]):
            thresholds = _with(thresholds, rule)
        return thresholds

    def _named(self, subject: Subject) -> Iterator[tuple[ThresholdScope, SessionRule]]:
        names: dict[ThresholdScope, tuple[str, ...]] = {
            "agent": () if subject.agent_id is None else (subject.agent_id,),
            "project": subject.projects()[::-1],
            "session": (subject.session_id,),
        }
        for scope, candidates in names.items():
            for name in candidates:
                rule = self._set[scope].get(name)
                if rule is not None:
                    yield scope, rule


def _parsed(text: str | None) -> Threshold | None:
    return None if text is None else parse_size(text, "")


def _with(thresholds: SessionThresholds, rule: SessionRule) -> SessionThresholds:
    names = ("automatic", "compact_at", "compact_to", "hard_at", "driver", "profile")
    changes = {name: getattr(rule, name) for name in names if getattr(rule, name) is not None}
    return replace(thresholds, **changes) if changes else thresholds
