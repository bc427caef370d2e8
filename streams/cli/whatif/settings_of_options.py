"""The settings to compare, as they are on the command line."""

from collections.abc import Sequence
from itertools import product
from typing import Final, NamedTuple

from contextgauge.compaction.profiles import PROFILES
from contextgauge.errors import ConfigError
from streams.core.until_compaction import Threshold
from streams.core.whatif.new_settings import (
    DEFAULT_TRIGGERS,
    LEAST_TOKENS,
    Setting,
    percent_of,
    read_triggers,
    setting_of,
)
from streams.flow.whatif.engine_after import PRUNE, Strategy

STRATEGIES: Final = (*PROFILES, PRUNE)

_WHOLE: Final = 100
_EXPECTED: Final = "expected percentages up to 100"


class WhatIf(NamedTuple):
    """Settings with the strategies of the engine that make their compactions; None: none does.

    `thresholds` are those of warnings; None: as configured.
    """

    settings: Sequence[Setting]
    strategies: Sequence[Strategy | None]
    window: int | None
    thresholds: tuple[int, ...] | None


def settings_of(
    trigger: str | None,
    window: int | None,
    warn: str | None,
    strategy: str | None,
    goal: str | None,
) -> WhatIf:
    """Return what the options ask for. Raises ConfigError."""
    thresholds = None if warn is None else _warnings(warn)
    has_other = any(each is not None for each in (window, warn, strategy, goal))
    given = trigger if trigger is not None or has_other else DEFAULT_TRIGGERS
    triggers = [None] if given is None else _triggers(given)
    strategies = _strategies(strategy, goal)
    settings, own = [], []
    for threshold, each in product(triggers, strategies):
        engine = None if each is None else _strategy_name(each)
        settings.append(setting_of(threshold, window, engine))
        own.append(each)
    return WhatIf(settings, own, window, thresholds)


def _strategies(strategy: str | None, goal: str | None) -> list[Strategy | None]:
    if strategy is None and goal is None:
        return [None]
    names = ["default"] if strategy is None else _parts(strategy)
    for each in names:
        if each not in STRATEGIES:
            raise ConfigError(f"--strategy {each!r}: there are {', '.join(STRATEGIES)}")
    goals = [None] if goal is None else [_percent("--goal", each) / _WHOLE for each in _parts(goal)]
    return [Strategy(name, each) for name, each in product(names, goals)]


def _strategy_name(strategy: Strategy) -> str:
    return strategy.name if strategy.goal is None else f"{strategy.name} to {strategy.goal:.0%}"


def _parts(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]


def _triggers(text: str) -> list[Threshold]:
    try:
        return read_triggers(text)
    except ValueError as error:
        tokens = f" or {LEAST_TOKENS:,} tokens and more"
        raise ConfigError(f"--trigger {str(error)!r}: {_EXPECTED}{tokens}, with commas") from None


def _percent(option: str, text: str) -> float:
    try:
        return percent_of(text)
    except ValueError:
        raise ConfigError(f"{option} {text!r}: {_EXPECTED}, with commas") from None


def _warnings(text: str) -> tuple[int, ...]:
    percents = sorted({_percent("--warn", each) for each in _parts(text)})
    if not percents or any(not each.is_integer() for each in percents):
        raise ConfigError(f"--warn {text!r}: expected whole percentages, with commas between them")
    return tuple(map(int, percents))
