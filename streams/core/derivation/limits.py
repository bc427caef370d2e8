"""Windows and other limits: what is known of them, and telling when it changes (R12)."""

from collections.abc import Iterable, Mapping
from typing import Final, TypeVar

from contextgauge.normalise.signals import (
    AutoCompact,
    ContextUsage,
    ModelTold,
    OwnWindow,
    RuntimeWindows,
)
from schemas.records import MAIN_CHAIN, ContextLimits, WindowSource
from streams.core.derivation.known_causes import cause_hash
from streams.core.derivation.rules import Rules
from streams.core.derivation.state import NEW_CHAIN, Facts, ToldLimits
from streams.core.derivation.step import Rank, Step
from streams.core.derivation.windows import base_name

MAX_MODELS: Final = 64
"""Model names whose windows a session remembers; the oldest leave. Real sessions use a handful."""

_NO_MODEL: Final = ""
"""Stands for the model of a chain that none was told of."""

Value = TypeVar("Value")


def window_of(rules: Rules, facts: Facts, model: str | None) -> tuple[int | None, WindowSource]:
    """Return a model's window and where it is known from, best source first."""
    name = model or _NO_MODEL
    configured = rules.configured.window(name)
    if configured is not None:
        return configured, "configured"
    told = facts.windows.get(name) or facts.raw_windows.get(name)
    if told is not None:
        return told, "runtime"
    if name in facts.exceeded:
        return None, "exceeded"
    if model is not None:
        listed = facts.suffixed.get(model) or rules.catalog.window(model)
        if listed is not None:
            return listed, "catalog"
    return rules.default_window, "default"


def disprove(step: Step, model: str | None, used: int) -> tuple[int | None, WindowSource]:
    """Return the window for a reading; an assumed one that the reading exceeds is void from now."""
    window, source = window_of(step.rules, step.facts, model)
    if window is None or used <= window or source not in ("catalog", "default"):
        return window, source
    exceeded = (*step.facts.exceeded, model or _NO_MODEL)[-MAX_MODELS:]
    step.facts = step.facts._replace(exceeded=exceeded)
    step.limits_touched = True
    return None, "exceeded"


def tell_model(step: Step, told: ModelTold) -> None:
    """Take the main chain's model, and of an `init` what its suffix means."""
    base, suffix = base_name(told.model)
    if told.is_init and (step.facts.suffix, step.facts.suffixed.get(base)) != (suffix, suffix):
        suffixed = _with(step.facts.suffixed, base, suffix)
        step.facts = step.facts._replace(suffix=suffix, suffixed=suffixed)
        step.limits_touched = True
        _resolve(step)
    set_model(step, MAIN_CHAIN, base)


def set_model(step: Step, name: str, model: str) -> None:
    """Set a chain's model."""
    chain = step.chains.get(name, NEW_CHAIN)
    if chain.model == model:
        return
    if name == MAIN_CHAIN and chain.model is None:
        _name_windows(step, model)
    step.edit(name).model = model
    step.limits_touched = True


def _name_windows(step: Step, model: str) -> None:
    """Give windows that were told before any model to the first one."""
    facts = step.facts
    own, raw = facts.told_windows.get(_NO_MODEL), facts.raw_windows.get(_NO_MODEL)
    if own is not None:
        windows = _with(_with(facts.told_windows, _NO_MODEL, None), model, own)
        step.facts = facts._replace(told_windows=windows)
        _resolve(step)
    if raw is not None:
        windows = _with(_with(facts.raw_windows, _NO_MODEL, None), model, raw)
        step.facts = step.facts._replace(raw_windows=windows)


def tell_windows(step: Step, told: RuntimeWindows) -> None:
    """Take windows by the names they were told with, and by their canonical names."""
    facts = step.facts
    by_name, by_canonical = facts.told_windows, facts.canonical_windows
    for entry in told.entries:
        by_name = _with(by_name, entry.name, entry.window)
        if entry.canonical is not None:
            suffix = entry.name[len(base_name(entry.name)[0]) :]
            canonical = base_name(entry.canonical)[0] + suffix
            by_canonical = _with(by_canonical, canonical, entry.window)
    if by_name is not facts.told_windows or by_canonical is not facts.canonical_windows:
        step.facts = facts._replace(told_windows=by_name, canonical_windows=by_canonical)
        _resolve(step)


def tell_own_window(step: Step, told: OwnWindow) -> None:
    """Take the window of the main chain's model."""
    name = step.main.model or _NO_MODEL
    windows = _with(step.facts.told_windows, name, told.window)
    step.facts = step.facts._replace(told_windows=windows)
    _resolve(step)


def _resolve(step: Step) -> None:
    """Set each model's runtime window: by name without a suffix, else by canonical name (R12)."""
    facts = step.facts
    windows = _chosen(facts.canonical_windows, facts.suffix)
    windows |= _chosen(facts.told_windows, facts.suffix)
    if windows != facts.windows:
        step.facts = facts._replace(windows=windows)
        step.limits_touched = True


def _chosen(told: Mapping[str, int], suffix: int | None) -> dict[str, int]:
    """Return one window a model: of several suffixes that of the latest `init`, else none."""
    by_model: dict[str, dict[int | None, int]] = {}
    for name, window in told.items():
        base, means = base_name(name)
        by_model.setdefault(base, {})[means] = window
    return {
        base: windows[suffix] if len(windows) > 1 else next(iter(windows.values()))
        for base, windows in by_model.items()
        if len(windows) == 1 or suffix in windows
    }


def _with(values: Mapping[str, int], name: str, value: int | None) -> Mapping[str, int]:
    """Return the mapping with the entry as the newest, or without it for None.

    Where nothing changes it is the same object.
    """
    if values.get(name) == value:
        return values
    kept = {key: old for key, old in values.items() if key != name}
    if value is not None:
        kept[name] = value
    if len(kept) > MAX_MODELS:
        del kept[next(iter(kept))]
    return kept


def tell_auto_compact(step: Step, told: AutoCompact) -> None:
    """Take the main chain's auto-compact facts; what was not told again stays."""
    facts = step.facts
    step.facts = facts._replace(
        auto_compact_enabled=_newer(told.enabled, facts.auto_compact_enabled),
        auto_compact_threshold=_newer(told.threshold, facts.auto_compact_threshold),
        effective_window=_newer(told.effective_window, facts.effective_window),
    )
    step.limits_touched = True


def _newer(told: Value | None, known: Value | None) -> Value | None:
    return known if told is None else told


def tell_usage(step: Step, told: ContextUsage) -> None:
    """Take a context-usage answer; its record is due if anything it says is news."""
    model = step.main.model if told.model is None else base_name(told.model)[0]
    if told.raw_max_tokens is not None:
        raw = _with(step.facts.raw_windows, model or _NO_MODEL, told.raw_max_tokens)
        step.facts = step.facts._replace(raw_windows=raw)
    digest = cause_hash(repr((told.total_tokens, told.categories))).hex()
    step.limits_touched = True
    step.usage = told
    if step.facts.usage != digest and step.main.told is not None:
        step.facts = step.facts._replace(usage=digest)
        step.usage_is_news = True


def tell_limits(step: Step) -> None:
    """Emit `context_limits` for each chain whose limits are news: main first, then by subject.

    A window is first assumed for a chain with its first model, or with its first reading where
    no model was told. A subagent's is then noted without a record.
    """
    for name in _ordered(step.chains):
        chain = step.chains[name]
        if chain.model is None and chain.told is None and name != step.first_read:
            continue
        window, source = window_of(step.rules, step.facts, chain.model)
        is_main = name == MAIN_CHAIN
        limits = ToldLimits(window, source, None, None, None)
        if is_main:
            facts = step.facts
            limits = limits._replace(
                auto_compact_enabled=facts.auto_compact_enabled,
                auto_compact_threshold=facts.auto_compact_threshold,
                effective_window=facts.effective_window,
            )
        told = chain.told
        if limits != told:
            step.edit(name).told = limits
        if is_main:
            due = limits != told or step.usage_is_news
        else:
            due = told is not None and told.window != window
        if due:
            _emit(step, name, limits)


def _ordered(chains: Iterable[str]) -> list[str]:
    return sorted(chains, key=lambda name: (name != MAIN_CHAIN, name))


def _emit(step: Step, name: str, limits: ToldLimits) -> None:
    usage = step.usage if name == MAIN_CHAIN else None
    step.emit(
        Rank.LIMITS,
        step.record_id(name, "context_limits"),
        ContextLimits(
            **step.common(name, step.chains[name].model),
            window=limits.window,
            window_source=limits.window_source,
            auto_compact_enabled=limits.auto_compact_enabled,
            auto_compact_threshold=limits.auto_compact_threshold,
            effective_window=limits.effective_window,
            total_tokens=None if usage is None else usage.total_tokens,
            categories=None if usage is None else usage.categories,
        ),
    )
