"""Values that stand out: each is drawn once for a session and appears in no tool's result."""

import random
from collections.abc import Callable, Mapping
from datetime import date, timedelta

from bench.compaction.wording import FIRST_NAMES, LAST_NAMES, WORDS


class Values:
    """Draws the values of one session."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._numbers = rng.sample(range(101, 1_000), 899)
        self._names = [f"{first} {last}" for first in FIRST_NAMES for last in LAST_NAMES]
        rng.shuffle(self._names)
        self._kinds: Mapping[str, Callable[[int, str], str]] = {
            "protected": lambda number, word: f"vendor/{word}_{number}.py",
            "person": lambda _number, _word: self._names.pop(),
            "duration": lambda number, _word: f"{number} ms",
            "memory": lambda number, _word: f"{number} MB",
            "identifier": lambda number, word: f"{word}_ref_{number}",
            "flag": lambda number, word: f"enable_{word}_{number}",
            "host": lambda number, word: f"{word}-{number}.stage.internal",
            "code": lambda number, word: f"{word[:3].upper()}-E{number}",
            "ticket": lambda number, word: f"{word[:4].upper()}-{number}",
            "customer": lambda number, word: f"cus_{word}{number}",
            "percent": lambda number, _word: f"{number / 10} %",
            "statements": lambda number, _word: f"{number} statements",
            "days": lambda number, _word: f"{number} days",
            "money": lambda number, _word: f"${number * 10:,}",
            "folder": lambda number, word: f"var/{word}/{number}",
            "date": lambda number, _word: str(date(2027, 1, 1) + timedelta(days=number)),
            "branch": lambda number, word: f"feature/{word}-{number}",
            "attempts": lambda number, _word: f"{number} attempts",
            "version": lambda number, _word: f"3.{number % 6 + 9}.{number}",
            "topic": lambda number, word: f"audit.{word}.v{number}",
            "rows": lambda number, _word: f"{number} rows",
            "minutes": lambda number, _word: f"{number} minutes",
        }

    def of(self, kind: str) -> str:
        """Return a new value of a kind."""
        return self._kinds[kind](self._numbers.pop(), self._rng.choice(WORDS))
