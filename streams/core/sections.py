"""A file's content as sections: what is asked for is read, and every fault named by its place.

The content is what a TOML parser gives: tables, lists, texts, numbers. The place of a fault is the
path of keys to it, `("rules", 1, "at_percent")`; the reader of the file finds the line.
"""

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias, TypeVar

from contextgauge.units import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS

_Word = TypeVar("_Word", bound=str)

Path: TypeAlias = tuple[str | int, ...]
Table: TypeAlias = Mapping[str, object]

_UNITS: Final = {"s": SECOND_MS, "m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS}
_DURATION: Final = re.compile(r"(\d{1,6})\s*([smhd])", re.ASCII)
_NAME: Final = re.compile(r"[\w][\w .:/-]{0,99}", re.ASCII)


class Fault(NamedTuple):
    """What is wrong, and where."""

    path: Path
    problem: str


class Section:
    """One table of the content: what is asked for is read, and what is wrong is noted."""

    def __init__(self, table: Table, path: Path, faults: list[Fault]) -> None:
        self._table, self._path, self._faults = table, path, faults
        self._asked: set[str] = set()

    @property
    def content(self) -> Table:
        """The table as it is."""
        return self._table

    def fault(self, key: str, problem: str) -> None:
        """Note what is wrong with a key's value, once."""
        path = (*self._path, key)
        if all(fault.path != path for fault in self._faults):
            self._faults.append(Fault(path, problem))

    def table(self, key: str) -> "Section":
        """Return a table, empty where it is missing."""
        value = self._get(key)
        if value is not None and not isinstance(value, Mapping):
            self.fault(key, f"is not a table: write it as [{key}]")
        content = value if isinstance(value, Mapping) else {}
        return Section(content, (*self._path, key), self._faults)

    def ignore(self, key: str) -> None:
        """Leave a key to another part, which reads it."""
        self._asked.add(key)

    def tables(self, key: str, what: str | None) -> list["Section"]:
        """Return the tables of a list; there must be one, unless `what` it is for is None."""
        value = self._get(key)
        if value is None or value == []:
            if what is not None:
                self.fault(key, f"is missing: write at least one [[{key}]], {what}")
            return []
        if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
            self.fault(key, f"is not a list of tables: write each as [[{key}]]")
            return []
        return [
            Section(item, (*self._path, key, index), self._faults)
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
                "name",
                "is not a valid name: letters, digits, space and . _ : / - , at most 100 of them",
            )
            return ""
        return value

    def text(self, key: str) -> str | None:
        """Return a text that may be missing."""
        value = self._get(key)
        if value is None:
            return None
        if not isinstance(value, str) or not value.strip():
            self.fault(key, 'is not a string: write it in quotes, "like this"')
            return None
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts, empty where it is missing; one text is a list of one."""
        value = self._get(key)
        if value is None:
            return ()
        listed = value if isinstance(value, list) else [value]
        if not listed or not all(isinstance(item, str) and item.strip() for item in listed):
            self.fault(key, 'is not a list of strings: write it as ["one", "another"]')
            return ()
        return tuple(str(item) for item in listed)

    def some_of(
        self, key: str, allowed: Sequence[_Word], *, default: Sequence[_Word]
    ) -> tuple[_Word, ...]:
        """Return a list of the allowed words."""
        value = self.texts(key)
        for item in value:
            if item not in allowed:
                self.fault(key, f"has {item!r}{near(item, allowed)}: it takes {listed(allowed)}")
        return tuple(word for word in allowed if word in value) or tuple(default)

    def one_of(self, key: str, allowed: Sequence[_Word], default: _Word | None) -> _Word | None:
        """Return one of the allowed words; the default where it is missing or wrong."""
        value = self.text(key)
        if value is None:
            if default is None:
                self.fault(key, f"is missing: it is one of {listed(allowed)}")
            return default
        for word in allowed:
            if word == value:
                return word
        self.fault(key, f"is {value!r}{near(value, allowed)}: it is one of {listed(allowed)}")
        return default

    def flag(self, key: str) -> bool | None:
        """Return true or false; None where it is missing or wrong."""
        value = self._get(key)
        if value is None or isinstance(value, bool):
            return value
        self.fault(key, f"is {value!r}: write true or false")
        return None

    def value(self, key: str) -> object:
        """Return a value of any form; None where it is missing."""
        return self._get(key)

    def number(self, key: str, least: int, most: int, default: int | None = None) -> int:
        """Return a whole number; `least` where it is wrong."""
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
            self.fault(keys[0], f"is missing: set it, or {' or '.join(keys[1:])}")
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
                self.fault(key, f"is not known here{near(key, sorted(self._asked))}")

    def _get(self, key: str) -> object:
        self._asked.add(key)
        return self._table.get(key)


def listed(names: Sequence[str]) -> str:
    """Return names in a sentence; what they would be of where there are none."""
    return ", ".join(names) if names else "the targets"


def near(name: str, known: Sequence[str]) -> str:
    """Return a hint at a known name that is much like this one; empty where there is none."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _short(time_ms: int) -> str:
    unit = next(unit for unit in ("d", "h", "m", "s") if time_ms % _UNITS[unit] == 0)
    return f"{time_ms // _UNITS[unit]}{unit}"
