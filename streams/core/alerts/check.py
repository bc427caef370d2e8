"""Reading a plan of alerts from a file's content: every fault named by its place, all at once."""

from collections.abc import Iterator, Sequence
from typing import Final, assert_never, get_args
from urllib.parse import urlsplit

from contextgauge.units import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from schemas.records import ExhaustedReason, Outcome
from streams.core.alerts.rules import (
    AlertKind,
    AlertPlan,
    Condition,
    Exhaustion,
    Failed,
    Format,
    LostRules,
    MemoryPlace,
    Patterns,
    Pressure,
    Rule,
    Stalled,
    Target,
    Thrashing,
)
from streams.core.sections import Fault, Section, Table, listed, near

DEFAULT_MAX_AGE_MS: Final = 15 * MINUTE_MS
"""Longer than a worker's restart or a broker's outage mostly takes; news that is older is none."""
DEFAULT_TIMEOUT_MS: Final = 10 * SECOND_MS
"""What receivers of webhooks are usually given to answer in."""
DEFAULT_GIVE_UP_AFTER_MS: Final = HOUR_MS
"""Long enough to restart a receiver; an alert of an hour ago is of no use."""

_MOST_COUNT: Final = 1_000

_KINDS: Final[tuple[AlertKind, ...]] = get_args(AlertKind)
_FORMATS: Final[tuple[Format, ...]] = get_args(Format)
_PLACES: Final[tuple[MemoryPlace, ...]] = get_args(MemoryPlace)
_OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)
_REASONS: Final[tuple[ExhaustedReason, ...]] = get_args(ExhaustedReason)


def check_plan(content: Table) -> tuple[AlertPlan | None, list[Fault]]:
    """Return the plan that the content asks for, or None and all that is wrong with it."""
    faults: list[Fault] = []
    top = Section(content, (), faults)
    max_age_ms = top.duration("max_age", DEFAULT_MAX_AGE_MS, least_ms=SECOND_MS, most_ms=7 * DAY_MS)
    memory = top.one_of("memory", _PLACES, "auto") or "auto"
    page = _page(top)
    targets = [_target(section) for section in top.tables("targets", "where alerts are sent")]
    names = [target.name for target in targets]
    rules = [
        rule
        for section in top.tables("rules", "what to alert on")
        if (rule := _rule(section, names, max_age_ms)) is not None
    ]
    top.no_others()
    faults += _doubles("targets", names)
    faults += _doubles("rules", [rule.name for rule in rules])
    used = {name for rule in rules for name in rule.targets}
    faults += [
        Fault(("targets", index, "name"), f"no rule sends anything to {name!r}: name it in one")
        for index, name in enumerate(names)
        if name and name not in used and not faults
    ]
    if faults:
        return None, faults
    return AlertPlan(
        max_age_ms=max_age_ms,
        targets=tuple(targets),
        rules=tuple(rules),
        memory=memory,
        page=page,
    ), []


def targets_of_content(content: Table) -> tuple[tuple[Target, ...], list[Fault]]:
    """Return the targets of a content that are right themselves, whatever is wrong elsewhere.

    The faults are those that `check_plan` reports.
    """
    targets = []
    for section in Section(content, (), []).tables("targets", None):
        faults: list[Fault] = []
        target = _target(Section(section.content, (), faults))
        if not faults:
            targets.append(target)
    return tuple(targets), []


def _page(top: "Section") -> str | None:
    """Return the web page's address without a slash at its end; it is shown in every alert."""
    address = top.text("page")
    if address is None:
        return None
    try:
        parts = urlsplit(address.strip())
        good = parts.scheme in {"http", "https"} and bool(parts.hostname)
        _ = parts.port
    except ValueError:
        good = False
    if not good or any(character.isspace() or not character.isprintable() for character in address):
        top.fault("page", "is not an address of a web page: write https://host/, or http://")
    elif "@" in parts.netloc or "?" in address or "#" in address:
        top.fault("page", "has more than an address: leave out user, password, ? and #")
    return address.rstrip("/")


def _doubles(section: str, names: Sequence[str]) -> Iterator[Fault]:
    for index, name in enumerate(names):
        if name and name in names[:index]:
            yield Fault((section, index, "name"), f"{name!r} is there already: choose another name")


def _target(section: "Section") -> Target:
    texts = ("url", "url_env", "url_file", "secret_env", "secret_file", "ca_file")
    target = Target(
        name=section.name(),
        format=section.one_of("format", _FORMATS, "json") or "json",
        **{key: section.text(key) for key in texts},
        timeout_ms=section.duration(
            "timeout", DEFAULT_TIMEOUT_MS, least_ms=SECOND_MS, most_ms=5 * MINUTE_MS
        ),
        give_up_after_ms=section.duration(
            "give_up_after", DEFAULT_GIVE_UP_AFTER_MS, least_ms=SECOND_MS, most_ms=7 * DAY_MS
        ),
    )
    section.just_one("url", "url_env", "url_file")
    section.at_most_one("secret_env", "secret_file")
    if target.url is not None and not target.url.startswith(("https://", "http://")):
        section.fault("url", "is not an address of a webhook: begin it with https:// or http://")
    section.no_others()
    return target


def _rule(section: "Section", targets: Sequence[str], max_age_ms: int) -> Rule | None:
    name = section.name()
    kind = section.one_of("when", _KINDS, None)
    condition = None if kind is None else _condition(section, kind, max_age_ms)
    named = section.texts("targets")
    if not named:
        section.fault("targets", f"is missing: name one or more of {listed(targets)}")
    for target in named:
        if target not in targets:
            section.fault("targets", f"names {target!r}, which is no target{near(target, targets)}")
    patterns = {
        key: Patterns(section.texts(key)) for key in ("models", "sessions", "agents", "chains")
    }
    if condition is None:
        return None  # which keys there may be depends on it
    section.no_others()
    return Rule(name=name, condition=condition, targets=named, **patterns)


def _condition(section: "Section", kind: AlertKind, max_age_ms: int) -> Condition:
    """Read the keys that a kind's condition needs."""
    match kind:
        case "pressure":
            return Pressure(section.number("at_percent", 1, 100))
        case "failed":
            outcomes = section.some_of("outcomes", _OUTCOMES, default=("failed", "blocked"))
            return Failed(frozenset(outcomes))
        case "stalled":
            after_ms = section.duration("after", None, least_ms=SECOND_MS, most_ms=DAY_MS)
            if after_ms >= max_age_ms:
                section.fault(
                    "after", "is not below max_age, beyond which nothing is alerted: raise max_age"
                )
            return Stalled(after_ms)
        case "thrash":
            return Thrashing(
                count=section.number("count", 2, _MOST_COUNT),
                within_ms=section.duration("within", None, least_ms=SECOND_MS, most_ms=DAY_MS),
            )
        case "exhausted":
            reasons = section.some_of("reasons", _REASONS, default=_REASONS)
            return Exhaustion(frozenset(reasons))
        case "rules_lost":
            return LostRules(section.number("at_least", 1, _MOST_COUNT, default=1))
        case _:
            assert_never(kind)
