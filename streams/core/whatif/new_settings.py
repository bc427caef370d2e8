"""The settings to compare: other triggers and windows, and what the engine would leave."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from contextgauge.normalise.runtimes import SETTINGS
from contextgauge.runtime_settings import RuntimeSettings, Sourced
from streams.core.until_compaction import Threshold
from streams.core.whatif.triggers import RecordedTrigger, conditions_at, recorded_triggers
from streams.core.whatif.turns import ChainLog, ChainTurn

DEFAULT_TRIGGERS: Final = "60,70,80,90"
"""What is compared where nothing is asked for, percent of the window."""

_WHOLE: Final = 100
_MOST_DIGITS: Final = 12
LEAST_TOKENS: Final = 1_000
"""No context is smaller: a smaller number is a percentage that is mistaken."""


class Setting(NamedTuple):
    """What is changed. None: as recorded.

    `window` is in tokens. With it alone, the trigger is where the runtime compacts such a window by
    default; where that is not known, at the same share of it. `engine` names a strategy of the
    compaction engine, which then makes all compactions.
    """

    name: str
    trigger: Threshold | None = None
    window: int | None = None
    engine: str | None = None


def read_triggers(text: str) -> list[Threshold]:
    """Read triggers with commas between them: percentages of the window, or 1,000 tokens and more.

    Raises ValueError with the part that is neither.
    """
    return [_read_trigger(each.strip()) for each in text.split(",") if each.strip()]


def _read_trigger(text: str) -> Threshold:
    plain = text.replace("_", "")
    if plain.isdecimal() and len(plain) <= _MOST_DIGITS and int(plain) >= LEAST_TOKENS:
        return Threshold(tokens=int(plain))
    return Threshold(percent=percent_of(text))


def percent_of(text: str) -> float:
    """Read a percentage up to 100, with or without the sign. Raises ValueError with the text."""
    try:
        value = float(text.removesuffix("%").strip())
    except ValueError:
        value = 0.0
    if not 0 < value <= _WHOLE:
        raise ValueError(text)
    return value


def setting_of(
    trigger: Threshold | None, window: int | None = None, engine: str | None = None
) -> Setting:
    """Return a setting with a name that says what is changed."""
    if trigger is None:
        name = "recorded trigger" if window is None else f"window {window:,}"
    elif trigger.tokens is not None:
        name = f"{trigger.tokens:,}"
    else:
        name = f"{trigger.percent:g}%"
        if window is not None:
            name = f"{name} of {window:,}"
    return Setting(name if engine is None else f"{name}, {engine}", trigger, window, engine)


def with_window(log: ChainLog, window: int | None) -> ChainLog:
    """Return a chain whose responses had this window; None: their own."""
    if window is None:
        return log
    return replace(log, turns=tuple(turn._replace(window=window) for turn in log.turns))


def triggers_of(log: ChainLog, setting: Setting) -> Sequence[int | None]:
    """Return the trigger of each request of a chain and of its end, tokens; None: not known."""
    recorded = recorded_triggers(log)
    return [
        _trigger(log.runtime, conditions_at(log, at), setting, known)
        for at, known in enumerate(recorded)
    ]


def _trigger(
    runtime: str | None, turn: ChainTurn, setting: Setting, recorded: RecordedTrigger | None
) -> int | None:
    trigger, window = setting.trigger, setting.window or turn.window
    if trigger is not None and trigger.tokens is not None:
        return trigger.tokens
    if trigger is not None and trigger.percent is not None:
        return None if window is None else int(window * trigger.percent / 100)
    if setting.window is None:
        return None if recorded is None else recorded.tokens
    own = default_trigger(runtime, turn.model, setting.window)
    if own is None and recorded is not None and turn.window:
        return recorded.tokens * setting.window // turn.window
    return own


def default_trigger(runtime: str | None, model: str | None, window: int) -> int | None:
    """Return where a runtime compacts a window by default, tokens; None: not known."""
    reading = SETTINGS.get(runtime) if runtime is not None else None
    if runtime is None or reading is None:
        return None
    size = Sourced(window, "")
    settings = RuntimeSettings(runtime, window=size, context_window=size)
    point = reading.point(settings, model, window, False)  # noqa: FBT003 -- as `SettingsReading` has it
    return None if point is None else point.tokens
