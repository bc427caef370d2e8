"""A comparison as JSON.

Amounts are US dollars as text, since they are exact; null is unknown. Positions of compactions
count the chain's responses from 0: each comes before the response of that number.
"""

from decimal import Decimal
from typing import Any

from contextgauge.pricing import Cost
from streams.codec.cloudevents import rfc3339
from streams.core.whatif.advice import Advice
from streams.core.whatif.answers import WhatIfAnswer
from streams.core.whatif.break_even import BreakEven
from streams.core.whatif.compaction_facts import CompactionFacts, Spread
from streams.core.whatif.comparison import ChainResult, CostChange, SettingResult
from streams.core.whatif.costs import ByModel, RunTotals
from streams.core.whatif.models import Change, ModelResult
from streams.core.whatif.new_settings import Setting
from streams.core.whatif.triggers import Judged, recorded_triggers


def what_if_document(answer: WhatIfAnswer) -> dict[str, Any]:
    """Return the whole comparison."""
    return {
        "settings": [_setting(each) for each in answer.settings],
        "models": [
            _model(each, own) for each, own in zip(answer.models, answer.advice, strict=True)
        ],
        "chains": [_chain(each) for each in answer.chains],
        "rules": [row._asdict() for row in answer.rules],
        "is_whole": answer.is_whole,
    }


def _setting(setting: Setting) -> dict[str, Any]:
    trigger = setting.trigger
    return {
        "name": setting.name,
        "trigger_tokens": None if trigger is None else trigger.tokens,
        "trigger_percent": None if trigger is None else trigger.percent,
        "window": setting.window,
        "strategy": setting.engine,
    }


def _model(result: ModelResult, advice: Advice) -> dict[str, Any]:
    return {
        "runtime": result.runtime,
        "model": result.model,
        "trigger": None if result.recorded_trigger is None else result.recorded_trigger._asdict(),
        "recorded": totals(result.recorded),
        "break_even": result.recorded_paid._asdict(),
        "settings": [
            {
                "name": each.setting.name,
                "totals": totals(each.totals),
                "change": None if each.change is None else _change(each.change),
                "trigger_tokens": each.trigger,
                "break_even": each.paid._asdict(),
                "chains_unknown": each.unknown,
            }
            for each in result.settings
        ],
        "advice": _advice(advice),
    }


def _advice(advice: Advice) -> dict[str, Any]:
    own = advice.runtime_setting
    return {
        "verdict": advice.verdict,
        "setting": None if advice.setting is None else advice.setting.name,
        "trigger_tokens": advice.trigger_tokens,
        "runtime_setting": None if own is None else {own.name: own.value},
        "change": None if advice.change is None else _change(advice.change),
        "more_compactions": advice.compactions,
        "more_wait_ms": advice.wait_ms,
        "is_lowest": advice.is_lowest,
    }


def _chain(result: ChainResult) -> dict[str, Any]:
    log = result.log
    last = recorded_triggers(log)[-1]
    return {
        "session_id": log.session_id,
        "chain": log.chain,
        "runtime": log.runtime,
        "model": log.model,
        "responses": len(log.turns),
        "trigger": None if last is None else last._asdict(),
        "facts": _facts(result.facts),
        "recorded": _by_model(result.recorded),
        "compactions": [
            _compaction(judged, paid)
            for judged, paid in zip(result.judged, result.paid, strict=True)
        ],
        "not_compacted": [
            {"at": each.at, "size": each.size, "trigger": each.trigger._asdict()}
            for each in result.unrecorded
        ],
        "settings": [_result(result, each) for each in result.results],
    }


def _compaction(judged: Judged, paid: BreakEven | None) -> dict[str, Any]:
    own = judged.compaction
    return {
        "number": own.number,
        "at": judged.at,
        "time": None if own.time_ms is None else rfc3339(own.time_ms),
        "trigger": own.trigger,
        "size": judged.size,
        "trigger_tokens": None if judged.trigger is None else judged.trigger.tokens,
        "trigger_source": None if judged.trigger is None else judged.trigger.source,
        "largest_before": judged.earlier,
        "verdict": judged.verdict,
        "tokens_after": own.tokens_after,
        "duration_ms": own.duration_ms,
        "break_even": None if paid is None else _paid(paid),
    }


def _paid(paid: BreakEven) -> dict[str, Any]:
    return {
        "responses": paid.responses,
        "is_extrapolated": paid.is_extrapolated,
        "followed_by": paid.followed_by,
        "cost": amount(paid.cost),
        "saved": amount(paid.saved),
    }


def _result(chain: ChainResult, result: SettingResult) -> dict[str, Any]:
    turns = chain.log.turns
    times = (turns[min(each.at, len(turns) - 1)].time_ms for each in result.compactions)
    return {
        "name": result.setting.name,
        "is_known": result.is_known,
        "trigger_tokens": result.trigger,
        "compactions": [
            {
                "at": each.at,
                "time": None if time_ms is None else rfc3339(time_ms),
                "before": each.before,
                "after": each.after,
                "is_recorded": each.recorded is not None,
                "break_even": None if paid is None else _paid(paid),
            }
            for each, time_ms, paid in zip(result.compactions, times, result.paid, strict=True)
        ],
        "totals": _by_model(result.totals),
        "changes": [
            {"model": model, **_amounts(change)} for model, change in result.changes.items()
        ],
    }


def _by_model(sums: ByModel) -> list[dict[str, Any]]:
    return [{"model": model, **totals(each)} for model, each in sums.items()]


def totals(sums: RunTotals) -> dict[str, Any]:
    """Return totals; the tokens of responses and summaries as objects."""
    fields = sums._asdict()
    for name in ("usage", "summaries"):
        fields[name] = fields[name]._asdict()
    return fields | {name: _cost(getattr(sums, name)) for name in ("cost", "warm", "cold")}


def _cost(cost: Cost) -> str | None:
    return amount(cost.amount) if cost.is_complete else None


def amount(value: Decimal) -> str:
    """Return an amount without an exponent."""
    return f"{value:f}"


def _change(change: Change) -> dict[str, Any]:
    return {**_amounts(change), "sessions": change.sessions}


def _amounts(change: Change | CostChange) -> dict[str, str]:
    return {
        name: amount(value)
        for name, value in change._asdict().items()
        if isinstance(value, Decimal)
    }


def _facts(facts: CompactionFacts) -> dict[str, Any]:
    return {
        "tokens_after": _spread(facts.after),
        "duration_ms": _spread(facts.duration_ms),
        "summary_tokens": _spread(facts.summary),
        "summary_is": "measured" if facts.is_summary_measured else "estimated",
        "prefix_tokens": facts.prefix,
    }


def _spread(spread: Spread | None) -> dict[str, Any] | None:
    return None if spread is None else spread._asdict()
