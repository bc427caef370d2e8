"""A comparison on a terminal."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Final, NamedTuple

from rich.table import Table
from rich.text import Text

from contextgauge.pricing import Cost
from streams.cli.screen.figures import GUESS, count, duration, exact, thousands
from streams.cli.screen.money import amount
from streams.cli.screen.output import cell, out, say, table_width
from streams.cli.screen.tables import Cells, fitted
from streams.core.whatif.advice import Advice
from streams.core.whatif.answers import WhatIfAnswer
from streams.core.whatif.break_even import BreakEven, UsualBreakEven, usual
from streams.core.whatif.comparison import ChainResult, CostChange
from streams.core.whatif.costs import NO_TOTALS, RunTotals
from streams.core.whatif.models import Change, ModelResult
from streams.core.whatif.new_settings import Setting
from streams.core.whatif.triggers import Judged, RecordedTrigger, Verdict, recorded_triggers

_SHOWN: Final = 20
"""Compactions on a terminal; --json has all."""

_LEFT: Final = frozenset(("Session", "By", "Paid off after", "Position", "Setting", "Kind", "Rule"))

_STEPS: Final = (
    *("Warnings", "Fresh", "Output", "Paid off after", "Cold", "Warm", "Trigger"),
    *("Written", "Read", "Time", "Compactions"),
)
"""Columns of settings that are left out one by one where a terminal is narrow."""

_INTERVAL_WIDTH: Final = 20
"""A difference and its interval may be on two lines."""

_REASONS: Final[Mapping[Verdict, str]] = {
    "given": "not by size",
    "reproduced": "reproduced",
    "begun_below": "began below the trigger",
    "begun_late": "an earlier request had reached it",
    "attempt_failed": "after a failed attempt",
    "no_response_before": "no response before it",
}


def show(answer: WhatIfAnswer, *, by: str) -> None:
    """Print the comparison."""
    _show_reproduced(answer.chains)
    if by == "rule":
        _show_rules(answer)
    elif by == "session":
        _show_sessions(answer.chains)
    for each, own in zip(answer.models, answer.advice, strict=True):
        if by == "model":
            out.print()
            _show_model(each)
        if any(_is_other_size(setting.setting) for setting in each.settings):
            say(_advice(own), to=out)


def _is_other_size(setting: Setting) -> bool:
    """Return whether a setting is one of the runtime's that compacts elsewhere."""
    return setting.engine is None and (setting.trigger is not None or setting.window is not None)


def _show_reproduced(chains: Sequence[ChainResult]) -> None:
    judged = [(chain, each) for chain in chains for each in chain.judged]
    verdicts = Counter(each.verdict for _, each in judged)
    parts = [f"{exact(number)} {_REASONS[verdict]}" for verdict, number in verdicts.items()]
    sessions = len({chain.log.session_id for chain in chains})
    responses = sum(len(chain.log.turns) for chain in chains)
    say(
        f"{count(sessions, 'session')}, {count(responses, 'response')}, "
        f"{count(len(judged), 'compaction')}" + (f": {', '.join(parts)}" if parts else ""),
        to=out,
    )
    learned = sum(
        each.verdict == "reproduced"
        and each.trigger is not None
        and each.trigger.source == "learned"
        for _, each in judged
    )
    if learned:
        say(
            "~: nothing reports the trigger: it is the least size at which it was compacted, and "
            f"reproduces {exact(learned)}",
            "dim",
            to=out,
        )
    if any(each.compaction.summary_output is None for _, each in judged):
        say(
            "recorded costs contain the calls that wrote summaries, by an estimate where nothing "
            "reports them",
            "dim",
            to=out,
        )
    if judged:
        out.print(_compactions(chains))
        if len(judged) > _SHOWN:
            say(f"{exact(len(judged) - _SHOWN)} more compactions: --json has them", "dim", to=out)
    for chain in chains:
        for each in chain.unrecorded:
            say(
                f"{chain.log.session_id[:8]}: not compacted before response {exact(each.at + 1)}, "
                f"although {exact(each.size)} tokens had reached {exact(each.trigger.tokens)}",
                "dim",
                to=out,
            )


def _compactions(chains: Sequence[ChainResult]) -> Table:
    rows = [
        (chain, judged, paid)
        for chain in chains
        for judged, paid in zip(chain.judged, chain.paid, strict=True)
    ][:_SHOWN]
    columns = {
        "Session": [cell(chain.log.session_id[:8]) for chain, _, _ in rows],
        "#": [cell(str(each.compaction.number)) for _, each, _ in rows],
        "By": [cell(each.compaction.trigger) for _, each, _ in rows],
        "Trigger": [cell(_trigger(each)) for _, each, _ in rows],
        "At": [cell(exact(each.size)) for _, each, _ in rows],
        "After": [cell(exact(each.compaction.tokens_after)) for _, each, _ in rows],
        "Cost": [
            cell(None if paid is None else amount(Cost(paid.cost, is_complete=True)))
            for _, _, paid in rows
        ],
        "Paid off after": [cell(_paid(paid)) for _, _, paid in rows],
        "Position": [cell(_REASONS[each.verdict]) for _, each, _ in rows],
    }
    return _table(columns, ("By", "Cost", "Paid off after", "After", "Session", "Trigger"))


def _trigger(judged: Judged) -> str | None:
    return "" if judged.compaction.is_given else _known_from(judged.trigger)


def _known_from(trigger: RecordedTrigger | None) -> str | None:
    """Return a trigger; `~` for one that only the recorded compactions show."""
    if trigger is None:
        return None
    return f"{GUESS if trigger.source == 'learned' else ''}{exact(trigger.tokens)}"


def _known_all(triggers: Iterable[RecordedTrigger | None]) -> str | None:
    """Return the least and the largest of several triggers; `~` where one is only learned."""
    known = [each for each in triggers if each is not None]
    if not known:
        return None
    guess = GUESS if any(each.source == "learned" for each in known) else ""
    return guess + _triggers(each.tokens for each in known)


def _triggers(triggers: Iterable[int | None]) -> str:
    """Return the trigger of requests, the least and the largest of several."""
    triggers = set(triggers)
    known = sorted(each for each in triggers if each is not None)
    words = " to ".join(exact(each) for each in dict.fromkeys((*known[:1], *known[-1:])))
    return " or ".join(filter(None, (words, exact(None) if None in triggers else "")))


def _usually_paid(paid: UsualBreakEven) -> str:
    if not paid.known:
        return ""
    return "never" if paid.responses is None else exact(paid.responses)


def _paid(paid: BreakEven | None) -> str | None:
    """Return after how many responses a compaction paid off; `~` for more than there were."""
    if paid is None:
        return None
    if paid.responses is None:
        return "never" if paid.followed_by else "nothing followed"
    if paid.is_extrapolated:
        return f"{GUESS}{exact(paid.responses)} responses, {exact(paid.followed_by)} followed"
    return count(paid.responses, "response")


def _show_model(result: ModelResult) -> None:
    sessions = len({chain.log.session_id for chain in result.chains})
    model = result.model or "unknown model"
    say(
        f"{result.runtime or 'unknown runtime'} · {model}: {count(sessions, 'session')}, "
        f"{count(result.recorded.responses, 'response')}",
        "bold",
        to=out,
    )
    recorded = [recorded_triggers(chain.log)[-1] for chain in result.chains]
    rows = [_Row("recorded", _known_all(recorded), result.recorded, None, result.recorded_paid)]
    rows += [
        _Row(each.setting.name, _triggers(each.triggers), each.totals, each.change, each.paid)
        for each in result.settings
    ]
    _show_settings(rows)
    if (basis := _basis(result)) is not None:
        say(f"what a compaction leaves is taken from {basis}", "dim", to=out)
    for each in result.settings:
        if each.unknown:
            say(
                f"{each.setting.name}: {count(each.unknown, 'chain')} as recorded: what a "
                "compaction would have left is not known",
                "dim",
                to=out,
            )


def _basis(result: ModelResult) -> str | None:
    """Return whose recorded compactions stand for those that were not made, if other models'."""
    groups = {
        chain.facts.after.group
        for chain in result.chains
        if chain.facts.after is not None
        and any(each.recorded is None for own in chain.results for each in own.compactions)
    }
    runtime = result.runtime or "this runtime"
    if "all" in groups:
        return f"other runtimes: of {runtime} none was recorded"
    return f"other models of {runtime}" if "runtime" in groups else None


class _Row(NamedTuple):
    name: str
    trigger: str | None
    totals: RunTotals
    change: Change | None
    paid: UsualBreakEven


def _show_settings(rows: Sequence[_Row]) -> None:
    """Print what was recorded, and each setting."""
    out.print(_settings_table(rows))
    unreported = max(row.totals.unreported for row in rows)
    if unreported:
        words = f"at least: the output of {count(unreported, 'call')} is not reported"
        say(f"amounts are {words}, and in none", "dim", to=out)


def _settings_table(rows: Sequence[_Row]) -> Table:
    sums = [row.totals.usage.plus(row.totals.summaries) for row in rows]
    changes = [row.change for row in rows]
    columns = {
        "Setting": [cell(row.name) for row in rows],
        "Trigger": [cell(row.trigger) for row in rows],
        "Compactions": [cell(exact(row.totals.compactions)) for row in rows],
        "Paid off after": [cell(_usually_paid(row.paid)) for row in rows],
        "Time": [cell(_wait(row.totals)) for row in rows],
        "Fresh": [cell(thousands(each.input)) for each in sums],
        "Written": [cell(thousands(each.write_5m + each.write_1h)) for each in sums],
        "Read": [cell(thousands(each.read)) for each in sums],
        "Output": [cell(thousands(each.output)) for each in sums],
        "Cost": [cell(_cost(row.totals.cost)) for row in rows],
        "Difference": [cell(_difference(each)) for each in changes],
        "Warm": [cell("" if each is None else f"{GUESS}{signed(each.warm)}") for each in changes],
        "Cold": [cell("" if each is None else f"{GUESS}{signed(each.cold)}") for each in changes],
        "Warnings": [cell(exact(row.totals.warnings)) for row in rows],
        "Turns kept": [cell(_pins(row.totals)) for row in rows],
    }
    if not any(row.totals.pins for row in rows):
        del columns["Turns kept"]
    if not any(changes):
        for name in ("Difference", "Warm", "Cold"):
            del columns[name]
    return _table(columns, _STEPS)


def _show_sessions(chains: Sequence[ChainResult]) -> None:
    for chain in chains:
        if not any(each.compactions for each in chain.results) and not chain.judged:
            continue
        out.print()
        say(f"{chain.log.session_id[:8]} · {chain.log.chain} · {chain.log.model}", "bold", to=out)
        trigger = _known_from(recorded_triggers(chain.log)[-1])
        rows = [_Row("recorded", trigger, _sum(chain.recorded.values()), None, usual(chain.paid))]
        for each in chain.results:
            is_whole = len(each.changes) == len(chain.recorded)
            change = _of_session(list(each.changes.values())) if is_whole else None
            totals = _sum(each.totals.values())
            paid = usual(each.paid)
            triggers = _triggers(each.triggers)
            rows.append(_Row(each.setting.name, triggers, totals, change, paid))
        _show_settings(rows)


def _sum(parts: Iterable[RunTotals]) -> RunTotals:
    total = NO_TOTALS
    for each in parts:
        total = total.plus(each)
    return total


def _of_session(changes: Sequence[CostChange]) -> Change:
    """Return the change of one chain, with what is uncertain in its compactions alone."""
    middle, low, high, warm, cold = (
        sum(figures, Decimal(0)) for figures in zip(*changes, strict=True)
    )
    return Change(middle, low, high, warm, cold, 1)


def _show_rules(answer: WhatIfAnswer) -> None:
    rows = answer.rules
    columns = {
        "Kind": [cell(row.kind) for row in rows],
        "Rule": [cell(row.rule or "") for row in rows],
        "Recorded": [cell(exact(row.recorded)) for row in rows],
    }
    if any(row.derived_again is not None for row in rows):
        columns["Derived again"] = [cell(exact(row.derived_again)) for row in rows]
    for number, setting in enumerate(answer.settings):
        columns[setting.name] = [
            cell(exact(row.settings[number]) if row.settings else "") for row in rows
        ]
    out.print()
    out.print(_table(columns, ()))


def _table(columns: Mapping[str, Sequence[Text]], steps: Sequence[str]) -> Table:
    least = {"Difference": _INTERVAL_WIDTH}
    forms = {name: [Cells(texts, least.get(name))] for name, texts in columns.items()}
    numbers = [name for name in columns if name not in _LEFT]
    return fitted(forms, steps, table_width(), right=numbers)


def _wait(totals: RunTotals) -> str | None:
    if totals.untimed == totals.compactions and totals.compactions:
        return None
    if not totals.compactions:
        return ""
    guess = GUESS if totals.estimated else ""
    unknown = f" and {totals.untimed} unknown" if totals.untimed else ""
    return f"{guess}{duration(totals.wait_ms)}{unknown}"


def _cost(cost: Cost) -> str | None:
    return amount(cost) if cost.is_complete else None


def _difference(change: Change | None) -> str:
    if change is None:
        return ""
    if change.low == change.high:
        return f"{GUESS}{signed(change.amount)}"
    return f"{GUESS}{signed(change.amount)} ({signed(change.low)} to {signed(change.high)})"


def _pins(totals: RunTotals) -> str:
    return f"{exact(totals.pins_kept)} of {exact(totals.pins)}" if totals.pins else ""


def signed(change: Decimal) -> str:
    """Return a difference with its sign."""
    text = amount(Cost(change, is_complete=True)).removeprefix(GUESS)
    return f"+{text}" if change > 0 else text


def _advice(advice: Advice) -> str:
    name = f"{advice.runtime or 'unknown runtime'} · {advice.model or 'unknown model'}"
    if advice.verdict == "unknown_price":
        return f"{name}: no advice: a price is not known"
    if advice.verdict == "no_difference" and advice.change is None:
        return f"{name}: none of these settings would have cost less"
    change, own = advice.change, advice.runtime_setting
    if change is None or own is None or advice.setting is None:
        return (
            f"{name}: no advice: none of these settings is one size that is possible for all of "
            "its sessions; where their windows differ, compare sizes in tokens"
        )
    setting = f"{own.name} {exact(own.value)}"
    if own.value != advice.trigger_tokens:
        setting = f"{setting} (a compaction at {exact(advice.trigger_tokens)})"
    figures = f"{_difference(change)} in {count(change.sessions, 'session')}"
    if advice.verdict == "no_difference":
        return (
            f"{name}: no difference that exceeds the uncertainty; the cheapest is {setting}: "
            f"{figures}"
        )
    more = advice.compactions
    more_words = f"{'more' if more > 0 else 'fewer'} compaction"
    words = count(abs(more), more_words) if more else "as many compactions"
    doubt = ["smaller sizes were not compared"] if advice.is_lowest else []
    doubt += [
        f"with a {name} cache it costs more"
        for name, more_cost in (("warm", change.warm), ("cold", change.cold))
        if more_cost > 0
    ]
    return f"{name}: use {setting}: {figures}, {words}" + "".join(f"; {each}" for each in doubt)
