"""Profiles: all figures that decide when and how is compacted, with where they come from.

`seed-001`, `seed-002` and `seed-004` behave as the systems of these names where they contradict
one another; `default` takes the best of each (docs/COMPACTION.md says why). Overrides change
single figures by project, agent and model.
"""

from collections import abc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from fractions import Fraction
from functools import cache, lru_cache
from types import UnionType
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args, get_origin, get_type_hints

from contextgauge.compaction.messages import Role
from contextgauge.compaction.ports import PromptName
from contextgauge.errors import ConfigError

RungName: TypeAlias = Literal["deduplicate", "clear-results", "shorten-arguments", "summarise"]

RUNGS: Final[tuple[RungName, ...]] = (
    "deduplicate",
    "clear-results",
    "shorten-arguments",
    "summarise",
)

MINIMUM_ARGUMENT_CHARACTERS: Final = 200

Sizing: TypeAlias = Literal["request", "reported", "messages"]
"""What is compared with the threshold: the whole request, by the API's last usage and an estimate
of what follows (seeds 004 and the default); the last usage alone, 0 before there is one (001);
an estimate of the messages alone (002)."""


ShareOf: TypeAlias = Literal["changeable", "usable"]
"""What `compact_at` and the other shares are of: of what a compaction can change, which is the
usable window less system prompt, tools and messages that always stay; or of the usable window."""

WindowSource: TypeAlias = Literal["given", "runtime", "catalog", "profile", "assumed"]


class Window(NamedTuple):
    """A model's context window, tokens, and who says so. `assumed`: of an unknown model."""

    tokens: int
    source: WindowSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """When and how is compacted. The usable window is the window less the reserves.

    Token counts are tokens of a request; `keep_last` counts messages. None turns a step off.
    """

    name: str = "default"
    enabled: bool = True

    windows: Mapping[str, int] = field(default_factory=dict)
    """Windows by a model's whole name, before the caller's own look-up."""
    unknown_window_tokens: int | None = 128_000
    """The window of a model that nothing is known of; None: no compaction. A session that is
    compacted too early costs tokens, one that overflows ends."""

    sizing: Sizing = "request"
    system_reserve_tokens: int = 0
    """For a system prompt and tools that are not in the request. The default counts them."""
    output_reserve_tokens: int = 4_000
    """For the answer (002); where a request could name it, at most a quarter of the window."""
    count_reserved_output: bool = True
    """Whether what a request reserves for its answer takes the place of that figure."""
    safety_tokens: int = 0
    """For the estimate's error (002); the default compacts below the window anyway."""

    shares_of: ShareOf = "changeable"
    warn_at: float | None = 0.75
    compact_at: float = 0.85
    """001's share: one long answer and its tool results still fit above it."""
    compact_to: float = 0.5
    """Where a compaction aims at, so that the next is not due at once."""

    keep_last: int = 10
    """Latest messages that stay as they are (002): a minimum."""
    keep_first: bool = False
    """Whether the first message stays whatever its role: 002 takes it for the system prompt."""
    keep_share: float | None = 0.1
    """At most this share of `compact_to` for the last `keep_last`, so fewer where they are large;
    the last one, with the calls that it answers, always stays. What the compaction's text leaves of
    the goal is for earlier ones. None: exactly `keep_last`."""
    minimum_messages: int = 2
    """Nothing is summarised where fewer messages would leave."""
    minimum_tokens: int = 400
    """Nor where they have fewer tokens: a summary with its headings would be no shorter."""

    rungs: tuple[RungName, ...] = RUNGS
    clear_at_tokens: int | None = None
    """Old tool results are cleared from this size of the request on; None: with a compaction."""
    clear_at_least_tokens: int = 5_000
    """Less is not cleared on its own: each time costs the provider's cache of what follows."""
    clear_keep: int = 3
    """Latest tool uses whose results are never cleared (Anthropic's default, 004)."""
    exclude_tools: tuple[str, ...] = ("memory",)
    """Tools whose uses are never cleared (004)."""
    restore_share: float = 0.25
    """At most this share of what a compaction may leave is for texts of a `restore` hook."""
    argument_characters: int = 1_000
    """Longer texts in the arguments of old calls are shortened."""

    summary_role: Role = "user"
    """Every provider takes a user's message first; an assistant's would be taken for an answer."""
    continuation: str | None = None
    """Text after the summary (001)."""
    prompt: PromptName = "structured"
    temperature: float | None = None
    """Left out: newer models refuse it (002 asks for 0.3)."""
    summary_tokens: int = 4_096
    """Most that the summariser may write."""
    target_tokens: int | None = None
    """What the prompt asks for, where that is less (002: 800 of 1 000)."""
    count_all_archived: bool = False
    """Whether a marker counts all messages so far (001), and not those of its round."""
    carry: bool = True
    """Whether code carries pins, the file ledger and the task across compactions."""
    floor: bool = True
    """Whether a summariser's failure is answered by the deterministic floor above the window."""

    def __post_init__(self) -> None:
        """Check the figures. Raises ConfigError."""
        _check_types(self)
        for name in ("compact_at", "compact_to"):
            _share(self, name, getattr(self, name))
        if self.warn_at is not None:
            _share(self, "warn_at", self.warn_at)
        if self.keep_share is not None:
            _share(self, "keep_share", self.keep_share)
        if self.compact_to > self.compact_at:
            raise ConfigError(
                f"profile {self.name!r}: compact_to {self.compact_to} is above compact_at "
                f"{self.compact_at}: a compaction must make the conversation smaller"
            )
        if self.warn_at is not None and self.warn_at > self.compact_at:
            raise ConfigError(
                f"profile {self.name!r}: warn_at {self.warn_at} is above compact_at "
                f"{self.compact_at}: the warning would never come; lower it too, or set it to None"
            )
        for name in ("keep_last", "clear_keep", "minimum_messages", "output_reserve_tokens"):
            if getattr(self, name) < 0:
                raise ConfigError(f"profile {self.name!r}: {name} is below 0")
        if self.argument_characters < MINIMUM_ARGUMENT_CHARACTERS:
            raise ConfigError(
                f"profile {self.name!r}: argument_characters is below "
                f"{MINIMUM_ARGUMENT_CHARACTERS}, which a notice of what was cut needs"
            )
        if unknown := set(self.rungs) - set(RUNGS):
            raise ConfigError(
                f"profile {self.name!r}: unknown rungs {sorted(unknown)}; there are {list(RUNGS)}"
            )


@cache
def _figures() -> dict[str, Any]:
    """Return each field's type; the names of rungs have an error of their own."""
    return {**get_type_hints(Profile), "rungs": tuple[str, ...]}


def _check_types(profile: Profile) -> None:
    for name, hint in _figures().items():
        value = getattr(profile, name)
        if not _fits(value, hint):
            must = hint.__name__ if type(hint) is type else str(hint).replace("typing.", "")
            raise ConfigError(f"profile {profile.name!r}: {name} is {value!r}, and must be {must}")


def _fits(value: object, hint: Any) -> bool:  # noqa: ANN401 -- any type
    """Whether a value has a type, exactly: True is no number. Importing pydantic takes 0.1 s."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return value in parts
    if origin is UnionType:
        return any(_fits(value, each) for each in parts)
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(each, parts[0]) for each in value)
    if isinstance(value, Mapping):
        return origin is abc.Mapping and all(
            _fits(key, parts[0]) and _fits(each, parts[1]) for key, each in value.items()
        )
    return type(value) is hint or (hint is float and type(value) is int)


def _share(profile: Profile, name: str, value: float) -> None:
    if not 0 < value <= 1:
        raise ConfigError(f"profile {profile.name!r}: {name} must be above 0 and at most 1")


def share_of(tokens: int, share: float) -> int:
    """Return a share of a count, floored, as the decimal figure that was written."""
    return max(0, int(tokens * _fraction(share)))


@lru_cache(maxsize=64)
def _fraction(share: float) -> Fraction:
    return Fraction(str(share))


DEFAULT: Final = Profile()

SEED_001: Final = Profile(
    name="seed-001",
    unknown_window_tokens=None,
    sizing="reported",
    output_reserve_tokens=0,
    count_reserved_output=False,
    warn_at=None,
    compact_at=0.85,
    compact_to=0.85,
    keep_last=0,
    keep_share=None,
    minimum_messages=1,
    minimum_tokens=0,
    rungs=("summarise",),
    continuation="Context has been compacted. Continue the task based on the summary above.",
    prompt="seed-001",
    count_all_archived=True,
    carry=False,
    floor=False,
)

SEED_002: Final = Profile(
    name="seed-002",
    windows={
        "gpt-4o": 128_000,
        "gpt-4-turbo": 128_000,
        "gpt-4": 8_192,
        "claude-3-5-sonnet-20240620": 200_000,
        "claude-3-haiku-20240307": 200_000,
    },
    sizing="messages",
    system_reserve_tokens=2_000,
    count_reserved_output=False,
    safety_tokens=5_000,
    warn_at=None,
    compact_at=0.8,
    compact_to=0.8,
    keep_first=True,
    keep_share=None,
    minimum_messages=1,
    minimum_tokens=0,
    rungs=("summarise",),
    summary_role="assistant",
    prompt="seed-002",
    temperature=0.3,
    summary_tokens=1_000,
    target_tokens=800,
    carry=False,
    floor=False,
)

SEED_004: Final = Profile(
    name="seed-004",
    windows={
        "gpt-4": 8_192,
        "gpt-4-turbo": 128_000,
        "gpt-4o": 128_000,
        "claude-3-opus": 200_000,
        "claude-3-sonnet": 200_000,
        "claude-3-haiku": 200_000,
        "gemini-1.5-pro": 2_000_000,
        "gemini-1.5-flash": 1_000_000,
    },
    output_reserve_tokens=0,
    count_reserved_output=False,
    shares_of="usable",
    warn_at=0.8,
    compact_at=0.9,
    compact_to=0.5,
    clear_at_tokens=100_000,
)

PROFILES: Final[Mapping[str, Profile]] = {
    each.name: each for each in (DEFAULT, SEED_001, SEED_002, SEED_004)
}


def profile_named(name: str) -> Profile:
    """Return a profile. Raises ConfigError for a name that is none."""
    try:
        return PROFILES[name]
    except KeyError:
        raise ConfigError(f"unknown profile {name!r}; there are {', '.join(PROFILES)}") from None


class Override(NamedTuple):
    """Other figures for some conversations. A pattern is a glob, None matches all.

    `changes` are fields of `Profile`: `Override({"compact_at": 0.8}, model="gpt-4o*")`.
    """

    changes: Mapping[str, object]
    project: str | None = None
    agent: str | None = None
    model: str | None = None


def resolve(
    profile: Profile,
    overrides: Sequence[Override],
    *,
    project: str | None = None,
    agent: str | None = None,
    model: str | None = None,
) -> Profile:
    """Return the profile with all overrides that match laid over it.

    What names more of project, agent and model wins; of equals the later one. Raises ConfigError.
    """
    matching = [each for each in overrides if _matches(each, project, agent, model)]
    changes: dict[str, object] = {}
    for each in sorted(matching, key=_precision):
        changes.update(each.changes)
    known = {each.name for each in fields(Profile)}
    if unknown := sorted(set(changes) - known):
        raise ConfigError(f"unknown figure {unknown[0]!r} in an override of the profile")
    return replace(profile, **changes) if changes else profile  # type: ignore[arg-type]


def _matches(override: Override, project: str | None, agent: str | None, model: str | None) -> bool:
    pairs = ((override.project, project), (override.agent, agent), (override.model, model))
    return all(
        pattern is None or (value is not None and fnmatchcase(value, pattern))
        for pattern, value in pairs
    )


def _precision(override: Override) -> int:
    return sum(each is not None for each in (override.project, override.agent, override.model))


def check_overrides(profile: Profile, overrides: Sequence[Override]) -> None:
    """Check what each override makes of the profile, and any two of them. Raises ConfigError."""
    everywhere = [each._replace(project=None, agent=None, model=None) for each in overrides]
    for first in everywhere:
        resolve(profile, [first])
        for second in everywhere:
            resolve(profile, [first, second])
