"""Which setting to use for a model, and whether the difference is more than its uncertainty."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Final, Literal, NamedTuple, TypeAlias

from contextgauge.normalise.runtimes import SETTINGS
from contextgauge.runtime_settings import SettingOf
from streams.core.whatif.comparison import ChainResult, SettingResult
from streams.core.whatif.costs import RunTotals
from streams.core.whatif.models import Change, ModelResult
from streams.core.whatif.new_settings import Setting, default_trigger

AdviceVerdict: TypeAlias = Literal["use", "no_difference", "unknown_price", "not_possible"]
"""`not_possible`: no other setting that the runtime takes could be compared."""

SERVICE_THRESHOLD: Final = "compact_at"
"""Of the compaction service, for runtimes without a setting of their own."""


class Advice(NamedTuple):
    """What to use for one model of one runtime.

    All but the verdict is of the cheapest possible setting, whether it is to be used or its
    difference is too small; None where none is cheaper than what was recorded. `compactions` and
    `wait_ms` are how many more compactions it makes, and their time, None where one is not known.
    `is_lowest`: no smaller trigger was compared.
    """

    runtime: str | None
    model: str | None
    verdict: AdviceVerdict
    setting: Setting | None = None
    trigger_tokens: int | None = None
    runtime_setting: SettingOf | None = None
    change: Change | None = None
    compactions: int = 0
    wait_ms: int | None = None
    is_lowest: bool = False


def advise(result: ModelResult) -> Advice:
    """Return what to use for a model.

    What the engine would leave is its estimate, without an interval: its settings are left out.
    """
    if not result.recorded.cost.is_complete:
        return Advice(result.runtime, result.model, "unknown_price")
    options = [
        option
        for number in range(len(result.settings))
        if (option := _option(result, number)) is not None
    ]
    if not options:
        return Advice(result.runtime, result.model, "not_possible")
    best = min(options, key=_order)
    if best.change is not None and best.change.amount >= 0:
        return Advice(result.runtime, result.model, "no_difference")
    return best


def _order(advice: Advice) -> tuple[bool, Decimal]:
    amount = Decimal(0) if advice.change is None else advice.change.amount
    return advice.verdict != "use", amount


def _option(result: ModelResult, number: int) -> Advice | None:
    """Return a setting as an advice; None where the sessions could not have run under it.

    Nor is there one where it gives them several triggers, of several windows: runtimes take tokens,
    and the amount would be of no single size.
    """
    own, change = result.settings[number], result.settings[number].change
    results = [chain.results[number] for chain in result.chains]
    tokens = own.trigger
    runtime_setting = None if tokens is None else _runtime_setting(result.runtime, tokens)
    is_possible = all(map(_is_possible, result.chains, results))
    is_engine = own.setting.engine is not None
    if is_engine or runtime_setting is None or change is None or not is_possible:
        return None
    triggers = [each for own in result.settings for each in own.triggers if each is not None]
    return Advice(
        result.runtime,
        result.model,
        "use" if change.high < 0 and _has_interval(change, results) else "no_difference",
        own.setting,
        tokens,
        runtime_setting,
        change,
        own.totals.compactions - result.recorded.compactions,
        _more_wait_ms(own.totals, result.recorded),
        is_lowest=own.trigger == min(triggers),
    )


def _has_interval(change: Change, results: Sequence[SettingResult]) -> bool:
    """Return whether anything says how uncertain a difference is.

    Of one session only compactions whose sizes are taken from recorded ones can: a setting without
    any is no advice.
    """
    taken = (each.kept is not None for own in results for each in own.compactions)
    return change.sessions > 1 or any(taken)


def _more_wait_ms(own: RunTotals, recorded: RunTotals) -> int | None:
    if own.untimed or recorded.untimed:
        return None
    return own.wait_ms - recorded.wait_ms


def _is_possible(chain: ChainResult, result: SettingResult) -> bool:
    """Return whether a chain could have run under a setting."""
    before = sum(each.overflows for each in chain.recorded.values())
    after = sum(each.overflows for each in result.totals.values())
    futile = sum(each.futile for each in result.totals.values())
    if not result.is_known or futile or after > before:
        return False
    window = result.setting.window or chain.log.turns[-1].window
    most = None if window is None else default_trigger(chain.log.runtime, chain.log.model, window)
    return most is None or result.trigger is None or result.trigger <= most


def _runtime_setting(runtime: str | None, tokens: int) -> SettingOf | None:
    """Return what to set: in the runtime's own settings, else in the compaction service's."""
    reading = None if runtime is None else SETTINGS.get(runtime)
    return SettingOf(SERVICE_THRESHOLD, tokens) if reading is None else reading.setting(tokens)
