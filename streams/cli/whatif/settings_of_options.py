"""The settings to compare, as they are on the command line."""

from collections.abc import Sequence
from itertools import product
from typing import Final, NamedTuple

from contextgauge.compaction.profiles import PROFILES
from contextgauge.errors import ConfigError
from streams.cli.screen.figures import exact
from streams.core.until_compaction import Threshold
from streams.core.whatif.new_settings import Setting
from streams.flow.whatif.engine_after import PRUNE, Strategy

DEFAULT_TRIGGERS: Final = "60,70,80,90"
STRATEGIES: Final = (*PROFILES, PRUNE)

_WHOLE: Final = 100
_MOST_DIGITS: Final = 12


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
    triggers = [None] if given is None else [_trigger(each) for each in _parts(given)]
    strategies = _strategies(strategy, goal)
    settings, own = [], []
    for threshold, each in product(triggers, strategies):
        engine = None if each is None else _strategy_name(each)
        name = _name(threshold, window, engine)
        settings.append(Setting(name, threshold, window, engine))
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


def _name(trigger: Threshold | None, window: int | None, engine: str | None) -> str:
    if trigger is None:
        first = "recorded trigger" if window is None else f"window {exact(window)}"
    elif trigger.tokens is not None:
        first = exact(trigger.tokens)
    else:
        first = f"{trigger.percent:g}%"
        if window is not None:
            first = f"{first} of {exact(window)}"
    return first if engine is None else f"{first}, {engine}"


def _parts(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]


def _trigger(text: str) -> Threshold:
    """Read a trigger: a percentage up to 100, with or without the sign, or tokens."""
    plain = text.replace("_", "")
    if plain.isdecimal() and int(plain[:_MOST_DIGITS]) > _WHOLE and len(plain) <= _MOST_DIGITS:
        return Threshold(tokens=int(plain))
    return Threshold(percent=_percent("--trigger", text))


def _percent(option: str, text: str) -> float:
    try:
        value = float(text.removesuffix("%").strip())
    except ValueError:
        value = 0.0
    if not 0 < value <= _WHOLE:
        tokens = " or a number of tokens" if option == "--trigger" else ""
        raise ConfigError(f"{option} {text!r}: expected percentages up to 100{tokens}, with commas")
    return value


def _warnings(text: str) -> tuple[int, ...]:
    percents = sorted({_percent("--warn", each) for each in _parts(text)})
    if not percents or any(not each.is_integer() for each in percents):
        raise ConfigError(f"--warn {text!r}: expected whole percentages, with commas between them")
    return tuple(map(int, percents))
