"""Reading the service's plan from a file's content: every fault named by its place, all at once."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, TypeVar, get_args
from urllib.parse import urlsplit

from contextgauge.compaction.profiles import PROFILES, Profile, profile_named
from contextgauge.errors import ConfigError
from contextgauge.units import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from streams.core.alerts.rules import Patterns
from streams.core.control.service import (
    DEFAULT_CALLS,
    DEFAULT_DEADLINE_MS,
    DEFAULT_MAX_AGE_MS,
    SERVICE,
    SummariserPlan,
    SummariserProvider,
)
from streams.core.control.thresholds import (
    SessionRule,
    SessionThresholds,
    order_faults,
    own_size,
    parse_size,
    reserve_of,
)
from streams.core.sections import Fault, Section, Table, near
from streams.core.until_compaction import Threshold

_Result = TypeVar("_Result")

_PROVIDERS: Final[tuple[SummariserProvider, ...]] = get_args(SummariserProvider)
_MOST_CALLS: Final = 256
"""Calls of models side by side: each holds a conversation in memory."""
_WHOLE: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicePlan:
    """The whole file. What is older than `max_age_ms` compacts no session.

    `calls` of the summariser run at a time; a command that is not done after `deadline_ms` fails.
    `drivers` are the tables of runtimes' drivers, as they are in the file.
    """

    max_age_ms: int = DEFAULT_MAX_AGE_MS
    calls: int = DEFAULT_CALLS
    deadline_ms: int = DEFAULT_DEADLINE_MS
    summariser: SummariserPlan = SummariserPlan()  # noqa: RUF009 -- it is frozen
    rules: tuple[SessionRule, ...] = ()
    drivers: Table = field(default_factory=dict)


def check_service(content: Table) -> tuple[ServicePlan | None, list[Fault]]:
    """Return the plan that the content asks for, or None and all that is wrong with it."""
    faults: list[Fault] = []
    top = Section(content, (), faults)
    service = top.table("service")
    drivers = top.table("drivers").content
    names = (SERVICE, *map(str, drivers))
    plan = ServicePlan(
        max_age_ms=service.duration(
            "max_age", DEFAULT_MAX_AGE_MS, least_ms=SECOND_MS, most_ms=HOUR_MS
        ),
        calls=service.number("calls", 1, _MOST_CALLS, DEFAULT_CALLS),
        deadline_ms=service.duration(
            "deadline", DEFAULT_DEADLINE_MS, least_ms=MINUTE_MS, most_ms=DAY_MS
        ),
        summariser=_summariser(top.table("summariser")),
        rules=tuple(_rule(section, names) for section in top.tables("sessions", None)),
        drivers=drivers,
    )
    service.no_others()
    top.ignore("conversations")
    top.no_others()
    return (None, faults) if faults else (plan, [])


class OutsideNeeds(NamedTuple):
    """What of a content depends on the machine that it is read on.

    `is_sound`: nothing is wrong with the summariser itself. `drivers` are the tables of drivers.
    """

    summariser: SummariserPlan
    is_sound: bool
    drivers: Table


def outside_needs(content: Table) -> tuple[OutsideNeeds, list[Fault]]:
    """Return what a content needs, whatever is wrong elsewhere.

    The faults are those that `check_service` reports.
    """
    faults: list[Fault] = []
    top = Section(content, (), faults)
    summariser, drivers = _summariser(top.table("summariser")), top.table("drivers").content
    is_sound = not any(fault.path[0] == "summariser" for fault in faults)
    return OutsideNeeds(summariser, is_sound, drivers), []


def _summariser(section: Section) -> SummariserPlan:
    provider = section.one_of("provider", _PROVIDERS, "extractive") or "extractive"
    plan = SummariserPlan(
        provider=provider,
        model=section.text("model"),
        url=section.text("url"),
        key_env=section.text("key_env"),
        redact=section.flag("redact") is not False,
    )
    if provider == "extractive":
        for key in ("model", "url", "key_env"):
            if section.value(key) is not None:
                section.fault(key, "is for a model: name its provider")
    elif plan.model is None:
        section.fault("model", "is missing: name the provider's model")
    if provider == "compatible" and plan.url is None:
        section.fault("url", "is missing: a compatible server is known by its address")
    if plan.url is not None and not _is_address(plan.url):
        section.fault("url", "is not an address: begin it with https:// or http://")
    section.no_others()
    return plan


def _rule(section: Section, drivers: Sequence[str]) -> SessionRule:
    compact_at, compact_to, hard_at = (
        _size(section, key) for key in ("compact_at", "compact_to", "hard_at")
    )
    for key, fault in order_faults(compact_at, compact_to, hard_at):
        section.fault(key, fault)
    profile = section.text("profile")
    if profile is not None and profile not in PROFILES:
        section.fault("profile", f"is {profile!r}: it is one of {', '.join(PROFILES)}")
    driver = section.text("driver")
    if driver is not None and driver not in drivers:
        section.fault(
            "driver",
            f"is {driver!r}{near(driver, drivers)}: it is {SERVICE}, or a runtime's with a table "
            f"[drivers.{driver}]",
        )
    rule = SessionRule(
        sessions=Patterns(section.texts("sessions")),
        projects=Patterns(section.texts("projects")),
        agents=Patterns(section.texts("agents")),
        models=Patterns(section.texts("models")),
        compact_at=compact_at,
        compact_to=compact_to,
        hard_at=hard_at,
        automatic=section.flag("automatic"),
        driver=driver,
        profile=profile,
    )
    section.no_others()
    return rule


def _size(section: Section, key: str) -> Threshold | None:
    value = section.value(key)
    return None if value is None else _noted(section, key, lambda: parse_size(value, key))


def _noted(section: Section, key: str, make: Callable[[], _Result]) -> _Result | None:
    """Return what is made, or note the error's text, which begins with the key."""
    try:
        return make()
    except ConfigError as error:
        section.fault(key, str(error).removeprefix(f"{key} "))
        return None


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname)


def profile_of(thresholds: SessionThresholds, window: int) -> Profile:
    """Return the engine's profile for a session: its own figures, with the session's sizes.

    These are of the whole window, as the readings are that they are compared with, so nothing is
    reserved in addition.
    `window` is the model's, 0 where it is unknown: then figures in tokens leave the profile's own.
    Raises ConfigError for a profile that is unknown here.
    """
    profile = profile_named(thresholds.profile)
    share = _share(thresholds.compact_at, profile, profile.compact_at, window)
    to = _share(thresholds.compact_to, profile, profile.compact_to, window)
    return replace(
        profile,
        shares_of="usable",
        warn_at=None,  # the pipeline warns
        compact_at=share,
        compact_to=min(to, share),
        system_reserve_tokens=0,
        output_reserve_tokens=0,
        safety_tokens=0,
        count_reserved_output=False,
    )


def _share(threshold: Threshold | None, profile: Profile, own: float, window: int) -> float:
    """Return a threshold as a share of the whole window; the profile's own where none is set."""
    if threshold is not None:
        return _share_of(threshold, window) or own
    window = window or profile.unknown_window_tokens or 0
    if not reserve_of(profile):
        return own
    return _share_of(Threshold(tokens=own_size(profile, own, window)), window) or own


def _share_of(threshold: Threshold, window: int) -> float | None:
    if threshold.percent is not None:
        return threshold.percent / _WHOLE
    if threshold.tokens is None or window <= 0:
        return None
    # Of the two nearest shares the higher one: of the other, the window's part may be a token less.
    return min(1.0, math.nextafter(threshold.tokens / window, math.inf))
