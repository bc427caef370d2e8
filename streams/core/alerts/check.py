"""Reading a plan of alerts from a file's content: every fault named by its place, all at once.

The content is what a TOML parser gives: tables, lists, texts, numbers. The place of a fault is the
path of keys to it, `("rules", 1, "at_percent")`; the reader of the file finds the line.
"""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias, TypeVar, assert_never, get_args
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

_Word = TypeVar("_Word", bound=str)

Path: TypeAlias = tuple[str | int, ...]
Table: TypeAlias = Mapping[str, object]

DEFAULT_MAX_AGE_MS: Final = 15 * MINUTE_MS
"""Longer than a worker's restart or a broker's outage mostly takes; news that is older is none."""
DEFAULT_TIMEOUT_MS: Final = 10 * SECOND_MS
"""What receivers of webhooks are usually given to answer in."""
DEFAULT_GIVE_UP_AFTER_MS: Final = HOUR_MS
"""Long enough to restart a receiver; an alert of an hour ago is of no use."""

_UNITS: Final = {"s": SECOND_MS, "m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS}
_DURATION: Final = re.compile(r"(\d{1,6})\s*([smhd])", re.ASCII)
_NAME: Final = re.compile(r"[\w][\w .:/-]{0,99}", re.ASCII)
_MOST_COUNT: Final = 1_000

_KINDS: Final[tuple[AlertKind, ...]] = get_args(AlertKind)
_FORMATS: Final[tuple[Format, ...]] = get_args(Format)
_PLACES: Final[tuple[MemoryPlace, ...]] = get_args(MemoryPlace)
_OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)
_REASONS: Final[tuple[ExhaustedReason, ...]] = get_args(ExhaustedReason)


class Fault(NamedTuple):
    """What is wrong, and where."""

    path: Path
    problem: str


def check_plan(content: Table) -> tuple[AlertPlan | None, list[Fault]]:
    """Return the plan that the content asks for, or None and all that is wrong with it."""
    faults: list[Fault] = []
    top = _Section(content, (), faults)
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


def _page(top: "_Section") -> str | None:
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
        top.fault("page", "is no address of a web page: write https://host/, or http://")
    elif "@" in parts.netloc or "?" in address or "#" in address:
        top.fault("page", "has more than an address: leave out user, password, ? and #")
    return address.rstrip("/")


def _doubles(section: str, names: Sequence[str]) -> Iterator[Fault]:
    for index, name in enumerate(names):
        if name and name in names[:index]:
            yield Fault((section, index, "name"), f"{name!r} is there already: choose another name")


def _target(section: "_Section") -> Target:
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
        section.fault("url", "is no address of a webhook: begin it with https:// or http://")
    section.no_others()
    return target


def _rule(section: "_Section", targets: Sequence[str], max_age_ms: int) -> Rule | None:
    name = section.name()
    kind = section.one_of("when", _KINDS, None)
    condition = None if kind is None else _condition(section, kind, max_age_ms)
    named = section.texts("targets")
    if not named:
        section.fault("targets", f"is missing: name one or more of {_listed(targets)}")
    for target in named:
        if target not in targets:
            section.fault(
                "targets", f"names {target!r}, which is no target{_near(target, targets)}"
            )
    patterns = {
        key: Patterns(section.texts(key)) for key in ("models", "sessions", "agents", "chains")
    }
    if condition is None:
        return None  # which keys there may be depends on it
    section.no_others()
    return Rule(name=name, condition=condition, targets=named, **patterns)


def _condition(section: "_Section", kind: AlertKind, max_age_ms: int) -> Condition:
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


class _Section:
    """One table of the content: what is asked for is read, and what is wrong is noted."""

    def __init__(self, table: Table, path: Path, faults: list[Fault]) -> None:
        self._table, self._path, self._faults = table, path, faults
        self._asked: set[str] = set()

    def fault(self, key: str, problem: str) -> None:
        """Note what is wrong with a key's value, once."""
        path = (*self._path, key)
        if all(fault.path != path for fault in self._faults):
            self._faults.append(Fault(path, problem))

    def tables(self, key: str, what: str) -> list["_Section"]:
        """Return the tables of a list; there must be one."""
        value = self._get(key)
        if value is None or value == []:
            self.fault(key, f"is missing: write at least one [[{key}]], {what}")
            return []
        if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
            self.fault(key, f"is no list of tables: write each as [[{key}]]")
            return []
        return [
            _Section(item, (*self._path, key, index), self._faults)
            for index, item in enumerate(value)
        ]

    def name(self) -> str:
        """Return the table's name, empty where it is wrong."""
        value = self.text("name")
        if value is None:
            self.fault("name", "is missing: give it a name of its own")
            return ""
        if _NAME.fullmatch(value) is None:
            self.fault(
                "name", "is no name: letters, digits, space and . _ : / - , at most 100 of them"
            )
            return ""
        return value

    def text(self, key: str) -> str | None:
        """Return a text that may be missing."""
        value = self._get(key)
        if value is None:
            return None
        if not isinstance(value, str) or not value.strip():
            self.fault(key, 'is no text: write it in quotes, "like this"')
            return None
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts, empty where it is missing; one text is a list of one."""
        value = self._get(key)
        if value is None:
            return ()
        listed = value if isinstance(value, list) else [value]
        if not listed or not all(isinstance(item, str) and item.strip() for item in listed):
            self.fault(key, 'is no list of texts: write it as ["one", "another"]')
            return ()
        return tuple(str(item) for item in listed)

    def some_of(
        self, key: str, allowed: Sequence[_Word], *, default: Sequence[_Word]
    ) -> tuple[_Word, ...]:
        """Return a list of the allowed words."""
        value = self.texts(key)
        for item in value:
            if item not in allowed:
                self.fault(key, f"has {item!r}{_near(item, allowed)}: it takes {_listed(allowed)}")
        return tuple(word for word in allowed if word in value) or tuple(default)

    def one_of(self, key: str, allowed: Sequence[_Word], default: _Word | None) -> _Word | None:
        """Return one of the allowed words; the default where it is missing or wrong."""
        value = self.text(key)
        if value is None:
            if default is None:
                self.fault(key, f"is missing: it is one of {_listed(allowed)}")
            return default
        for word in allowed:
            if word == value:
                return word
        self.fault(key, f"is {value!r}{_near(value, allowed)}: it is one of {_listed(allowed)}")
        return default

    def number(self, key: str, least: int, most: int, default: int | None = None) -> int:
        """Return a whole number; the default where it is missing, `least` where it is wrong."""
        value = self._get(key)
        if value is None and default is not None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            problem = "is missing" if value is None else f"is {value!r}"
            self.fault(key, f"{problem}: give a whole number, {least} to {most}")
            return least
        return value

    def duration(self, key: str, default_ms: int | None, *, least_ms: int, most_ms: int) -> int:
        """Return milliseconds of a text such as "90s", "10m", "2h" or "1d"."""
        value = self._get(key)
        if value is None and default_ms is not None:
            return default_ms
        matched = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
        value_ms = int(matched[1]) * _UNITS[matched[2]] if matched else -1
        if not least_ms <= value_ms <= most_ms:
            problem = "is missing" if value is None else f"is {value!r}"
            limits = f"{_short(least_ms)} to {_short(most_ms)}"
            self.fault(key, f'{problem}: give a time such as "90s", "10m" or "2h", {limits}')
            return least_ms
        return value_ms

    def just_one(self, *keys: str) -> None:
        """Note where not just one of these is there."""
        if not any(key in self._table for key in keys):
            self.fault(keys[0], f"is missing: set it, {' or '.join(keys[1:])}")
        self.at_most_one(*keys)

    def at_most_one(self, *keys: str) -> None:
        """Note where more than one of these is there."""
        there = [key for key in keys if key in self._table]
        if len(there) > 1:
            self.fault(there[1], f"is set, and {there[0]} is too: keep one of them")

    def no_others(self) -> None:
        """Report every unknown key: it would be a setting that does nothing."""
        for key in self._table:
            if key not in self._asked:
                self.fault(key, f"is not known here{_near(key, sorted(self._asked))}")

    def _get(self, key: str) -> object:
        self._asked.add(key)
        return self._table.get(key)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if names else "the targets"


def _near(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _short(time_ms: int) -> str:
    unit = next(unit for unit in ("d", "h", "m", "s") if time_ms % _UNITS[unit] == 0)
    return f"{time_ms // _UNITS[unit]}{unit}"
