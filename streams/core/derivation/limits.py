"""Windows and other limits: what is known of them, and when a change is emitted (R12)."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, TypeVar

from contextgauge.normalise.limit_signals import (
    AutoCompact,
    ContextUsage,
    ModelReport,
    OwnWindow,
    RuntimeWindows,
    TurnModel,
)
from contextgauge.normalise.runtimes import DEFAULT_WINDOW_OF, OWN_WINDOWS_OF
from contextgauge.windows import base_name
from schemas.records import MAIN_CHAIN, ContextLimits, Json, WindowSource
from streams.core.derivation.known_causes import cause_hash
from streams.core.derivation.rules_config import Rules
from streams.core.derivation.state import NEW_CHAIN, NO_FACTS, KnownFacts, ReportedLimits
from streams.core.derivation.step import Step

MAX_MODELS: Final = 64
"""Model names whose windows a session remembers; the oldest leave. Real sessions use a handful."""

_DATE: Final = re.compile(r"-[0-9]{8}\Z")
"""The date of a dated model name, as in `claude-haiku-4-5-20251001`."""

_NO_MODEL: Final = ""
"""Key of the windows of a chain whose model is unknown."""

Value = TypeVar("Value")


def _no_model_of(chain: str) -> str:
    """Return the key of the window of a chain of unknown model: a subagent may have another."""
    return _NO_MODEL if chain == MAIN_CHAIN else f"\0{chain}"


def window_of(
    rules: Rules, facts: KnownFacts, model: str | None, chain: str
) -> tuple[int | None, WindowSource]:
    """Return the window of a chain's model and where it is known from, best source first."""
    name = model or _NO_MODEL
    configured = rules.configured.window(name)
    if configured is not None:
        return configured, "configured"
    if model is None and (own := facts.windows.get(_no_model_of(chain))) is not None:
        return own, "runtime"
    # `rawMaxTokens` may be reduced by a setting: it counts only without a `contextWindow` (R12).
    reported = _by_model(facts.windows, name) or _by_model(facts.raw_windows, name)
    if reported is not None:
        return reported, "runtime"
    # Before all that is assumed: a size that passed the window has disproved it.
    if name in facts.exceeded:
        return None, "exceeded"
    outside = _by_model(facts.outside_windows, name)
    if outside is not None:
        return outside, "runtime"
    if model is not None and facts.runtime not in OWN_WINDOWS_OF:
        listed = _by_model(facts.suffixed, model) or rules.catalog.window(model)
        if listed is not None:
            return listed, "catalog"
    if facts.runtime in DEFAULT_WINDOW_OF:
        return rules.default_window, "default"
    return None, "unknown"


def _is_reported(facts: KnownFacts, name: str) -> bool:
    return (_by_model(facts.windows, name) or _by_model(facts.raw_windows, name)) is not None


def _by_model(windows: Mapping[str, int], name: str) -> int | None:
    """Return a model's window: by its name, else by one that differs in a trailing date only.

    An alias and a dated name match, two different dates never do; of several the latest reported.
    """
    if not windows:
        return None
    exact = windows.get(name)
    if exact is not None:
        return exact
    alike = [window for other, window in windows.items() if _is_same(other, name)]
    return alike[-1] if alike else None


def _is_same(one: str, other: str) -> bool:
    """Return whether two different names are one model's: with a date, and without one."""
    return one != other and (_without_date(one) == other or _without_date(other) == one)


@lru_cache(MAX_MODELS)
def _without_date(name: str) -> str:
    return _DATE.sub("", name)


def disprove(step: Step, model: str | None, used: int) -> tuple[int | None, WindowSource]:
    """Return the window for a reading; an assumed one that the reading exceeds is void from now."""
    window, source = window_of(step.rules, step.facts, model, step.subject)
    if window is None or used <= window:
        return window, source
    is_outside = source == "runtime" and not _is_reported(step.facts, model or _NO_MODEL)
    if source not in ("catalog", "default") and not is_outside:
        return window, source
    exceeded = (*step.facts.exceeded, model or _NO_MODEL)[-MAX_MODELS:]
    step.facts = step.facts._replace(exceeded=exceeded)
    step.limits_touched = True
    return None, "exceeded"


def apply_model(step: Step, message: ModelReport) -> None:
    """Take the main chain's model, and of an `init` what its suffix means."""
    base, suffix = base_name(message.model)
    if message.is_init:
        _take_suffix(step, base, suffix)
        if step.facts.suffix != suffix:
            step.facts = step.facts._replace(suffix=suffix)
            step.limits_touched = True
            _resolve(step)
    set_model(step, MAIN_CHAIN, base)


def apply_suffixed(step: Step, model: str) -> None:
    """Take what the suffix of a model's name means; no chain's model changes."""
    _take_suffix(step, *base_name(model))


def apply_turn_model(step: Step, message: TurnModel) -> None:
    """Take the model of the chain's turn, and the window that was reported for the turn."""
    set_model(step, step.subject, base_name(message.model)[0])
    if step.subject == MAIN_CHAIN:
        apply_turn_window(step)


def _take_suffix(step: Step, base: str, suffix: int | None) -> None:
    """Take the window that the latest suffix of a model means, by whichever of its names.

    A window that was assumed before, and disproved, is forgotten.
    """
    facts = step.facts
    others = {name: w for name, w in facts.suffixed.items() if not _is_same(name, base)}
    known = facts.suffixed if len(others) == len(facts.suffixed) else others
    suffixed = _with(known, base, suffix)
    if suffixed == facts.suffixed:
        return
    exceeded = facts.exceeded
    if suffix is not None:
        exceeded = tuple(each for each in exceeded if each != base and not _is_same(each, base))
    step.facts = facts._replace(suffixed=suffixed, exceeded=exceeded)
    step.limits_touched = True


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
    """Assign windows that were reported before any model to the first model."""
    facts = step.facts
    own, raw = facts.reported_windows.get(_NO_MODEL), facts.raw_windows.get(_NO_MODEL)
    if own is not None:
        windows = _with(_with(facts.reported_windows, _NO_MODEL, None), model, own)
        step.facts = facts._replace(reported_windows=windows)
        _resolve(step)
    if raw is not None:
        windows = _with(_with(facts.raw_windows, _NO_MODEL, None), model, raw)
        step.facts = step.facts._replace(raw_windows=windows)


def apply_windows(step: Step, message: RuntimeWindows) -> None:
    """Take windows by the names they were reported with, and by their canonical names.

    Of more than a session remembers the last count.
    """
    facts = step.facts
    by_name, by_canonical = facts.reported_windows, facts.canonical_windows
    latest: list[str] = []
    for entry in message.entries[-MAX_MODELS:]:
        by_name = _with(by_name, entry.name, entry.window)
        if entry.canonical is not None:
            suffix = entry.name[len(base_name(entry.name)[0]) :]
            canonical = base_name(entry.canonical)[0] + suffix
            by_canonical = _with(by_canonical, canonical, entry.window)
            latest.append(base_name(canonical)[0])
        latest.append(base_name(entry.name)[0])
    is_known = by_name is facts.reported_windows and by_canonical is facts.canonical_windows
    if is_known and len(facts.windows) == 1:
        return  # as most results report: `_resolve` could only change the order of several
    step.facts = facts._replace(reported_windows=by_name, canonical_windows=by_canonical)
    _resolve(step, latest)


def apply_own_window(step: Step, message: OwnWindow) -> None:
    """Take the window of the chain's model, or of the model that the main chain's next turn names.

    A subagent's responses report it with their sizes; of one whose model is unknown it is its own.
    """
    if message.of_next and step.subject != MAIN_CHAIN:
        return
    if message.of_next:
        step.facts = step.facts._replace(turn_window=message.window)
    else:
        step.has_own_window = True
        _set_own_window(step, message.window)


def apply_turn_window(step: Step) -> None:
    """Take the window that was reported for a turn before its model: the model is known now.

    A window that the same message reports is the newer one.
    """
    window = step.facts.turn_window
    if window is None:
        return
    step.facts = step.facts._replace(turn_window=None)
    if not step.has_own_window:
        _set_own_window(step, window)


def _set_own_window(step: Step, window: int) -> None:
    name = step.chains[step.subject].model or _no_model_of(step.subject)
    windows = _with(step.facts.reported_windows, name, window)
    step.facts = step.facts._replace(reported_windows=windows)
    _resolve(step, [name])


def _resolve(step: Step, latest: Sequence[str] = ()) -> None:
    """Set each model's runtime window: by name without a suffix, else by canonical name (R12).

    The `latest` that were reported are the last.
    """
    facts = step.facts
    by_model = _one_per_model(facts.canonical_windows, facts.suffix)
    by_model |= _one_per_model(facts.reported_windows, facts.suffix)
    order = [*(name for name in (*facts.windows, *by_model) if name not in latest), *latest]
    windows = {name: by_model[name] for name in order if name in by_model}
    if windows != facts.windows or list(windows) != list(facts.windows):
        step.facts = facts._replace(windows=windows)
        step.limits_touched = True


def _one_per_model(reported: Mapping[str, int], suffix: int | None) -> dict[str, int]:
    """Return one window a model: of several suffixes that of the latest `init`, else none."""
    by_model: dict[str, dict[int | None, int]] = {}
    for name, window in reported.items():
        base, suffix_window = base_name(name)
        by_model.setdefault(base, {})[suffix_window] = window
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
    others = {key: old for key, old in values.items() if key != name}
    if value is not None:
        others[name] = value
    if len(others) > MAX_MODELS:
        del others[next(iter(others))]
    return others


def apply_auto_compact(step: Step, message: AutoCompact) -> None:
    """Take the main chain's auto-compact facts; what is not reported again stays.

    A context-usage answer changes nothing of what the runtime enforces.
    """
    facts = step.facts
    if message.enforced is None and facts.is_enforced:
        return
    step.facts = facts._replace(
        auto_compact_enabled=_newer(message.enabled, facts.auto_compact_enabled),
        auto_compact_threshold=_newer(message.threshold, facts.auto_compact_threshold),
        effective_window=_newer(message.effective_window, facts.effective_window),
        auto_compact_source=_newer(message.source, facts.auto_compact_source),
        is_enforced=facts.is_enforced if message.enforced is None else message.enforced,
    )
    step.limits_touched = True


def _newer(new: Value | None, known: Value | None) -> Value | None:
    return known if new is None else new


def apply_usage(step: Step, answer: ContextUsage) -> None:
    """Take a context-usage answer; its record is due if anything in it is new."""
    model = step.main.model if answer.model is None else base_name(answer.model)[0]
    if answer.raw_max_tokens is not None:
        raw = _with(step.facts.raw_windows, model or _NO_MODEL, answer.raw_max_tokens)
        step.facts = step.facts._replace(raw_windows=raw)
    # Compared by a hash: an answer may have a thousand categories.
    parts = repr((answer.total_tokens, answer.categories))
    if answer.message_breakdown is not None:
        parts += "\n".join(_flat(answer.message_breakdown))
    digest = cause_hash(parts).hex()
    step.limits_touched = True
    step.usage = answer
    if step.facts.usage != digest and step.main.reported_limits is not None:
        step.facts = step.facts._replace(usage=digest)
        step.usage_is_new = True


def _flat(value: Json) -> Iterator[str]:
    """Yield an object's names and values in an order of its own, however deep it is."""
    waiting: list[Json] = [value]
    while waiting:
        match waiting.pop():
            case dict() as entries:
                yield f"{{{[*entries]}"
                waiting.extend(entries.values())
            case list() as entries:
                yield f"[{len(entries)}"
                waiting.extend(entries)
            case other:
                yield repr(other)


def emit_limits(step: Step) -> None:
    """Emit `context_limits` for each chain whose limits changed: main first, then by subject.

    A window is first assumed for a chain with its first model, or with its first reading where
    no model was reported. A subagent's is then noted without a record.
    """
    for name in _ordered(step.chains):
        chain = step.chains[name]
        if chain.model is None and chain.reported_limits is None and name != step.first_read:
            continue
        window, source = window_of(step.rules, step.facts, chain.model, name)
        is_main = name == MAIN_CHAIN
        facts = step.facts if is_main else NO_FACTS
        limits = ReportedLimits(
            window,
            source,
            facts.auto_compact_enabled,
            facts.auto_compact_threshold,
            facts.effective_window,
            facts.auto_compact_source,
        )
        before = chain.reported_limits
        if limits != before:
            step.edit(name).reported_limits = limits
        if is_main:
            due = limits != before or step.usage_is_new
        else:
            due = before is not None and before.window != window
        if due:
            _emit(step, name, limits)


def _ordered(chains: Iterable[str]) -> list[str]:
    return sorted(chains, key=lambda name: (name != MAIN_CHAIN, name))


def _emit(step: Step, name: str, limits: ReportedLimits) -> None:
    usage = step.usage if name == MAIN_CHAIN else None
    step.emit(
        ContextLimits(
            **step.common(name, step.chains[name].model),
            **limits._asdict(),
            total_tokens=None if usage is None else usage.total_tokens,
            categories=None if usage is None else usage.categories,
            message_breakdown=None if usage is None else usage.message_breakdown,
        )
    )
